"""A config server on an embedded API with three pools, one of each trust model, and everybody who may knock."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import httpx

from fastness.attestation.loops.door_certificates import issuing
from fastness.crypto.x509 import Credential
from fastness.enrolment.live.tickets import join_ticket, mint
from fastness.http.certificates import anonymous
from fastness.http.opening import ListenOptions
from fastness.keys.authorities import Lineage
from fastness.keys.doors import doors_authority
from fastness.keys.internal import InternalAuthority, internal_authority
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.registry import find
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster
from fastness.release.door.config_server.server import ConfigDoor, config_server
from fastness.runtime.clock import Clock, SystemClock, SystemEntropy
from tests.embedded.fixtures import Embedded

MCO = "machineconfiguration.openshift.io"
CONFIG = find(MCO, "v1", "machineconfigs").resource
POOL = find(MCO, "v1", "machineconfigpools").resource
TICKET = find("fastness.dev", "v1alpha1", "jointickets").resource
CONFIDENTIAL = find("fastness.dev", "v1alpha1", "confidentialclusters").resource
POOLS = {"plain": "None", "host": "ContainersHost", "secret": "ConfidentialCluster"}
ACCEPT = "application/vnd.coreos.ignition+json;version=3.4.0"


async def furnish(cluster: Cluster) -> None:
    """One pool of each trust model, each with a rendered config."""
    pools = [{"name": name, "trustModel": model} for name, model in POOLS.items()]
    delivery = {"via": "Broker", "sync": "OnChange"}  # so that the broker may ask for copies
    spec = {"mode": "Enforce", "simulated": True, "pools": pools, "delivery": delivery}
    kind = {"apiVersion": "fastness.dev/v1alpha1", "kind": "ConfidentialCluster"}
    await cluster.create(CONFIDENTIAL, {**kind, "metadata": {"name": "cluster"}, "spec": spec})
    for name in POOLS:
        await cluster.create(CONFIG, rendered(f"rendered-{name}-1", f"config of {name}"))
        await cluster.create(POOL, pool(name, f"rendered-{name}-1"))


def rendered(name: str, content: str) -> JsonObject:
    source = "data:," + content.replace(" ", "%20")
    files = [{"path": "/etc/motd", "mode": 420, "contents": {"source": source}}]
    body = {"ignition": {"version": "3.4.0"}, "storage": {"files": files}}
    return {"apiVersion": f"{MCO}/v1", "kind": "MachineConfig", "metadata": {"name": name}, "spec": {"config": body}}


def pool(name: str, configuration: str) -> JsonObject:
    roles = {"key": names.ROLE_LABEL, "operator": "In", "values": ["worker", name]}
    spec = {
        "machineConfigSelector": {"matchExpressions": [roles]},
        "nodeSelector": {"matchLabels": {f"{names.NODE_ROLE_PREFIX}{name}": ""}},
        "configuration": {"name": configuration},
    }
    return {
        "apiVersion": names.API_VERSION, "kind": "MachineConfigPool", "metadata": {"name": name}, "spec": spec,
    }  # fmt: skip


@dataclass
class Doors:
    """The open door and the cluster behind it."""

    door: ConfigDoor
    cluster: Cluster

    async def ticket(self, pool: str, days: float = 1) -> str:
        ticket = mint(SystemEntropy())
        name = f"t-{pool}-{SystemEntropy().uid()}"
        await self.cluster.create(TICKET, join_ticket(name, ticket, pool, datetime.now(UTC) + timedelta(days=days)))
        await asyncio.sleep(0.05)
        return ticket.reveal()

    async def internal(self) -> InternalAuthority:
        """The authority between our own parts, as the controllers have it."""
        return await internal_authority(self.cluster, SystemEntropy(), datetime.now(UTC))

    async def authority(self) -> Lineage:
        """The authority of the doors, as the controllers have it."""
        return (await doors_authority(self.cluster, SystemEntropy(), datetime.now(UTC))).lineage

    def outer(self) -> httpx.AsyncClient:
        """A machine: trusts the doors, has no certificate."""
        trust = ssl.create_default_context(cadata=self.door.doors.bundle)
        return _client(self.door.port, trust)

    def inner(self, shows: Credential | None) -> httpx.AsyncClient:
        """Somebody at the internal port, with or without a certificate."""
        trust = ssl.create_default_context(cadata=self.door.internal.bundle)
        if shows is not None:
            with anonymous(shows.key_pem.reveal() + shows.certificate.pem) as path:
                trust.load_cert_chain(path)
        return _client(self.door.internal_port, trust)


def _client(port: int, trust: ssl.SSLContext) -> httpx.AsyncClient:
    headers = {"accept": ACCEPT}
    return httpx.AsyncClient(
        base_url=f"https://127.0.0.1:{port}", verify=trust, headers=headers, timeout=20, trust_env=False
    )


@asynccontextmanager
async def open_doors(
    embedded: Embedded,
    *,
    rust: bool = False,
    clock: Clock | None = None,
) -> AsyncIterator[Doors]:
    """A config server with three pools behind it."""
    clock, entropy, cluster = clock or SystemClock(), SystemEntropy(), embedded.cluster
    await furnish(cluster)
    async with (
        Informers(cluster, clock=SystemClock(), entropy=entropy) as informers,
        issuing(cluster, informers, clock, entropy),
        config_server(cluster, informers, clock, entropy, ListenOptions(rust=rust)) as door,
    ):
        yield Doors(door, cluster)
