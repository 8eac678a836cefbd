"""Which overlays every node should have: the digest of those that are for its machine.

    digest = overlays_of(matching(...))          of some overlays, in their order; None when one of them cannot be merged
    targets = overlay_targets(machines, overlays)   for every node whose machine gets some
    laid = laid_on(machines, overlays)           the overlays themselves, for plans

A Machine is asked for what its last authentic evidence proved. Doors ask its token instead, and refuse where the two differ: so a
late Machine has a node wait, and never gets it what is another's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fastness.kinds.objects import object_name
from fastness.machineconfig.overlay.merged import Laid
from fastness.machineconfig.overlay.overlay import MOST_OVERLAYS, Overlay, examine, is_member, matching, recipient_of

Object = Mapping[str, Any]


def overlays_of(overlays: Sequence[Overlay]) -> str | None:
    """The digest of all overlays of one machine, empty for none; None when they cannot be merged."""
    if len(overlays) > MOST_OVERLAYS or any(overlay.document is None for overlay in overlays):
        return None
    return Laid.of(overlays).digest


def overlay_targets(machines: Iterable[Object], overlays: Sequence[Object]) -> dict[str, str | None]:
    """The digest of the overlays for each node whose machine gets some; None where they cannot be merged."""
    if not overlays:
        return {}
    examined = {object_name(overlay).name: examine(overlay) for overlay in overlays}
    return dict(targets_by(machines, overlays, examined))


def laid_on(machines: Iterable[Object], overlays: Sequence[Object]) -> dict[str, Laid]:
    """The overlays of each node whose machine gets some that can be merged."""
    examined = {object_name(overlay).name: examine(overlay) for overlay in overlays}
    laid: dict[tuple[str, ...], Laid | None] = {}
    by_node: dict[str, Laid] = {}
    for machine in machines if overlays else ():
        node = str((machine.get("status") or {}).get("nodeName") or "")
        named = tuple(object_name(overlay).name for overlay in matching(overlays, recipient_of(machine)))
        if not node or not named or not is_member(machine):
            continue
        if named not in laid:
            mine = [examined[name] for name in named]
            laid[named] = Laid.of(mine) if overlays_of(mine) else None
        if (own := laid[named]) is not None:
            by_node[node] = own
    return by_node


def targets_by(
    machines: Iterable[Object], overlays: Sequence[Object], examined: Mapping[str, Overlay]
) -> Iterable[tuple[str, str | None]]:
    """The same as pairs, with overlays that were examined before."""
    digests: dict[tuple[str, ...], str | None] = {}
    for machine in machines:
        node = str((machine.get("status") or {}).get("nodeName") or "")
        if not node or not is_member(machine):
            continue
        named = tuple(object_name(overlay).name for overlay in matching(overlays, recipient_of(machine)))
        if not named:
            continue
        # Machines that match the same overlays share the digest: of thousands of nodes there are few kinds.
        if named not in digests:
            digests[named] = overlays_of([examined[name] for name in named])
        yield node, digests[named]
