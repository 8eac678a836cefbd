"""What is taken back in the middle of a boot: the machine's standing, its token, or what makes the broker the broker."""

from __future__ import annotations

import asyncio
import math
import os
import ssl
from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from fastness.agent.boot.enrol import RetryBudget
from fastness.agent.boot.prove import BrokerRefused
from fastness.agent.boot.unlock import Unlock, UnlockTarget
from fastness.crypto.keys import PrivateKey
from fastness.kinds.objects import object_name
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.port import PatchType, WriteOptions
from fastness.runtime.clock import SystemClock
from fastness.sim.disks.container import SealedVolumes
from fastness.sim.tee.attester import SimAttester
from tests.attesting import ENTROPY, until
from tests.component.attestation.test_distrust import caches_caught_up, distrust
from tests.unlocking import VOLUME, DiskSite, Members, disk_site

pytestmark = pytest.mark.asyncio(loop_scope="module")
_numbers = count(1)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[DiskSite]:
    async with disk_site(tmp_path_factory.mktemp("disks")) as site:
        yield site


@pytest.fixture
def site(shared: DiskSite) -> DiskSite:
    return shared.apart(next(_numbers))


async def revoke(site: DiskSite, machine: SimAttester, how: str) -> None:
    """Take back what the machine proved a moment ago."""
    stored = await site.machine(machine)
    place = object_name(stored)
    if how == "distrusted":
        await distrust(site.world, f"bad-{place.name}"[:63], machine=stored["metadata"]["uid"])
    elif how == "deleted":
        await site.world.cluster.delete(MACHINE.resource, place.name, place.namespace)
    else:
        # Everything that was issued to it before counts no more, whatever it is itself.
        epoch = {"status": {"epoch": int(stored["status"].get("epoch") or 0) + 1}}
        status = WriteOptions(subresource="status")
        await site.world.cluster.patch(MACHINE.resource, place.name, epoch, PatchType.MERGE, place.namespace, status)
    await caches_caught_up(site.world)


@pytest.mark.parametrize("how", ["distrusted", "deleted", "tokens"])
async def test_what_is_taken_back_between_proof_and_question_releases_nothing(site: DiskSite, how: str) -> None:
    machine = await site.first_boot("tpm")
    uid = (await site.machine(machine))["metadata"]["uid"]
    released = (await site.machine(machine))["status"]["disks"][0]["released"]
    async with site.session(site.boot("tpm", 2), Members(uid)) as session:
        await revoke(site, machine, how)
        with pytest.raises(BrokerRefused) as refused:
            await session.resource(f"machine/{uid}/disk-{VOLUME}")
    assert refused.value.status in (401, 403), refused.value.reason
    if how != "deleted":
        assert (await site.machine(machine))["status"]["disks"][0]["released"] == released


async def test_a_broker_that_is_no_longer_believed_is_waited_for_and_opens_nothing(
    site: DiskSite, tmp_path: Path
) -> None:
    """Its certificate leads to an authority that the image does not have any more; then to one that it has."""
    machine, console = site.boot("tpm"), list[str]()
    uid = (await site.enrolled(machine))["metadata"]["uid"]
    belief = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    volumes: Any = SealedVolumes(tmp_path, ENTROPY)
    patience = RetryBudget(SystemClock(), ENTROPY, math.inf, 0.1)
    unlock = Unlock(machine, belief, volumes, PrivateKey.generate(ENTROPY), patience, console.append)
    address = f"https://127.0.0.1:{site.world.doors.broker.port}"
    boot = asyncio.create_task(unlock.run(UnlockTarget(uid, (VOLUME,), lambda: address, first_boot=True)))
    try:

        async def waits() -> bool:
            return any("waiting for the keys of this machine's volumes" in line for line in console)

        await until(waits)
        assert not boot.done()
        assert (unlock.open_volumes, await site.record("disk-unlocked", uid)) == ({}, [])
        assert os.listdir(tmp_path) == [], "nothing is made without a key"
        for certificate in site.world.trust.get_ca_certs(binary_form=True):
            belief.load_verify_locations(cadata=certificate)
        (opened,) = await boot
        assert opened.volume == VOLUME
    finally:
        boot.cancel()
