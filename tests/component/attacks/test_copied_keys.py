"""A guest key that was copied to another chip: its holder speaks in a machine's name, and gets nothing and changes nothing.

The attacker has what the host of a machine has: its guest key, read from an open disk, the approved image, and genuine hardware
of its own. Everything goes over HTTPS.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from fastness.attestation.machine.decisions import chip_patch, settle_patch
from fastness.enrolment.loops.machines import Machines
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.verdict import VERDICT
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import condition, object_name
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.events import EVENTS
from fastness.kube.port import PatchType
from fastness.sim.hardware import tampered_image
from fastness.sim.tee.attester import SimAttester
from fastness.sim.tee.images import BootImage
from tests.attesting import until
from tests.component.attacks.outsider import SECRET, Fortress, fortress
from tests.component.attestation.test_distrust import Kept, caches_caught_up

WAITS = (503, "approval-pending")


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Fortress]:
    async with fortress(tmp_path, simulated=True) as site:
        yield site


def boot(site: Fortress, tee: Any, serial: int, image: BootImage | None = None, **options: Any) -> SimAttester:
    """A guest on the chip with that serial number."""
    chip: Any = site.site.world.vendor.chip(tee, serial=serial)
    return SimAttester(chip.boot(image, guest=0, **options))


def with_key_of(machine: SimAttester, thief: SimAttester) -> SimAttester:
    """The thief, with the guest key that it read from the machine's disk."""
    thief.machine.__dict__["identity_key"] = machine.machine.identity_key
    return thief


async def proved(site: Fortress, machine: SimAttester) -> JsonObject:
    """Evidence that is accepted; the Machine after it."""
    async with site.site.world.broker(machine) as broker:
        await broker.attest()
    await caches_caught_up(site.site.world)
    return await site.site.world.machine_object(machine)


def standing(machine: JsonObject) -> JsonObject:
    """Everything that anybody decides by: all of a Machine but what is kept beside it about disputes."""
    status = dict(machine["status"])
    for beside in ("disputes", "signed"):
        status.pop(beside, None)
    status["conditions"] = [entry for entry in status["conditions"] if entry["type"] != "Disputed"]
    labels = machine["metadata"].get("labels")
    return {"spec": machine["spec"], "status": status, "labels": labels}


@pytest.mark.parametrize("tee", ["snp", "tdx"])
async def test_a_copied_key_on_another_chip_does_not_put_a_changed_machine_back(site: Fortress, tee: Any) -> None:
    """worker-1 runs a changed boot loader, and a guest elsewhere proves the approved image in its name."""
    world = site.site.world
    worker = boot(site, tee, 1)
    assert (await site.enrol(worker)).status_code == 201
    pinned = (await proved(site, worker))["status"]["chip"]
    status, _ = await site.attest(boot(site, tee, 1, tampered_image(tee)))
    assert status == 403
    await caches_caught_up(world)
    before = await world.machine_object(worker)
    assert before["status"]["standing"].startswith("Refused")
    thief = with_key_of(worker, boot(site, tee, 2))
    for _ in range(2):
        assert await site.attest(thief) == WAITS
        await caches_caught_up(world)
    after = await world.machine_object(worker)
    assert standing(after) == standing(before)
    disputed = condition(after, "Disputed")
    assert disputed is not None
    assert (disputed["status"], disputed["reason"]) == ("True", "AnotherChip")
    assert [entry["against"] for entry in after["status"]["disputes"]] == [pinned]
    entries = [entry for entry in await site.record() if entry["what"] == "disputed"]
    other_chip = after["status"]["disputes"][0]["shows"]
    assert [(entry["who"], entry["detail"]["shows"], entry["detail"]["against"]) for entry in entries] == [
        (worker.machine.thumbprint, other_chip, pinned)
    ] * 2
    verdict = await world.cluster.get(VERDICT.resource, after["status"]["disputes"][0]["verdict"])
    assert (verdict["spec"]["result"], "chip-changed" in {check["code"] for check in verdict["spec"]["checks"]}) == (
        "NotAssessed", True,
    )  # fmt: skip


@pytest.mark.parametrize("tee", ["snp", "tdx"])
async def test_bad_evidence_of_another_chip_takes_nothing_from_an_honest_machine(site: Fortress, tee: Any) -> None:
    world = site.site.world
    worker = boot(site, tee, 1)
    assert (await site.enrol(worker)).status_code == 201
    async with world.broker(worker) as broker:
        await broker.attest()
        await caches_caught_up(world)
        before = await world.machine_object(worker)
        for thief in (boot(site, tee, 2, tampered_image(tee)), boot(site, tee, 3)):
            status, _ = await site.attest(with_key_of(worker, thief))
            assert status in (403, 503)
            await caches_caught_up(world)
        after = await world.machine_object(worker)
        assert standing(after) == standing(before)
        assert len(after["status"]["disputes"]) == 2
        # The session of before goes on: nobody ends another's tokens with a copied key.
        assert (await broker.resource("pool/worker/secret")).reveal() == SECRET
    assert standing(await proved(site, worker))["status"]["chip"] == before["status"]["chip"]


async def test_only_the_chip_that_a_person_named_becomes_the_machines(site: Fortress) -> None:
    world = site.site.world
    worker = boot(site, "snp", 1)
    assert (await site.enrol(worker)).status_code == 201
    old = (await proved(site, worker))["status"]["chip"]
    moved, thief = (with_key_of(worker, boot(site, "snp", serial)) for serial in (2, 3))
    for guest in (moved, thief):
        assert await site.attest(guest) == WAITS
        await caches_caught_up(world)
    stored = await world.machine_object(worker)
    chip = stored["status"]["disputes"][0]["shows"]
    name = object_name(stored).name
    await world.cluster.patch(
        MACHINE.resource, name, chip_patch(stored, chip, "a new host"), PatchType.MERGE, NAMESPACE
    )
    await caches_caught_up(world)
    assert await site.attest(thief) == WAITS
    after = await proved(site, moved)
    assert (after["status"]["chip"], [entry["shows"] == chip for entry in after["status"]["disputes"]]) == (
        chip,
        [False],
    )
    entries = [entry["detail"] for entry in await site.record() if entry["what"] == "chip-changed"]
    assert entries == [{"from": old, "to": chip, "reason": "a new host"}]
    assert await site.attest(worker) == WAITS


async def test_a_dispute_is_told_and_stays_until_a_person_settles_it(site: Fortress) -> None:
    world = site.site.world
    loop = Machines(world.cluster, world.informers, Kept(), world.clock)
    worker = boot(site, "snp", 1)
    assert (await site.enrol(worker)).status_code == 201
    key = object_name(await proved(site, worker))
    assert await site.attest(with_key_of(worker, boot(site, "snp", 2))) == WAITS
    await proved(site, worker)
    await loop.reconcile(key)
    stored = await world.cluster.get(MACHINE.resource, key.name, NAMESPACE)
    assert len(stored["status"]["disputes"]) == 1
    events = (await world.cluster.list(EVENTS)).items
    assert ["AnotherChip" for event in events if event["involvedObject"]["name"] == key.name] == ["AnotherChip"]
    patch = settle_patch(stored, "the old host was sold")
    assert patch is not None
    await world.cluster.patch(MACHINE.resource, key.name, patch, PatchType.MERGE, NAMESPACE)
    await loop.reconcile(key)
    stored = await world.cluster.get(MACHINE.resource, key.name, NAMESPACE)
    disputed = condition(stored, "Disputed")
    assert disputed is not None
    assert ("disputes" in stored["status"], disputed["status"]) == (False, "False")
    # The next one is told anew.
    assert await site.attest(with_key_of(worker, boot(site, "snp", 3))) == WAITS

    async def disputed_again() -> bool:
        return (
            len((await world.cluster.get(MACHINE.resource, key.name, NAMESPACE))["status"].get("disputes") or ()) == 1
        )

    await until(disputed_again)
