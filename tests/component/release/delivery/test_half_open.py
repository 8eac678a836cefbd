"""Doors whose way to the API hangs without ending: connections that carry nothing any more, and an API server that was stopped.

The doors reach the API over HTTPS, through a proxy that stops forwarding and keeps its connections open, or at a real
kube-apiserver that gets SIGSTOP. What happens beneath is done at the API directly.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from fastness.agent.boot.boot import boot_once
from fastness.agent.boot.fetch import from_gate
from fastness.agent.boot.prove import BrokerClient, DoorRefused
from fastness.apiserver.door import streams
from fastness.kinds.crd import manifests
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.distrust import DISTRUST
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.informers import informer
from fastness.kube.port import Cluster, PatchType
from fastness.protocol.delivered import Question
from fastness.release.live import releases, revocations
from fastness.sim.tee.images import default_image
from tests.contract.worlds import https, served
from tests.delivering import ENTROPY, DeliveringWorld, delivering_world
from tests.embedded.fixtures import Embedded
from tests.realkube import RealKube

STATUS = "default/attestation-status/status"
QUESTION = Question("n" * 24)
DOORS = ("gate", "broker")
RELEASED, REVOKED, UNKNOWN = "ok", "403 revoked", "503 out-of-touch"
MOST_ASKED = 2000


class Freezer:
    """A proxy that can stop forwarding; its connections stay open, as those of a host that vanished do."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._moving: list[asyncio.Event] = []
        self._new_move = True
        self.port = 0

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        """Listen on a free port of 127.0.0.1."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield
        finally:
            server.close()

    def freeze(self, *, new: bool) -> None:
        """Nothing moves on the connections that are there; with `new` not on those that come either."""
        self._new_move = not new
        for moving in self._moving:
            moving.clear()

    def thaw(self) -> None:
        """Everything moves again."""
        self._new_move = True
        for moving in self._moving:
            moving.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        moving = asyncio.Event()
        if self._new_move:
            moving.set()
        self._moving.append(moving)
        with suppress(ConnectionError):
            upstream, downstream = await asyncio.open_connection("127.0.0.1", self._target)
            ways = [self._copy(reader, downstream, moving), self._copy(upstream, writer, moving)]
            tasks = [asyncio.create_task(way) for way in ways]
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            downstream.transport.abort()
        writer.transport.abort()

    async def _copy(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, moving: asyncio.Event) -> None:
        while data := await source.read(65536):
            await moving.wait()
            sink.write(data)
            await sink.drain()


class Desk:
    """A machine that proved itself, in front of both doors; `api` is the cluster, reached directly."""

    def __init__(self, world: DeliveringWorld, client: BrokerClient, key: str, api: Cluster) -> None:
        self.world, self.client, self.key, self.api = world, client, key, api

    async def answer(self, door: str) -> str:
        """What a door answers: `ok`, or how it refuses."""
        world = self.world
        try:
            if door == "gate":
                gate = f"https://127.0.0.1:{world.gate.port}"
                await from_gate(gate, world.trust.tls, self.client, "worker", QUESTION, world.clock.now)
            else:
                await self.client.resource(STATUS)
        except DoorRefused as refused:
            return f"{refused.status} {refused.reason}"
        return RELEASED

    async def until(self, door: str, expected: str) -> list[str]:
        """Ask until a door says this; what it said before."""
        before: list[str] = []
        while (answer := await self.answer(door)) != expected:
            before.append(answer)
            assert len(before) < MOST_ASKED, before[-3:]
            await asyncio.sleep(0.01)
        return before

    async def quarantine(self) -> None:
        """Take trust away from the machine."""
        (machine,) = (await self.api.list(MACHINE.resource)).items
        name, patch = machine["metadata"]["name"], {"spec": {"approval": "Quarantined"}}
        await self.api.patch(MACHINE.resource, name, patch, PatchType.MERGE, NAMESPACE)

    async def distrust(self) -> None:
        """Distrust its key."""
        spec = {"key": self.key, "reason": "a test"}
        body = {"apiVersion": DISTRUST.api_version, "kind": "Distrust", "metadata": {"name": "bad"}, "spec": spec}
        await self.api.create(DISTRUST.resource, body)


@asynccontextmanager
async def desk_at(cluster: Cluster, api: Cluster) -> AsyncIterator[Desk]:
    """All doors over one way to a cluster, and a machine."""
    async with delivering_world(cluster) as world:
        await world.publish(default_image().reference_values("tpm"))
        attester = world.machine()
        await boot_once(attester, await world.ask(), world.trust, world.patience())
        url = f"https://127.0.0.1:{world.doors.broker.port}"
        async with BrokerClient(url, world.trust.tls, attester, ENTROPY) as client:
            await client.attest()
            desk = Desk(world, client, attester.machine.thumbprint, api)
            for door in DOORS:
                assert await desk.answer(door) == RELEASED
            yield desk


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Doors that wait for an answer of the API less long."""
    monkeypatch.setattr(revocations, "ASK_SECONDS", 0.5)
    monkeypatch.setattr(releases, "FIND_SECONDS", 0.5)
    monkeypatch.setattr(releases, "RECORD_SECONDS", 0.5)
    return monkeypatch


@pytest.fixture
async def frozen(
    embedded_server: Embedded, tmp_path: Path, quick: pytest.MonkeyPatch
) -> AsyncIterator[tuple[Desk, Freezer]]:
    freezer = Freezer(int(embedded_server.url.rpartition(":")[2]))
    async with freezer.listening():
        document = json.loads(embedded_server.kubeconfig.read_text())
        document["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{freezer.port}"
        (tmp_path / "config").write_text(json.dumps(document))
        async with https(tmp_path / "config") as cluster, desk_at(cluster, embedded_server.cluster) as desk:
            try:
                yield desk, freezer
            finally:
                freezer.thaw()


@pytest.fixture
def young(quick: pytest.MonkeyPatch) -> None:
    """Caches that grow old in seconds, of an API that sends bookmarks all the time."""
    quick.setattr(streams, "BOOKMARK_SECONDS", 0.1)
    quick.setattr(informer, "PATIENCE", 2.0)
    quick.setattr(informer, "SILENCE", 3.0)


@pytest.mark.parametrize("door", DOORS)
async def test_a_quarantine_counts_while_every_watch_hangs_half_open(frozen: tuple[Desk, Freezer], door: str) -> None:
    """The caches hear nothing and do not know it; whoever connects anew gets through."""
    desk, freezer = frozen
    freezer.freeze(new=False)
    await desk.quarantine()
    assert RELEASED not in await desk.until(door, REVOKED)


@pytest.mark.parametrize("door", DOORS)
async def test_a_watch_that_hangs_half_open_is_replaced_and_what_it_missed_counts(
    young: None, frozen: tuple[Desk, Freezer], door: str
) -> None:
    desk, freezer = frozen
    freezer.freeze(new=False)
    await desk.distrust()
    await desk.until(door, REVOKED)


@pytest.mark.parametrize("door", DOORS)
async def test_a_door_that_is_cut_off_without_an_end_releases_nothing_until_it_is_back(
    young: None, frozen: tuple[Desk, Freezer], door: str
) -> None:
    desk, freezer = frozen
    freezer.freeze(new=True)
    before = await desk.until(door, UNKNOWN)
    assert RELEASED not in before
    assert all(answer.startswith("503 ") for answer in before)
    assert all([(await desk.answer(door)).startswith("503 ") for _ in range(5)])
    freezer.thaw()
    assert all(answer.startswith("503 ") for answer in await desk.until(door, RELEASED))


@pytest.fixture(scope="module")
def kube(real_kube_binaries: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealKube]:
    """A server of its own, with our kinds: it is stopped for a while."""
    with RealKube.start(tmp_path_factory.mktemp("stopped"), real_kube_binaries, unsafe_no_fsync=True) as server:
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        definitions = manifests()
        with server.client() as admin:
            for manifest in definitions:
                assert admin.post(path, json=manifest).status_code == 201, manifest["metadata"]["name"]
            for manifest in definitions:
                assert any(served(admin, f"{path}/{manifest['metadata']['name']}") for _ in range(600))
        yield server


async def test_an_api_server_that_is_stopped_stops_every_release_and_what_was_decided_since_counts(
    kube: RealKube, quick: pytest.MonkeyPatch
) -> None:
    """SIGSTOP: its connections stay open and say nothing; the doors' caches are young and in touch for a minute and a half."""
    apiserver = kube.pids()["kube-apiserver"]
    async with https(kube.kubeconfig) as cluster, https(kube.kubeconfig) as api, desk_at(cluster, api) as desk:
        os.kill(apiserver, signal.SIGSTOP)
        try:
            answers = [await desk.answer(door) for door in DOORS for _ in range(3)]
        finally:
            os.kill(apiserver, signal.SIGCONT)
        assert all(answer.startswith("503 ") for answer in answers), answers
        for door in DOORS:
            assert all(answer.startswith("503 ") for answer in await desk.until(door, RELEASED))
        await desk.quarantine()
        for door in DOORS:
            assert await desk.answer(door) == REVOKED
