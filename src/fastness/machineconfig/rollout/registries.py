"""Whether a change of registries.conf can be taken without moving pods away.

Pods that run keep their images; what matters is whether an image that a pod names by tag could now be something else. A change
is safe when it only adds ways to fetch images by digest:

* No registry for short names goes away or changes its place.
* No registry goes away; prefix, location, blocked and insecure of those that stay are as they were.
* No mirror goes away or stops being for digests only, and every mirror that comes is for digests only.
* A registry that comes has only such mirrors, or has none and says nothing else either: its images come from where they came.

A file that cannot be read is never safe.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import Any, Final

Table = Mapping[str, Any]
_SWITCHES: Final = ("blocked", "insecure")
_DIGEST_ONLY: Final = "digest-only"
_ALL: Final = "all"


def is_safe(old: bytes, new: bytes) -> bool:
    """Whether going from one registries.conf to the other needs no drain."""
    before, after = _parsed(old), _parsed(new)
    if before is None or after is None:
        return False
    short = list(before.get("unqualified-search-registries") or ())
    # In order: of two registries with an image of the same short name, the first one answers.
    if list(after.get("unqualified-search-registries") or ())[: len(short)] != short:
        return False
    old_registries, new_registries = _registries(before), _registries(after)
    if old_registries.keys() - new_registries.keys():
        return False
    return all(
        _stays_safe(old_registries[prefix], registry) if prefix in old_registries else _comes_safe(registry)
        for prefix, registry in new_registries.items()
    )


def _parsed(data: bytes) -> Table | None:
    try:
        return tomllib.loads(data.decode())
    # RecursionError too: arrays nest as deep as their author likes, and the file comes out of a MachineConfig.
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError):
        return None


def _registries(config: Table) -> dict[str, Table]:
    entries = config.get("registry")
    registries = [entry for entry in (entries if isinstance(entries, list) else ()) if isinstance(entry, dict)]
    # containers-registries.conf(5): without a prefix the location is it.
    return {str(entry.get("prefix") or entry.get("location") or ""): entry for entry in registries}


def _mirrors(registry: Table) -> dict[str, set[str]]:
    """The mirrors by location, and what each is for: a place may be there twice, for digests and for tags."""
    entries = registry.get("mirror")
    # A digest names the content, so no mirror can hand out something else; a tag is whatever the mirror says it is.
    everywhere = bool(registry.get("mirror-by-digest-only"))
    mirrors: dict[str, set[str]] = {}
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict):
            use = _DIGEST_ONLY if everywhere else str(entry.get("pull-from-mirror") or _ALL)
            mirrors.setdefault(str(entry.get("location")), set()).add(use)
    return mirrors


def _stays_safe(old: Table, new: Table) -> bool:
    # `insecure` turned on lets anybody on the way answer for the registry; `blocked` turned on fails pods that start again.
    if old.get("location") != new.get("location") or any(bool(old.get(key)) != bool(new.get(key)) for key in _SWITCHES):
        return False
    before, after = _mirrors(old), _mirrors(new)
    # A mirror for everything that becomes one for digests takes no image away that is named by its content.
    none_lost = all(location in after and uses - {_ALL} <= after[location] for location, uses in before.items())
    return none_lost and all(uses - before.get(location, set()) <= {_DIGEST_ONLY} for location, uses in after.items())


def _comes_safe(registry: Table) -> bool:
    mirrors = _mirrors(registry)
    if mirrors:
        return all(uses == {_DIGEST_ONLY} for uses in mirrors.values())
    # Without mirrors it changes nothing, unless it closes the registry, opens it to anybody, or sends its images elsewhere.
    moved = registry.get("prefix") not in (None, "", registry.get("location"))
    return not moved and not any(registry.get(switch) for switch in _SWITCHES)
