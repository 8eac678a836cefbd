"""Whoever writes what nothing acts on reads so at once: a warning for each entry of `kinds.not_acted_on` that a write sets.

A write sets what it changes: an update that leaves a field as it was says nothing, and neither does a status. The control plane
itself is not told, nor is anybody who writes into a namespace where the kind does not count: that object has other words coming.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fastness.attestation.admission.acts import is_control_plane
from fastness.kinds.not_acted_on import ENTRIES, entries_of, set_fields
from fastness.kube.admission import AdmissionLookups, AdmissionRequest, Allowed, Answer
from fastness.kube.places import AT_HOME, Places
from fastness.kube.places import EMBEDDED as IN_EMBEDDED

MOST: Final = 8
"""Warnings of one write: whoever pastes a large object must still see the others."""
EVERYWHERE: Final = tuple(dict.fromkeys((e.kind.group, e.kind.plural) for e in ENTRIES if not e.embedded))
EMBEDDED: Final = tuple(dict.fromkeys((e.kind.group, e.kind.plural) for e in ENTRIES))


def warn(request: AdmissionRequest, lookups: AdmissionLookups) -> Answer | None:
    """Warn on a real API server: of what is not acted on in any cluster."""
    return _answer(request, AT_HOME, embedded=False)


def warn_embedded(request: AdmissionRequest, lookups: AdmissionLookups) -> Answer | None:
    """Warn where Fastness is the API server: of everything in the list."""
    return _answer(request, IN_EMBEDDED, embedded=True)


def _answer(request: AdmissionRequest, places: Places, *, embedded: bool) -> Answer | None:
    if is_control_plane(request.user) or not places.counts_at(request.group, request.resource, request.namespace):
        return None
    warnings = list(_warnings(request, embedded=embedded))
    if len(warnings) > MOST:
        more = len(warnings) - MOST + 1
        warnings[MOST - 1 :] = [
            f"{request.kind}: {more} more fields are stored and not acted on; see docs/reference/not-acted-on.md"
        ]
    return Allowed(tuple(warnings)) if warnings else None


def _warnings(request: AdmissionRequest, *, embedded: bool) -> Iterator[str]:
    entries = [entry for entry in entries_of(request.group, request.resource) if embedded or not entry.embedded]
    before = {field.entry.field: field.value for field in set_fields(request.old or {}, entries)}
    for field in set_fields(request.new, entries):
        if before.get(field.entry.field) != field.value:
            yield field.entry.warning
