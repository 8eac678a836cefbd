"""registries.conf: which registry is asked for an image, under which name, and whether at all (containers-registries.conf(5)).

The runtime takes the one entry whose scope is the narrowest around an image, and nothing of the others. So:

* An entry inside an insecure or blocked scope is insecure or blocked itself, and so is a mirror inside an insecure one.
* An entry that has no mirrors, inside a source that has some, gets them with the rest of its path: it would hide them otherwise.
* It is blocked as well where that source is never to be contacted: an entry that only says "insecure" must not open it again.

Entries stand in this order: those of the template, sources for digests by name, sources for tags, blocked scopes, insecure ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from fastness.formats import toml
from fastness.machineconfig.render.registries.mirrors import MirroredSource
from fastness.machineconfig.render.registries.objects import PullBy
from fastness.machineconfig.render.registries.scopes import around, below, inside, is_wildcard

Entry = dict[str, Any]


def registries_conf(
    template: str, mirrored: Sequence[MirroredSource], insecure: Sequence[str], blocked: Sequence[str]
) -> dict[str, Any]:
    """The whole document, to be encoded as TOML."""
    document = toml.parse(template)
    entries = _Entries(document.get("registry") or ())
    for source in mirrored:
        entry = entries.of(source.source)
        if source.never_contact_source:
            entry["blocked"] = True
        mirrors = entry.setdefault("mirror", [])
        mirrors += [{"location": mirror, "pull-from-mirror": str(source.by)} for mirror in source.mirrors]
    for scope in (*blocked, *insecure):
        entries.of(scope)
    _mark(entries, frozenset(insecure), frozenset(blocked))
    _inherit(entries, mirrored, frozenset(insecure))
    if len(entries):
        document["registry"] = list(entries)
    return document


def scope_of(entry: Entry) -> str:
    """What an entry is about."""
    return str(entry.get("prefix") or entry.get("location") or "")


def mirrors_of(entry: Entry) -> list[Entry]:
    """The mirrors of an entry."""
    return [mirror for mirror in entry.get("mirror") or () if isinstance(mirror, dict)]


def by_scope(entries: Iterable[Entry]) -> dict[str, Entry]:
    """Entries by what they are about."""
    return {scope_of(entry): entry for entry in entries}


def entry_for(entries: Mapping[str, Entry], scope: str) -> Entry | None:
    """The entry that the runtime takes for images of a scope."""
    return next((entries[outer] for outer in around(scope) if outer in entries), None)


def places(entry: Entry, scope: str, by: PullBy | None = None) -> list[str]:
    """Where the images of a scope are looked for before its source; `by` leaves out mirrors that are not asked so."""
    rest = below(scope, scope_of(entry))
    return [
        f"{mirror.get('location')}{rest}"
        for mirror in mirrors_of(entry)
        if by is None or mirror.get("pull-from-mirror") in (None, "", "all", str(by))
    ]


class _Entries:
    """Entries by their scopes, in the order in which they came."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._by_scope = by_scope(entries)

    def __len__(self) -> int:
        return len(self._by_scope)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._by_scope.values())

    def of(self, scope: str) -> Entry:
        """The entry for exactly this scope, made if there is none."""
        # A wildcard has no location of its own: the host that an image names is asked.
        return self._by_scope.setdefault(scope, {"prefix" if is_wildcard(scope) else "location": scope})


def _mark(entries: _Entries, insecure: frozenset[str], blocked: frozenset[str]) -> None:
    for entry in entries:
        if inside(scope_of(entry), insecure):
            entry["insecure"] = True
        if inside(scope_of(entry), blocked):
            entry["blocked"] = True
        for mirror in mirrors_of(entry):
            if inside(str(mirror.get("location")), insecure):
                mirror["insecure"] = True


def _inherit(entries: _Entries, mirrored: Iterable[MirroredSource], insecure: frozenset[str]) -> None:
    sources = {source.source for source in mirrored}
    closed = {source.source for source in mirrored if source.never_contact_source}
    for entry in [entry for entry in entries if not mirrors_of(entry)]:
        scope = scope_of(entry)
        nearest = next((outer for outer in around(scope) if outer in sources), "")
        if nearest in closed:
            entry["blocked"] = True
        if not nearest or is_wildcard(nearest):
            continue
        rest = below(scope, nearest)
        entry["mirror"] = [_moved(mirror, rest, insecure) for mirror in mirrors_of(entries.of(nearest))]


def _moved(mirror: Entry, rest: str, insecure: frozenset[str]) -> Entry:
    location = f"{mirror['location']}{rest}"
    return {**mirror, "location": location, **({"insecure": True} if inside(location, insecure) else {})}
