"""Resources of the key broker: their paths, the addresses by which guests name them, and patterns of paths.

**Paths** (`repository/type/tag`): three segments of `[a-z0-9._-]{1,128}`, none of dots alone, from text that was decoded once.

**Addresses** (`kbs://[address]/repository/type/tag`): an empty address means the broker that the guest is configured with;
`kbs+<plugin>://` names another plugin of it. They are wider than paths: what they name is read with that grammar in the end.

**Patterns**, matched in linear time: what ResourceBindings open and what resource policies speak of.

    covers("pool/*/disk-*", ("pool", "worker", "disk-root"))

`*` stands for any characters within one segment, none too; there is no other wildcard. Pattern and path have the same number of
segments. Doors match on their event loop, with patterns of whoever may write a binding or a policy. A regular expression tries
every way to divide a segment among the stars: `*a*a*a*a*a*b/t/g` held a broker for twelve seconds. Here each literal piece is
looked for once, as far left as it fits: a piece that fits further to the left never leaves less room for the rest, so nothing is
tried twice.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from fastness.formats.errors import FormatError

SEGMENTS: Final = 3
_POOL, _CONFIG, _TRUST = "pool", "config", "trust"
_MACHINE, _DISK, _DEFAULT, _ROOT = "machine", "disk-", "default", "root"
_UID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z", re.ASCII)
# `\Z` and not `$`, which also matches before a line break at the end.
_SEGMENT: Final = re.compile(r"[a-z0-9._-]{1,128}\Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class ResourcePath:
    """A path that follows the grammar: `parse_path` and `split_path` make one of what a caller wrote."""

    repository: str
    type: str
    tag: str

    @property
    def segments(self) -> tuple[str, str, str]:
        """The three parts."""
        return self.repository, self.type, self.tag

    def __str__(self) -> str:
        return f"{self.repository}/{self.type}/{self.tag}"


STATUS: Final = ResourcePath("default", "attestation-status", "status")


def pool_config(pool: str) -> ResourcePath:
    """The configuration of a pool. Any text may stand for the pool: whoever decides compares it with the caller's own, whole."""
    return ResourcePath(_POOL, pool, _CONFIG)


def is_pool_config(path: ResourcePath) -> bool:
    """Whether a path is the configuration of a pool."""
    return path.repository == _POOL and path.tag == _CONFIG


def pool_trust(pool: str) -> ResourcePath:
    """What nodes of a pool have beside their configuration: whom they believe (`protocol.node_trust`)."""
    return ResourcePath(_POOL, pool, _TRUST)


def is_pool_trust(path: ResourcePath) -> bool:
    """Whether a path is what nodes of a pool have beside their configuration."""
    return path.repository == _POOL and path.tag == _TRUST


def disk_key(machine: str, volume: str) -> ResourcePath:
    """The key of a volume of a Machine, by its uid."""
    return ResourcePath(_MACHINE, machine, f"{_DISK}{volume}")


def pin_key(identity: str) -> ResourcePath:
    """The key of a root that the Clevis pin opens, by the id of its Machine."""
    return ResourcePath(_DEFAULT, identity, _ROOT)


def is_pin_key(path: ResourcePath) -> bool:
    """Whether a path names a disk key by the name that the Clevis pin knows it by."""
    return path.repository == _DEFAULT and path.tag == _ROOT and _UID.match(path.type) is not None


def disk_of(path: ResourcePath) -> tuple[str, str] | None:
    """The Machine and the volume whose key a path names, also by the name that the Clevis pin knows it by; None for others."""
    if path.repository == _MACHINE and path.tag.startswith(_DISK):
        return path.type, path.tag.removeprefix(_DISK)
    return (path.type, _ROOT) if is_pin_key(path) else None


def split_path(segments: Sequence[str]) -> ResourcePath | None:
    """The path that decoded segments make, or None when they do not follow the grammar."""
    if len(segments) != SEGMENTS or not all(map(_good, segments)):
        return None
    return ResourcePath(*segments)


def parse_path(text: str) -> ResourcePath | None:
    """The path that a text spells, or None."""
    return split_path(text.split("/")) if len(text) <= SEGMENTS * 129 else None


def _good(segment: str) -> bool:
    # Dots alone would climb in whatever treats the path as one of files.
    return _SEGMENT.match(segment) is not None and segment.strip(".") != ""


def covers(pattern: str, path: Sequence[str]) -> bool:
    """Whether a pattern covers a path."""
    globs = _split(pattern)
    return len(globs) == len(path) and all(map(_fits, globs, path))


@lru_cache(maxsize=1024)
def _split(pattern: str) -> tuple[tuple[str, ...], ...]:
    """The literal pieces between the stars, for each segment."""
    return tuple(tuple(segment.split("*")) for segment in pattern.split("/"))


def _fits(pieces: tuple[str, ...], text: str) -> bool:
    first, *middle = pieces
    if not middle:
        return text == first
    last = middle.pop()
    end = len(text) - len(last)
    # The last comparison keeps the two ends from sharing characters: `ab*ba` must not cover `aba`.
    if not text.startswith(first) or not text.endswith(last) or len(first) > end:
        return False
    at = len(first)
    for piece in middle:
        place = text.find(piece, at, end)
        if place < 0:
            return False
        at = place + len(piece)
    return True


MAX_URI: Final = 1024
_URI: Final = re.compile(
    r"kbs(?:\+(?P<plugin>[a-z0-9-]{1,64}))?://(?P<address>[A-Za-z0-9.:\[\]-]{0,255})"
    r"/(?P<repository>[A-Za-z0-9._-]{1,128})/(?P<type>[A-Za-z0-9._-]{1,128})/(?P<tag>[A-Za-z0-9._-]{1,128})\Z",
    re.ASCII,
)


class UriError(FormatError):
    """A text that is no address of a resource."""

    def __init__(self, message: str) -> None:
        super().__init__("bad-kbs-uri", message, hint="Write it as kbs:///repository/type/tag.")


@dataclass(frozen=True, slots=True)
class KbsUri:
    """The address of one resource."""

    repository: str
    type: str
    tag: str
    address: str = ""
    plugin: str = ""

    def __str__(self) -> str:
        scheme = f"kbs+{self.plugin}" if self.plugin else "kbs"
        return f"{scheme}://{self.address}/{self.path}"

    @property
    def path(self) -> str:
        """The three segments."""
        return f"{self.repository}/{self.type}/{self.tag}"


def parse_uri(text: str) -> KbsUri:
    """Read an address; raises UriError."""
    match = _URI.match(text) if len(text) <= MAX_URI else None
    if match is None or any(match[name].strip(".") == "" for name in ("repository", "type", "tag")):
        raise UriError("this is no address of a resource")
    return KbsUri(match["repository"], match["type"], match["tag"], match["address"], match["plugin"] or "")
