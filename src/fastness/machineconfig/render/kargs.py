"""Kernel arguments: how an entry splits into arguments, and how one set replaces another.

An entry of `kernelArguments` may hold several arguments; double quotes keep spaces together and are part of the argument. The
change is a full replacement: every old argument is deleted if present, then every new one appended, so that order and
repetitions come out as written.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

DELETE: Final = "--delete-if-present="
APPEND: Final = "--append="


def split(entry: str) -> list[str]:
    """The arguments of one entry; there are no escapes, and an open quote runs to the end."""
    arguments: list[str] = []
    word, quoted = "", False
    for char in entry:
        quoted ^= char == '"'
        if char.isspace() and not quoted:
            if word:
                arguments.append(word)
            word = ""
        else:
            word += char
    return [*arguments, word] if word else arguments


def split_all(entries: Iterable[str] | None) -> list[str]:
    """The arguments of all entries, in order."""
    return [argument for entry in entries or () for argument in split(entry)]


def replacement(old: Iterable[str] | None, new: Iterable[str] | None) -> list[str]:
    """The options that turn one set into the other; empty when both say the same."""
    before, after = split_all(old), split_all(new)
    if before == after:
        return []
    # All out and all in again: rpm-ostree appends, so changing only what differs would lose the order that was written.
    return [*(DELETE + argument for argument in before), *(APPEND + argument for argument in after)]
