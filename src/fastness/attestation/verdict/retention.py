"""Which verdicts are kept: the newest of every machine, and every refusal for a month.

What is left out may be deleted, with the evidence that no kept verdict names. The record keeps a line about every one of
them for good.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from fastness.kinds.kind import JsonObject

Object = Mapping[str, Any]
KEPT: Final = 10
REFUSALS_FOR: Final = timedelta(days=30)


def needed_part(verdict: JsonObject) -> JsonObject:
    """What is asked here of a verdict: a tenth of one that lists its checks, and a leader holds ten of each machine."""
    spec = verdict.get("spec")
    if not isinstance(spec, dict):
        return verdict
    return {**verdict, "spec": {name: spec[name] for name in ("subject", "result") if name in spec}}


def superfluous(
    verdicts: Iterable[Object], now: datetime, newest: int = KEPT, refusals_for: timedelta = REFUSALS_FOR
) -> list[str]:
    """The names of verdicts of one machine that need not be kept any longer."""
    newest_first = sorted(
        verdicts, key=lambda verdict: (_made(verdict), str(verdict["metadata"]["name"])), reverse=True
    )
    return [
        str(verdict["metadata"]["name"])
        for verdict in newest_first[newest:]
        # Refusals are kept by age: otherwise whoever attacks with a stolen key pushes the traces out with ten attempts that go
        # well.
        if verdict["spec"]["result"] == "Affirmed" or now - _made(verdict) >= refusals_for
    ]


def next_look(verdicts: Iterable[Object], now: datetime, newest: int = KEPT) -> float | None:
    """Seconds until a verdict that is kept for its age alone need not be kept any longer."""
    newest_first = sorted(verdicts, key=_made, reverse=True)
    ends = [(_made(verdict) + REFUSALS_FOR - now).total_seconds() for verdict in newest_first[newest:]]
    return max(1.0, min(ends)) if ends else None


def unreferenced(blobs: Iterable[Object], verdicts: Iterable[Object], now: datetime, grace: timedelta) -> list[str]:
    """The names of evidence that no verdict names; a young one may belong to a verdict that is just being written."""
    named = {verdict["spec"]["evidence"]["digest"] for verdict in verdicts}
    return [
        str(blob["metadata"]["name"])
        for blob in blobs
        if blob["spec"]["digest"] not in named and now - _made(blob) >= grace
    ]


def _made(obj: Object) -> datetime:
    return datetime.fromisoformat(obj["metadata"]["creationTimestamp"])
