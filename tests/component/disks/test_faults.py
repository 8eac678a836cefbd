"""Keys of disks when something is wrong: destroyed during a boot, one name twice, a clock that goes back, a name by hand."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import timedelta
from itertools import count
from typing import Any

import pytest
import pytest_asyncio

from fastness.agent.boot.prove import BrokerRefused
from fastness.crypto.aead import KeyRing, SealKey
from fastness.crypto.errors import BrokenSeal
from fastness.disks.keyring import secret_name
from fastness.disks.live.key_store import DiskKeys
from fastness.keys.authorities import SECRETS
from fastness.kube.errors import ApiError
from fastness.kube.places import DISKS
from fastness.kube.port import PatchType
from tests.attesting import ENTROPY
from tests.unlocking import VOLUME, DiskSite, Members, disk_site, leave_initrd, report

pytestmark = pytest.mark.asyncio(loop_scope="module")
_numbers = count(1)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[DiskSite]:
    async with disk_site(tmp_path_factory.mktemp("disks")) as site:
        yield site


@pytest.fixture
def site(shared: DiskSite) -> DiskSite:
    return shared.apart(next(_numbers))


async def refusal(session: Any, path: str) -> tuple[int, str]:
    with pytest.raises(BrokerRefused) as refused:
        await session.resource(path)
    return refused.value.status, refused.value.reason


async def test_a_key_that_is_destroyed_between_proof_and_question_is_gone_and_nothing_says_unlocked(
    site: DiskSite,
) -> None:
    machine = await site.first_boot("tpm")
    stored = await site.machine(machine)
    uid, name = stored["metadata"]["uid"], stored["metadata"]["name"]
    before = await site.record("disk-unlocked", uid)
    async with site.session(site.boot("tpm", 2), Members(uid)) as session:
        await site.fortress.control_plane.delete(SECRETS, secret_name(uid), DISKS)
        assert await refusal(session, f"machine/{uid}/disk-{VOLUME}") == (404, "disk-key-destroyed")
    assert await site.record("disk-unlocked", uid) == before
    assert name


async def test_a_machine_that_is_revoked_between_proof_and_question_gets_nothing(site: DiskSite) -> None:
    machine = await site.first_boot("snp")
    uid = (await site.machine(machine))["metadata"]["uid"]
    async with site.session(site.boot("snp", 2), Members(uid, identity=False)) as session:
        await site.patch(machine, spec={"approval": "Quarantined"})
        assert await refusal(session, f"machine/{uid}/disk-{VOLUME}") == (403, "revoked")
    # Released again, the same boot has nothing left to ask with: the machine boots anew.
    await site.patch(machine, spec={"approval": "Approved"})


async def test_two_volumes_whose_keys_have_one_name_have_two_keys_that_do_not_stand_in_for_each_other(
    site: DiskSite,
) -> None:
    cluster, uid = site.fortress.control_plane, "0b8f7c1e-52f6-4f7a-9a0e-3f6a1c9d2e99"
    keys = DiskKeys(cluster, KeyRing([SealKey.generate(ENTROPY)], ENTROPY), ENTROPY)
    for volume in ("var", "root"):
        await keys.make(uid, volume, "k1")
    ((_, var),), ((_, root),) = await keys.read(uid, "var"), await keys.read(uid, "root")
    assert var.reveal() != root.reveal()
    # Made again under the same name it stays what it is: what a disk has is never replaced by accident.
    await keys.make(uid, "var", "k1")
    assert [(key_id, key.reveal()) for key_id, key in await keys.read(uid, "var")] == [("k1", var.reveal())]
    secret = await cluster.get(SECRETS, secret_name(uid), DISKS)
    swapped = {"data": {"var.k1": secret["data"]["root.k1"]}}
    await cluster.patch(SECRETS, secret_name(uid), swapped, PatchType.MERGE, DISKS)
    with pytest.raises(BrokenSeal):
        await keys.read(uid, "var")


async def test_a_clock_that_is_set_back_neither_closes_a_disk_nor_lets_an_old_copy_pass(site: DiskSite) -> None:
    await site.first_boot("tpm")
    site.world.clock.back = timedelta(minutes=2)
    try:
        again = site.boot("tpm", 2)
        await site.unlocked(again, Members(identity=False))
        leave_initrd(again)
        assert (await site.attested(again, report(2)))["status"]["standing"].startswith("Proved")
        copied = site.boot("tpm", 3)
        await site.unlocked(copied, Members(identity=False))
        leave_initrd(copied)
        with pytest.raises(BrokerRefused) as refused:
            await site.attested(copied, report(1))
        assert (refused.value.status, refused.value.reason) == (403, "disk-rolled-back")
    finally:
        site.world.clock.back = timedelta()


async def test_a_resource_with_the_name_of_a_disk_key_that_somebody_made_is_given_to_nobody(site: DiskSite) -> None:
    """Planted where the broker keeps what administrators write, past its own refusal."""
    planted = b"thirty-two bytes of an attacker."
    machine = await site.first_boot("tpm")
    uid = (await site.machine(machine))["metadata"]["uid"]
    paths = (f"default/{uid}/root", f"machine/{uid}/disk-{VOLUME}")
    for path in paths:
        with suppress(ApiError):
            await site.world.keep(path, planted)
    for boot, members in ((machine, Members(reports=(report(1),))), (site.boot("tpm", 2), Members(uid))):
        async with site.session(boot, members) as session:
            for path in paths:
                with suppress(BrokerRefused):
                    answer = (await session.resource(path)).reveal()
                    assert planted not in answer
                    assert base64.urlsafe_b64encode(planted).rstrip(b"=") not in answer
