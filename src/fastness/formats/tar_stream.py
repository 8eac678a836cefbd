"""Tar archives that come in pieces: every member in order, the content only of those that somebody wants.

    stream = TarStream(lambda member: member.path == "boot/vmlinuz", most=…)
    for chunk in chunks: stream.feed(chunk)
    stream.finish()                                 # the members that were wanted

Written for archives of strangers (layers of images), so strict where programs that unpack differ: what one of them would read
in another way than the next is refused, not guessed. That is: a name that leads out of the archive, a checksum that is wrong, an
end that is followed by something, sparse files that are wanted, global headers that rename, two headers that name one member,
content behind what is no file, kinds that nobody knows.

The layouts are ustar, its extended headers of POSIX.1-2001 (`path`, `linkpath`, `size`) and the long names of GNU.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from fastness.formats.oci import OciError

BLOCK: Final = 512
MAX_MEMBERS: Final = 1_000_000
MAX_NAME: Final = 4096
MAX_EXTENSION: Final = 64 * 1024
_OCTAL: Final = re.compile(rb"[ \0]*([0-7]{0,21})[ \0]*\Z")
_RECORD: Final = re.compile(rb"([1-9][0-9]{0,5}) ([!-<>-~]{1,256})=")
_HINT: Final = "Build the image anew with a current builder; its layers are plain tar archives."


class MemberKind(StrEnum):
    """What a member is."""

    FILE = "file"
    HARD_LINK = "hard link"
    LINK = "link"
    DIRECTORY = "directory"
    OTHER = "device or pipe"


@dataclass(frozen=True, slots=True)
class Member:
    """One member: its path without a slash in front, and its content where it is a file that was wanted.

    `digest` is the SHA-256 of a file of which only that is kept.
    """

    path: str
    kind: MemberKind
    size: int = 0
    target: str = ""
    content: bytes | None = None
    mode: int = 0
    digest: str = ""


_KINDS: Final = {
    b"0": MemberKind.FILE, b"\0": MemberKind.FILE, b"7": MemberKind.FILE, b"1": MemberKind.HARD_LINK, b"2": MemberKind.LINK,
    b"3": MemberKind.OTHER, b"4": MemberKind.OTHER, b"5": MemberKind.DIRECTORY, b"6": MemberKind.OTHER,
}  # fmt: skip
_EXTENSIONS: Final = frozenset((b"x", b"g", b"L", b"K"))


def bad_archive(message: str, code: str = "layer") -> OciError:
    """An archive that is not read."""
    return OciError(code, message, hint=_HINT)


class TarStream:
    """Reads an archive as it comes. `wants` hears of every member, and says whether it is kept; at most `most` bytes are.

    Of files for which `hashes` says so only the SHA-256 is kept.
    """

    def __init__(
        self, wants: Callable[[Member], bool], *, most: int, members: int = MAX_MEMBERS,
        hashes: Callable[[Member], bool] = lambda _member: False,
    ) -> None:  # fmt: skip
        self._wants = wants
        self._hashes = hashes
        self._hash: hashlib._Hash | None = None
        self._left, self._members_left = most, members
        self._block = bytearray()
        self._skip = 0
        self._sink: bytearray | None = None
        self._missing = 0
        self._extension = b""
        self._member: Member | None = None
        self._long: dict[str, bytes] = {}
        self._zeros = 0
        self._kept: list[Member] = []

    def feed(self, data: bytes) -> None:
        """The next piece; raises OciError."""
        at = 0
        while at < len(data):
            if self._skip:
                step = min(self._skip, len(data) - at)
                self._skip -= step
            elif self._hash is not None:
                step = min(self._missing, len(data) - at)
                self._hash.update(data[at : at + step])
                self._missing -= step
                if not self._missing:
                    self._hashed()
            elif self._sink is not None:
                step = min(self._missing, len(data) - at)
                self._sink += data[at : at + step]
                self._missing -= step
                if not self._missing:
                    self._collected(bytes(self._sink))
            else:
                step = min(BLOCK - len(self._block), len(data) - at)
                self._block += data[at : at + step]
                if len(self._block) == BLOCK:
                    block = bytes(self._block)
                    self._block.clear()
                    self._header(block)
            at += step

    def finish(self) -> list[Member]:
        """The members that were wanted; raises OciError for an archive that is cut off."""
        if self._block or self._skip or self._sink is not None or self._hash is not None or self._long:
            raise bad_archive("the archive is cut off")
        return self._kept

    def _header(self, block: bytes) -> None:
        if not any(block):
            self._zeros += 1
            return
        if self._zeros:
            # Programs disagree whether this is the end, so two of them would see two different archives.
            raise bad_archive("something follows the end of the archive")
        if _number(block[148:156]) != sum(block) - sum(block[148:156]) + 8 * 0x20:
            raise bad_archive("a header of the archive has a wrong checksum")
        size, flag = _number(block[124:136]), block[156:157]
        if flag in _EXTENSIONS:
            if size > MAX_EXTENSION:
                raise bad_archive(f"an extended header has more than {MAX_EXTENSION} bytes", "layer-too-large")
            self._extension = flag
            self._collect(size)
            return
        self._members_left -= 1
        if self._members_left < 0:
            raise bad_archive("the archive has too many members", "layer-too-large")
        self._begin(block, flag, size)

    def _begin(self, block: bytes, flag: bytes, size: int) -> None:
        kind = _KINDS.get(flag)
        if kind is None:
            raise bad_archive(f"the archive holds a member of kind {flag!r}, which programs read differently")
        long, self._long = self._long, {}
        if "size" in long:
            size = _decimal(long["size"])
        prefix = block[345:500].rstrip(b"\0") if block[257:263] == b"ustar\0" else b""
        name = block[:100].partition(b"\0")[0]
        path = clean_path(long.get("path") or (prefix + b"/" + name if prefix else name))
        target = long.get("linkpath") or block[157:257].partition(b"\0")[0]
        if size and kind is not MemberKind.FILE:
            # Go passes over it as the next header, Rust as content: each would see another archive behind it.
            raise bad_archive(f"{path[:80]!r} is a {kind} with content, which programs read differently")
        length, mode = size if kind is MemberKind.FILE else 0, _number(block[100:108]) & 0o7777
        member = Member(path, kind, length, target.decode("utf-8", "surrogateescape"), mode=mode)
        is_kept = bool(path) and self._wants(member)
        if is_kept and "sparse" in long:
            raise bad_archive(f"{path!r} is a sparse file")
        if kind is MemberKind.FILE and size and is_kept and self._hashes(member):
            self._member, self._hash, self._missing = member, hashlib.sha256(), size
        elif kind is MemberKind.FILE and size and is_kept:
            self._left -= size
            if self._left < 0:
                raise bad_archive(f"{path!r} is larger than is read", "layer-too-large")
            self._member = member
            self._collect(size)
        else:
            self._skip = member.size + -member.size % BLOCK
            if is_kept:
                self._kept.append(replace(member, content=b"") if kind is MemberKind.FILE else member)

    def _hashed(self) -> None:
        assert self._hash is not None  # noqa: S101
        assert self._member is not None  # noqa: S101
        self._kept.append(replace(self._member, digest=self._hash.hexdigest()))
        self._skip = -self._member.size % BLOCK
        self._hash = self._member = None

    def _collect(self, size: int) -> None:
        self._sink, self._missing = bytearray(), size
        if not size:
            self._collected(b"")

    def _collected(self, content: bytes) -> None:
        self._sink = None
        self._skip = -len(content) % BLOCK
        if self._member is not None:
            self._kept.append(replace(self._member, content=content))
            self._member = None
        elif self._extension == b"x":
            self._add(_records(content))
        elif self._extension == b"g":
            if _records(content).keys() & {"path", "linkpath", "size", "sparse"}:
                raise bad_archive("a global header of the archive renames its members")
        else:
            self._add({"path" if self._extension == b"L" else "linkpath": content.partition(b"\0")[0]})

    def _add(self, records: dict[str, bytes]) -> None:
        """What a header says of the next member, which only one may."""
        if self._long.keys() & records.keys():
            raise bad_archive("two headers of the archive name one member, which programs read differently")
        self._long |= records


def clean_path(name: bytes) -> str:
    """A path without what says nothing; empty for the root; raises OciError for one that leads out of the archive."""
    if len(name) > MAX_NAME or b"\0" in name:
        raise bad_archive("a name in the archive is too long, or holds a zero byte")
    parts = [part for part in name.decode("utf-8", "surrogateescape").split("/") if part not in ("", ".")]
    if ".." in parts:
        raise bad_archive(f"{'/'.join(parts)[:80]!r} leads out of the image", "layer-escape")
    return "/".join(parts)


def _number(field: bytes) -> int:
    """A number of a header: octal digits, or binary where the first bit is set (GNU); raises OciError."""
    if field[:1] == b"\x80":
        value = int.from_bytes(field[1:], "big")
    else:
        match = _OCTAL.match(field)
        if match is None:
            raise bad_archive("a header of the archive holds a number that is none")
        value = int(match[1] or b"0", 8)
    if value >= 2**62:
        raise bad_archive("a header of the archive holds a number that is too large")
    return value


def _decimal(text: bytes) -> int:
    if not text.isdigit() or len(text) > 18:
        raise bad_archive("an extended header holds a size that is none")
    return int(text)


def _records(content: bytes) -> dict[str, bytes]:
    """The records of an extended header that matter here; raises OciError."""
    records: dict[str, bytes] = {}
    at = 0
    while at < len(content):
        match = _RECORD.match(content, at)
        end = at + int(match[1]) if match is not None else 0
        if match is None or end > len(content) or end <= match.end() or content[end - 1 : end] != b"\n":
            raise bad_archive("an extended header of the archive is damaged")
        key, value = match[2].decode("ascii"), content[match.end() : end - 1]
        if key.startswith("GNU.sparse"):
            records["sparse"] = b"1"
        elif key in ("path", "linkpath", "size"):
            records[key] = value
        at = end
    return records
