"""Certificates and authorities change while machines keep asking: nobody sees a failure, everybody sees the new one."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from fastness.attestation.live.successor_guard import DOORS_CA, carried
from fastness.attestation.loops.door_certificates import DATES_SECONDS, DoorIssuer
from fastness.crypto.x509 import Certificate, split_pem
from fastness.http.rotation import LOOK_SECONDS
from fastness.http.rustls import GRACE
from fastness.keys.authorities import ROTATE, SECRETS
from fastness.keys.certificates import NAMES, DoorCertificates, names_in, secret_name
from fastness.keys.doors import DOORS, SERVING_LIFETIME
from fastness.keys.errors import BadDoorNames, DamagedAuthority
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.objects import ObjectName
from fastness.kinds.trusted_execution.approvals import APPROVED_IMAGE
from fastness.kube.client.pool import HttpsClient, unreachable
from fastness.kube.informers import Informers
from fastness.kube.port import PatchType
from fastness.observe import metrics
from fastness.protocol.door import DoorRole
from fastness.release.door.config_server.server import config_server
from fastness.runtime.clock import SystemClock, SystemEntropy
from tests.component.release.config_server.doors import ACCEPT, Doors, open_doors
from tests.embedded.fixtures import Embedded
from tests.patience import PATIENCE
from tests.virtual import VirtualClock

DAY = timedelta(days=1)
both = pytest.mark.parametrize("rust", [False, True], ids=["loop", "rust"])


class Jumping(VirtualClock):
    """Virtual time whose calendar can jump, as if the process had slept."""

    async def jump(self, by: timedelta) -> None:
        """Move the calendar, then let whatever looks regularly have its look.

        The minute that an old listener is given passes at once here, so what it has accepted is let end first.
        """
        await asyncio.sleep(0.2)
        self._start += by
        await self.advance(LOOK_SECONDS)


@dataclass
class Caller:
    """A machine that asks over a new connection each time."""

    port: int
    bundle: str
    ticket: str
    failures: list[str] = field(default_factory=list)
    certificates: list[Certificate] = field(default_factory=list)
    over: bool = False

    async def ask(self) -> None:
        trust = ssl.create_default_context(cadata=self.bundle)
        lines = ["GET /config/plain HTTP/1.1", "Host: 127.0.0.1", f"Accept: {ACCEPT}", "Connection: close"]
        head = "\r\n".join([*lines, f"Authorization: Bearer {self.ticket}", "", ""]).encode()
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port, ssl=trust)
            self.certificates.append(
                Certificate.from_der(writer.get_extra_info("ssl_object").getpeercert(binary_form=True))
            )
            writer.write(head)
            answer = await reader.read(-1)
            writer.close()
        except OSError as error:
            self.failures.append(repr(error))
            return
        if not answer.startswith(b"HTTP/1.1 200") or b"config%20of%20plain" not in answer:
            self.failures.append(answer[:100].decode())

    async def ask_on(self) -> None:
        while not self.over:
            await self.ask()
            await asyncio.sleep(0.002)

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not holds():  # noqa: ASYNC110  # what is waited for is the world outside
                await asyncio.sleep(0.01)


@asynccontextmanager
async def calling(doors: Doors, callers: int = 4) -> AsyncIterator[Caller]:
    """Machines that never stop asking; whoever of them fails fails the test."""
    caller = Caller(doors.door.port, doors.door.doors.bundle, await doors.ticket("plain"))
    tasks = [asyncio.create_task(caller.ask_on()) for _ in range(callers)]
    try:
        await caller.until(lambda: len(caller.certificates) > callers)
        yield caller
        before = len(caller.certificates)
        await caller.until(lambda: len(caller.certificates) > before + callers)
    finally:
        caller.over = True
        await asyncio.gather(*tasks)
    assert caller.failures == []


def started(ago: timedelta) -> Jumping:
    # What is issued later must be valid for a client of today, so the story begins in the past.
    return Jumping(datetime.now(UTC) - ago)


@both
async def test_a_certificate_is_renewed_in_time_under_load(embedded_server: Embedded, rust: bool) -> None:
    clock = started(75 * DAY)
    async with open_doors(embedded_server, rust=rust, clock=clock) as doors, calling(doors) as caller:
        first = caller.certificates[-1]
        await clock.jump(50 * DAY)
        await caller.ask()
        assert caller.certificates[-1].fingerprint == first.fingerprint  # 40 of 90 days are left
        await clock.jump(20 * DAY)
        await caller.until(lambda: caller.certificates[-1].fingerprint != first.fingerprint)
        renewed = caller.certificates[-1]
        assert 70 * DAY <= renewed.not_after - first.not_after <= 70 * DAY + timedelta(seconds=2 * LOOK_SECONDS)
        await asyncio.sleep(0.3)
        await clock.advance(GRACE)  # the old generation of the listener ends
        await caller.ask()
        assert caller.certificates[-1].fingerprint == renewed.fingerprint
        assert f'certificate="config-server"}} {renewed.not_after.timestamp():.0f}' in _expiries()


def _expiries() -> str:
    lines = metrics.exposition().decode().splitlines()
    return "\n".join(f"{line.split()[0]} {float(line.split()[1]):.0f}" for line in lines if "certificate=" in line)


async def ask_to_rotate(doors: Doors) -> None:
    patch = {"metadata": {"annotations": {ROTATE: "asked"}}}
    await doors.cluster.patch(SECRETS, DOORS.name, patch, PatchType.MERGE, NAMESPACE)


@both
async def test_the_authority_of_the_doors_changes_with_overlap_under_load(
    embedded_server: Embedded, rust: bool
) -> None:
    clock = started(75 * DAY)
    async with open_doors(embedded_server, rust=rust, clock=clock) as doors, calling(doors) as caller:
        old = (await doors.authority()).issuing.certificate
        await ask_to_rotate(doors)
        await caller.until(lambda: doors.door.doors.bundle.count("BEGIN") == 2)
        assert (await doors.authority()).issuing.certificate.fingerprint == old.fingerprint
        caller.bundle = doors.door.doors.bundle  # what user-data and new images carry from now on
        await clock.jump(DOORS.overlap - DAY)
        assert (await doors.authority()).issuing.certificate.fingerprint == old.fingerprint  # a month is not over
        await clock.jump(2 * DAY)
        await caller.until(lambda: doors.door.doors.trusted[0].fingerprint != old.fingerprint)
        new = doors.door.doors.trusted[0]
        await caller.until(lambda: caller.certificates[-1].handle.issuer == new.handle.subject)
        assert [entry.fingerprint for entry in doors.door.doors.trusted] == [new.fingerprint, old.fingerprint]
        await clock.jump(DOORS.overlap + DAY)
        await caller.until(lambda: doors.door.doors.bundle.count("BEGIN") == 1)
        assert split_pem(doors.door.doors.bundle.encode())[0].fingerprint == new.fingerprint
        await caller.ask()


async def test_a_successor_waits_for_the_images_that_do_not_know_it(embedded_server: Embedded) -> None:
    clock = started(75 * DAY)
    async with open_doors(embedded_server, clock=clock) as doors, calling(doors, 1) as caller:
        old = (await doors.authority()).issuing.certificate
        image = {
            "apiVersion": APPROVED_IMAGE.api_version, "kind": "ApprovedImage", "spec": {"image": f"os@sha256:{'ab' * 32}"},
            "metadata": {"name": "os", "namespace": NAMESPACE, "annotations": {DOORS_CA: carried([old])}},
        }  # fmt: skip
        await doors.cluster.create(APPROVED_IMAGE.resource, image)
        await ask_to_rotate(doors)
        await caller.until(lambda: doors.door.doors.bundle.count("BEGIN") == 2)
        caller.bundle = doors.door.doors.bundle
        await clock.jump(DOORS.overlap + DAY)
        for _ in range(3):
            await clock.jump(DAY)
            await caller.ask()
        assert (await doors.authority()).issuing.certificate.fingerprint == old.fingerprint
        notes = {DOORS_CA: carried(doors.door.doors.trusted)}
        patch = {"metadata": {"annotations": notes}}
        await doors.cluster.patch(APPROVED_IMAGE.resource, "os", patch, PatchType.MERGE, NAMESPACE)
        await asyncio.sleep(0.1)
        await clock.jump(DAY)
        await caller.until(lambda: doors.door.doors.trusted[0].fingerprint != old.fingerprint)


async def test_internal_certificates_of_an_older_generation_are_accepted_until_it_is_forgotten(
    embedded_server: Embedded,
) -> None:
    clock = started(5 * DAY)
    async with open_doors(embedded_server, clock=clock) as doors:
        issuing, uris = (await doors.internal()).lineage.issuing, [DoorRole.BROKER.uri]
        broker = issuing.issue_client("fastness:broker", ["fastness:internal"], 30 * DAY, clock.now(), uris)
        patch = {"metadata": {"annotations": {ROTATE: "asked"}}}
        await doors.cluster.patch(SECRETS, "internal-ca", patch, PatchType.MERGE, NAMESPACE)
        waiting = Caller(0, "", "")
        await waiting.until(lambda: doors.door.internal.bundle.count("BEGIN") == 2)
        await clock.jump(2 * DAY + timedelta(hours=1))
        await waiting.until(lambda: doors.door.internal.trusted[0].fingerprint != issuing.certificate.fingerprint)
        # The leaf of the server is a day old at most in its own calendar, which is not today's.
        await clock.jump(datetime.now(UTC) - clock.now() - timedelta(hours=1))
        await waiting.until(lambda: len(doors.door.internal.trusted) == 1)
        async with doors.inner(broker) as client:
            answer = await client.get("/config/secret")
            # OpenSSL cannot forget an authority; we can.
            assert (answer.status_code, answer.json()["code"]) == (401, "bad-certificate")
        async with doors.inner((await doors.internal()).client(DoorRole.BROKER, clock.now())) as client:
            assert (await client.get("/config/secret")).status_code == 200


async def test_a_damaged_authority_stops_nobody_and_is_put_right_by_a_repair(embedded_server: Embedded) -> None:
    clock = started(75 * DAY)
    async with open_doors(embedded_server, clock=clock) as doors, calling(doors, 1) as caller:
        good = await doors.cluster.get(SECRETS, DOORS.name, NAMESPACE)
        broken = {"data": {"tls.key": base64.b64encode(b"nonsense").decode()}}
        await doors.cluster.patch(SECRETS, DOORS.name, broken, PatchType.MERGE, NAMESPACE)
        await clock.jump(65 * DAY)
        await caller.ask()
        renewed = caller.certificates[-1]
        assert renewed.not_after > caller.certificates[0].not_after  # by the last good state
        async with Informers(doors.cluster, clock=clock, entropy=SystemEntropy()) as informers:
            anew = DoorIssuer(doors.cluster, informers, clock, SystemEntropy())
            with pytest.raises(DamagedAuthority, match="fastness-system/doors-ca does not hold an authority"):
                await anew.reconcile(ObjectName(NAMESPACE, DOORS.name))
        await doors.cluster.patch(SECRETS, DOORS.name, {"data": good["data"]}, PatchType.MERGE, NAMESPACE)
        await ask_to_rotate(doors)
        await caller.until(lambda: doors.door.doors.bundle.count("BEGIN") == 2)


def test_a_serving_certificate_lives_long_enough_for_its_renewal() -> None:
    assert timedelta(seconds=DATES_SECONDS) < SERVING_LIFETIME / 3


async def test_a_door_goes_on_and_opens_again_without_the_controllers(embedded_server: Embedded) -> None:
    """What was issued lies in the Secret of the role: nobody needs to be there to issue it once more."""
    clock, entropy = SystemClock(), SystemEntropy()
    async with open_doors(embedded_server) as doors:
        first = doors.door.certificates.current.serving.certificate
    async with (
        Informers(embedded_server.cluster, clock=clock, entropy=entropy) as informers,
        config_server(embedded_server.cluster, informers, clock, entropy) as again,
    ):
        assert again.certificates.current.serving.certificate.fingerprint == first.fingerprint


async def test_replicas_share_a_certificate_with_the_names_of_all(embedded_server: Embedded) -> None:
    clock, entropy = SystemClock(), SystemEntropy()
    async with (
        open_doors(embedded_server) as doors,
        Informers(embedded_server.cluster, clock=clock, entropy=entropy) as informers,
    ):
        role, names = DoorRole.CONFIG_SERVER, ["configs.example", "0:0::1"]
        replica = await DoorCertificates.open(role, embedded_server.cluster, informers, clock, names)
        hosts = set(replica.current.serving.certificate.hosts)
        assert hosts == {"configs.example", "::1", "127.0.0.1", "localhost"}
        await Caller(0, "", "").until(lambda: set(doors.door.certificates.current.serving.certificate.hosts) == hosts)
        held = doors.door.certificates.current
        assert held.inner is not None
        assert set(held.inner.certificate.hosts) == hosts


async def test_names_that_somebody_takes_out_of_the_secret_are_asked_for_again(embedded_server: Embedded) -> None:
    async with open_doors(embedded_server) as doors:
        name = secret_name(DoorRole.CONFIG_SERVER)
        patch = {"metadata": {"annotations": {NAMES: "elsewhere.example"}}}
        await doors.cluster.patch(SECRETS, name, patch, PatchType.MERGE, NAMESPACE)
        async with asyncio.timeout(PATIENCE):
            while "127.0.0.1" not in names_in(await doors.cluster.get(SECRETS, name, NAMESPACE)):  # noqa: ASYNC110  # the API is asked
                await asyncio.sleep(0.01)


async def test_a_door_with_too_many_names_or_one_that_is_none_does_not_open(embedded_server: Embedded) -> None:
    clock, entropy = SystemClock(), SystemEntropy()
    async with Informers(embedded_server.cluster, clock=clock, entropy=entropy) as informers:
        for names in (["*.example"], ["a b"], [""], [f"n{number}.example" for number in range(65)]):
            with pytest.raises(BadDoorNames):
                await DoorCertificates.open(DoorRole.PAGE, embedded_server.cluster, informers, clock, names)


class Leaping(Jumping):
    """A clock that is ahead and is set right without anybody hearing of it."""

    def ahead(self, by: timedelta) -> None:
        """Move the calendar, and let no time pass."""
        self._start += by


@both
async def test_a_certificate_of_a_time_that_has_not_come_is_told_and_replaced_when_the_clock_is_right(
    embedded_server: Embedded, rust: bool
) -> None:
    """`sim clock +45m`, a restart, `sim undo --all`: the authority is older than the leap, the certificate is not."""
    clock = Leaping(datetime.now(UTC))
    await DOORS.open(embedded_server.cluster, SystemEntropy(), clock.now())
    clock.ahead(timedelta(minutes=45))
    async with open_doors(embedded_server, rust=rust, clock=clock) as doors:
        trust = ssl.create_default_context(cadata=doors.door.doors.bundle)
        with pytest.raises(ConnectionError, match="its certificate is not yet valid: its clock was ahead"):
            await _ask(doors, trust)
        clock.ahead(timedelta(minutes=-45))
        async with asyncio.timeout(PATIENCE):
            while not await _healed(doors, trust):
                await clock.advance(DATES_SECONDS)


async def _ask(doors: Doors, trust: ssl.SSLContext) -> None:
    async with HttpsClient(f"https://127.0.0.1:{doors.door.port}", trust, 5.0, DoorRole.CONFIG_SERVER) as client:
        try:
            await client.ask("GET", "/healthz", {}, b"", lambda _: 1024)
        except httpx.HTTPError as error:
            raise ConnectionError(unreachable(error)) from error


async def _healed(doors: Doors, trust: ssl.SSLContext) -> bool:
    try:
        await _ask(doors, trust)
    except ConnectionError:
        await asyncio.sleep(0.01)
        return False
    return True
