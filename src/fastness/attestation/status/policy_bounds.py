"""Whether a policy of a user kept its bounds in service: read off the verdicts that had to do without its answer.

    exceeding(verdict)                               # the text that gave no answer there, if one did
    bounded(status, generation, verdicts, now)       # the conditions of a policy, with what they say of it

A verdict names the text (`name@version`), so what an older text did is never held against the one that judges now: changing the
policy clears the condition, and a late verdict about the older text does not bring it back. Verdicts are the verifiers' own and
cannot be changed; an Event anybody with a namespace could have written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

from fastness.attestation.verdict.conclude import EXCEEDED, POLICY
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import with_condition

WITHIN_BOUNDS: Final = "WithinBounds"
MAX_REASON: Final = 200
Object = Mapping[str, Any]


class Unanswered(NamedTuple):
    """A text that gave no answer: the policy, the version of its text, and why."""

    name: str
    version: str
    reason: str


def exceeding(verdict: Object) -> Unanswered | None:
    """The text that a verdict waits for; None when it waits for nothing, or for something else."""
    spec = verdict.get("spec")
    checks = spec.get("checks") if isinstance(spec, dict) else None
    for check in checks if isinstance(checks, list) else ():
        if isinstance(check, dict) and (check.get("name"), check.get("code")) == (POLICY, EXCEEDED):
            label, _, reason = str(check.get("seen", "")).partition(": ")
            name, _, version = label.rpartition("@")
            return Unanswered(name, version, reason) if name else None
    return None


def bounded(status: Object, generation: int, verdicts: Iterable[JsonObject], now: datetime) -> list[JsonObject]:
    """The conditions of a policy with `WithinBounds`; one that was never out of them does not have it."""
    conditions = [dict(entry) for entry in status.get("conditions") or ()]
    active = status.get("active")
    version = str(active.get("version", "")) if isinstance(active, dict) else ""
    latest = max(_about(version, verdicts), default=None) if version else None
    if latest is None and not any(entry.get("type") == WITHIN_BOUNDS for entry in conditions):
        return conditions
    state = ("True", "NotExceeded", "no machine waits for an answer of the text that judges")
    if latest is not None:
        when, unanswered = latest
        reason = unanswered.reason[:MAX_REASON]
        state = ("False", "Exceeded", f"version {version} gave no answer at {when}: {reason}; machines wait for one")
    return with_condition(
        conditions,
        kind=WITHIN_BOUNDS,
        status=state[0],
        reason=state[1],
        message=state[2],
        now=now,
        generation=generation,
    )


def _about(version: str, verdicts: Iterable[JsonObject]) -> Iterable[tuple[str, Unanswered]]:
    for verdict in verdicts:
        unanswered = exceeding(verdict)
        if unanswered is not None and unanswered.version == version:
            yield str(verdict["metadata"].get("creationTimestamp", "")), unanswered
