"""Which test files run together: lanes of about the same length, from the seconds that each file took before.

Most tests wait for real programs and not for the processor, so `tools/run_tests.py` runs a few pytest processes side by side.
The run is over when its longest lane is, and what a file takes is known only by running it: tests/durations.json holds the
seconds of every file, and `python tools/run_tests.py --record` writes it anew. The rules:

- Files that use one expensive server go together, because each lane that uses it starts its own: a directory whose conftest has
  a session-scoped fixture, and every file that names one of `SERVERS`. Such a bundle is cut only where it is longer than a lane
  should be.
- Such files are the last of their lane: a server that nobody uses any more is not there for nothing while others run.
- The longest bundle comes first and goes to the lane with least to do (Graham's greedy rule: at most a third over the best).
- A file without a record counts as much as its neighbours on average.

Everything here is a function of its arguments; the tree is read in `keys_of` alone.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

SERVERS = ("real_kube", "bed")  # session-scoped fixtures of the whole tree that take seconds to start
UNRECORDED = 5.0  # seconds of a file of which nothing is recorded, in a tree of which nothing is
SESSION_SCOPED = re.compile(r"fixture\([^)]*scope=\"session\"")


class Bundle(NamedTuple):
    """Files that run in the same process, the seconds that they take together, and the server that they share, if any."""

    files: tuple[str, ...]
    seconds: float
    server: str = ""


class Lane(NamedTuple):
    """The files of one pytest process."""

    name: str
    files: tuple[str, ...]
    seconds: float


def estimate(file: str, recorded: Mapping[str, float]) -> float:
    """The seconds of a file: as recorded, or the average of the nearest directory of which something is."""
    if file in recorded:
        return recorded[file]
    for directory in PurePosixPath(file).parents:
        below = [seconds for other, seconds in recorded.items() if PurePosixPath(other).is_relative_to(directory)]
        if below:
            return sum(below) / len(below)
    return UNRECORDED


def bundles(keys: Mapping[str, str], recorded: Mapping[str, float], count: int) -> list[Bundle]:
    """The files of each key together, none much longer than the share of one of `count` lanes."""
    seconds = {file: estimate(file, recorded) for file in keys}
    share = sum(seconds.values()) / count
    groups: dict[str, list[str]] = defaultdict(list)
    for file in sorted(keys):
        groups[keys[file]].append(file)
    return [
        Bundle(piece.files, piece.seconds, "" if group == [key] else key)
        for key, group in groups.items()
        for piece in _cut(group, seconds, share)
    ]


def _cut(files: Sequence[str], seconds: Mapping[str, float], share: float) -> Iterable[Bundle]:
    """A group in as few pieces as its length asks for; the servers of each piece are its own."""
    whole = sum(seconds[file] for file in files)
    pieces = min(len(files), max(1, math.ceil(whole / share))) if share else 1
    return (
        Bundle(lane.files, lane.seconds) for lane in balance([Bundle((file,), seconds[file]) for file in files], pieces)
    )


def balance(parts: Iterable[Bundle], count: int) -> list[Lane]:
    """The bundles in `count` lanes: the longest first, each where least is to do; lanes without files are left out."""
    contents: list[list[Bundle]] = [[] for _ in range(count)]
    for bundle in sorted(parts, key=lambda bundle: (-bundle.seconds, bundle.files)):
        min(contents, key=lambda lane: sum(part.seconds for part in lane)).append(bundle)
    return [
        Lane(
            f"lane {number}",
            tuple(file for _, file in sorted((part.server, file) for part in lane for file in part.files)),
            sum(part.seconds for part in lane),
        )
        for number, lane in enumerate(contents, 1)
        if lane
    ]


def server_of(file: str, text: str, conftest: str) -> str:
    """The server that a file shares with others, or the file itself; `conftest` is the text of the one beside it."""
    for server in SERVERS:
        if re.search(rf"\b{server}\b", text + conftest):
            return server
    return str(PurePosixPath(file).parent) if SESSION_SCOPED.search(conftest) else file


def keys_of(tests: Path) -> dict[str, str]:
    """Every test file of the tree with the server that it shares."""
    keys = {}
    for path in sorted(tests.rglob("test_*.py")):
        beside = path.with_name("conftest.py")
        keys[path.as_posix()] = server_of(
            path.as_posix(), path.read_text(), beside.read_text() if beside.exists() else ""
        )
    return keys
