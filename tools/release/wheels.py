"""The dependencies of an image in Python: wheels that `requirements/run.lock` names by version and hash.

    wheels(lock, cache)              the files, from the cache or fetched by pip
    unpack(wheel, tree)              its modules where the interpreter of the image looks for them
    component(wheel)                 what it says of itself

Nothing of a wheel runs here, and pip installs nothing: a wheel is an archive, and its modules are taken from it as they are.
"""

from __future__ import annotations

import email.parser
import hashlib
import platform
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Collection
from pathlib import Path
from typing import Final, NamedTuple

from packaging.tags import Tag, cpython_tags
from packaging.utils import canonicalize_name, parse_wheel_filename

from tools.release.errors import ReleaseError
from tools.release.layer import Component, key_of

LOCK: Final = Path(__file__).parents[2] / "requirements" / "run.lock"
MODULES: Final = "usr/local/lib/python3.11/dist-packages"
DOWNLOAD_SECONDS: Final = 900.0
C_LIBRARY: Final = (2, 36)  # of Debian 12; a wheel for a newer one would not load
_REQUIREMENT: Final = re.compile(r"^([A-Za-z0-9._-]+)==[^\\\n]+(?:\\\n +--hash=\S+ ?)+", re.MULTILINE)
_SPDX: Final = re.compile(r"[A-Za-z0-9.+() -]{1,80}")


class Wheel(NamedTuple):
    """A wheel that is here."""

    path: Path
    name: str
    version: str

    @property
    def sha256(self) -> str:
        """The hash of the file."""
        return hashlib.sha256(self.path.read_bytes()).hexdigest()


def requirements(lock: str) -> dict[str, str]:
    """The requirements of a lock, each as it stands there, by name."""
    return {canonicalize_name(match[1]): match[0].rstrip() for match in _REQUIREMENT.finditer(lock)}


def wheels(lock: str, cache: Path, only: Collection[str] | None = None) -> list[Wheel]:
    """The wheels of a lock, or those with these names; raises ReleaseError."""
    directory = cache / f"wheels-{key_of(lock, sys.version)}"
    if not directory.exists():
        _download(lock, directory)
    named = [wheel(path) for path in sorted(directory.glob("*.whl"))]
    chosen = [each for each in named if only is None or each.name in only]
    lines = requirements(lock)
    for each in chosen:
        # The cache is a directory of the user, who may have changed it since pip compared.
        if f"--hash=sha256:{each.sha256}" not in lines.get(each.name, ""):
            raise ReleaseError("wheel-changed", f"{each.path.name} is not what the lock names", f"Remove {directory}.")
    return chosen


def _download(lock: str, directory: Path) -> None:
    with tempfile.TemporaryDirectory(dir=directory.parent) as scratch:
        listed, target = Path(scratch) / "requirements.txt", Path(scratch) / "wheels"
        listed.write_text(lock)
        command = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "-q",
            "--require-hashes",
            "--no-deps",
            "--only-binary",
            ":all:",
        ]
        done = subprocess.run(
            [*command, "-r", str(listed), "-d", str(target)],
            capture_output=True, text=True, check=False, timeout=DOWNLOAD_SECONDS,
        )  # fmt: skip
        if done.returncode:
            raise ReleaseError(
                "wheels", f"pip gets no wheels: {done.stderr[-2000:]}", "Look at the network and the index."
            )
        target.rename(directory)


def wheel(path: Path) -> Wheel:
    """A file as a wheel; raises ReleaseError where the image could not load it."""
    name, version, _, tags = parse_wheel_filename(path.name)
    if not tags & _loadable():
        hint = "Build on Debian 12 with Python 3.11, where pip takes the wheels that it can load."
        raise ReleaseError("wheel-platform", f"{path.name} is for another Python or a newer C library", hint)
    return Wheel(path, name, str(version))


def _loadable() -> set[Tag]:
    machine, (major, minor) = platform.machine(), C_LIBRARY
    platforms = [f"manylinux_{major}_{number}_{machine}" for number in range(minor, 4, -1)]
    platforms += [
        f"manylinux2014_{machine}",
        f"manylinux2010_{machine}",
        f"manylinux1_{machine}",
        f"linux_{machine}",
        "any",
    ]
    native = cpython_tags((3, 11), platforms=platforms)
    return {
        *native,
        *parse_wheel_filename("x-1-py3-none-any.whl")[3],
        *parse_wheel_filename("x-1-py2.py3-none-any.whl")[3],
    }


def unpack(each: Wheel, tree: Path) -> None:
    """Put the modules of a wheel into a tree; raises ReleaseError for a name that would lie outside."""
    modules = tree / MODULES
    modules.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(each.path) as archive:
        for entry in archive.infolist():
            name = _place(entry.filename)
            if entry.is_dir() or name is None:
                continue
            if ".." in Path(name).parts or name.startswith("/"):
                raise ReleaseError("wheel-path", f"{each.path.name} has a file {name}", "Do not use that wheel.")
            target = modules / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(archive.read(entry))
            target.chmod(0o755 if entry.external_attr >> 16 & 0o100 else 0o644)


def _place(name: str) -> str | None:
    """Where a file of a wheel belongs below the modules; None for scripts, headers and data (PEP 427)."""
    first, _, rest = name.partition("/")
    if not first.endswith(".data"):
        return name
    scheme, _, inner = rest.partition("/")
    return inner if scheme in ("purelib", "platlib") else None


def component(each: Wheel) -> Component:
    """What a wheel says of itself."""
    with zipfile.ZipFile(each.path) as archive:
        (place,) = [name for name in archive.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", name)]
        fields = email.parser.BytesParser().parsebytes(archive.read(place))
    licence = str(fields["License-Expression"] or "")
    classified = [
        value.rpartition(" :: ")[2] for value in fields.get_all("Classifier", []) if value.startswith("License")
    ]
    # Some put the whole text there; a name is a line.
    stated = str(fields["License"] or "").strip()
    names = [licence] if licence else [stated] if _SPDX.fullmatch(stated) else classified
    return Component("pypi", each.name, each.version, each.sha256, tuple(names))
