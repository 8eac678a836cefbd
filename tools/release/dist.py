"""The directory of a release: everything that a user may want, with sums, and signed where a key is given.

    write(dist, cache, key, revision)

| file | what |
| --- | --- |
| `fastness-V-image.tar`, `fastness-agent-V-…`, `fastness-builder-V-…` | images as OCI archives with their signatures |
| `fastness-V.cdx.json`, `fastness-agent-V.cdx.json`, `fastness-builder-V.cdx.json` | what is in each |
| `fastness-V-….whl`, `fastness_agent-V-….whl` | wheels |
| `fastness-agent-V-ARCH.tar.gz` | the agent as one directory, for machines without Python |
| `fastness-V-crds.tar.gz`, `fastness-V-accounts.tar.gz` | definitions of our own kinds, and what each role may do |
| `fastness-V-crds-of-others.tar.gz` | definitions of kinds that belong to other projects, a directory for each set |
| `fastness-V.tgz` | the chart, where the tree has one |
| `NOTES.md`, `IMAGES` | what changed; digests by image |
| `SHA256SUMS`, `SHA256SUMS.sig`, `release.pub` | sums of all of these, their signature, the public key |

No secret is ever written there: the key is read from a file, and only its public half goes out.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import platform
import re
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from fastness.kinds.crd.sets import OWN, set_of
from tools import agent_image, agent_wheel
from tools.release import image, layout, sbom, signing
from tools.release.errors import ReleaseError
from tools.release.layer import EPOCH, LEVEL, add_tree
from tools.release.layout import Built
from tools.release.signing import PrivateKey

SUMS: Final = "SHA256SUMS"
SIGNATURE: Final = "SHA256SUMS.sig"
PUBLIC: Final = "release.pub"
IMAGES: Final = "IMAGES"
CHART: Final = image.HOME / "deploy" / "chart"
UNSIGNED: Final = "no key was given, so nothing is signed; `make release KEY=FILE` signs"


def write(dist: Path, cache: Path, key: PrivateKey | None, revision: str = "", *, strict: bool = True) -> list[Built]:
    """Write a release into a directory, which is emptied first of an older one; raises ReleaseError."""
    _emptied(dist)
    os.environ.setdefault(
        "SOURCE_DATE_EPOCH", str(EPOCH)
    )  # read by builders of wheels and by the compiler of byte code
    images = [_image(recipe, dist, cache, key, revision, strict=strict) for recipe in image.RECIPES]
    image.server_wheel(dist)
    agent_wheel.build(dist)
    _agent_directory(dist)
    add_manifests(dist)
    notes = release_notes((image.HOME / "CHANGELOG.md").read_text(), image.version())
    (dist / "NOTES.md").write_text(notes)
    (dist / IMAGES).write_text("".join(f"{each.name}:{each.tag} {each.digest}\n" for each in images))
    sums = sums_of(dist)
    (dist / SUMS).write_text(sums)
    if key is not None:
        (dist / SIGNATURE).write_text(f"{signing.sign(key, sums.encode())}\n")
        (dist / PUBLIC).write_bytes(signing.public_pem(key))
    return images


def _emptied(dist: Path) -> None:
    """A directory for a release; one that holds something else is left alone."""
    if dist.exists() and any(dist.iterdir()):
        if not (dist / SUMS).exists() and any(path.suffix != ".whl" for path in dist.iterdir()):
            hint = "Choose another directory, or empty this one yourself."
            raise ReleaseError("not-a-release", f"{dist} holds something that is not a release", hint)
        shutil.rmtree(dist)
    dist.mkdir(parents=True, exist_ok=True)


def _image(
    recipe: image.Recipe, dist: Path, cache: Path, key: PrivateKey | None, revision: str, *, strict: bool
) -> Built:
    with tempfile.TemporaryDirectory(dir=dist) as scratch:
        built = image.build(recipe, Path(scratch) / "layout", cache, revision=revision, strict=strict)
        if key is not None:
            signing.sign_image(built.layout, built.digest, key, recipe.name)
        layout.archive(built.layout, dist / f"{recipe.name}-{built.tag}-image.tar")
    (dist / f"{recipe.name}-{built.tag}.cdx.json").write_bytes(sbom.bill(built))
    return built


def _agent_directory(dist: Path) -> None:
    name = f"fastness-agent-{image.version()}-{platform.machine()}"
    with tempfile.TemporaryDirectory() as scratch, _without_times():
        agent_image.build(Path(scratch) / "agent")
        pack(Path(scratch) / "agent", dist / f"{name}.tar.gz", "fastness-agent/")


@contextmanager
def _without_times() -> Iterator[None]:
    """Let byte code carry a hash of its source and no time, while the block lasts (`py_compile` asks for this variable)."""
    before = os.environ.get("SOURCE_DATE_EPOCH")
    os.environ["SOURCE_DATE_EPOCH"] = str(EPOCH)
    try:
        yield
    finally:
        del os.environ["SOURCE_DATE_EPOCH"]
        if before is not None:
            os.environ["SOURCE_DATE_EPOCH"] = before


def add_manifests(dist: Path) -> None:
    """Definitions, accounts and the chart as archives."""
    version, definitions = image.version(), image.HOME / "deploy" / "crds"
    pack(image.HOME / "deploy" / "accounts", dist / f"fastness-{version}-accounts.tar.gz", "accounts/")
    with tempfile.TemporaryDirectory() as scratch:
        for path in sorted(definitions.glob("*.yaml")):
            whose = set_of(path.stem.partition(".")[2])
            target = Path(scratch) / ("crds" if whose == OWN else f"crds-of-others/{whose}")
            target.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target / path.name)
        # Two archives: whoever applies the first one writes over nothing that another operator has installed.
        for name in ("crds", "crds-of-others"):
            pack(Path(scratch) / name, dist / f"fastness-{version}-{name}.tar.gz", f"{name}/")
    if CHART.is_dir():
        pack(CHART, dist / f"fastness-{version}.tgz", "fastness/")


def pack(tree: Path, target: Path, prefix: str) -> None:
    """A directory as an archive that is the same wherever it is written; helm reads a chart like this."""
    with (
        target.open("wb") as raw,
        gzip.GzipFile(filename="", mode="wb", compresslevel=LEVEL, fileobj=raw, mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        add_tree(archive, tree, prefix)


def release_notes(changelog: str, version: str) -> str:
    """The part of the changelog about a version, or about what is not released yet; raises ReleaseError."""
    for title in (version, "Unreleased"):
        match = re.search(rf"^## \[{re.escape(title)}\].*?\n(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL)
        if match and match[1].strip():
            return f"# Fastness {version}\n\n{match[1].strip()}\n"
    raise ReleaseError("no-notes", f"CHANGELOG.md says nothing about {version}", "Write what changed for users.")


def sums_of(dist: Path) -> str:
    """The sums of all files of a release, as `sha256sum -c` reads them."""
    skipped = {SUMS, SIGNATURE, PUBLIC}
    files = sorted(path for path in dist.iterdir() if path.is_file() and path.name not in skipped)
    return "".join(f"{sha256_of(path)}  {path.name}\n" for path in files)


def sha256_of(path: Path) -> str:
    """The sum of one file."""
    with path.open("rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest()
