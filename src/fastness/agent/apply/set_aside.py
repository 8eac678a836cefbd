"""Where a journal goes that cannot be undone in whole: away, with its reason, so that the machine goes on.

A journal that stays in the way would stop its node for good, and whoever can cause that stops a pool. What lies on the disk then
is compared with the config as always, and whatever differs is told as drift. Nothing is thrown away: journal and copies lie in a
numbered directory below `/set-aside`, beside a text that says why; the oldest of more than a few goes.

The order is such that a crash at any point is finished by the next start: the directory is complete when it has the journal.
"""

from __future__ import annotations

from typing import Final

from fastness.agent.apply import copies as kept
from fastness.agent.apply import journal
from fastness.agent.apply.ports import Files
from fastness.agent.host.states import ABSENT, Absent, File

DIRECTORY: Final = "/set-aside"
MAX_SET_ASIDE: Final = 8
_JOURNAL, _KEPT, _REASON = "journal", "kept", "reason"


def put_away(state: Files, reason: str) -> str:
    """Move journal and copies away; the directory where they are, below the agent's own; raises DriverError."""
    numbers = sorted(int(name) for name in state.names(DIRECTORY) if name.isdecimal())
    # One without a journal is what a crash left of an earlier attempt at the same.
    begun = [number for number in numbers if isinstance(state.inspect(_path(number, _JOURNAL), 0), Absent)]
    number = begun[-1] if begun else (numbers[-1] + 1 if numbers else 1)
    state.put(_path(number, _REASON), File(f"{reason}\n".encode(), 0o600), directory_mode=0o700)
    state.move(kept.DIRECTORY, _path(number, _KEPT))
    state.move(journal.PATH, _path(number, _JOURNAL))
    for old in numbers[: max(0, len({*numbers, number}) - MAX_SET_ASIDE)]:
        _throw_away(state, old)
    return f"{DIRECTORY}/{number}"


def _throw_away(state: Files, number: int) -> None:
    # The journal last: without it, the directory would be taken for one that is being filled.
    for name in state.names(_path(number, _KEPT)):
        state.put(_path(number, f"{_KEPT}/{name}"), ABSENT)
    state.remove_empty(_path(number, _KEPT))
    for name in (_REASON, _JOURNAL):
        state.put(_path(number, name), ABSENT)
    state.remove_empty(f"{DIRECTORY}/{number}")


def _path(number: int, name: str) -> str:
    return f"{DIRECTORY}/{number}/{name}"
