"""What can be at a path: nothing, a file, a symbolic link, or something that is neither.

A state is a value. Whatever an update changes on disk is "this path goes from that state to this one", and undoing it is the way
back; comparing states is how drift is seen. Owners are numbers; `None` leaves the owner as it comes.
"""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT_MODE = 0o644
DEFAULT_DIRECTORY_MODE = 0o755


@dataclass(frozen=True, slots=True)
class Absent:
    """Nothing is there."""


@dataclass(frozen=True, slots=True)
class File:
    """A regular file."""

    content: bytes
    mode: int = DEFAULT_MODE
    uid: int | None = None
    gid: int | None = None


@dataclass(frozen=True, slots=True)
class Link:
    """A symbolic link."""

    target: str


@dataclass(frozen=True, slots=True)
class Other:
    """A directory, a device, a socket: nothing that an update may replace."""

    what: str


State = Absent | File | Link | Other
ABSENT = Absent()
