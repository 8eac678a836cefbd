"""Stage and push place of the cluster can be read; a stage without rpm-ostree waits for its nodes; nobody is stranded.

* What is written about image mode is read before it is stored: a word that nobody follows would be found out weeks later.
* Stage 3 has bootc alone. Nodes that only rpm-ostree can deploy are named before it is set, and it is refused: they would keep
  their image for ever. Nodes that merely were not asked to use bootc are no obstacle.
* A MachineOSConfig whose nodes could not come back stays (`builds/leaving.py`); who asks is told what to do first. Of what the
  cluster itself deletes, the loops have looked at the same condition, and an owner that is gone has no nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from fastness.attestation.admission.acts import is_control_plane
from fastness.builds.default_config import why_not_removed
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import annotations_of, object_name
from fastness.kube.admission import AdmissionLookups, AdmissionRequest, Allowed, Denied, forbidden, invalid
from fastness.machineconfig.rollout.image_mode import Stage, place_problem, stage_problem

Object = Mapping[str, Any]
MOST: Final = 5
GARBAGE_COLLECTOR: Final = "system:serviceaccount:kube-system:generic-garbage-collector"
_NOTES: Final = "metadata.annotations"


def setting_can_be_followed(request: AdmissionRequest, lookups: AdmissionLookups) -> Denied | Allowed | None:
    """Refuse a stage, or a place for images, that cannot be read, and stage 3 while nodes need rpm-ostree."""
    new, old = annotations_of(request.new), annotations_of(request.old or {})
    stage = new.get(names.IMAGE_MODE_STAGE)
    if stage is not None and (problem := stage_problem(stage)):
        return invalid(request, f"{_NOTES}[{names.IMAGE_MODE_STAGE}]", problem)
    place = new.get(names.IMAGE_PUSH_SPEC)
    if place and place != old.get(names.IMAGE_PUSH_SPEC) and (problem := place_problem(place)):
        return invalid(request, f"{_NOTES}[{names.IMAGE_PUSH_SPEC}]", problem)
    needy = list(need_rpm_ostree(lookups.nodes()))
    if not needy:
        return None
    listed = "; ".join(f"{name} ({why})" for name, why in needy[:MOST]) + (" …" if len(needy) > MOST else "")
    if stage == Stage.BOOTC and stage != old.get(names.IMAGE_MODE_STAGE):
        way = "bake their packages into the image of the pool and remove them from the machines, or install these anew"
        return forbidden(request, f"stage 3 has bootc alone, and nodes need rpm-ostree: {listed}; {way}")
    if stage == Stage.LAYERED and stage != old.get(names.IMAGE_MODE_STAGE):
        return Allowed((f"stage 3 will be refused while nodes need rpm-ostree: {listed}",))
    return None


def nodes_come_back(request: AdmissionRequest, lookups: AdmissionLookups) -> Denied | None:
    """Refuse to delete a MachineOSConfig whose nodes could not go back to their stock image."""
    if is_control_plane(request.user) or request.user.name == GARBAGE_COLLECTOR:
        return None
    why = why_not_removed(request.old or {})
    return forbidden(request, f"its nodes could not go back to their stock image: {why}") if why else None


def need_rpm_ostree(nodes: Iterable[Object]) -> Iterable[tuple[str, str]]:
    """The nodes that only rpm-ostree can deploy, each with the reason; not those that nobody asked to use bootc."""
    for node in sorted(nodes, key=lambda each: object_name(each).name):
        driver, _, why = annotations_of(node).get(names.OS_DRIVER, "").partition(": ")
        if driver == "rpm-ostree" and names.BOOTC_NOT_PREFERRED not in why:
            yield object_name(node).name, why
