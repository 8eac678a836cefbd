"""Debian's cloud kernel: TPM, serial port and EFI stub are built in, so no module is needed.

The package is what the archive offers now, because the pool drops old ones; its SHA-256 is the archive's own, from the signed
index. What was fetched stays in the user's cache by that hash.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import NoReturn

import pytest

META = "linux-image-cloud-amd64"


def cache() -> Path:
    """Where kernels are kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fastness" / "kernels"


def kernel() -> bytes:
    """The kernel image; skips the test by name where it cannot be had, or fails where CI=true."""
    found = offered()
    if found is None:
        kept = sorted(cache().glob("*/vmlinuz"), key=lambda path: path.stat().st_mtime)
        if not kept:
            unavailable(f"apt knows no {META}: run apt-get update")
        return kept[-1].read_bytes()
    package, digest = found
    path = cache() / digest / "vmlinuz"
    if not path.exists():
        _fetch(package, digest, path)
    return path.read_bytes()


def offered() -> tuple[str, str] | None:
    """The package that the archive offers now, and its SHA-256; None where nobody can say."""
    if shutil.which("apt-cache") is None:
        return None
    depends = re.search(r"Depends: (linux-image-\S+)", _said("apt-cache", "depends", META))
    if depends is None:
        return None
    digest = re.search(r"^SHA256: ([0-9a-f]{64})$", _said("apt-cache", "show", "--no-all-versions", depends[1]), re.M)
    return (depends[1], digest[1]) if digest else None


def _said(*command: str) -> str:
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C"}
    ).stdout


def _fetch(package: str, digest: str, path: Path) -> None:
    path.parent.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent.parent) as scratch:
        place = Path(scratch)
        run = subprocess.run(
            ["apt-get", "download", "-q", package], cwd=place, capture_output=True, text=True, check=False
        )
        deb = next(place.glob("*.deb"), None)
        if deb is None:
            unavailable(f"apt-get download {package}: {run.stderr.strip()[-300:]}")
        if hashlib.sha256(deb.read_bytes()).hexdigest() != digest:
            pytest.fail(f"{deb.name} is not what the archive's index says", pytrace=False)
        subprocess.run(["dpkg-deb", "-x", deb.name, "tree"], cwd=place, check=True)
        (image,) = (place / "tree" / "boot").glob("vmlinuz-*")
        (place / "kept").mkdir()
        image.rename(place / "kept" / "vmlinuz")
        if not path.parent.exists():
            (place / "kept").rename(path.parent)


def unavailable(text: str) -> NoReturn:
    """Skip the test by name, or fail where CI=true."""
    text = f"no kernel to boot: {text}"
    if os.environ.get("CI", "").lower() == "true":
        pytest.fail(text, pytrace=False)
    pytest.skip(text)
