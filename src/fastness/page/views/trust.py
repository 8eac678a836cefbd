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
from fastness.page.view_scope import CHECKPOINTS, CLUSTERS, DISTRUSTS, IMAGES, MACHINES, POLICIES, VALUE_SETS, Sight
from fastness.page.views.view_request import NEWEST, Shown, newest_checkpoint

KINDS: Final[tuple[Resource, ...]] = (CLUSTERS, IMAGES, VALUE_SETS, POLICIES, DISTRUSTS, CHECKPOINTS)
_COMMANDS: Final = {
    "image": "fastness distrust image {} --reason TEXT",
    "chipGeneration": "fastness distrust generation {} --reason TEXT",
}


async def trust_view(shown: Shown) -> bytes:
    """What is trusted, and the record."""
    sight = shown.sight
    hidden = [kind.plural for kind in KINDS if not sight.may("list", kind)]
    machines, checkpoint = sight.those(MACHINES), newest_checkpoint(sight)
    before = number(shown.query.get("before", ""))
    return trust_page(shown.frame, TrustStory(
        sight.those(CLUSTERS), sight.those(IMAGES), sight.those(VALUE_SETS), sight.those(POLICIES),
        _doubts(sight, machines, shown.query.get("distrust", ""), shown.frame.now), checkpoint,
        await shown.reader.newest(checkpoint, NEWEST, before), hidden, _booted(machines),
    ))  # fmt: skip


async def record_view(shown: Shown) -> bytes:
    """One entry of the record with its proof."""
    shown.sight.require("list", CHECKPOINTS)
    checkpoint, index = newest_checkpoint(shown.sight), number(shown.name)
    proved = await shown.reader.prove(checkpoint, index) if index is not None else None
    if proved is None or checkpoint is None:
        raise NotFound("the record has no such entry, or it cannot be read now")
    return entry_page(shown.frame, proved, checkpoint)


def number(text: str) -> int | None:
    """A number out of an address; None for anything else."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else None


def _properties(machine: JsonObject) -> dict[str, str]:
    return {str(name): str(value) for name, value in ((machine.get("status") or {}).get("properties") or {}).items()}


def _booted(machines: Sequence[JsonObject]) -> Counter[str]:
    return Counter(image.rpartition("@")[2] for machine in machines for image in images_in(_properties(machine)))


def _doubts(sight: Sight, machines: Sequence[JsonObject], asked: str, now: datetime) -> Doubts:
    sees, rules = sight.may("list", MACHINES), sight.rules(now)

    def stands(machine: Machine) -> MachineStanding:
        return rules.standing(machine, now)

    standing = []
    for one in sight.those(DISTRUSTS):
        read = read_distrust(one)
        standing.append(Doubt(one, blast_radius(read, machines, stands) if read is not None and sees else None))
    return Doubts(standing, _what_if(machines, asked, stands))


def _what_if(machines: Sequence[JsonObject], asked: str, stands: Callable[[Machine], MachineStanding]) -> WhatIf:
    """What could be distrusted of what machines proved; an address can ask for nothing else."""
    images = sorted({image for machine in machines for image in images_in(_properties(machine))})
    chips = sorted({found for machine in machines if (found := _properties(machine).get(GENERATION))})
    targets = [(f"image:{one}", f"the image {one}") for one in images]
    targets += [(f"chipGeneration:{one}", f"the chips {one}") for one in chips]
    if asked not in dict(targets):
        return WhatIf(targets)
    kind, _, target = asked.partition(":")
    radius = blast_radius(Distrusted("", kind, target), machines, stands)
    return WhatIf(targets, asked, radius, _COMMANDS[kind].format(target))
