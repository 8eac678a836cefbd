"""Images in a registry of tests: a base to build on, what anybody gets who pulls what was built, and who is still building."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx

from fastness.builds.containerfile import LAYER
from fastness.builds.live.sandbox import FIRST_USER, USERS
from tests.bed.images import MANIFEST, Image, busybox_image, pause_image, push
from tests.components import require_program
from tests.e2e.machineconfig.local_registry import LocalRegistry


def pushed_busybox(registry: LocalRegistry) -> str:
    """An image with a shell, by digest."""
    return pushed(registry, busybox_image(_busybox()))


def pushed_other(registry: LocalRegistry) -> str:
    """Another image with a shell and little else, by digest."""
    return pushed(registry, replace(busybox_image(_busybox()), path="bed/other", layer=pause_image(_busybox()).layer))


def pushed_with(registry: LocalRegistry, files: Mapping[str, bytes]) -> str:
    """An image with a shell and some files, by digest."""
    image = busybox_image(_busybox())
    sink = io.BytesIO(image.layer)
    with tarfile.open(fileobj=sink, mode="a", format=tarfile.PAX_FORMAT) as archive:
        # Directories are entries of their own: composefs makes none that no layer has.
        parents = {str(parent) for name in files for parent in Path(name).parents} - {"."}
        for name in sorted(parents - {member.name.strip("./") for member in archive.getmembers()}):
            directory = tarfile.TarInfo(name)
            directory.type, directory.mode = tarfile.DIRTYPE, 0o755
            archive.addfile(directory)
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o644
            archive.addfile(entry, io.BytesIO(content))
    return pushed(registry, replace(image, path="bed/with", layer=sink.getvalue()))


def _busybox() -> Path:
    return require_program(Path("/bin/busybox"), "busybox-static")


def pushed(registry: LocalRegistry, image: Image) -> str:
    """Push an image; its name by digest."""
    push(registry.url, image)
    with httpx.Client(base_url=registry.url, trust_env=False) as http:
        answer = http.head(f"/v2/{image.path}/manifests/{image.tag}", headers={"accept": MANIFEST}).raise_for_status()
    return f"{registry.address}/{image.path}@{answer.headers['docker-content-digest']}"


def layer_notes(registry: LocalRegistry, image: str) -> list[str]:
    """What the manifest of an image says of each of its layers; empty for one of which it says nothing."""
    path, digest = image.removeprefix(f"{registry.address}/").split("@")
    url = f"{registry.url}/v2/{path}/manifests/{digest}"
    manifest = httpx.get(url, headers={"accept": MANIFEST}, trust_env=False).raise_for_status().json()
    return [(layer.get("annotations") or {}).get(LAYER, "") for layer in manifest["layers"]]


def pulled(registry: LocalRegistry, image: str) -> tuple[dict[str, bytes], dict[str, Any], list[str]]:
    """Every file of an image, lower layers first, its configuration, and the digests of its layers; as anybody pulls it."""
    path, digest = image.removeprefix(f"{registry.address}/").split("@")
    with httpx.Client(base_url=registry.url, trust_env=False) as http:
        manifest = http.get(f"/v2/{path}/manifests/{digest}", headers={"accept": MANIFEST}).raise_for_status().json()
        config = http.get(f"/v2/{path}/blobs/{manifest['config']['digest']}").raise_for_status().json()
        files: dict[str, bytes] = {}
        for layer in manifest["layers"]:
            packed = http.get(f"/v2/{path}/blobs/{layer['digest']}").raise_for_status().content
            with tarfile.open(fileobj=io.BytesIO(gzip.decompress(packed))) as archive:
                for member in archive:
                    content = archive.extractfile(member) if member.isreg() else None
                    files[member.name] = content.read() if content else member.linkname.encode()
    return files, config, [layer["digest"] for layer in manifest["layers"]]


def everything(registry: LocalRegistry, path: str) -> list[bytes]:
    """All that anybody can pull of a repository: every manifest, configuration and layer of every tag, unpacked."""
    with httpx.Client(base_url=f"{registry.url}/v2/{path}", trust_env=False) as http:
        contents: list[bytes] = []
        for tag in tags(registry, path):
            answer = http.get(f"/manifests/{tag}", headers={"accept": MANIFEST}).raise_for_status()
            manifest = answer.json()
            parts = [
                http.get(f"/blobs/{part['digest']}").raise_for_status().content
                for part in (manifest["config"], *manifest["layers"])
            ]
            contents += [
                answer.content,
                *(gzip.decompress(part) if part[:2] == b"\x1f\x8b" else part for part in parts),
            ]
    return contents


def tags(registry: LocalRegistry, path: str) -> list[str]:
    """The tags of a repository; none for one that is not there."""
    answer = httpx.get(f"{registry.url}/v2/{path}/tags/list", trust_env=False)
    return list(answer.json().get("tags") or ()) if answer.status_code == httpx.codes.OK else []


def processes_of_builds(directory: Path) -> list[str]:
    """The processes of users of builds that see something below a directory; builds of other tests run beside these."""
    # A mount names its source from the root of its file system on, which need not be the root of the machine.
    source = f"/{'/'.join(directory.parts[-2:])}"
    mine = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            owner, mounts = place.stat().st_uid, (place / "mountinfo").read_text()
        except OSError:
            continue
        if FIRST_USER <= owner < FIRST_USER + USERS and source in mounts:
            mine.append(place.name)
    return mine
