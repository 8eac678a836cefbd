"""NodeOverlays: whether each can be merged, how many machines get it, and whether those have it.

    Valid     the fragment is good for confidential machines; the first problems, with their places, otherwise
    Applied   every machine that matches and has a node has this version, and no other has it; otherwise which ones are behind

The status is for people: doors examine overlays themselves, so a late status lets nothing in. What machines have is what their
nodes say. The rollout sends nodes to overlays (`rollout.py`); `Applied` says who is still to come.

Machines prove themselves again all the time and nodes report all the time; the loop looks again only when one of them says
something that matters here, and once a minute.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from fastness.kinds.fastness_dev.rollout import NODE_OVERLAY
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.kubernetes.core import NODE
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import ObjectName, annotations_of, object_name, with_condition
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.controllers.controller import Done, Object, Source
from fastness.kube.controllers.reads import fields
from fastness.kube.errors import NotFound
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster, PatchType, WriteOptions
from fastness.machineconfig.overlay.overlay import Overlay, examine, is_member, matches, recipient_of
from fastness.machineconfig.render.errors import fatal
from fastness.runtime.clock import Clock

KEY: Final = ObjectName("", "*")
GATHER_SECONDS: Final = 1.0
AGAIN_SECONDS: Final = 60.0
MOST_TOLD: Final = 5
_STATUS: Final = WriteOptions(manager="node-overlays", subresource="status")


class NodeOverlays:
    """Says what becomes of overlays."""

    name = "node-overlays"
    writes: Sequence[Resource] = (NODE_OVERLAY.resource,)

    def __init__(self, cluster: Cluster, informers: Informers, clock: Clock) -> None:
        self.sources: Sequence[Source] = (
            Source(NODE_OVERLAY.resource, lambda _: (KEY,)),
            Source(MACHINE.resource, self._if_it_matters, delay=GATHER_SECONDS),
            Source(
                NODE.resource, self._if_it_matters, delay=GATHER_SECONDS, reads=fields(annotations=(names.OVERLAYS,))
            ),
        )
        self._cluster = cluster
        self._clock = clock
        self._overlays = informers.of(NODE_OVERLAY.resource)
        self._machines = informers.of(MACHINE.resource)
        self._nodes = informers.of(NODE.resource)
        self._relevant: dict[ObjectName, Any] = {}

    def _if_it_matters(self, obj: Object) -> Iterable[ObjectName]:
        """The one key, when a machine proved something else than before or a node has other overlays."""
        status, name = obj.get("status") or {}, object_name(obj)
        relevant = (status.get("properties"), status.get("nodeName"), annotations_of(obj).get(names.OVERLAYS))
        if name in self._relevant and self._relevant[name] == relevant:
            return ()
        self._relevant[name] = relevant
        return (KEY,)

    async def reconcile(self, _: ObjectName) -> Done:
        """All overlays at once: the machines are looked at together."""
        overlays = self._overlays.list()
        if not overlays:
            return Done()
        machines = [machine for machine in self._machines.list() if is_member(machine)]
        notes = {object_name(node).name: annotations_of(node).get(names.OVERLAYS, "") for node in self._nodes.list()}
        for overlay in overlays:
            await self._tell(overlay, overlay_status(overlay, machines, notes, self._clock.now()))
        return Done(again_after=AGAIN_SECONDS)

    async def _tell(self, overlay: JsonObject, status: JsonObject) -> None:
        if status == overlay.get("status"):
            return
        try:
            await self._cluster.patch(
                NODE_OVERLAY.resource, object_name(overlay).name, {"status": status}, PatchType.MERGE, options=_STATUS
            )
        except NotFound:
            return


def overlay_status(overlay: Object, machines: Sequence[Object], notes: Mapping[str, str], now: datetime) -> JsonObject:
    """The status of one overlay; `notes` are the overlays that each node says it has."""
    examined, old = examine(overlay), overlay.get("status") or {}
    generation = overlay["metadata"].get("generation", 0)
    matched = [machine for machine in machines if matches(overlay, recipient_of(machine))]
    conditions = old.get("conditions") or []
    for kind, (status, reason, message) in (
        ("Valid", _valid(examined)),
        ("Applied", _applied(examined, matched, notes)),
    ):
        conditions = with_condition(
            conditions, kind=kind, status=status, reason=reason, message=message, now=now, generation=generation
        )
    return {"observedGeneration": generation, "conditions": conditions, "matched": len(matched)}


def _valid(examined: Overlay) -> tuple[str, str, str]:
    wrong = fatal(examined.problems)
    if not wrong:
        return "True", "Good", f"can be merged, as {examined.version}"
    more = f"; and {len(wrong) - MOST_TOLD} more" if len(wrong) > MOST_TOLD else ""
    reasons = "; ".join(problem.short for problem in wrong[:MOST_TOLD])
    return "False", "BadFragment", f"its machines wait until it is corrected: {reasons}{more}"[:1024]


def _applied(examined: Overlay, matched: Sequence[Object], notes: Mapping[str, str]) -> tuple[str, str, str]:
    expected = {str(machine["status"].get("nodeName") or "") for machine in matched}
    had = {node: [version.partition("@")[0] for version in note.split()] for node, note in notes.items()}
    late = [node for node in sorted(expected & notes.keys()) if examined.version not in notes[node].split()]
    stale = [node for node in sorted(had) if node not in expected and examined.name in had[node]]
    if not late and not stale:
        return "True", "Everywhere", "every node that should have it has it, and no other"
    if examined.document is None:
        return "False", "BadFragment", "nodes stay where they are until it is corrected"
    parts = [(late, "without this version"), (stale, "with it still, though it is for them no more")]
    message = "; ".join(f"{_names(some)}: {what}" for some, what in parts if some)
    return "False", "RollingOut", f"{message}; the rollout of their pool brings them there"[:1024]


def _names(nodes: Sequence[str]) -> str:
    more = f" and {len(nodes) - MOST_TOLD} more" if len(nodes) > MOST_TOLD else ""
    return ", ".join(nodes[:MOST_TOLD]) + more
