"""The port that these loops have to the store: every kind at once.

`apiserver/inventory.py` implements it; tests have a small one of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from fastness.apiserver.store.records import Key
from fastness.kinds.kind import JsonObject, Resource


class Inventory(Protocol):
    """What there is, across all kinds."""

    def listen(self, listener: Callable[[Key], None]) -> None:
        """Have a function told which objects ownership may have something to do with."""

    def dependents(self, uid: str) -> list[Key]:
        """The objects that name this owner."""

    def read(self, key: Key) -> JsonObject | None:
        """One object as it is now."""

    def owner_key(self, reference: JsonObject, namespace: str) -> Key | None:
        """Where the owner that a reference names would be; None when its kind is not served."""

    def resource(self, group: str, plural: str) -> Resource | None:
        """How to address objects of a stored collection over the port."""

    def collections(self, namespace: str = "") -> list[tuple[str, str]]:
        """Group and plural of everything that has objects."""
