"""A clock that leaps: proofs, tickets and documents grow old at once, for the whole cluster."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

from fastness.formats.errors import DurationError
from fastness.formats.quantity import duration
from fastness.kinds.kind import JsonObject
from fastness.page.simulator import FaultKind
from fastness.sim.clock import FARTHEST
from fastness.sim.errors import NotPossible
from fastness.sim.faults.fault import FaultContext, Outcome
from fastness.sim.machines import VirtualMachine

USUAL: Final = "45m"
_DAYS: Final = re.compile(r"(?:([0-9]+)d)?(.*)", re.DOTALL)


class ClockLeap:
    """Time that passes at once."""

    kind: FaultKind = FaultKind(
        "clock-jump", "Clock jump",
        "Three quarters of an hour pass at once. Every proof is too old; machines that can prove themselves again, do.",
        "cluster",
    )  # fmt: skip
    repeatable = True

    def objection(self, machine: VirtualMachine | None) -> str | None:
        """There is one clock."""
        return None

    async def do(self, context: FaultContext, machine: VirtualMachine | None, argument: str) -> Outcome:
        """Leap; raises BadRequest."""
        by = leap_of(argument or USUAL)
        try:
            context.clock.leap(by)
        except ValueError as error:
            raise NotPossible(f"{error}; it is {context.clock.ahead} ahead already") from error
        _prove(context)
        return Outcome(f"the clock of the cluster leapt {by} ahead", {"seconds": by.total_seconds()})

    async def undo(self, context: FaultContext, machine: VirtualMachine | None, memory: JsonObject) -> str:
        """Set the time of day back; proofs from the future are replaced by proofs of today."""
        context.clock.back(timedelta(seconds=float(memory["seconds"])))
        _prove(context)
        return f"the clock of the cluster is {context.clock.ahead or 'not'} ahead of the system's"

    def resume(self, context: FaultContext, machine: VirtualMachine | None, memory: JsonObject) -> None:
        """It is still ahead; the clock was told before anything else began."""


def leap_of(text: str) -> timedelta:
    """A leap as +15m, 45m, 1h30m or 7d; raises BadRequest."""
    days, rest = _DAYS.fullmatch(text.removeprefix("+")).groups()  # type: ignore[union-attr]  # whatever it is, it matches
    try:
        leap = timedelta(days=int(days or 0)) + (duration(rest, "leap") if rest or not days else timedelta())
    except (DurationError, OverflowError, ValueError) as error:
        raise NotPossible(f"{text!r} is no leap: write it as +15m, 1h30m or 7d") from error
    if not timedelta() < leap <= FARTHEST:
        raise NotPossible(f"{text!r}: a clock leaps forward, and never further than {FARTHEST.days} days")
    return leap


def _prove(context: FaultContext) -> None:
    for machine in context.machines:
        machine.prove_now()
