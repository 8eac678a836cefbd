"""A tree of repeatable entropy: the same path under the same seed gives the same bytes.

Chips are asked for by many tasks at once, so what a chip is must not depend on who came first. Each draws from a branch of its
own, named by what it is: `seed.branch("snp", "chip", 7)`.
"""

from __future__ import annotations

import hashlib


class Seed:
    """A branch of the tree; as a source of bytes it is what keys are drawn from."""

    __slots__ = ("_drawn", "_key")

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._drawn = 0

    def branch(self, *path: str | int) -> Seed:
        """The branch of that name; a fresh one, however often it is asked for."""
        name = "\0".join(map(str, path)).encode()
        return Seed(hashlib.sha256(b"branch\0" + self._key + name).digest())

    def token(self, length: int) -> bytes:
        """The next bytes of this branch."""
        self._drawn += 1
        return hashlib.shake_256(b"token\0" + self._key + self._drawn.to_bytes(8, "big")).digest(length)
