"""The way in: a machine boots, proves it, gets the key of its disk, and stands by what is on it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import count
from typing import Any

import pytest
import pytest_asyncio

from fastness.agent.boot.prove import BrokerRefused
from fastness.attestation.verdict.machine_standing import identity_notes
from fastness.crypto.jwk import decoded
from fastness.kinds.fastness_dev.verdict import VERDICT
from fastness.kinds.objects import condition, view
from fastness.kinds.trusted_execution.machine import HOLDS_KEYS, Machine
from tests.unlocking import HEADER, DiskSite, Members, disk_site, leave_initrd, report

TEES = ["tpm", "snp", "tdx"]


pytestmark = pytest.mark.asyncio(loop_scope="module")
_numbers = count(1)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[DiskSite]:
    async with disk_site(tmp_path_factory.mktemp("disks")) as site:
        yield site


@pytest.fixture
def site(shared: DiskSite) -> DiskSite:
    return shared.apart(next(_numbers))


@pytest.mark.parametrize("tee", TEES)
async def test_a_machine_makes_its_disk_opens_it_again_and_is_said_to_have_it(site: DiskSite, tee: Any) -> None:
    machine = site.boot(tee)
    before = await site.enrolled(machine)
    assert before["metadata"]["finalizers"] == [HOLDS_KEYS]
    assert [(entry["state"], entry["keyId"]) for entry in before["status"]["disks"]] == [("Pending", "k1")]
    made = await site.unlocked(machine)
    assert (made["version"], made["volume"], made["expect"], made["settings"]) == (
        1,
        "var",
        None,
        {"integrity": "none"},
    )
    ((key,),) = [[decoded(entry["key"]) for entry in made["keys"]]]
    assert len(key) == 32
    after = await site.machine(machine)
    # An unlock gives no standing, and changes nothing that anybody decides by.
    assert after["status"]["standing"].startswith("Waiting")
    assert {
        name: after["status"].get(name) for name in ("lastAttested", "chip", "boot", "lastVerdict")
    } == dict.fromkeys(("lastAttested", "chip", "boot", "lastVerdict"))
    leave_initrd(machine)
    stands = await site.attested(machine, report(1))
    assert stands["status"]["standing"].startswith("Proved")
    again = site.boot(tee, 2)
    opened = await site.unlocked(again, Members(identity=False))
    assert (opened["keys"], opened["expect"]) == (made["keys"], HEADER)
    leave_initrd(again)
    stands = await site.attested(again, report(2))
    (disk,) = stands["status"]["disks"]
    assert (disk["state"], await site.count(again, disk["generation"]), disk["header"]) == ("Open", 2, HEADER)
    verdict = await site.world.cluster.get(VERDICT.resource, disk["unlockedBy"])
    assert verdict["spec"]["result"] == "Affirmed"
    entries = await site.record("disk-unlocked", before["metadata"]["uid"])
    assert [entry["detail"]["keys"] for entry in entries] == ["k1", "k1"]
    assert {entry["verdict"] for entry in entries} == {disk["unlockedBy"]}


@pytest.mark.parametrize("tee", ["snp", "tdx"])
async def test_the_note_about_an_open_disk_goes_with_the_report_and_without_it_nothing_stands(
    site: DiskSite, tee: Any
) -> None:
    machine = await site.first_boot(tee)
    stands = await site.machine(machine)
    assert stands["status"]["identity"] == "EncryptedDisk"
    assert identity_notes(view(stands, Machine)) == ()
    with pytest.raises(BrokerRefused) as refused:
        await site.attested(machine)
    assert (refused.value.status, refused.value.reason) == (403, "disk-not-opened")
    silent = await site.machine(machine)
    assert silent["status"]["identity"] == "OpenDisk"
    assert silent["status"]["standing"].startswith("Refused")
    # The same boot reports it after all: it stands again, and its number need not have grown.
    again = await site.attested(machine, report(1))
    assert (again["status"]["identity"], again["status"]["disks"][0]["state"]) == ("EncryptedDisk", "Open")
    assert "message" not in again["status"]["disks"][0]


async def test_every_machine_has_a_key_of_its_own(site: DiskSite) -> None:
    machines = [site.boot("snp", serial=1), site.boot("snp", serial=2)]
    for machine in machines:
        await site.enrolled(machine)
    keys = {(await site.unlocked(machine))["keys"][0]["key"] for machine in machines}
    assert len(keys) == 2


async def test_a_lost_answer_is_asked_for_again_with_the_same_unlock_key(site: DiskSite) -> None:
    machine = site.boot("snp")
    await site.enrolled(machine)
    members = Members()
    first, again = await site.unlocked(machine, members), await site.unlocked(machine, members)
    assert first.pop("opening") < again.pop("opening"), "each release has a number of its own"
    assert first == again


async def test_the_condition_says_when_the_volume_is_open(site: DiskSite) -> None:
    machine = await site.first_boot("tpm")
    stands = await site.until_status(machine, lambda disk: disk["state"] == "Open")
    encrypted = condition(stands, "DisksEncrypted")
    assert encrypted is not None
