"""A small Debian with Python as a container image: the root that images of tests stand on.

    push(registry, python_base(cache_root(os.environ)))

It is made once with mmdebstrap from Debian's archive, and kept under the release and the list of packages: per run only what a
test adds on top is new. One maker at a time, and the archive appears by rename.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path

from tests.bed.images import Image
from tools.realkube import only_builder

RELEASE = "bookworm"
PACKAGES = ("python3-minimal",)
EPOCH = "1700000000"  # of every file, so that equal packages make equal archives
UNWANTED = ("doc", "info", "locale", "man")  # below /usr/share: nobody reads them there, and every node unpacks them
MAKE_SECONDS = 900.0


def key(packages: tuple[str, ...] = PACKAGES) -> str:
    """Name of the archive in the cache."""
    return hashlib.sha256(repr((RELEASE, packages, EPOCH, UNWANTED)).encode()).hexdigest()[:16]


def python_base(cache: Path) -> Image:
    """The image, from the cache or made for it; raises CalledProcessError with what mmdebstrap wrote."""
    return Image("bed/python", "1", debian(cache, PACKAGES).read_bytes(), ("/usr/bin/python3",))


def debian(cache: Path, packages: tuple[str, ...]) -> Path:
    """An archive of a small Debian with these packages, from the cache or made for it; raises CalledProcessError."""
    cache.mkdir(parents=True, exist_ok=True)
    archive = cache / f"base-{key(packages)}.tar"
    if archive.exists():  # it appears by rename: nobody has to wait for whoever makes another one
        return archive
    with only_builder(cache / "base.lock"):
        if not archive.exists():
            _make(archive, packages)
    return archive


def _make(archive: Path, packages: tuple[str, ...]) -> None:
    partial = archive.with_name(f"{archive.name}.partial.tar")
    left_out = [f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in UNWANTED]
    made_of = ["--variant=minbase", f"--include={','.join(packages)}", *left_out]
    words = ["--quiet", "--format=tar", *made_of, RELEASE, str(partial)]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": EPOCH}
    subprocess.run(["mmdebstrap", *words], check=True, capture_output=True, timeout=MAKE_SECONDS, env=environment)
    partial.rename(archive)
