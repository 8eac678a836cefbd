"""Paths of resources as the key broker keeps them: `repository/type/tag`.

A path is three segments of `[a-z0-9._-]{1,128}`, none of dots alone, and comes from text that was decoded once. Addresses as
guests write them (`kbsuri`) are wider; what they name is read with this grammar in the end.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

SEGMENTS: Final = 3
_POOL, _CONFIG = "pool", "config"
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


def split_path(segments: Sequence[str]) -> ResourcePath | None:
    """The path that decoded segments make, or None when they do not follow the grammar."""
    if len(segments) != SEGMENTS or not all(map(_good, segments)):
        return None
    return ResourcePath(*segments)


def parse_path(text: str) -> ResourcePath | None:
    """The path that a text spells, or None."""
    return split_path(text.split("/")) if len(text) <= SEGMENTS * 129 else None


def _good(segment: str) -> bool:
    return _SEGMENT.match(segment) is not None and segment.strip(".") != ""
