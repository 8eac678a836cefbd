"""What a RolloutPolicy says about itself: the wave that is under way, and whether it goes on, waits or has stopped.

A policy may hold several pools. The wave that it shows is the lowest that one of them is in; each condition names the pools that
it is true of:

    Progressing   some pool has machines that are on their way, or may start
    Waiting       some pool waits: for the end of a soak, or for the window to open
    Stopped       some pool stopped by itself, or policy or budget cannot be understood, so that nothing starts

A policy whose pools have all arrived is in wave 0, and none of the three is true.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import with_condition
from fastness.machineconfig.rollout.waves import Hold

Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class PoolProgress:
    """Where one pool is: complete, held in some way, or stuck with a problem; `why` is what its status says of those who wait."""

    hold: Hold | None = None
    complete: bool = False
    problem: str | None = None
    why: str = ""
    deadline: datetime | None = None

    @property
    def look_again(self) -> datetime | None:
        """When something changes by itself: a wave may go on, or a machine has tried for too long."""
        moments = (self.hold.until if self.hold else None, self.deadline)
        return min((moment for moment in moments if moment is not None), default=None)

    @property
    def stopped(self) -> str | None:
        """Why nothing starts until somebody does something; None while nothing has to be done."""
        return self.hold.stopped if self.problem is None and self.hold and not self.complete else self.problem

    @property
    def waiting(self) -> str | None:
        """What passes by itself; None when nothing is waited for."""
        hold = self.hold
        return hold.waiting if hold and not self.complete and hold.until is not None and hold.stopped is None else None

    @property
    def wave(self) -> int:
        """The wave under way, 0 when there is none."""
        return self.hold.state.wave if self.hold and not self.complete else 0


def policy_status(policy: Object, pools: Mapping[str, PoolProgress], now: datetime) -> JsonObject:
    """The status of a policy with these pools; what is known already keeps its times."""
    stopped = {name: progress.stopped for name, progress in sorted(pools.items()) if progress.stopped is not None}
    waiting = {name: progress.waiting for name, progress in sorted(pools.items()) if progress.waiting is not None}
    moving = [
        name
        for name, progress in sorted(pools.items())
        if progress.hold and not progress.complete and progress.stopped is progress.waiting is None
    ]
    bad = any(progress.problem is not None for progress in pools.values())
    conditions = list((policy.get("status") or {}).get("conditions") or [])
    for kind, truth, reason in (
        ("Progressing", {name: f"wave {pools[name].wave}" for name in moving}, "RollingOut"),
        ("Waiting", waiting, "WaveHeld"),
        ("Stopped", stopped, "Misconfigured" if bad else "TooManyDegraded"),
    ):
        message = "; ".join(f"{name}: {text}" for name, text in truth.items())
        conditions = with_condition(
            conditions, kind=kind, status="True" if truth else "False", reason=reason if truth else _quiet(kind, pools),
            message=message, now=now,
        )  # fmt: skip
    waves = [progress.wave for progress in pools.values() if progress.wave]
    generation = (policy.get("metadata") or {}).get("generation") or 1
    return {"observedGeneration": generation, "wave": min(waves) if waves else 0, "conditions": conditions}


def _quiet(kind: str, pools: Mapping[str, PoolProgress]) -> str:
    """Why a condition is not true."""
    if not pools:
        return "NoPool"
    if all(progress.complete for progress in pools.values()):
        return "Complete"
    return {"Progressing": "Held", "Waiting": "NotHeld"}.get(kind, "AsExpected")
