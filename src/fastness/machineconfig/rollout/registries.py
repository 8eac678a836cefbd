"""Whether a change of registries.conf can be taken without moving pods away.

Pods that run keep their images; what matters is whether an image that a pod names by tag could now be something else. A change
is safe when it only adds ways to fetch images by digest:

* No registry for short names goes away or changes its place.
* No registry goes away; prefix, location, blocked and insecure of those that stay are as they were.
* No mirror goes away or stops being for digests only, and every mirror that comes is for digests only.
* A registry that comes has only such mirrors, or has none and is itself for digests only.

A file that cannot be read is never safe.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import Any, Final

Table = Mapping[str, Any]
_SWITCHES: Final = ("blocked", "insecure")
_DIGEST_ONLY: Final = "digest-only"


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
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError):
        return None


def _registries(config: Table) -> dict[str, Table]:
    entries = config.get("registry")
    registries = [entry for entry in (entries if isinstance(entries, list) else ()) if isinstance(entry, dict)]
    # containers-registries.conf(5): without a prefix the location is it.
    return {str(entry.get("prefix") or entry.get("location") or ""): entry for entry in registries}


def _mirrors(registry: Table) -> dict[str, bool]:
    """The mirrors by location, and whether each is for digests only."""
    entries = registry.get("mirror")
    everywhere = bool(registry.get("mirror-by-digest-only"))
    return {
        str(entry.get("location")): everywhere or entry.get("pull-from-mirror") == _DIGEST_ONLY
        for entry in (entries if isinstance(entries, list) else ())
        if isinstance(entry, dict)
    }


def _stays_safe(old: Table, new: Table) -> bool:
    if old.get("location") != new.get("location") or any(bool(old.get(key)) != bool(new.get(key)) for key in _SWITCHES):
        return False
    before, after = _mirrors(old), _mirrors(new)
    none_lost = all(location in after and (after[location] or not only) for location, only in before.items())
    return none_lost and all(only for location, only in after.items() if location not in before)


def _comes_safe(registry: Table) -> bool:
    mirrors = _mirrors(registry)
    return all(mirrors.values()) if mirrors else bool(registry.get("mirror-by-digest-only"))
