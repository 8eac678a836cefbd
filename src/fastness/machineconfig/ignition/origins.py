"""Who supplied what: the record that a merge keeps for whoever asks.

A merge with an observer tells, for every entry and every field that a child brought, what happened to what was there before
and who had supplied that. Places are tuples of field names and entry keys, not of list positions, so they stay the same
while lists grow: `("storage", "files", "/etc/chrony.conf", "contents", "source")`.

An entry that came whole from one child is told once, at the entry. When a later child changes part of it, the changed fields
are told one by one. `Origins.origin` therefore looks at a place and then at those above it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

Place = tuple[str, ...]


class ChildEffect(StrEnum):
    """What a child did at a place."""

    ADDED = "added"
    REPLACED = "replaced"
    REPEATED = "repeated"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class Supply:
    """One contribution of one child: where, what, and what it took the place of."""

    change: ChildEffect
    place: Place
    source: str
    value: Any
    overrode: str | None = None
    old: Any = None


Observer = Callable[[Supply], None]


class Origins:
    """Remembers who supplied each place, and tells an observer about each contribution."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self._origins: dict[Place, str] = {}

    def origin(self, place: Place) -> str | None:
        """Who supplied a place: the last one to touch it, or else what it is part of."""
        while place:
            if place in self._origins:
                return self._origins[place]
            place = place[:-1]
        return None

    def added(self, place: Place, source: str, value: Any) -> None:
        """Something new at a place where nothing was."""
        self._origins[place] = source
        self._observer(Supply(ChildEffect.ADDED, place, source, value))

    def replaced(self, place: Place, source: str, value: Any, old: Any) -> None:
        """Another value, or the same one again, from another child."""
        change = ChildEffect.REPEATED if value == old else ChildEffect.REPLACED
        self._observer(Supply(change, place, source, value, self.origin(place), old))
        self._origins[place] = source

    def removed(self, place: Place, source: str, old: Any) -> None:
        """Something is gone because of a child."""
        self._observer(Supply(ChildEffect.REMOVED, place, source, None, self.origin(place), old))
        # A path that comes again later is another entry; blame for the one before would name somebody who did not write it.
        gone = [below for below in self._origins if below[: len(place)] == place]
        for below in gone:
            del self._origins[below]
