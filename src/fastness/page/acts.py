"""What somebody does on the page: decide about a machine, or let something happen to a virtual one.

A decision is written as the user who asks. What can be decided is a rule of `attestation/machine/decisions`, which the command
line asks too. The write happens only after the API's authorizer allowed that user to patch this machine, and on the version that
was judged.

Whoever may patch Machines may let something happen to virtual ones: no right exists besides those of the API. What the simulator
answered is kept for a moment for each login, so that the page to which a form leads can tell it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from fastness.attestation.machine.decisions import (
    DECISIONS,
    MAX_REASON,
    Decision,
    DecisionState,
    decision_patch,
    standing,
)
from fastness.http import Request
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.objects import view
from fastness.kinds.trusted_execution.machine import Machine
from fastness.kinds.trusted_execution.membership import membership_of
from fastness.kube.access import User
from fastness.kube.errors import BadRequest, Conflict, NotFound
from fastness.kube.port import PatchType, WriteOptions
from fastness.page.admission import Acting
from fastness.page.pages.simulator import MOST_ADDED, TEES
from fastness.page.simulator import Simulator
from fastness.page.view_scope import MACHINES, ViewScope
from fastness.runtime.cache import BoundedCache
from fastness.runtime.clock import Clock

MAX_NAME: Final = 253
SHOWN_FOR: Final = timedelta(seconds=30)
MOST_KEPT: Final = 200
ACTIONS: Final = ("do", "undo", "add", "remove", "reboot")
NO_SIMULATOR: Final = "there is no simulator: the machines of this cluster are not virtual"
_AS: Final = WriteOptions(manager="fastness-page")


@dataclass(frozen=True, slots=True)
class Act:
    """What somebody did: to a Machine, or through the simulator to a virtual one."""

    verb: str
    name: str
    simulator: bool = False


AuditAct = Callable[[Request, User, Act, int], None]
"""Writes the line of the audit log about an act, also when it was refused: request, person, act, and status of the answer."""


def unaudited(_request: Request, _user: User, _act: Act, _code: int) -> None:
    """For a page whose API server writes those lines itself."""


async def carry_out(acting: Acting, scope: ViewScope, name: str, form: Mapping[str, str]) -> Decision:
    """Write a decision as the user; raises BadRequest, Forbidden, NotFound, Conflict and what the API says."""
    decision, reason = DECISIONS.get(form.get("decision", "")), form.get("reason", "").strip()
    if decision is None:
        raise BadRequest(f"there is no such decision; there are: {', '.join(DECISIONS)}")
    if decision.reason_required and not reason:
        raise BadRequest(f"to {decision.verb} a machine needs a reason; it is kept on the record")
    if len(reason) > MAX_REASON:
        raise BadRequest(f"the reason is longer than {MAX_REASON} characters")
    scope.require("patch", MACHINES, name)
    stored = scope.get(MACHINES, name)
    if stored is None:
        raise NotFound(f'machines "{name}" not found', group=MACHINES.group, kind=MACHINES.plural, name=name)
    machine = view(stored, Machine)
    if standing(machine, decision) is not DecisionState.OPEN:
        state = membership_of(machine).value.lower()
        raise Conflict(f"{name} is {state}: there is nothing to {decision.verb}")
    async with acting() as cluster:
        await cluster.patch(MACHINES, name, decision_patch(stored, decision, reason), PatchType.MERGE, NAMESPACE, _AS)
    return decision


async def operate(simulator: Simulator | None, scope: ViewScope, form: Mapping[str, str]) -> str:
    """Carry out a form and say what happened; raises Forbidden, NotFound, BadRequest and what the simulator says."""
    if simulator is None:
        raise NotFound(NO_SIMULATOR)
    scope.require("patch", MACHINES)
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


class Notices:
    """What the simulator answered each login last, for a moment."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._notices = BoundedCache[bytes, tuple[str, datetime]](MOST_KEPT)

    def put(self, login: bytes, text: str) -> None:
        """Remember an answer; the oldest makes room."""
        self._notices.put(login, (text, self._clock.now() + SHOWN_FOR))

    def of(self, login: bytes) -> str:
        """The answer of a moment ago; empty when there is none."""
        text, until = self._notices.get(login) or ("", None)
        if until is not None and self._clock.now() >= until:
            self._notices.pop(login)
            return ""
        return text
