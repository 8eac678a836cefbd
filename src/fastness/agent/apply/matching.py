"""Whether a path is as it should be: by what stands there, or by what the booted image has for it below /usr.

An image that was built for a pool brings defaults of ours below /usr (`protocol/usr_places`). There a path of /etc is right when
it is as the config says, and also when nothing stands at it and the image says the same: programs then read what the config asks
for. Anything else at the path hides the image's file, and differs.
"""

from __future__ import annotations

from typing import Protocol

from fastness.agent.host.states import Absent, File, Large, State
from fastness.protocol.usr_places import below_usr


class Inspects(Protocol):
    """The part of `Files` that is needed here."""

    def inspect(self, path: str, up_to: int) -> State | Large:
        """What is at a path, with its content if that has at most so many bytes."""


def matches(present: State | Large, expected: State) -> bool:
    """Whether a path is as it should be."""
    if isinstance(present, File) and isinstance(expected, File):
        same = present.content == expected.content and present.mode == expected.mode
        return same and same_owner(present, expected)
    return present == expected


def same_owner(present: File, required: File) -> bool:
    """Whether a file has the owner that it should have; where the process cannot set owners, nobody sees one either."""
    pairs = ((present.uid, required.uid), (present.gid, required.gid))
    return all(actual is None or expected is None or actual == expected for actual, expected in pairs)


def brought(path: str, expected: State, present: State | Large, root: Inspects) -> bool:
    """Whether the image has what should be at a path, and nothing hides it."""
    return isinstance(present, Absent) and has_default(path, expected, root)


def has_default(path: str, expected: State, root: Inspects) -> bool:
    """Whether the image has below /usr what should be at a path."""
    place = below_usr(path)
    return bool(place) and isinstance(expected, File) and matches(root.inspect(place, len(expected.content)), expected)
