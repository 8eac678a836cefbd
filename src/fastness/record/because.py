"""What an entry of the record rests on, for people: a verdict, the code of a refusal that left none, or a person and a reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def because(entry: Mapping[str, Any]) -> str:
    """The ground of an entry in a few words; empty when it has none beside what it says anyway."""
    detail = entry.get("detail") or {}
    ground = entry.get("verdict") or detail.get("code") or detail.get("basis")
    return str(ground) if ground else by_person(entry)


def by_person(entry: Mapping[str, Any]) -> str:
    """Who is behind an entry and why, where somebody is."""
    detail = entry.get("detail") or {}
    return ": ".join(str(part) for part in (detail.get("person"), detail.get("reason")) if part)
