"""What the page of trust reads: images, values, policies, distrusts with whom they hit, and the record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final

from fastness.attestation.verdict.blast_radius import blast_radius
from fastness.attestation.verdict.distrust import Distrusted, read_distrust
from fastness.attestation.verdict.machine_standing import MachineStanding
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.trusted_execution.machine import Machine
from fastness.kinds.trusted_execution.properties import GENERATION, images_in
from fastness.kube.errors import NotFound
from fastness.page.pages.distrusts import Doubt, Doubts, WhatIf
from fastness.page.pages.record import entry_page
from fastness.page.pages.trust import TrustStory, trust_page
from fastness.page.view_scope import CHECKPOINTS, CLUSTERS, DISTRUSTS, IMAGES, MACHINES, POLICIES, VALUE_SETS, ViewScope
from fastness.page.views.view_request import NEWEST, ViewRequest, newest_checkpoint

KINDS: Final[tuple[Resource, ...]] = (CLUSTERS, IMAGES, VALUE_SETS, POLICIES, DISTRUSTS, CHECKPOINTS)
_COMMANDS: Final = {
    "image": "fastness distrust image {} --reason TEXT",
    "chipGeneration": "fastness distrust generation {} --reason TEXT",
}


async def trust_view(request: ViewRequest) -> bytes:
    """What is trusted, and the record."""
    scope = request.scope
    hidden = [kind.plural for kind in KINDS if not scope.may("list", kind)]
    machines, checkpoint = scope.those(MACHINES), newest_checkpoint(scope)
    before = number(request.query.get("before", ""))
    return trust_page(request.frame, TrustStory(
        scope.those(CLUSTERS), scope.those(IMAGES), scope.those(VALUE_SETS), scope.those(POLICIES),
        _doubts(scope, machines, request.query.get("distrust", ""), request.frame.now), checkpoint,
        await request.reader.newest(checkpoint, NEWEST, before), hidden, _booted(machines),
    ))  # fmt: skip


async def record_view(request: ViewRequest) -> bytes:
    """One entry of the record with its proof."""
    request.scope.require("list", CHECKPOINTS)
    checkpoint, index = newest_checkpoint(request.scope), number(request.name)
    proved = await request.reader.prove(checkpoint, index) if index is not None else None
    if proved is None or checkpoint is None:
        raise NotFound("the record has no such entry, or it cannot be read now")
    return entry_page(request.frame, proved, checkpoint)


def number(text: str) -> int | None:
    """A number out of an address; None for anything else."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else None


def _properties(machine: JsonObject) -> dict[str, str]:
    return {str(name): str(value) for name, value in ((machine.get("status") or {}).get("properties") or {}).items()}


def _booted(machines: Sequence[JsonObject]) -> Counter[str]:
    return Counter(image.rpartition("@")[2] for machine in machines for image in images_in(_properties(machine)))


def _doubts(scope: ViewScope, machines: Sequence[JsonObject], target: str, now: datetime) -> Doubts:
    sees, rules = scope.may("list", MACHINES), scope.rules(now)

    def stands(machine: Machine) -> MachineStanding:
        return rules.standing(machine, now)

    standing = []
    for distrust in scope.those(DISTRUSTS):
        read = read_distrust(distrust)
        standing.append(Doubt(distrust, blast_radius(read, machines, stands) if read is not None and sees else None))
    return Doubts(standing, _what_if(machines, target, stands))


def _what_if(machines: Sequence[JsonObject], question: str, stands: Callable[[Machine], MachineStanding]) -> WhatIf:
    """What could be distrusted of what machines proved; an address can ask for nothing else."""
    images = sorted({image for machine in machines for image in images_in(_properties(machine))})
    chips = sorted({generation for machine in machines if (generation := _properties(machine).get(GENERATION))})
    targets = [(f"image:{name}", f"the image {name}") for name in images]
    targets += [(f"chipGeneration:{name}", f"the chips {name}") for name in chips]
    if question not in dict(targets):
        return WhatIf(targets)
    kind, _, target = question.partition(":")
    radius = blast_radius(Distrusted("", kind, target), machines, stands)
    return WhatIf(targets, question, radius, _COMMANDS[kind].format(target))
