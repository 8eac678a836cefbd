"""Machines of pools that do not attest, for tests: what they get for a ticket, and what they do with it.

async with pool_site(Place.real(kube)) as site:
    ticket = await site.ticket("plain")
    boot = await site.booted("plain", ticket)
    async with site.joining.client(boot.token) as machine:
        request = await site.joining.ask(machine, client_request(new_key(), "node-1"))
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import httpx
import yaml

from fastness.attestation.loops.legacy_certificates import LegacyCertificates
from fastness.enrolment.loops.joined_nodes import JoinedNodeController
from fastness.enrolment.loops.pool_tokens import PoolTokenController
from fastness.enrolment.loops.unattested_joins import UnattestedJoins
from fastness.formats import data_url
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.audit import AUDIT_BATCH
from fastness.kinds.kind import JsonObject
from fastness.kinds.kubernetes.core import CONFIG_MAP, NODE
from fastness.kinds.machineconfiguration import names
from fastness.kinds.machineconfiguration.config import MACHINE_CONFIG
from fastness.kinds.machineconfiguration.controller_config import CONTROLLER_CONFIG, SINGLETON
from fastness.kinds.machineconfiguration.pool import MACHINE_CONFIG_POOL
from fastness.kube.controllers.controller import Controller
from fastness.kube.errors import AlreadyExists
from fastness.kube.places import ROOT_CA
from fastness.kube.port import Cluster, PatchType
from fastness.machineconfig.loops.nodes.labels import FirstLabels
from fastness.machineconfig.serving import KUBECONFIG_FILE
from fastness.record.live.record import ClusterRecord
from fastness.release.door.config_server.server import ConfigDoor, config_server
from tests.attesting import ENTROPY, AttestingWorld
from tests.joining import JoiningSite, Place, joining

ACCEPT = "application/vnd.coreos.ignition+json;version=3.4.0"
ORDINARY = ("plain", "other", "counted", "turning", "capped")
MODELS = {**dict.fromkeys(ORDINARY, "None"), "host": "ContainersHost", "secret": "ConfidentialCluster"}
RENDERED = "0" * 32


def cluster_spec(**models: str) -> JsonObject:
    """An enforcing cluster with pools of each model."""
    pools = [{"name": name, "trustModel": model} for name, model in {**MODELS, **models}.items()]
    return {"mode": "Enforce", "simulated": True, "pools": pools}


@dataclass(frozen=True)
class Boot:
    """What a machine got for its first boot: the document, and the entry of it that is the kubeconfig."""

    document: JsonObject
    entry: JsonObject

    @property
    def kubeconfig(self) -> Any:
        """The kubeconfig, read."""
        return yaml.safe_load(data_url.contents(self.entry["contents"]))

    @property
    def token(self) -> str:
        """The bootstrap token in it."""
        return str(self.kubeconfig["users"][0]["user"]["token"])


@dataclass
class PoolSite:
    """A cluster with a config server, and the loops that let machines of pools join."""

    joining: JoiningSite
    door: ConfigDoor

    @property
    def cluster(self) -> Cluster:
        """The API, with all rights."""
        return self.joining.world.cluster

    async def ticket(self, pool: str) -> str:
        """A ticket of a pool that the doors have heard of."""
        return (await self.joining.world.ticket(pool)).reveal()

    def machine(self) -> httpx.AsyncClient:
        """Somebody at the ticket port."""
        trust = ssl.create_default_context(cadata=self.door.doors.bundle)
        url = f"https://127.0.0.1:{self.door.port}"
        return httpx.AsyncClient(base_url=url, verify=trust, headers={"accept": ACCEPT}, trust_env=False, timeout=20)

    async def asked(self, pool: str, ticket: str, method: str = "GET") -> httpx.Response:
        """What the config server answers a ticket."""
        async with self.machine() as http:
            return await http.request(method, f"/config/{pool}", headers={"authorization": f"Bearer {ticket}"})

    async def booted(self, pool: str, ticket: str = "") -> Boot:
        """What a machine gets for its first boot."""
        answer = await self.asked(pool, ticket or await self.ticket(pool))
        assert answer.status_code == 200, answer.text
        document = answer.json()
        (entry,) = (file for file in document["storage"]["files"] if file["path"] == KUBECONFIG_FILE)
        return Boot(document, entry)

    async def entries(self, what: str) -> list[JsonObject]:
        """Entries of a kind in the record."""
        batches = (await self.cluster.list(AUDIT_BATCH.resource)).items
        return [entry for batch in batches for entry in batch["spec"]["entries"] if entry["what"] == what]

    async def register(self, http: httpx.AsyncClient, node: str, *addresses: str, **annotations: str) -> JsonObject:
        """Register a Node as its kubelet does, with the node's own credential."""
        body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node, "annotations": annotations}}
        made = await http.post("/api/v1/nodes", json=body)
        assert made.status_code == 201, made.text
        told = {"addresses": [{"type": "InternalIP", "address": address} for address in addresses]}
        patched = await http.patch(
            f"/api/v1/nodes/{node}/status", json={"status": told},
            headers={"content-type": "application/merge-patch+json"},
        )  # fmt: skip
        assert patched.status_code == 200, patched.text
        return dict(patched.json())

    async def node_object(self, node: str) -> JsonObject:
        """A Node as it is now."""
        return await self.cluster.get(NODE.resource, node)


def _loops(world: AttestingWorld, record: ClusterRecord) -> list[Controller]:
    plain = (PoolTokenController, JoinedNodeController, FirstLabels)
    return [
        *(loop(world.cluster, world.informers, world.clock) for loop in plain),
        UnattestedJoins(world.cluster, world.informers, record, world.clock),
        LegacyCertificates(world.cluster, world.informers, world.clock, ENTROPY),
    ]


async def furnish(cluster: Cluster, place: Place, api_server: str) -> None:
    """Pools with rendered configs, and what the cluster says about its API server."""
    infra = {
        "apiVersion": "config.openshift.io/v1", "kind": "Infrastructure", "metadata": {"name": "cluster"},
        "spec": {}, "status": {"apiServerInternalURI": api_server},
    }  # fmt: skip
    controller = {
        "apiVersion": names.API_VERSION, "kind": "ControllerConfig", "metadata": {"name": SINGLETON}, "spec": {"infra": infra},
    }  # fmt: skip
    authority = {
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": ROOT_CA, "namespace": NAMESPACE},
        "data": {"ca.crt": place.ca.read_text()},
    }  # fmt: skip
    objects = [(CONTROLLER_CONFIG.resource, controller), (CONFIG_MAP.resource, authority)]
    for name in MODELS:
        objects += [(MACHINE_CONFIG.resource, rendered(name)), (MACHINE_CONFIG_POOL.resource, pool(name))]
    for resource, obj in objects:
        with suppress(AlreadyExists):
            await cluster.create(resource, obj)
    await cluster.patch(CONTROLLER_CONFIG.resource, SINGLETON, {"spec": {"infra": infra}}, PatchType.MERGE)


def rendered(name: str) -> JsonObject:
    """The rendered config of a pool."""
    source = f"data:,config%20of%20{name}"
    body = {
        "ignition": {"version": "3.4.0"},
        "storage": {"files": [{"path": "/etc/motd", "mode": 420, "contents": {"source": source}}]},
    }
    meta = {"name": f"rendered-{name}-{RENDERED}"}
    return {"apiVersion": names.API_VERSION, "kind": "MachineConfig", "metadata": meta, "spec": {"config": body}}


def pool(name: str) -> JsonObject:
    """A pool whose nodes have the role of its name."""
    roles = {"key": names.ROLE_LABEL, "operator": "In", "values": ["worker", name]}
    spec = {
        "machineConfigSelector": {"matchExpressions": [roles]},
        "nodeSelector": {"matchLabels": {f"{names.NODE_ROLE_PREFIX}{name}": ""}},
        "configuration": {"name": f"rendered-{name}-{RENDERED}"},
    }
    return {
        "apiVersion": names.API_VERSION, "kind": "MachineConfigPool", "metadata": {"name": name}, "spec": spec,
    }  # fmt: skip


@asynccontextmanager
async def pool_site(place: Place, spec: JsonObject | None = None, api_server: str = "") -> AsyncIterator[PoolSite]:
    """A config server that gives tokens, and the loops of joining, before a cluster, for the time of the block.

    `api_server` is where machines reach the API, if not where tests do.
    """
    async with joining(place, None, spec or cluster_spec(), _loops) as site:
        world = site.world
        await furnish(world.cluster, place, api_server or place.url)
        async with config_server(world.cluster, world.informers, world.clock, ENTROPY, join_tokens=True) as door:
            yield PoolSite(site, door)
