"""The builder of this machine: buildah in a sandbox, transfers outside of it.

    lay out   the base is pulled by digest, files of the config and the Containerfile are written     network, credentials
    build     buildah in the sandbox: stages, RUN, an image as a directory                            neither
    collect   what it left is read, compared with digests, put on the layers of the base
    push      to the registry, under the tag of the build; the digest is that of the bytes here       network, credentials

So a credential and a Containerfile never meet, and a log can hold none. Same inputs, same digest: the time is fixed, the storage
driver is, and what could differ (order, names of working containers) is in no layer.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import ssl
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx

from fastness.builds import containerfile
from fastness.builds.errors import BuildFailed, TransferFailed
from fastness.builds.inputs import ImageFile
from fastness.builds.live.builder import Order
from fastness.builds.live.layout import MANIFEST, Made, blob_path, collect, write_base
from fastness.builds.live.sandbox import FIRST_USER
from fastness.builds.live.seal import LOOK, lay_out_seal, seal_obstacle, write_kernel_image
from fastness.formats import json, oci
from fastness.formats.errors import FormatError
from fastness.machineconfig.live.registry_session import DELETE, READ, WRITE, Refused, Session, opened, trust_in
from fastness.machineconfig.render.errors import BadStreams
from fastness.machineconfig.streams.access import Place, RegistryAccess
from fastness.observe.logs import logger
from fastness.runtime.tasks import uninterrupted

PROGRAM: Final = "buildah"
TIMESTAMP: Final = 0
MOST_BASE: Final = 32 * 1024**3
MOST_LOG: Final = 4 * 1024 * 1024
TAIL: Final = 2048
LOOK_EVERY: Final = 0.5
_BUILDAH: Final = f"{PROGRAM} --root /build/store --runroot /build/run --storage-driver vfs"
_SCRIPT: Final = (
    f"{_BUILDAH} bud --layers=false --timestamp {TIMESTAMP} --pull-never --network none --format oci "
    "-f /build/context/Containerfile -t built /build/context && "
    f"{_BUILDAH} push --quiet built oci:/build/out:built"
)
_SEAL: Final = (
    f"{_BUILDAH} bud --layers=false --timestamp {TIMESTAMP} --pull-never --network none --format oci "
    "-f /build/sealed/Containerfile -t sealed /build/sealed && "
    f"rm -rf /build/out/* && {_BUILDAH} push --quiet sealed oci:/build/out:built"
)
_log = logger("builds")


@dataclass(frozen=True, slots=True)
class BuildLimits:
    """What a build may use; `free` bytes must stay on the disk."""

    seconds: float = 3600.0
    processes: int = 2048
    memory: int = 8 * 1024**3
    file: int = 16 * 1024**3
    free: int = 1024**3


class Buildah:
    """Builds below a directory that only root can enter."""

    def __init__(self, directory: Path, limits: BuildLimits = BuildLimits()) -> None:  # noqa: B008
        # The process around a build starts in it, so a name that begins here would lead nowhere there.
        self._directory = directory.absolute()
        self._limits = limits
        self._obstacle: str | None = None

    async def obstacle(self) -> str:
        """Why nothing can be built here; asked of the machine until it can."""
        if self._obstacle != "":
            self._obstacle = await self._asked()
        return self._obstacle

    async def _asked(self) -> str:
        if shutil.which(PROGRAM) is None:
            return f"{PROGRAM} is not installed here: install the package {PROGRAM}; nothing is built meanwhile"
        if os.geteuid() != 0:
            return "this control plane does not run as root: builds need users of their own, which only root can give"
        work = self._directory / "probe"
        try:
            async with self._working(work):
                await uninterrupted(lambda: _give(work))
                output, code = await self._run(work, [PROGRAM, "--version"])
        except (OSError, BuildFailed) as error:
            return f"the sandbox of builds cannot be made here: {error}"
        return "" if code == 0 else f"the sandbox of builds cannot be made here: {output.strip()[-500:]}"

    async def build(self, order: Order) -> str:
        """Build and push; the image by digest; raises BuildFailed, TransferFailed."""
        work = self._directory / order.name
        try:
            async with self._working(work):
                await self._lay_out(order, work)
                await uninterrupted(lambda: _give(work))
                output, code = await self._run(work, ["/bin/sh", "-c", _SCRIPT])
                await uninterrupted(lambda: self._keep_log(order.name, output))
                if code != 0:
                    raise BuildFailed(f"buildah ended with {code}: {output.strip()[-TAIL:]}")
                if order.inputs.sealed:
                    await self._seal(work)
                made = await uninterrupted(lambda: collect(work / "out", work / "base"))
                return await self._push(order, made)
        except OSError as error:
            raise BuildFailed(f"{error.filename or self._directory}: {error.strerror}") from error

    async def seal_obstacle(self) -> str:
        """Why nothing can be sealed here; empty when it can."""
        return seal_obstacle()

    async def _seal(self, work: Path) -> None:
        """Give what was made the kernel image that names its root; raises BuildFailed, OSError."""
        for prepare, script in ((lay_out_seal, LOOK.format(buildah=_BUILDAH)), (write_kernel_image, _SEAL)):
            # Only what is new is given away: the owners of everything else are those of the image by now.
            made = await uninterrupted(lambda prepare=prepare: prepare(work))  # type: ignore[misc]
            await uninterrupted(lambda made=made: _give(made))  # type: ignore[misc]
            output, code = await self._run(work, ["/bin/sh", "-c", script])
            if code != 0:
                raise BuildFailed(f"the image cannot be sealed: {output.strip()[-TAIL:]}")

    async def require(self, image: str, access: RegistryAccess) -> None:
        """Have the registry show an image; raises TransferFailed."""
        await _one(access, oci.reference(image), READ, Session.exists, f"{image} is not in its registry")

    async def delete(self, image: str, access: RegistryAccess) -> None:
        """Take an image out of its registry; raises TransferFailed."""
        await _one(access, oci.reference(image), DELETE, Session.delete, f"{image} was not deleted")

    # ------------------------------------------------------------ before

    @asynccontextmanager
    async def _working(self, work: Path) -> AsyncIterator[None]:
        """A directory for one build, for the time of the block."""

        def begin() -> None:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            shutil.rmtree(work, ignore_errors=True)
            for name in ("base/blobs/sha256", "context/root", "store", "run", "tmp", "out"):
                (work / name).mkdir(parents=True)

        await uninterrupted(begin)
        try:
            yield
        finally:
            await uninterrupted(lambda: shutil.rmtree(work, ignore_errors=True))

    async def _lay_out(self, order: Order, work: Path) -> None:
        reference = oci.reference(order.inputs.base)
        if not reference.digest:
            raise BuildFailed(f"{order.inputs.base} is no image by digest")

        async def save(session: Session) -> None:
            body = await session.manifest_bytes()
            manifest = oci.manifest(body)
            if isinstance(manifest, oci.Index) or manifest.size > MOST_BASE:
                raise Refused(f"the image is a list of lists, or larger than {MOST_BASE} bytes")
            for layer in manifest.layers:
                await session.save(layer, blob_path(work / "base", layer.digest))
            config = await session.blob(manifest.config, oci.MAX_CONFIG)
            await uninterrupted(lambda: write_base(work / "base", body, config))

        await _any(order.pull, reference, save, f"the base image {reference} cannot be pulled")
        await uninterrupted(lambda: _write_context(work / "context", order))

    # ------------------------------------------------------------ the build

    async def _run(self, work: Path, command: list[str]) -> tuple[str, int]:
        """What a command in the sandbox said, and its exit code; raises BuildFailed where a limit ends it."""
        limits = {"processes": self._limits.processes, "memory": self._limits.memory, "file": self._limits.file}
        sandbox = [sys.executable, "-P", "-m", "fastness.builds.live.sandbox", str(work), json.encode(limits).decode()]
        environment = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
        process = await asyncio.create_subprocess_exec(
            *sandbox, *command, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT, env=environment, cwd=self._directory,
        )  # fmt: skip
        output = bytearray()
        listening = asyncio.ensure_future(_listen(process, output))
        try:
            async with asyncio.timeout(self._limits.seconds):
                while not (await asyncio.wait((listening,), timeout=LOOK_EVERY))[0]:
                    self._require_space(work)
                code = await process.wait()
        except TimeoutError as error:
            raise BuildFailed(f"the build did not end within {self._limits.seconds:.0f} seconds") from error
        finally:
            if process.returncode is None:
                process.kill()
                await asyncio.shield(process.wait())
            await asyncio.wait((listening,))
        return bytes(output).decode(errors="replace"), code

    def _require_space(self, work: Path) -> None:
        if shutil.disk_usage(work).free < self._limits.free:
            raise BuildFailed(f"the build was ended: less than {self._limits.free} bytes were left on the disk")

    def _keep_log(self, name: str, output: str) -> None:
        log = self._directory / f"{name}.log"
        log.write_text(output)
        log.chmod(0o600)

    # ------------------------------------------------------------ after

    async def _push(self, order: Order, made: Made) -> str:
        reference = oci.reference(order.target)

        async def push(session: Session) -> None:
            for part in made.parts:
                await session.upload(part.descriptor, part.path)
            await session.publish(reference.tag, made.manifest, MANIFEST)

        await _one(order.push, reference, WRITE, push, f"{reference} was not pushed")
        _log.info("build.pushed", build=order.name, image=str(reference.at(made.digest)))
        return str(reference.at(made.digest))


async def _listen(process: asyncio.subprocess.Process, output: bytearray) -> None:
    """What a process says, the last of it."""
    stream = process.stdout
    while stream is not None and (chunk := await stream.read(65536)):
        output += chunk
        if len(output) > MOST_LOG:
            del output[: len(output) - MOST_LOG]


def _write_context(context: Path, order: Order) -> None:
    """The files of the config and the Containerfile; raises OSError."""
    (context / "Containerfile").write_text(containerfile.whole(order.inputs.layer, order.labels))
    root = context / containerfile.ROOT
    for file in order.inputs.files:
        _write(root, file)


def _write(root: Path, file: ImageFile) -> None:
    path = root / file.path.lstrip("/")
    if ".." in path.parts:
        raise BuildFailed(f"{file.path} is no path of an image")
    path.parent.mkdir(parents=True, exist_ok=True)
    if file.link:
        path.symlink_to(file.link)
        return
    path.write_bytes(file.content)
    path.chmod(file.mode)


def _give(work: Path) -> None:
    """Everything below a directory belongs to the users of the build."""
    for place, directories, files in os.walk(work):
        for name in (*directories, *files):
            os.lchown(Path(place, name), FIRST_USER, FIRST_USER)
    os.lchown(work, FIRST_USER, FIRST_USER)


Ask = Callable[[Session], Awaitable[None]]


async def _one(access: RegistryAccess, reference: oci.Reference, actions: str, ask: Ask, failure: str) -> None:
    """Ask the registry that an image is named after, and nobody else; raises TransferFailed."""
    await _asked([access.place(reference)], access, actions, ask, failure)


async def _any(access: RegistryAccess, reference: oci.Reference, ask: Ask, failure: str) -> None:
    """Ask everybody who may have an image, in order; raises TransferFailed."""
    await _asked(list(access.places(reference)), access, READ, ask, failure)


async def _asked(places: list[Place], access: RegistryAccess, actions: str, ask: Ask, failure: str) -> None:
    reasons, absent = [], bool(places)
    try:
        trust = await asyncio.to_thread(trust_in, access.trust)
        for place in places:
            try:
                async with opened(place, trust, actions) as session:
                    return await ask(session)
            except (Refused, FormatError) as error:
                absent = absent and getattr(error, "status", 0) == httpx.codes.NOT_FOUND
                reasons.append(f"{place.reference.registry}: {error}")
            except httpx.HTTPError as error:
                absent = False
                reasons.append(f"{place.reference.registry} cannot be asked: {str(error) or type(error).__name__}")
    except (ssl.SSLError, BadStreams) as error:
        absent = False
        reasons.append(str(error))
    raise TransferFailed(f"{failure}: {'; '.join(reasons) or 'nobody may be asked'}", absent=absent)
