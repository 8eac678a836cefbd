"""Container images of a bed, made here and pushed to its registry: no builder, no network.

    push(registry_url, busybox_image())

A node asks the bed's registry for every image whatever host its name begins with, so an image is known by its path and tag alone.
Nothing in an image depends on the day it was made: equal programs make equal digests.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path

import httpx

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
# The first process of a pod's sandbox: it ends when it is asked to, and reaps meanwhile.
PAUSE = ("/bin/sh", "-c", "trap 'exit 0' TERM INT; sleep 2147483647 & wait")


@dataclass(frozen=True)
class Image:
    """An image of one layer: where it goes, its files as a tar archive, what it runs."""

    path: str
    tag: str
    layer: bytes
    command: tuple[str, ...] = ()
    entrypoint: tuple[str, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()

    def config(self) -> bytes:
        """The image configuration (OCI image spec, config.md)."""
        document = {
            "architecture": "arm64" if os.uname().machine == "aarch64" else "amd64",
            "os": "linux",
            "config": {
                "Entrypoint": list(self.entrypoint), "Cmd": list(self.command), "Env": ["PATH=/bin"],
                **({"Labels": dict(self.labels)} if self.labels else {}),
            },
            "rootfs": {"type": "layers", "diff_ids": [digest(self.layer)]},
        }  # fmt: skip
        return json.dumps(document).encode()


def digest(content: bytes) -> str:
    """The digest of some bytes, as registries write it."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def busybox_image(busybox: Path) -> Image:
    """A shell and the usual tools: the static busybox with its names."""
    applets = subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True).stdout.split()
    return Image("bed/busybox", "1", _layer(busybox, applets), ("/bin/sh",))


def pause_image(busybox: Path) -> Image:
    """What holds the namespaces of a pod."""
    return Image("bed/pause", "1", _layer(busybox, ["sh", "sleep"]), PAUSE)


def program_image(name: str, program: Path) -> Image:
    """One static program and nothing else; what a pod gives as arguments goes to it."""
    return Image(f"bed/{name}", "1", _layer(program, []), entrypoint=(f"/bin/{program.name}",))


def _layer(program: Path, links: list[str]) -> bytes:
    """A root with one program in /bin, by its own name and by these."""
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, mode in (("bin", 0o755), ("etc", 0o755), ("tmp", 0o1777)):
            archive.addfile(_entry(name, tarfile.DIRTYPE, mode))
        entry = _entry(f"bin/{program.name}", tarfile.REGTYPE, 0o755)
        entry.size = program.stat().st_size
        with program.open("rb") as source:
            archive.addfile(entry, source)
        for name in links:
            if name != program.name:
                link = _entry(f"bin/{name}", tarfile.SYMTYPE, 0o777)
                link.linkname = program.name
                archive.addfile(link)
    return sink.getvalue()


def _entry(name: str, kind: bytes, mode: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode = kind, mode
    return entry


def archived(image: Image, name: str) -> bytes:
    """An image as a tar archive that `ctr images import` reads (docker's form), under a name that includes its host."""
    config = image.config()
    config_name = f"{hashlib.sha256(config).hexdigest()}.json"
    manifest = [{"Config": config_name, "RepoTags": [name], "Layers": ["layer.tar"]}]
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w", format=tarfile.PAX_FORMAT) as archive:
        parts = {config_name: config, "layer.tar": image.layer, "manifest.json": json.dumps(manifest).encode()}
        for part, content in parts.items():
            entry = _entry(part, tarfile.REGTYPE, 0o644)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return sink.getvalue()


def push(registry: str, image: Image, login: tuple[str, str] | None = None) -> None:
    """Put an image into a registry (OCI distribution spec), with a login where it asks for one; raises httpx.HTTPError."""
    packed, config = gzip.compress(image.layer, 1, mtime=0), image.config()
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": {"mediaType": CONFIG, "digest": digest(config), "size": len(config)},
        "layers": [{"mediaType": LAYER, "digest": digest(packed), "size": len(packed)}],
    }
    with httpx.Client(base_url=registry, auth=login, trust_env=False, timeout=90) as http:
        for blob in (packed, config):
            place = http.post(f"/v2/{image.path}/blobs/uploads/").raise_for_status().headers["location"]
            http.put(place, params={**httpx.URL(place).params, "digest": digest(blob)}, content=blob).raise_for_status()
        headers = {"content-type": MANIFEST}
        http.put(
            f"/v2/{image.path}/manifests/{image.tag}", content=json.dumps(manifest), headers=headers
        ).raise_for_status()
