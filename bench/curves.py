"""How figures grow with the number of objects: one pair of fresh servers, filled step by step.

At every size: the cost of a create that comes on top, of a get, of a list of everything, and the memory of the server. A
list is asked for so often that a size takes seconds, not minutes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from bench.cases import PATH, Bench, creating, fill, job
from bench.figures import Progress, Sample
from bench.targets import Target


@dataclass(frozen=True, slots=True)
class Point:
    """One server at one size."""

    server: str
    objects: int
    create: Sample
    get: Sample
    list: Sample
    memory_bytes: int

    def to_json(self) -> dict[str, Any]:
        """The point in a result file."""
        return asdict(self)

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Point:
        """The point out of a result file."""
        samples = {name: Sample(**document[name]) for name in ("create", "get", "list")}
        return cls(document["server"], document["objects"], memory_bytes=document["memory_bytes"], **samples)


async def grow(bench: Bench, targets: Sequence[Target], sizes: Sequence[int], say: Progress) -> list[Point]:
    """The points of all servers at all sizes, in ascending order of size."""
    points = []
    there = 0
    for size in sorted(sizes):
        for target in targets:
            say(f"{size} objects in {target.name}")
            points.append(await _point(bench, target, there, size))
        there = size
    return points


async def _point(bench: Bench, target: Target, there: int, size: int) -> Point:
    """Fill up to the size; the last of the creates are the sample."""
    last = min(1000, size - there)
    await fill(bench, target, there, size - there - last)
    create, _ = await bench.run(target, creating(target, size - last, last))
    get, _ = await bench.run(target, replace(job(target, "GET", f"{PATH}/bench-{{n}}", bench.count(2000)), wrap=size))
    lists = max(2, min(20, 50_000 // size))
    whole, _ = await bench.run(target, replace(job(target, "GET", PATH, lists), connections=1))
    return Point(target.name, size, create, get, whole, target.memory())
