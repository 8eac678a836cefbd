"""A control plane that came back from an older backup: the numbers of its openings are behind those on the disks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from itertools import count
from typing import Any

import pytest
import pytest_asyncio

from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import object_name
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.port import PatchType, WriteOptions
from fastness.sim.tee.attester import SimAttester
from tests.component.attestation.test_distrust import caches_caught_up
from tests.component.disks.test_life import booted, refusal, said_of_disks
from tests.unlocking import DiskSite, disk_site, report

pytestmark = pytest.mark.asyncio(loop_scope="module")
_numbers = count(1)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[DiskSite]:
    async with disk_site(tmp_path_factory.mktemp("disks")) as site:
        yield site


@pytest.fixture
def site(shared: DiskSite) -> DiskSite:
    return shared.apart(next(_numbers))


async def disks_of(site: DiskSite, machine: SimAttester) -> list[JsonObject]:
    """What a backup of now has about the volumes of a machine."""
    disks: list[JsonObject] = (await site.machine(machine))["status"]["disks"]
    return disks


async def bring_back(site: DiskSite, machine: SimAttester, disks: list[JsonObject]) -> None:
    """The cluster knows of these volumes what it knew then."""
    place = object_name(await site.machine(machine))
    await site.world.cluster.patch(
        MACHINE.resource, place.name, {"status": {"disks": disks}}, PatchType.MERGE, place.namespace,
        WriteOptions(subresource="status"),
    )  # fmt: skip
    await caches_caught_up(site.world)


@pytest.mark.parametrize("tee", ["tpm", "snp"])
async def test_disks_that_booted_since_the_backup_are_told_as_later_than_the_record(site: DiskSite, tee: Any) -> None:
    await site.first_boot(tee)
    backup = await disks_of(site, await booted(site, tee, 2))
    for number in (3, 4):
        await site.attested(await booted(site, tee, number), report(number, after=number - 1 if number > 3 else 1))
    await bring_back(site, site.boot(tee, 4), backup)
    machine = await booted(site, tee, 5)
    assert await refusal(site, machine, report(5, after=3, since=[4])) == "disk-record-older"
    said = (await said_of_disks(site, machine, "RecordOlder"))["message"]
    assert "the record came from a backup" in said
    assert "fastness machine disk accept" in said
    (disk,) = (await site.machine(machine))["status"]["disks"]
    assert await site.count(machine, disk["doubtful"]["generation"]) == 4, "the newest that the record does not know of"
    # Booted again: the same doubt, which one decision settles.
    machine = await booted(site, tee, 6)
    assert await refusal(site, machine, report(6, after=3, since=[4, 5])) == "disk-record-older"
    (again,) = (await site.machine(machine))["status"]["disks"]
    assert again["doubtful"] == disk["doubtful"]
    accepted = [{"volume": "var", "accepted": disk["doubtful"]["since"], "reason": "restored on Monday"}]
    await site.patch(machine, spec={"disks": accepted})
    stands = await site.attested(machine, report(6, after=3, since=[4, 5]))
    assert stands["status"]["standing"].startswith("Proved")
    assert (await site.attested(await booted(site, tee, 7), report(7)))["status"]["standing"].startswith("Proved")


async def test_a_copy_of_the_time_between_backup_and_restore_is_not_believed(site: DiskSite) -> None:
    """The copy of the first boot after the backup knows the recorded number and one more. Its host burns a release before."""
    await site.first_boot("tpm")
    backup = await disks_of(site, site.boot("tpm", 1))
    for number in (2, 3):
        await site.attested(await booted(site, "tpm", number), report(number))
    await bring_back(site, site.boot("tpm", 3), backup)
    await booted(site, "tpm", 4)
    copied = await booted(site, "tpm", 5)
    assert await refusal(site, copied, report(5, after=1, since=[2])) == "disk-record-older"
    # Also when the clock of the control plane is set back to before the copy was made.
    site.world.clock.back = timedelta(minutes=2)
    try:
        copied = await booted(site, "tpm", 6)
        assert await refusal(site, copied, report(6, after=1, since=[2, 5])) == "disk-record-older"
        assert len(set(site.openings[(await site.machine(copied))["metadata"]["uid"]])) == 6, "none was given twice"
    finally:
        site.world.clock.back = timedelta()


async def test_a_machine_that_did_not_boot_since_the_backup_goes_on_after_it(site: DiskSite) -> None:
    machine = await site.first_boot("tpm")
    await bring_back(site, machine, await disks_of(site, machine))
    assert (await site.attested(machine, report(1)))["status"]["standing"].startswith("Proved")
    assert (await site.attested(await booted(site, "tpm", 2), report(2)))["status"]["standing"].startswith("Proved")
