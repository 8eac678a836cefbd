"""What can be at a path (nothing, a file, a symbolic link, or something that is neither), and what an image-based host boots.

A state is a value. Whatever an update changes on disk is "this path goes from that state to this one", and undoing it is the way
back; comparing states is how drift is seen. Owners are numbers; `None` leaves the owner as it comes.

Files that are small enough to hold are values with their content (`File`). Larger ones are a size where something was looked at
(`Large`), or a reference to a copy where something must come back (`Stored`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

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


@dataclass(frozen=True, slots=True)
class Large:
    """A regular file whose content was not read; `allocated` is what it takes of the disk, less than its size if it has holes."""

    size: int
    allocated: int
    mode: int = DEFAULT_MODE
    uid: int | None = None
    gid: int | None = None


@dataclass(frozen=True, slots=True)
class Stored:
    """A regular file whose content is a copy of the agent's, known by its name there and by its digest (`sparse`)."""

    name: str
    digest: str
    mode: int = DEFAULT_MODE
    uid: int | None = None
    gid: int | None = None


State = Absent | File | Link | Other
ABSENT = Absent()


class Deployment(NamedTuple):
    """An image by its pull specification (empty: whatever was installed), kernel arguments in order, kernel, package sets."""

    image: str = ""
    arguments: tuple[str, ...] = ()
    kernel: str = ""
    extensions: tuple[str, ...] = ()


NOTHING = Deployment()


class Pull(StrEnum):
    """Whether an image came from its registry, in the words of conditions."""

    DONE = "True"
    FAILED = "False"
    UNKNOWN = "Unknown"
