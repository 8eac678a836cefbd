"""Boot phases: what is extended behind an image's own measurements while it boots, and stands in no log.

    words_between("sha256", image_value, quoted)    # ("enter-initrd", "leave-initrd"), or None: something else was extended
    phase_of(words)                                 # Phase.INITRD or Phase.SYSTEM

`leave-initrd` is extended in PCR 11 or RTMR 3 by the agent, and perhaps once more by systemd, before the initrd is left; systemd
adds `sysinit` and `ready` later. A word is extended as H(word), without a NUL. What opens disks is given in the initrd alone:
root on a running machine has a register that says `system`, and cannot take that back before the machine boots again.

A word of a later phase may also stand in a log that somebody made up so that it ends in the quoted value: events of the phase
register are therefore compared with the words, too (`replay`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import lru_cache
from typing import Final

from fastness.crypto.silicon.registers import extend, hashed

ENTER, LEAVE, SYSINIT, READY = PHASES = ("enter-initrd", "leave-initrd", "sysinit", "ready")
_AFTER: Final = (LEAVE, SYSINIT, READY)


class Phase(StrEnum):
    """Where in its boot a machine was when it made its evidence."""

    INITRD = "initrd"
    SYSTEM = "system"


def _orders() -> tuple[tuple[str, ...], ...]:
    """What may be extended, in order: nothing of the root before the initrd was left, which agent and systemd may both say."""
    left = ((LEAVE,), (LEAVE, LEAVE))
    root = ((), (SYSINIT,), (SYSINIT, READY))
    inside: tuple[tuple[str, ...], ...] = ((), (ENTER,))
    return (*inside, *((*begun, *leaving, *later) for begun in inside for leaving in left for later in root))


ORDERS: Final = _orders()


@lru_cache(maxsize=1024)
def _reached(bank: str, start: bytes) -> Mapping[bytes, tuple[str, ...]]:
    values: dict[bytes, tuple[str, ...]] = {}
    for words in ORDERS:
        value = start
        for word in words:
            value = extend(bank, value, hashed(bank, word.encode()))
        values[value] = words
    return values


def words_between(bank: str, start: bytes, end: bytes) -> tuple[str, ...] | None:
    """The phases that lead from one value of a register to another; None when they do not."""
    return () if start == end else _reached(bank, start).get(end)


def phase_of(words: Sequence[str]) -> Phase:
    """The phase that a machine is in after these words."""
    return Phase.SYSTEM if any(word in _AFTER for word in words) else Phase.INITRD


@lru_cache(maxsize=8)
def later_digests(bank: str) -> frozenset[bytes]:
    """What is extended once the initrd is left: a log with one of these is not one of an initrd."""
    return frozenset(hashed(bank, word.encode()) for word in _AFTER)
