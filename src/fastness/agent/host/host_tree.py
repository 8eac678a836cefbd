"""What feature discovery reads: the files of a machine, behind the smallest possible port.

A `Directory` is a machine's root, or a copy of one, with `/proc` and `/sys` elsewhere if need be. A `Recording` is a machine that
somebody wrote down as one JSON document: `{"description": "…", "files": {"/proc/cpuinfo": "…"}}`; a name that ends in a slash is
a directory. Missing files are normal on every machine, so nothing here raises for them.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Protocol

from fastness.agent.host.errors import DriverError
from fastness.formats import json
from fastness.formats.errors import JsonError

MAX_FILE: Final = 4 * 1024 * 1024
MAX_NAMES: Final = 20_000


class BadRecording(DriverError):
    """A recorded machine that cannot be read."""

    code = "bad-recording"
    hint = 'A recording is {"description": "…", "files": {"/path": "content"}}.'


class Tree(Protocol):
    """The files of a machine, by absolute path."""

    def text(self, path: str) -> str | None:
        """The content, or None where there is no such file."""

    def names(self, path: str) -> list[str]:
        """What is in a directory, in order; empty where there is none."""

    def exists(self, path: str) -> bool:
        """Whether there is something."""


class Directory:
    """A machine's root; `/proc` and `/sys` may lie elsewhere."""

    def __init__(self, root: Path = Path("/"), proc: Path | None = None, sys: Path | None = None) -> None:
        self._root = root
        self._elsewhere = {"/proc/": proc or root / "proc", "/sys/": sys or root / "sys"}

    def _path(self, path: str) -> Path:
        for prefix, place in self._elsewhere.items():
            if path.startswith(prefix):
                return place / path.removeprefix(prefix)
        return self._root / path.lstrip("/")

    def text(self, path: str) -> str | None:
        """The content, unpacked if its name ends in .gz; what is not text is replaced."""
        try:
            with self._path(path).open("rb") as file:
                data = file.read(MAX_FILE)
            if path.endswith(".gz"):
                # Bounded: /proc/config.gz is the kernel's, a recording may be anybody's.
                data = zlib.decompressobj(wbits=31).decompress(data, MAX_FILE)
        except (OSError, zlib.error):
            return None
        return data.decode("utf-8", "replace")

    def names(self, path: str) -> list[str]:
        """What is in a directory."""
        try:
            return sorted(entry.name for entry in self._path(path).iterdir())[:MAX_NAMES]
        except OSError:
            return []

    def exists(self, path: str) -> bool:
        """Whether there is something."""
        try:
            return self._path(path).exists()
        except OSError:
            return False


class Recording:
    """A machine that was written down."""

    def __init__(self, files: Mapping[str, str], description: str = "") -> None:
        self.description = description
        self._files = {path: content for path, content in files.items() if not path.endswith("/")}
        self._directories: dict[str, set[str]] = {}
        for path in files:
            parts = path.strip("/").split("/")
            for depth in range(len(parts)):
                self._directories.setdefault("/" + "/".join(parts[:depth]), set()).add(parts[depth])
            if path.endswith("/"):
                self._directories.setdefault(path.rstrip("/"), set())

    def text(self, path: str) -> str | None:
        """The content."""
        return self._files.get(path)

    def names(self, path: str) -> list[str]:
        """What is in a directory."""
        return sorted(self._directories.get(path.rstrip("/") or "/", ()))

    def exists(self, path: str) -> bool:
        """Whether there is something."""
        return path in self._files or path.rstrip("/") in self._directories


def read_recording(data: bytes) -> Recording:
    """Read a recorded machine; raises BadRecording."""
    try:
        raw = json.decode(data)
    except JsonError as error:
        raise BadRecording(str(error)) from error
    files = raw.get("files") if isinstance(raw, dict) else None
    if not isinstance(files, dict) or not all(isinstance(content, str) for content in files.values()):
        raise BadRecording("files is not a mapping of paths to texts")
    # A recording is somebody's file, and its paths are joined to nothing; refused all the same, so that no later reader trusts
    # one.
    wrong = next((path for path in files if not path.startswith("/") or "//" in path or "/../" in path), None)
    if wrong is not None:
        raise BadRecording(f"{wrong!r} is not an absolute path")
    return Recording(files, str(raw.get("description", "")))


RECORDED: Final = Path(__file__).parent / "recorded"


def recorded_names() -> list[str]:
    """The machines that come with the product."""
    return sorted(path.stem for path in RECORDED.glob("*.json"))


def recorded(name: str) -> Recording:
    """A machine that comes with the product; raises BadRecording."""
    if name not in recorded_names():
        raise BadRecording(f"there is no recorded machine {name!r}; there are {', '.join(recorded_names())}")
    return read_recording((RECORDED / f"{name}.json").read_bytes())
