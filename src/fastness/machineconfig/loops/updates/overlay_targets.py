"""Which overlays every node goes to, kept event by event.

Machines prove themselves all the time, and a rollout looks at its pools all the time: matching every machine with every overlay
for each look would cost more than the rollout. So a Machine is matched when it changes, and all of them when an overlay does.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from fastness.kinds.fastness_dev.rollout import NODE_OVERLAY
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.objects import object_name
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.informers import Informers
from fastness.machineconfig.loops.updates.holds import node_name_of
from fastness.machineconfig.overlay.overlay import Overlay, examine
from fastness.machineconfig.overlay.targets import targets_by


class OverlayTargets:
    """Knows the digest of the overlays of every node."""

    reads: Sequence[Resource] = (NODE_OVERLAY.resource,)

    def __init__(self, informers: Informers) -> None:
        self._overlays = informers.of(NODE_OVERLAY.resource)
        self._machines = informers.of(MACHINE.resource)
        self._examined: dict[str, Overlay] = {}
        self._digests: dict[str, str | None] = {}
        self._overlays.subscribe(self._overlay_changed)
        self._machines.subscribe(self._machine_changed)

    def of(self, nodes: Container[str]) -> dict[str, str | None]:
        """The digests for those of some nodes that get overlays; None where they cannot be merged."""
        return {node: digest for node, digest in self._digests.items() if node in nodes}

    def digest(self, node: str) -> str | None:
        """The digest for one node; empty where it gets none."""
        return self._digests.get(node, "")

    def _overlay_changed(self, old: JsonObject | None, new: JsonObject | None) -> None:
        self._examined.pop(object_name(new or old or {}).name, None)
        if new is not None:
            self._examined[object_name(new).name] = examine(new)
        self._digests = dict(targets_by(self._machines.list(), self._present(), self._examined))

    def _machine_changed(self, old: JsonObject | None, new: JsonObject | None) -> None:
        for machine in (old, new):
            if machine is not None:
                self._digests.pop(node_name_of(machine), None)
        if new is not None and self._examined:
            self._digests |= dict(targets_by([new], self._present(), self._examined))

    def _present(self) -> list[JsonObject]:
        return [overlay for overlay in self._overlays.list() if object_name(overlay).name in self._examined]
