"""The files of an image, out of its layers: single paths of the tree that a machine would boot, without unpacking it anywhere.

    reader = LayerReader(wants, room)               # one for each layer, the lowest first
    for chunk in chunks: reader.feed(chunk)
    layers.append(reader.finish())
    tree = merged(layers)                           # path → what is there in the end

Layers are stacked as the image specification says (image-spec, layer.md): a file named `.wh.NAME` takes away what lower layers
have under NAME, `.wh..wh..opq` all that they have in its directory, and what is no directory takes away what was below it. Where
programs that unpack would differ (a path twice in one layer, one that a layer takes away and brings) the image is refused.

Links are not followed: what a path means behind one is decided on a machine, and nobody can say that here.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from fastness.formats.oci import OciError
from fastness.formats.tar_stream import Member, MemberKind, TarStream, bad_archive
from fastness.formats.zstd import MAGIC as _ZSTD

MAX_UNPACKED: Final = 16 * 1024**3
MAX_KEPT: Final = 320 * 1024**2
MAX_WANTED: Final = 2_000
MAX_MERGED: Final = 8_000
"""What all layers together may say of paths that are asked for: stacking compares each with those before."""
_GZIP: Final = b"\x1f\x8b"
_STEP: Final = 1024 * 1024
_AWAY: Final = ".wh."
_OPAQUE: Final = ".wh..wh..opq"
_PLAIN: Final = "Push the image with layers packed by gzip: `skopeo copy --dest-compress-format gzip`."
Wants = Callable[[str], bool]


@dataclass(slots=True)
class Room:
    """What all layers of an image together may still take: unpacked bytes that are looked through, bytes that are kept."""

    unpacked: int = MAX_UNPACKED
    room_for_files: int = MAX_KEPT


@dataclass(frozen=True, slots=True)
class Layer:
    """What one layer says about the paths that are asked for."""

    members: Mapping[str, Member] = field(default_factory=dict)
    removed: frozenset[str] = frozenset()
    opaque: frozenset[str] = frozenset()


class LayerReader:
    """Reads one layer as it comes; `wants` says which paths are asked for, `hashes` of which files only the SHA-256."""

    def __init__(
        self, wants: Wants, room: Room, *, hashes: Wants = lambda _path: False, most_paths: int = MAX_WANTED
    ) -> None:
        self._wants = wants
        self._room = room
        self._most_paths = most_paths
        self._tar = TarStream(self._kept, most=room.room_for_files, hashes=lambda member: hashes(member.path))
        self._head = b""
        self._unpack: zlib._Decompress | None = None
        self._begun = False
        self._count = 0

    def feed(self, chunk: bytes) -> None:
        """The next bytes of the layer, packed or not; raises OciError."""
        if not self._begun:
            self._head += chunk
            if len(self._head) < len(_ZSTD):
                return
            chunk, self._head, self._begun = self._head, b"", True
            if chunk.startswith(_ZSTD):
                raise OciError("layer-zstd", "a layer is packed with zstd, which is not read here", hint=_PLAIN)
            self._unpack = zlib.decompressobj(wbits=31) if chunk.startswith(_GZIP) else None
        if self._unpack is None:
            self._plain(chunk)
        else:
            self._packed(chunk)

    def finish(self) -> Layer:
        """What the layer says; raises OciError for one that is cut off."""
        if self._head or (self._unpack is not None and not self._unpack.eof):
            raise bad_archive("the layer is cut off")
        members = self._tar.finish()
        self._room.room_for_files -= sum(len(member.content or b"") for member in members)
        return _layer(members)

    def _packed(self, chunk: bytes) -> None:
        while chunk and self._unpack is not None:
            if self._unpack.eof:
                if not chunk.startswith(_GZIP[: len(chunk)]):
                    raise bad_archive("something follows the packed layer")
                self._unpack = zlib.decompressobj(wbits=31)
            try:
                self._plain(self._unpack.decompress(chunk, _STEP))
            except zlib.error as error:
                raise bad_archive(f"the layer cannot be unpacked: {error}") from error
            chunk = self._unpack.unused_data if self._unpack.eof else self._unpack.unconsumed_tail

    def _plain(self, content: bytes) -> None:
        self._room.unpacked -= len(content)
        if self._room.unpacked < 0:
            raise bad_archive("the layers unpack to more than is looked through", "layer-too-large")
        self._tar.feed(content)

    def _kept(self, member: Member) -> bool:
        matches = self._wants(_meant(member.path))
        self._count += matches
        if self._count > self._most_paths:
            raise bad_archive(f"more than {self._most_paths} paths of a layer are asked for", "layer-too-large")
        return matches


def merged(layers: Sequence[Layer]) -> dict[str, tuple[int, Member]]:
    """What is there in the end: by path the number of its layer, and the member; raises OciError."""
    if sum(len(layer.members) + len(layer.removed) + len(layer.opaque) for layer in layers) > MAX_MERGED:
        raise bad_archive(f"more than {MAX_MERGED} paths of the layers are asked for", "layer-too-large")
    tree: dict[str, tuple[int, Member]] = {}
    # Every directory above a path that ever was: only there may something lie below, and whole trees have many files.
    above: set[str] = set()
    for number, layer in enumerate(layers):
        for directory in layer.opaque:
            _drop(tree, [path for path in tree if _below(path, directory)])
        for gone in layer.removed:
            _drop(tree, [path for path in tree if _below(path, gone)] if gone in above else ())
            tree.pop(gone, None)
        for path, member in layer.members.items():
            if member.kind is not MemberKind.DIRECTORY:
                _drop(tree, [other for other in tree if _below(other, path)] if path in above else ())
            elif path in tree and tree[path][1].kind is MemberKind.DIRECTORY:
                continue
            tree[path] = (number, member)
            directory = path.rpartition("/")[0]
            while directory and directory not in above:
                above.add(directory)
                directory = directory.rpartition("/")[0]
    return tree


def _meant(path: str) -> str:
    """The path that a member is about: of a whiteout what it takes away, of an opaque directory the directory."""
    directory, _, name = path.rpartition("/")
    if name == _OPAQUE:
        return directory
    return path if not name.startswith(_AWAY) else f"{directory}/{name[len(_AWAY) :]}".lstrip("/")


def _layer(members: Iterable[Member]) -> Layer:
    files: dict[str, Member] = {}
    removed, opaque = set[str](), set[str]()
    for member in members:
        name = member.path.rpartition("/")[2]
        if name == _OPAQUE:
            opaque.add(_meant(member.path))
        elif name.startswith(_AWAY):
            removed.add(_meant(member.path))
        elif (twice := files.get(member.path)) is not None and {twice.kind, member.kind} != {MemberKind.DIRECTORY}:
            raise bad_archive(f"{member.path!r} is in a layer twice", "layer-ambiguous")
        else:
            files[member.path] = member
    both = sorted(path for path in removed if path in files and files[path].kind is not MemberKind.DIRECTORY)
    above = {"/".join(parts[:depth]) for parts in (path.split("/") for path in files) for depth in range(1, len(parts))}
    under = sorted(path for path in above if path in files and files[path].kind is not MemberKind.DIRECTORY)
    for path in (*both, *under):
        raise bad_archive(f"a layer says two things about {path!r}", "layer-ambiguous")
    return Layer(files, frozenset(removed), frozenset(opaque))


def _below(path: str, directory: str) -> bool:
    return not directory or path.startswith(f"{directory}/")


def _drop(tree: dict[str, tuple[int, Member]], paths: Iterable[str]) -> None:
    for path in paths:
        del tree[path]
