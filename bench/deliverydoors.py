"""The servers of the delivery benchmark: a whole confidential cluster in one process, or doors alone against its API."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import orjson

from bench.deliverytalk import BARE, ENTROPY, PATIENCE, POOL, TEES, say
from fastness.app.product import PRODUCT
from fastness.runtime.clock import SystemClock

if TYPE_CHECKING:
    from fastness.kube.informers import Informers
    from fastness.kube.port import Cluster


async def serve(orders: IO[bytes]) -> None:
    """The cluster, until its input ends."""
    from fastness.kinds.fastness_dev import NAMESPACE
    from fastness.kinds.trusted_execution.machine import MACHINE
    from fastness.kube.port import PatchType
    from fastness.runtime.memory import settle_memory

    with tempfile.TemporaryDirectory() as directory:
        async with opened(Path(directory)) as (cluster, where):
            settle_memory()  # as the product does when it is ready
            say(where)
            while line := await asyncio.to_thread(orders.readline):
                message = orjson.loads(line)
                if name := message.get("quarantine"):
                    patch = {"spec": {"approval": "Quarantined"}}
                    await cluster.patch(MACHINE.resource, name, patch, PatchType.MERGE, NAMESPACE)
                    say({"at": time.monotonic()})
                else:
                    await _fill(cluster, int(message["fill"]))
                    say({})


@asynccontextmanager
async def opened(directory: Path) -> AsyncIterator[tuple[Cluster, dict[str, Any]]]:
    """A confidential cluster whose pool hands out 200 KiB, and where its doors are."""
    from fastness.apiserver import ServerOptions, open_apiserver
    from fastness.app.controllers import product_loops
    from fastness.enrolment.door.pace import Pace
    from fastness.enrolment.door.server import enrolment_door
    from fastness.enrolment.live.enrolments import DoorUrls
    from fastness.http.opening import ListenOptions
    from fastness.kube.controllers import Runner
    from fastness.kube.informers import Informers
    from fastness.record.live.record import ClusterRecord
    from fastness.record.live.tiles import FileTiles
    from fastness.release.door.broker.opening import broker_door
    from fastness.release.door.config_server.server import config_server
    from fastness.release.door.gate.server import gate

    clock, listen, urls = SystemClock(), ListenOptions(), [DoorUrls()]
    async with open_apiserver(ServerOptions(directory / "state"), PRODUCT) as server:
        cluster = server.cluster
        where = await _settled(cluster)
        async with Informers(cluster, clock=clock, entropy=ENTROPY) as informers:
            loops = product_loops(cluster, informers, clock, ENTROPY, tiles=FileTiles(directory / "record"))
            runner = asyncio.create_task(Runner(loops, informers, clock, ENTROPY).run())
            try:
                async with config_server(cluster, informers, clock, ENTROPY, ListenOptions(rust=True)) as configs:
                    source = configs.served
                    pace = Pace.of(1e6)
                    record = ClusterRecord(cluster, clock, ENTROPY, "gate")
                    async with (
                        enrolment_door(
                            cluster, informers, clock, ENTROPY, listen, urls=lambda: urls[0], pace=pace
                        ) as enrolment,
                        broker_door(cluster, informers, clock, ENTROPY, cipher=server.vault, configs=source) as (
                            broker,
                            _,
                        ),
                        gate(cluster, informers, source, record, clock, ENTROPY, listen) as keeper,
                    ):
                        ports = {"enrolment": enrolment.port, "broker": broker.port, "gate": keeper.port}
                        urls[0] = DoorUrls(f"https://127.0.0.1:{broker.port}", f"https://127.0.0.1:{keeper.port}")
                        await _rendered(informers)
                        keys = source.signer.jwks()
                        (directory / "kubeconfig").write_bytes(server.kubeconfig())
                        yield (
                            cluster,
                            {
                                **where,
                                **ports,
                                "configs": configs.port,
                                "ca": configs.doors.bundle,
                                "configKeys": keys,
                                "kubeconfig": str(directory / "kubeconfig"),
                            },
                        )
            finally:
                runner.cancel()
                await asyncio.wait([runner])


async def doors(orders: IO[bytes]) -> None:
    """A config server and a gate against the API of the other process, until the input ends."""
    from fastness.http.opening import ListenOptions
    from fastness.kube.client.client import connect
    from fastness.kube.client.config import Surroundings, find
    from fastness.kube.informers import Informers
    from fastness.record.live.record import ClusterRecord
    from fastness.release.door.config_server.server import config_server
    from fastness.release.door.gate.server import gate
    from fastness.runtime.memory import settle_memory

    where, clock = orjson.loads(await asyncio.to_thread(orders.readline)), SystemClock()
    listen = ListenOptions()
    connection = find(Surroundings({}, Path.home()), kubeconfig=Path(where["kubeconfig"]), context="")
    async with (
        connect(connection) as cluster,
        Informers(cluster, clock=clock, entropy=ENTROPY) as informers,
        config_server(cluster, informers, clock, ENTROPY, ListenOptions(rust=True)) as configs,
    ):
        source, record = configs.served, ClusterRecord(cluster, clock, ENTROPY, "gate")
        async with gate(cluster, informers, source, record, clock, ENTROPY, listen) as keeper:
            await _rendered(informers)
            settle_memory()  # as the product does when it is ready
            say({"configs": configs.port, "gate": keeper.port})
            await asyncio.to_thread(orders.read)


async def _settled(cluster: Cluster) -> dict[str, Any]:
    """A simulated cluster that enforces, with values, a vendor, a config of 200 KiB and tickets."""
    from bench.serving import ACCEPT, _config
    from fastness.enrolment.live.tickets import join_ticket, mint
    from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER
    from fastness.kinds.fastness_dev.join_ticket import JOIN_TICKET
    from fastness.kinds.fastness_dev.reference_values import REFERENCE_VALUE_SET
    from fastness.kinds.kind import Kind
    from fastness.kinds.registry import find
    from fastness.kube.errors import AlreadyExists
    from fastness.sim.announce import announce_vendor
    from fastness.sim.tee import SimVendor, default_image

    async def make(kind: Kind, name: str, spec: Any) -> None:
        made = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name}, "spec": spec}
        with suppress(AlreadyExists):
            await cluster.create(kind.resource, made)

    now, ticket, bare = datetime.now(UTC), mint(ENTROPY), mint(ENTROPY)
    pools = [{"name": BARE, "trustModel": "None"}]
    await make(CONFIDENTIAL_CLUSTER, "cluster", {"mode": "Enforce", "simulated": True, "pools": pools})
    await announce_vendor(cluster, SimVendor(), now)
    for tee in TEES:
        await make(REFERENCE_VALUE_SET, tee, {"source": "manual", "values": default_image().reference_values(tee)})
    for name, made, pool in (("storm", ticket, POOL), ("bare", bare, BARE)):
        await cluster.create(JOIN_TICKET.resource, join_ticket(name, made, pool, now + timedelta(days=1), 0))
    configs = find("machineconfiguration.openshift.io", "v1", "machineconfigs").resource
    for pool in (POOL, BARE):
        config = _config()
        labels = {"machineconfiguration.openshift.io/role": pool}
        await cluster.create(configs, {**config, "metadata": {"name": f"50-bench-{pool}", "labels": labels}})
    return {"ticket": ticket.reveal(), "open": bare.reveal(), "accept": ACCEPT}


async def _rendered(informers: Informers) -> None:
    """Wait until the config server's own caches have the config of the benchmark for both pools."""
    from bench.serving import ACCEPT, WANTED
    from fastness.kinds.machineconfiguration.config import MACHINE_CONFIG
    from fastness.kinds.machineconfiguration.pool import MACHINE_CONFIG_POOL
    from fastness.machineconfig.serving import negotiate
    from fastness.release.live.replies import NoConfig, Replies

    replies = Replies(informers.of(MACHINE_CONFIG_POOL.resource), informers.of(MACHINE_CONFIG.resource))
    async with asyncio.timeout(PATIENCE):
        while True:
            with suppress(NoConfig):
                if all(len(replies.of(pool, negotiate(ACCEPT)).body) > WANTED // 2 for pool in (POOL, BARE)):
                    return
            await asyncio.sleep(0.05)


async def _fill(cluster: Cluster, count: int) -> None:
    """Machines that exist and do nothing, up to so many in all."""
    from fastness.kinds.fastness_dev import NAMESPACE
    from fastness.kinds.trusted_execution.machine import MACHINE
    from fastness.kube.port import PatchType, WriteOptions

    machines = (await cluster.list(MACHINE.resource)).items
    pattern = next(machine for machine in machines if machine["spec"].get("approval") != "Quarantined")
    for number in range(count - len(machines)):
        digest = f"{number:064x}"
        name = f"machine-idle-{number:05}"
        body = {
            "apiVersion": MACHINE.api_version, "kind": MACHINE.kind, "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {**pattern["spec"], "id": ENTROPY.uid()},
        }  # fmt: skip
        await cluster.create(MACHINE.resource, body)
        status = {**pattern["status"], "keyThumbprint": f"sha256:{digest}", "nodeName": f"idle-{number}"}
        options = WriteOptions(subresource="status")
        await cluster.patch(MACHINE.resource, name, {"status": status}, PatchType.MERGE, NAMESPACE, options)
