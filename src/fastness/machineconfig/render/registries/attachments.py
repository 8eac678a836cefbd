"""registries.d: where the runtime looks for signatures (containers-registries.d(5)).

Signatures stand beside an image in its registry, and the runtime only looks there where it is told to: for every scope that needs
signatures, and for every place that may serve an image of it instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fastness.formats import json
from fastness.machineconfig.render.registries.conf import Entry, by_scope, entry_for, mirrors_of, places, scope_of
from fastness.machineconfig.render.registries.scopes import inside, repository


def signed_places(scopes: Iterable[str], entries: Sequence[Entry]) -> list[str]:
    """All scopes, the places that serve them, and entries inside them with the places that serve those; by name.

    An entry inside a scope needs no line of its own, as the scope's counts for it; it stands there because others write it so,
    and whoever compares the two files must find the same. A wildcard has no location, and is left out.
    """
    signed, entry_of = set(scopes), by_scope(entries)
    served: set[str] = set()
    for scope in signed:
        entry = entry_for(entry_of, repository(scope))
        if entry is not None:
            served.update(places(entry, repository(scope)))
    for entry in entries:
        if inside(scope_of(entry), signed):
            served.update(str(place["location"]) for place in (entry, *mirrors_of(entry)) if place.get("location"))
    return sorted(signed | served)


def registries_d(signed: Iterable[str]) -> str:
    """The file that says so, as YAML; names are quoted as in JSON, which YAML reads alike."""
    lines = [f"  {json.encode(place).decode()}:\n    use-sigstore-attachments: true\n" for place in signed]
    return "docker:\n" + "".join(lines)
