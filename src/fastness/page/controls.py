"""What somebody asks of the simulator, out of a form; behind the same authorizer as everything else.

Whoever may patch Machines may let something happen to virtual ones: no right exists besides those of the API. What was said last
is kept for a moment for each login, so that the page to which a form leads can tell it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from fastness.kube.errors import BadRequest, NotFound
from fastness.page.pages.simulator import MOST_ADDED, TEES
from fastness.page.simulator import Simulator
from fastness.page.view_scope import MACHINES, Sight
from fastness.runtime.cache import BoundedCache
from fastness.runtime.clock import Clock

SHOWN_FOR: Final = timedelta(seconds=30)
MOST_KEPT: Final = 200
ACTIONS: Final = ("do", "undo", "add", "remove", "reboot")
NO_SIMULATOR: Final = "there is no simulator: the machines of this cluster are not virtual"


async def operate(simulator: Simulator | None, sight: Sight, form: Mapping[str, str]) -> str:
    """Carry out a form and say what happened; raises Forbidden, NotFound, BadRequest and what the simulator says."""
    if simulator is None:
        raise NotFound(NO_SIMULATOR)
    sight.require("patch", MACHINES)
    machine = form.get("machine", "")
    match form.get("action", ""):
        case "do":
            return await simulator.do(form.get("kind", ""), machine)
        case "undo":
            return await simulator.undo(form.get("fault", ""))
        case "add":
            return await simulator.add(_count(form.get("count", "")), _tee(form.get("tee", "")))
        case "remove":
            return await simulator.remove(machine)
        case "reboot":
            return await simulator.reboot(machine)
        case _:
            raise BadRequest(f"there is no such action; there are: {', '.join(ACTIONS)}")


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 4 and 1 <= int(text) <= MOST_ADDED):
        raise BadRequest(f"count: from 1 to {MOST_ADDED} machines at a time")
    return int(text)


def _tee(text: str) -> str:
    if text and text not in TEES:
        raise BadRequest(f"tee: one of {', '.join(TEES)}, or empty for a mixture")
    return text


class Sayings:
    """What each login was told last, for a moment."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept = BoundedCache[bytes, tuple[str, datetime]](MOST_KEPT)

    def keep(self, login: bytes, said: str) -> None:
        """Remember what was said; the oldest makes room."""
        self._kept.put(login, (said, self._clock.now() + SHOWN_FOR))

    def of(self, login: bytes) -> str:
        """What was said a moment ago."""
        said, until = self._kept.get(login) or ("", None)
        if until is not None and self._clock.now() >= until:
            self._kept.pop(login)
            return ""
        return said
