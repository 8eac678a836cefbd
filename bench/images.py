"""Images: what a build costs the control plane beside its builder, and what it costs to say what machines will measure.

A build is measured in the world of `bench.rollouts`: the embedded API, its store on disk and all controllers, in one process; who
builds answers at once. A prediction reads the layers of an image as they come from a registry, the packed bytes hashed and all of
them unpacked and looked through, up to the manifest of values. Beside it stands what nobody can leave out: the same bytes hashed
and unpacked by the libraries in C, in the same run.

`python -m bench.images ROUNDS` prints the figures that `figures` reads: lists of milliseconds by name.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import random
import subprocess
import sys
import tarfile
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import orjson

from bench import configs
from bench.figures import Progress, Single, Spread
from bench.rollouts import CONFIGS, Machines, World, in_world, settled_memory
from fastness.builds.live.builder import Order
from fastness.builds.log import BuildLog
from fastness.builds.signing import Beside
from fastness.formats.oci_tree import LayerReader, Room, merged
from fastness.images.boot_files import boot_files, is_asked_for
from fastness.images.uki import write_uki
from fastness.images.whole_image import Platform, expect
from fastness.kinds.kind import JsonObject
from fastness.kinds.kubernetes.core import NAMESPACE, SECRET
from fastness.kinds.machineconfiguration import names
from fastness.kinds.machineconfiguration.os_config import MACHINE_OS_CONFIG
from fastness.kube.port import PatchType
from fastness.machineconfig.streams.access import RegistryAccess
from tests.measuredboot import minted

BUILD = "a build, control plane without its builder: CPU"
PREDICT = "values of an image with a root of 150 MB: CPU"
FLOOR = "the same bytes hashed and unpacked by zlib and OpenSSL alone: CPU"
RATIO = "a prediction costs, beside that"
BUILD_MS, PREDICT_MS = 200.0, 1000.0
ROOT_MB, UKI_MB, FILES = 150, 40, 4000
CHUNK = 1024 * 1024
ROOT = Path(__file__).resolve().parent.parent
DESCRIPTIONS = MACHINE_OS_CONFIG.resource


def figures(say: Progress, rounds: int) -> list[Single]:
    """Every figure, measured in a process that does nothing else."""
    say("builds and predictions")
    command = [sys.executable, "-m", "bench.images", str(rounds)]
    done = subprocess.run(command, check=True, capture_output=True, cwd=ROOT)
    spreads = {name: Spread.of(values) for name, values in orjson.loads(done.stdout).items()}
    times = spreads[PREDICT].median / spreads[FLOOR].median
    return [
        Single(BUILD, spreads[BUILD], "ms", BUILD_MS),
        Single(PREDICT, spreads[PREDICT], "ms", PREDICT_MS, peer=spreads[FLOOR].median),
        Single(RATIO, Spread(times, times, times), "×"),
    ]


# ------------------------------------------------------------ builds


class AtOnce:
    """A builder that has every image already."""

    async def obstacle(self) -> str:
        """There is none."""
        return ""

    async def build(self, order: Order, log: BuildLog) -> str:
        """An image whose digest is that of what goes in."""
        log.say("building")
        return f"{order.target.rpartition(':')[0]}@{order.inputs.digest}"

    async def forget(self, name: str) -> None:
        """Nothing was kept."""

    def runs(self, name: str) -> JsonObject | None:
        """Nothing runs."""
        return None

    async def require(self, image: str, access: RegistryAccess) -> None:
        """It is there."""

    async def delete(self, image: str, access: RegistryAccess) -> None:
        """Nothing to do."""

    async def put_beside(self, image: str, beside: Beside, access: RegistryAccess) -> None:
        """Nobody looks there."""


async def builds(count: int) -> list[float]:
    """Milliseconds of CPU of each of so many builds of one pool."""
    spent: list[float] = []

    async def measure(world: World, _machines: Machines) -> dict[str, float]:
        await _described(world)
        described = world.informers.of(DESCRIPTIONS)
        image = ""
        for number in range(count + 2):
            before, began = image, time.process_time()
            text = [{"containerfileArch": "NoArch", "content": f"RUN echo {number} > /etc/mine"}]
            await world.cluster.patch(DESCRIPTIONS, "worker", {"spec": {"containerFile": text}}, PatchType.MERGE)

            def is_new(before: str = before) -> bool:
                status = (described.get("", "worker") or {}).get("status") or {}
                return status.get("currentImagePullSpec", before) not in ("", before)

            await world.until(is_new)
            image = str(((described.get("", "worker") or {}).get("status") or {})["currentImagePullSpec"])
            if number == 1:
                settled_memory()
            spent.append(1000 * (time.process_time() - began))
        return {}

    await in_world(measure, lambda _: AtOnce())
    return spent[2:]  # the first ones load what all later ones find


async def _described(world: World) -> None:
    """What an administrator has before a first build."""
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": names.OPERATOR_NAMESPACE}}
    await world.cluster.create(NAMESPACE.resource, space)
    content = {".dockerconfigjson": base64.b64encode(b'{"auths": {}}').decode()}
    await world.cluster.create(SECRET.resource, {
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/dockerconfigjson", "data": content,
        "metadata": {"name": "push", "namespace": names.OPERATOR_NAMESPACE},
    })  # fmt: skip
    for config in configs.machine_configs(5, 50, 10):
        await world.cluster.create(CONFIGS, config)
    base = configs.machine_config("10-base", [])
    base["spec"]["osImageURL"] = f"registry.example/base@sha256:{'b' * 64}"
    await world.cluster.create(CONFIGS, base)
    await world.until(lambda: len(world.configuration().get("source") or ()) >= 9)
    await world.cluster.create(DESCRIPTIONS, {
        "apiVersion": names.API_VERSION, "kind": "MachineOSConfig", "metadata": {"name": "worker"},
        "spec": {
            "machineConfigPool": {"name": configs.ROLE}, "imageBuilder": {"imageBuilderType": "Job"},
            "renderedImagePushSecret": {"name": "push"}, "renderedImagePushSpec": "registry.example/os/worker:latest",
            "containerFile": [{"content": "RUN true"}],
        },
    })  # fmt: skip


# ------------------------------------------------------------ predictions


def layers(root: int = ROOT_MB * CHUNK, uki: int = UKI_MB * CHUNK, files: int = FILES) -> list[bytes]:
    """A base and a kernel image on top: half of the bytes like programs, half like text, packed as builders pack them."""
    chosen = random.Random(1)
    noise = chosen.randbytes(CHUNK)
    text = b"".join(b"key%d = value of %d\n" % (n, chosen.randrange(9999)) for n in range(40_000))
    size = (root - uki) // files
    names_of_files = [f"usr/lib/part{number % 50}/file-{number:05}" for number in range(files)]
    bodies = ((noise if number % 2 else text)[number : number + size] for number in range(files))
    base = _tar(zip(names_of_files, bodies, strict=True))
    sections = {**minted.sections(), ".initrd": noise * (uki // CHUNK)}
    kernel = _tar([("usr/lib/modules/6.1.0/os.efi", write_uki(minted.stub(), sections))])
    return [gzip.compress(each, 6, mtime=0) for each in (base, kernel)]


def _tar(entries: object) -> bytes:
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, body in entries:  # type: ignore[attr-defined]
            entry = tarfile.TarInfo(name)
            entry.size = len(body)
            archive.addfile(entry, io.BytesIO(body))
    return sink.getvalue()


def _pieces(layer: bytes) -> Iterator[bytes]:
    for at in range(0, len(layer), CHUNK):
        yield layer[at : at + CHUNK]


def predicted(packed: list[bytes]) -> float:
    """Milliseconds of CPU from packed layers to values."""
    began = time.process_time()
    room, read = Room(), []
    for layer in packed:
        reader, digest = LayerReader(is_asked_for, room), hashlib.sha256()
        for piece in _pieces(layer):
            digest.update(piece)
            reader.feed(piece)
        read.append(reader.finish())
    tree = {path: member for path, (_, member) in merged(read).items()}
    expected = expect(boot_files(tree), (Platform(),), ("tpm",))
    assert expected.manifest is not None, expected.missing
    return 1000 * (time.process_time() - began)


def unpacked(packed: list[bytes]) -> float:
    """Milliseconds of CPU of what nobody can leave out."""
    began = time.process_time()
    for layer in packed:
        digest, unpack = hashlib.sha256(), zlib.decompressobj(wbits=31)
        for piece in _pieces(layer):
            digest.update(piece)
            unpack.decompress(piece)
    return 1000 * (time.process_time() - began)


def main() -> None:
    """`python -m bench.images ROUNDS`: what `figures` reads."""
    import uvloop

    rounds = max(3, int(sys.argv[1]))
    packed = layers()
    both = [(predicted(packed), unpacked(packed)) for _ in range(rounds)]
    measured = {
        BUILD: uvloop.run(builds(4 * rounds)),
        PREDICT: [one for one, _ in both],
        FLOOR: [other for _, other in both],
    }
    sys.stdout.buffer.write(orjson.dumps(measured))


if __name__ == "__main__":
    main()
