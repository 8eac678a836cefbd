"""Lines of a watch stream: bytes in, whole lines out, bounded.

Chunks of a stream end anywhere, so what follows the last newline waits for the next chunk. A line longer than the limit is an
error before it is held: a server cannot make us keep more than that.
"""

from __future__ import annotations

from fastness.kube.errors import TooLarge

MAX_LINE = 16 * 1024 * 1024


class Lines:
    """Splits chunks into lines."""

    __slots__ = ("_limit", "_parts", "_size")

    def __init__(self, limit: int = MAX_LINE) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that this chunk completes, without their ends and without empty ones; raises TooLarge."""
        first, *rest = chunk.split(b"\n")
        if not rest:
            self._keep(first)
            return []
        self._keep(first)
        lines = [b"".join(self._parts), *rest[:-1]]
        self._parts, self._size = [], 0
        self._keep(rest[-1])
        return [line for line in lines if line.strip()]

    @property
    def partial(self) -> bool:
        """Whether the stream stopped within a line."""
        return self._size > 0

    def _keep(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > self._limit:
            raise TooLarge(f"a watch event is larger than {self._limit} bytes")
        if part:
            self._parts.append(part)
