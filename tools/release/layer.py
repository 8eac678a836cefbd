"""A directory as a layer of an image: a tar archive, packed with gzip, that follows from names and contents alone.

    kept(cache, key, make)     the layer of a key, from the cache or made by `make`, which fills an empty directory

Entries are sorted; every owner is 0, every time `EPOCH`, every mode 0755 or 0644 (1777 for /tmp). One builder at a time, and a
layer appears by rename.
"""

from __future__ import annotations

import ast
import gzip
import hashlib
import json
import os
import shutil
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

EPOCH: Final = 1_700_000_000  # of every file: the time of a build says nothing about what was built
LEVEL: Final = 6


@dataclass(frozen=True, slots=True)
class Component:
    """A package in an image: which, from which bytes, under which licences."""

    source: str
    """deb or pypi."""
    name: str
    version: str
    sha256: str
    licences: tuple[str, ...]

    @property
    def purl(self) -> str:
        """Its package URL."""
        if self.source == "deb":
            escaped = self.version.replace("+", "%2B").replace(":", "%3A")
            return f"pkg:deb/debian/{self.name.replace('+', '%2B')}@{escaped}?distro=debian-12"
        return f"pkg:pypi/{self.name}@{self.version}"


@dataclass(frozen=True, slots=True)
class Layer:
    """A packed layer that is here, and what is in it."""

    blob: Path
    digest: str
    size: int
    diff_id: str
    components: tuple[Component, ...]


Make = Callable[[Path], tuple[Component, ...]]


def kept(cache: Path, key: str, make: Make) -> Layer:
    """The layer of a key; `make` fills a directory when there is none yet. The caller holds the lock of the cache."""
    facts, blob = cache / f"layer-{key}.json", cache / f"layer-{key}.tar.gz"
    if not facts.exists():
        with tempfile.TemporaryDirectory(dir=cache) as scratch:
            tree = Path(scratch) / "tree"
            tree.mkdir()
            components = make(tree)
            partial = Path(scratch) / "layer"
            digests = pack(tree, partial)
            partial.rename(blob)
            document = {**digests, "components": [asdict(component) for component in components]}
            (Path(scratch) / "facts").write_text(json.dumps(document))
            (Path(scratch) / "facts").rename(facts)
    return _layer(blob, json.loads(facts.read_text()))


def _layer(blob: Path, facts: Mapping[str, Any]) -> Layer:
    components = tuple(Component(**{**each, "licences": tuple(each["licences"])}) for each in facts["components"])
    return Layer(blob, facts["digest"], blob.stat().st_size, facts["diff_id"], components)


def key_of(*parts: str) -> str:
    """A name for everything that goes into a layer."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:24]


def builder_key() -> str:
    """A name for the code here: what it makes of the same pins may differ after a change."""
    here = Path(__file__).parent
    modules = ("debian", "wheels", "bytecode", "layer", "image")
    # As the compiler reads them: a comment changes no layer.
    return key_of(*(ast.dump(ast.parse((here / f"{module}.py").read_text())) for module in modules))


class _Hashing:
    """A file to write to that also takes the digest of what is written."""

    def __init__(self, sink: BinaryIO | gzip.GzipFile) -> None:
        self._sink = sink
        self._hash = hashlib.sha256()

    def write(self, content: bytes) -> int:
        self._hash.update(content)
        return self._sink.write(content)

    def flush(self) -> None:
        self._sink.flush()

    @property
    def digest(self) -> str:
        return f"sha256:{self._hash.hexdigest()}"


def pack(tree: Path, target: Path) -> dict[str, str]:
    """Write a directory as a packed layer; its digests, packed and plain."""
    with target.open("wb") as raw:
        packed = _Hashing(raw)
        with gzip.GzipFile(filename="", mode="wb", compresslevel=LEVEL, fileobj=packed, mtime=0) as zipped:
            plain = _Hashing(zipped)
            with tarfile.open(fileobj=plain, mode="w|", format=tarfile.PAX_FORMAT) as archive:  # type: ignore[call-overload]
                add_tree(archive, tree)
    return {"digest": packed.digest, "diff_id": plain.digest}


def add_tree(archive: tarfile.TarFile, tree: Path, prefix: str = "") -> None:
    """Add everything below a directory, sorted and without what differs between two machines."""
    for path in _sorted(tree):
        entry = tarfile.TarInfo(f"{prefix}{path.relative_to(tree).as_posix()}")
        entry.mtime = EPOCH
        if path.is_symlink():
            entry.type, entry.mode, entry.linkname = tarfile.SYMTYPE, 0o777, os.readlink(path)
            archive.addfile(entry)
        elif path.is_dir():
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if entry.name == "tmp" else 0o755
            archive.addfile(entry)
        else:
            facts = path.stat()
            entry.mode, entry.size = 0o755 if facts.st_mode & 0o100 else 0o644, facts.st_size
            with path.open("rb") as source:
                archive.addfile(entry, source)


def _sorted(tree: Path) -> Iterator[Path]:
    for path in sorted(tree.iterdir()):
        yield path
        if path.is_dir() and not path.is_symlink():
            yield from _sorted(path)


def placed(blob: Path, target: Path) -> None:
    """The same bytes in another place, without copying where that can be."""
    try:
        os.link(blob, target)
    except OSError:
        shutil.copyfile(blob, target)
