"""What doors know about vendors' documents, and what the cluster says about it: the condition CollateralFresh.

Doors ask for documents when evidence needs them; each tells what it asked for lately, until when the answers count and what could
not be had (`CollateralState`). The status of the ConfidentialCluster puts the words of all doors together. A door that has been
silent for too long says nothing any more: neither that all is well nor that something is wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from fastness.formats import json
from fastness.formats.errors import JsonError
from fastness.formats.words import counted
from fastness.kinds.objects import rfc3339

NOT_TOLD: Final = "NotTold"
SILENT_AFTER: Final = timedelta(minutes=30)
MOST: Final = 64
SHOWN: Final = 3


@dataclass(frozen=True, slots=True)
class CollateralState:
    """Documents that were asked for lately: until when each counts (None: for ever), and why others are missing."""

    documents: Mapping[str, datetime | None] = field(default_factory=dict)
    problems: Mapping[str, str] = field(default_factory=dict)

    def to_text(self, now: datetime) -> str:
        """As a door tells it; of very many the first that end, and the first problems."""
        last = datetime.max.replace(tzinfo=now.tzinfo)
        first = sorted(self.documents.items(), key=lambda entry: (entry[1] or last, entry[0]))[:MOST]
        report = {
            "at": rfc3339(now),
            "documents": {name: rfc3339(ends) if ends else "" for name, ends in first},
            "problems": {name: text[:256] for name, text in sorted(self.problems.items())[:MOST]},
        }
        return json.canonical(report).decode()


@dataclass(frozen=True, slots=True)
class Freshness:
    """The condition: True, False or (None) unknown."""

    status: bool | None
    reason: str
    message: str


def freshness(reports: Iterable[str], now: datetime) -> Freshness:
    """What the words of all doors come to."""
    states = [state for state in (_heard(text, now) for text in reports) if state is not None]
    if not states:
        return Freshness(None, NOT_TOLD, "no broker has told lately what documents of vendors it has")
    documents = {name: ends for state in states for name, ends in state.documents.items()}
    problems = {name: text for state in states for name, text in state.problems.items()}
    over = {name: f"ran out on {rfc3339(ends)}" for name, ends in documents.items() if ends and ends < now}
    if wrong := problems | over:
        listed = "; ".join(f"{name}: {text}" for name, text in sorted(wrong.items())[:SHOWN])
        more = f" and {len(wrong) - SHOWN} more" if len(wrong) > SHOWN else ""
        return Freshness(
            False, "Missing" if problems else "Expired", f"{listed}{more}; import them or allow the services"
        )
    if not documents:
        return Freshness(True, "NotNeeded", "no evidence lately needed a document of a vendor")
    ends = min((ends_at for ends_at in documents.values() if ends_at), default=None)
    until = f"; the first runs out on {rfc3339(ends)}" if ends else ""
    return Freshness(True, "Current", f"{counted(len(documents), 'document is', 'documents are')} at hand{until}")


def told_at(text: str) -> datetime | None:
    """When a door told that; None for what no door wrote."""
    try:
        return datetime.fromisoformat(json.decode(text.encode())["at"])
    except (JsonError, KeyError, TypeError, ValueError):
        return None


def _heard(text: str, now: datetime) -> CollateralState | None:
    at = told_at(text)
    if at is None or at.tzinfo is None or now - at > SILENT_AFTER:
        return None
    try:
        report: Any = json.decode(text.encode())
        documents = {str(name): _instant(ends) for name, ends in report["documents"].items()}
        return CollateralState(documents, {str(name): str(text) for name, text in report["problems"].items()})
    except (JsonError, KeyError, TypeError, ValueError, AttributeError):
        return None


def _instant(text: str) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
