"""Paths on the machine: absolute, in shortest form, and what lies above them.

A path in a config must be written exactly as the machine will use it: `/etc//motd` and `/etc/../etc/motd` are refused, so
two spellings can never hide that two entries mean the same place.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

# One match instead of cleaning and comparing: this runs for every path of every config. `..` is refused inside a path too, so
# that no prefix check anywhere can be walked out of.
_CLEAN: Final = re.compile(r"(?:/(?!\.{1,2}(?:/|\Z))[^/]+)+|/")


class BadPath(NamedTuple):
    """Why a path is refused."""

    code: str
    message: str


_MISSING: Final = BadPath("path-required", "a path is required")
_RELATIVE: Final = BadPath("path-relative", "the path must be absolute")
_DIRTY: Final = BadPath("path-not-simplified", "the path must be in shortest form: no //, no . and .., no / at the end")


def bad_path(path: str) -> BadPath | None:
    """What is wrong with a path; None for a good one."""
    if _CLEAN.fullmatch(path):
        return None
    if not path:
        return _MISSING
    return _DIRTY if path.startswith("/") else _RELATIVE


def clean_path(path: str) -> str:
    """The shortest form of a path; `..` at the root stays at the root."""
    rooted = path.startswith("/")
    parts: list[str] = []
    for part in path.split("/"):
        # As Go's path.Clean, lexically: links on the machine are not known here, and Ignition does not ask them either.
        if part == ".." and parts and parts[-1] != "..":
            parts.pop()
        elif (part == ".." and not rooted) or part not in ("", ".", ".."):
            parts.append(part)
    return ("/" if rooted else "") + "/".join(parts) or "."


def parents(path: str) -> Iterator[str]:
    """The paths above a clean absolute path, the nearest first, without the root."""
    end = path.rfind("/")
    while end > 0:
        yield path[:end]
        end = path.rfind("/", 0, end)
