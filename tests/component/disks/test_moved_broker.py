"""A machine that was off while the broker moved: its note has the old address, and the enrolment door knows the new one."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from fastness.agent.boot.enrol import RetryBudget
from fastness.agent.boot.image_trust import ImageTrust
from fastness.agent.boot.prove import BrokerRefused
from fastness.agent.boot.reattest import Staying
from fastness.agent.boot.unlock import Unlock, UnlockTarget
from fastness.agent.boot.whereabouts import NO_SERVER, Whereabouts
from fastness.crypto.keys import PrivateKey
from fastness.enrolment.live.enrolments import DoorUrls
from fastness.runtime.clock import SystemClock
from fastness.sim.disks.container import SealedVolumes
from fastness.sim.tee.attester import SimAttester
from tests.attesting import ENTROPY
from tests.unanswered import unanswered_port
from tests.unlocking import DiskSite, Members, disk_site, leave_initrd

pytestmark = pytest.mark.asyncio(loop_scope="module")
_numbers = count(1)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[DiskSite]:
    async with disk_site(tmp_path_factory.mktemp("disks")) as site:
        yield site


@pytest.fixture
def site(shared: DiskSite) -> DiskSite:
    return shared.apart(next(_numbers))


@pytest.fixture
def nobody() -> Iterator[str]:
    """An address where nobody answers, for as long as the test runs."""
    with unanswered_port() as port:
        yield f"https://127.0.0.1:{port}"


def broker_of(site: DiskSite) -> str:
    return f"https://127.0.0.1:{site.world.doors.broker.port}"


def server_of(site: DiskSite) -> str:
    return f"https://127.0.0.1:{site.world.doors.enrolment.port}"


def tell_doors(site: DiskSite, broker: str) -> None:
    """What the enrolment door says about the doors from now on."""
    site.world.doors.enrolment.enrolments.urls = lambda: DoorUrls(broker=broker)


class Machine:
    """A machine with one volume, and its console."""

    def __init__(self, site: DiskSite, directory: Path, attester: SimAttester) -> None:
        self.site, self.attester, self.console = site, attester, list[str]()
        self.volumes = SealedVolumes(directory, ENTROPY)

    def where(self, broker: str, server: str, **image: Any) -> Whereabouts:
        return Whereabouts(broker, server, ImageTrust(self.site.world.trust, {}, **image), self.console.append)

    async def unlocked(self, where: Whereabouts, *, first_boot: bool = False, seconds: float = 60.0) -> Any:
        uid = (await self.site.machine(self.attester))["metadata"]["uid"]
        patience = RetryBudget(SystemClock(), ENTROPY, seconds, 0.1)
        key = PrivateKey.generate(ENTROPY)
        unlock = Unlock(self.attester, self.site.world.trust, self.volumes, key, patience, self.console.append)
        return await unlock.run(UnlockTarget(uid, ("var",), where, first_boot=first_boot, lost=where.look))


async def first_boot(site: DiskSite, directory: Path) -> Machine:
    """A machine that made its volume and proved itself, at the old address."""
    machine = Machine(site, directory, site.boot("tpm"))
    await site.enrolled(machine.attester)
    assert await machine.unlocked(machine.where(broker_of(site), ""), first_boot=True)
    leave_initrd(machine.attester)
    async with site.session(machine.attester, Members()):
        pass
    machine.attester = site.boot("tpm", 2)
    return machine


async def test_a_machine_that_was_off_finds_the_broker_by_its_enrolment_door(
    site: DiskSite, tmp_path: Path, nobody: str
) -> None:
    machine = await first_boot(site, tmp_path)
    tell_doors(site, broker_of(site))
    where = machine.where(nobody, server_of(site))
    assert await machine.unlocked(where)
    assert where() == broker_of(site)
    assert any(f"the broker is at {broker_of(site)} now" in line for line in machine.console)
    # The system that runs afterwards has the old address in its config, and finds the same.
    leave_initrd(machine.attester)
    running = machine.where(nobody, server_of(site))
    staying = Staying(
        machine.attester, running, lambda: site.world.trust, site.world.clock, ENTROPY, lost=running.look
    )  # fmt: skip
    await staying.round()
    assert running() == broker_of(site)


@pytest.mark.parametrize("told", ["", "http://127.0.0.1:1", "https://user@127.0.0.1:1", "https://127.0.0.1:1/path"])
async def test_an_enrolment_door_that_says_nothing_useful_changes_nothing(
    site: DiskSite, tmp_path: Path, nobody: str, told: str
) -> None:
    machine = Machine(site, tmp_path, site.boot("tpm"))
    tell_doors(site, told)
    where = machine.where(nobody, server_of(site))
    for _ in range(2):
        await where.look()
    assert where() == nobody
    assert machine.console == [f"the enrolment door at {server_of(site)} does not say where the broker is"]


async def test_a_machine_that_knows_no_enrolment_door_or_may_not_ask_it_says_what_to_do(
    site: DiskSite, tmp_path: Path, nobody: str
) -> None:
    """Also one whose host wrote another server into the note than the one that its image is tied to."""
    machine = await first_boot(site, tmp_path)
    tell_doors(site, broker_of(site))
    for where in (
        machine.where(nobody, ""),
        machine.where(nobody, server_of(site), origin="https://elsewhere.example"),
    ):
        machine.console.clear()
        with pytest.raises(BrokerRefused) as refused:
            await machine.unlocked(where, seconds=0.5)
        assert (refused.value.reason, where()) == ("unreachable", nobody)
        assert machine.console.count(NO_SERVER) == 1


async def test_a_server_of_the_host_that_the_image_does_not_believe_tells_nothing(
    site: DiskSite, tmp_path: Path, nobody: str
) -> None:
    machine = Machine(site, tmp_path, site.boot("tpm"))
    tell_doors(site, broker_of(site))
    stranger = ImageTrust(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), {})
    where = Whereabouts(nobody, server_of(site), stranger, machine.console.append)
    await where.look()
    assert where() == nobody
