"""What became of a KubeletConfig or a ContainerRuntimeConfig, as its conditions tell it.

The last three outcomes as `Accepted`, oldest first, then the last one as `Success` or `Failure`, for readers of the older form.
An outcome that is the same as the one before is not another one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import rfc3339

ACCEPTED: Final = "Accepted"
SUCCESS: Final = "Success"
FAILURE: Final = "Failure"
MAX_OUTCOMES: Final = 3


def outcome_conditions(before: Sequence[Mapping[str, Any]], problem: str, now: datetime) -> list[JsonObject]:
    """The conditions after another look; `problem` is why the spec is refused, empty when it is not."""
    accepted, legacy = _outcome(problem, now)
    history = [dict(entry) for entry in before if entry.get("type") == ACCEPTED]
    if not history or not _same(history[-1], accepted):
        history = [*history, accepted]
    last = next((dict(entry) for entry in before if entry.get("type") == legacy["type"]), legacy)
    others = [dict(entry) for entry in before if entry.get("type") not in (ACCEPTED, SUCCESS, FAILURE)]
    return [*others, *history[-MAX_OUTCOMES:], last if _same(last, legacy) else legacy]


def _outcome(problem: str, now: datetime) -> tuple[JsonObject, JsonObject]:
    message, when = (f"Error: {problem}" if problem else SUCCESS), rfc3339(now)
    accepted = {
        "type": ACCEPTED, "status": "False" if problem else "True", "reason": "Refused" if problem else "Generated",
        "message": message, "lastTransitionTime": when,
    }  # fmt: skip
    kind = FAILURE if problem else SUCCESS
    return accepted, {"type": kind, "status": "True", "reason": "", "message": message, "lastTransitionTime": when}


def _same(present: Mapping[str, Any], outcome: Mapping[str, Any]) -> bool:
    return all(present.get(field) == outcome.get(field) for field in ("status", "message"))
