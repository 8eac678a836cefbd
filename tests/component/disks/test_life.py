"""Keys and disks over time: old copies, other disks, new keys, and the end of a Machine."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from itertools import count
from typing import Any

import pytest
import pytest_asyncio

from fastness.agent.boot.prove import BrokerRefused
from fastness.disks.keyring import secret_name
from fastness.enrolment.loops.machines import Machines
from fastness.keys.authorities import SECRETS
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import condition, object_name, rfc3339
from fastness.kinds.trusted_execution.machine import MACHINE, REKEY
from fastness.kube.errors import NotFound
from fastness.kube.events import EVENTS
from fastness.kube.places import DISKS
from fastness.kube.port import PatchType, Scope
from fastness.record.live.record import ClusterRecord
from fastness.sim.tee.attester import SimAttester
from tests.attesting import ENTROPY, until
from tests.component.attestation.test_distrust import caches_caught_up
from tests.unlocking import DiskSite, Members, disk_site, leave_initrd, report

pytestmark = pytest.mark.asyncio(loop_scope="module")
_numbers = count(1)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[DiskSite]:
    async with disk_site(tmp_path_factory.mktemp("disks")) as site:
        yield site


@pytest.fixture
def site(shared: DiskSite) -> DiskSite:
    return shared.apart(next(_numbers))


async def booted(site: DiskSite, tee: Any, number: int) -> SimAttester:
    """A later boot that unlocked its disk and left the initrd."""
    machine = site.boot(tee, number)
    await site.unlocked(machine, Members(identity=False))
    leave_initrd(machine)
    return machine


async def refusal(site: DiskSite, machine: SimAttester, *reports: Any) -> str:
    with pytest.raises(BrokerRefused) as refused:
        await site.attested(machine, *reports)
    assert refused.value.status == 403
    return refused.value.reason


async def said_of_disks(site: DiskSite, machine: SimAttester, reason: str) -> JsonObject:
    """The condition about disks, as soon as it gives this reason."""

    async def says() -> bool:
        return (condition(await site.machine(machine), "DisksEncrypted") or {}).get("reason") == reason

    await until(says)
    return dict(condition(await site.machine(machine), "DisksEncrypted") or {})


@pytest.mark.parametrize("tee", ["tpm", "snp"])
async def test_an_old_copy_of_a_disk_gives_no_standing_until_a_person_accepts_it(site: DiskSite, tee: Any) -> None:
    await site.first_boot(tee)
    machine = await booted(site, tee, 2)
    await site.attested(machine, report(2))
    copied = await booted(site, tee, 3)
    assert await refusal(site, copied, report(3, after=1)) == "disk-rolled-back"
    stands = await site.machine(copied)
    assert stands["status"]["standing"].startswith("Refused")
    (disk,) = stands["status"]["disks"]
    numbers = [await site.count(copied, number) for number in (disk["generation"], disk["doubtful"]["generation"])]
    assert (disk["state"], numbers) == ("RolledBack", [2, 1])
    assert "fastness machine disk accept" in (await said_of_disks(site, copied, "RolledBack"))["message"]
    events = (await site.world.cluster.list(EVENTS, Scope("fastness-system"))).items
    name = stands["metadata"]["name"]
    assert [
        event["type"]
        for event in events
        if event["reason"] == "DiskRolledBack" and event["involvedObject"]["name"] == name
    ]
    # It stays so however often the machine comes, and boots: the copy was never open under the number that is recorded.
    assert await refusal(site, copied, report(3, after=1)) == "disk-rolled-back"
    copied = await booted(site, tee, 4)
    assert await refusal(site, copied, report(4, after=1)) == "disk-rolled-back"
    await site.patch(
        copied, spec={"disks": [{"volume": "var", "accepted": disk["doubtful"]["since"], "reason": "restored"}]}
    )
    accepted = await site.attested(copied, report(4, after=1))
    assert accepted["status"]["standing"].startswith("Proved")
    (disk,) = accepted["status"]["disks"]
    assert (disk["state"], await site.count(copied, disk["generation"]), disk.get("doubtful")) == ("Open", 4, None)
    # The same copy once more, later, is a new question: what was accepted is not accepted for ever.
    later = await booted(site, tee, 5)
    await site.attested(later, report(5))
    site.world.clock.ahead += timedelta(seconds=2)
    assert await refusal(site, await booted(site, tee, 6), report(6, after=1)) == "disk-rolled-back"


async def test_another_disk_than_the_recorded_one_gives_no_standing(site: DiskSite) -> None:
    await site.first_boot("tpm")
    machine = await booted(site, "tpm", 2)
    other = report(2, uuid="11111111-8f0e-4c8e-9d0b-0f6f5a0d8f11")
    assert await refusal(site, machine, other) == "disk-exchanged"
    (disk,) = (await site.machine(machine))["status"]["disks"]
    assert (disk["state"], disk["header"]["uuid"]) == ("Exchanged", report(1).header["uuid"])


async def test_a_new_key_opens_beside_the_old_one_which_is_destroyed_when_the_disk_has_it(site: DiskSite) -> None:
    machine = await site.first_boot("tpm")
    uid = (await site.machine(machine))["metadata"]["uid"]
    await site.patch(machine, metadata={"annotations": {REKEY: "var"}})
    await site.until_status(machine, lambda disk: disk.get("nextKeyId") == "k2")

    async def taken() -> bool:
        return REKEY not in ((await site.machine(machine))["metadata"].get("annotations") or {})

    await until(taken)
    again = site.boot("tpm", 2)
    answer = await site.unlocked(again, Members(identity=False))
    assert [entry["id"] for entry in answer["keys"]] == ["k2", "k1"]
    leave_initrd(again)
    # A power cut before the disk was changed: it still opens with the old key, and both stay.
    cut = await site.attested(again, report(2, "k1"))
    assert (cut["status"]["disks"][0]["keyId"], cut["status"]["disks"][0]["nextKeyId"]) == ("k1", "k2")
    done = await site.attested(await booted(site, "tpm", 3), report(3, "k2"))
    assert (done["status"]["disks"][0]["keyId"], done["status"]["disks"][0].get("nextKeyId")) == ("k2", None)

    async def old_is_gone() -> bool:
        secret = await site.world.cluster.get(SECRETS, secret_name(uid), DISKS)
        return set(secret["data"]) == {"var.k2"}

    await until(old_is_gone)
    (entry,) = await site.record("disk-key-destroyed", done["metadata"]["name"])
    assert (entry["detail"]["keys"], entry["detail"]["volume"]) == ("k1", "var")
    last = await site.unlocked(site.boot("tpm", 4), Members(identity=False))
    assert [entry["id"] for entry in last["keys"]] == ["k2"]


async def test_deleting_a_machine_destroys_its_keys_and_says_so(site: DiskSite) -> None:
    machine = await site.first_boot("tpm")
    stored = await site.machine(machine)
    uid, name = stored["metadata"]["uid"], stored["metadata"]["name"]
    await site.world.cluster.delete(MACHINE.resource, name, "fastness-system")

    async def gone() -> bool:
        try:
            await site.machine(machine)
        except NotFound:
            return True
        return False

    await until(gone)
    with pytest.raises(NotFound):
        await site.world.cluster.get(SECRETS, secret_name(uid), DISKS)
    (entry,) = await site.record("disk-key-destroyed", name)
    assert (entry["detail"]["keys"], "deleted" in entry["detail"]["why"]) == ("all", True)


async def test_superseding_a_machine_withholds_its_keys_and_destroys_none(site: DiskSite) -> None:
    machine = await site.first_boot("tpm")
    old = await site.machine(machine)
    uid, name = old["metadata"]["uid"], old["metadata"]["name"]
    before = (await site.world.cluster.get(SECRETS, secret_name(uid), DISKS))["data"]
    site.world.clock.ahead += timedelta(seconds=2)
    # One TPM is one machine: it was installed again, and has another attestation key.
    chip = site.world.vendor.chip("tpm", serial=site.first + 1)
    chip.__dict__["ak"] = site.world.vendor.chip("tpm", serial=site.first + 2).ak
    await site.enrolled(SimAttester(chip.boot()))
    record = ClusterRecord(site.world.cluster, site.world.clock, ENTROPY, "controllers")
    await Machines(site.world.cluster, site.world.informers, record, site.world.clock).reconcile(object_name(old))
    await caches_caught_up(site.world)
    assert (condition(await site.machine(machine), "Revoked") or {}).get("status") == "True"
    with pytest.raises(BrokerRefused) as refused:
        await site.unlocked(site.boot("tpm", 2), Members(uid, identity=False))
    assert (refused.value.status, refused.value.reason) == (403, "revoked")
    assert (await site.world.cluster.get(SECRETS, secret_name(uid), DISKS))["data"] == before
    assert await site.record("disk-key-destroyed", name) == []


async def test_a_machine_that_ran_before_its_pool_had_a_volume_keeps_what_it_has(site: DiskSite) -> None:
    machine = site.boot("tpm")
    made: Any = await site.world.ticket("infra")
    await site.world.enrol(machine, made)
    stands = await site.attested(machine)
    assert condition(stands, "DisksEncrypted") is None
    cluster = await site.world.cluster.get(CONFIDENTIAL_CLUSTER.resource, "cluster")
    infra = {"name": "infra", "trustModel": "ConfidentialCluster", "disk": {"volume": "root"}}
    pools = [*(pool for pool in cluster["spec"]["pools"] if pool["name"] != "infra"), infra]
    await site.world.cluster.patch(
        CONFIDENTIAL_CLUSTER.resource, "cluster", {"spec": {"pools": pools}}, PatchType.MERGE
    )
    assert "replace the node" in (await said_of_disks(site, machine, "OpenDisk"))["message"]
    assert "disks" not in (await site.machine(machine))["status"]


async def test_a_report_of_a_volume_that_was_accepted_before_it_was_doubted_is_doubted(site: DiskSite) -> None:
    await site.first_boot("tpm")
    machine = await booted(site, "tpm", 2)
    await site.attested(machine, report(2))
    early = rfc3339(site.world.clock.now() - timedelta(hours=1))
    await site.patch(machine, spec={"disks": [{"volume": "var", "accepted": early}]})
    assert await refusal(site, await booted(site, "tpm", 3), report(3, after=1)) == "disk-rolled-back"
    assert await refusal(site, await booted(site, "tpm", 4), report(4, after=1)) == "disk-rolled-back"
