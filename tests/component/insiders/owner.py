"""Somebody who owns one namespace, as a platform team would set it up; and a whole cluster around it.

    async with occupied(tmp_path) as house:
        await house.owner.create(APPROVED_IMAGE, body)
        ...

The owner has the cluster role `admin` in namespace `team`, and may write there every kind of ours that a namespace can hold, with
its status: an operator's documentation asks for no less. Everything goes over HTTPS with the token of a service account.
The house is every loop of the product, and the doors of attestation.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from fastness.apiserver import ServerOptions, open_apiserver
from fastness.apiserver.loops.signing import NodeSigning
from fastness.app.controllers import product_loops
from fastness.app.product import PRODUCT
from fastness.kinds import registry
from fastness.kinds.fastness_dev.audit import AUDIT_BATCH
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.registry import find
from fastness.kube.controllers.runner import Runner
from fastness.kube.places import EMBEDDED, counted_kinds
from fastness.kube.port import PatchType, WriteOptions
from fastness.machineconfig.loops.timing import SIMULATED
from fastness.record.live.tiles import FileTiles
from tests.attesting import ENTROPY, AttestingWorld, attesting_world
from tests.embedded.fixtures import Embedded
from tests.joining import JoiningSite, Place
from tests.patience import PATIENCE

TEAM = "a-team"  # sorts before fastness-system
RBAC = "rbac.authorization.k8s.io"
NODES = find("", "v1", "nodes").resource
POOLS = find("machineconfiguration.openshift.io", "v1", "machineconfigpools").resource
STATUS = WriteOptions(subresource="status")
ROLES = find(RBAC, "v1", "roles").resource
BINDINGS = find(RBAC, "v1", "rolebindings").resource
NAMESPACES = find("", "v1", "namespaces").resource
ACCOUNTS = find("", "v1", "serviceaccounts").resource
MERGE = {"content-type": "application/merge-patch+json"}
KINDS = counted_kinds(kind.resource for kind in registry.custom_kinds())
"""Every kind that counts in some namespaces and not in others."""


class Owner:
    """A namespace's owner, at the API."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self.http = http

    async def create(self, resource: Resource, name: str, status: JsonObject | None = None, **body: Any) -> JsonObject:
        """A new object in the own namespace, with a status."""
        meta = {"name": name, "namespace": TEAM, **body.pop("metadata", {})}
        whole = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": meta, **body}
        made = await self.http.post(resource.path(TEAM), json=whole)
        assert made.status_code == 201, made.text
        if status is not None:
            await self.status(resource, name, status)
        return dict(made.json())

    async def status(self, resource: Resource, name: str, status: JsonObject) -> None:
        """Another status."""
        path = resource.path(TEAM, name, "status")
        patched = await self.http.patch(path, json={"status": status}, headers=MERGE)
        assert patched.status_code == 200, patched.text


@dataclass
class House:
    """A cluster that enforces attestation, with everything that runs in one."""

    embedded: Embedded
    site: JoiningSite
    world: AttestingWorld
    runner: Runner
    owner: Owner
    entries: list[JsonObject]

    async def node(self, name: str, pool: str = "worker", **status: Any) -> JsonObject:
        """A Node in a pool."""
        labels = {f"node-role.kubernetes.io/{pool}": ""}
        body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}
        made = await self.world.cluster.create(NODES, body)
        if status:
            await self.world.cluster.patch(NODES, name, {"status": status}, PatchType.MERGE, "", STATUS)
        return made

    async def settle(self) -> None:
        """Let every loop see what was written: several looks at rest, further apart than any loop waits to gather changes."""
        rest = 0
        async with asyncio.timeout(PATIENCE):
            while rest < 7:
                await asyncio.sleep(0.2)
                rest = rest + 1 if self.runner.idle else 0

    def recorded(self, *what: str) -> list[JsonObject]:
        """Entries of these kinds that were ever written."""
        return [entry for entry in self.entries if entry["what"] in what]


async def _owner(embedded: Embedded) -> str:
    """The namespace, its owner and what the owner may; a token."""
    cluster = embedded.cluster
    await cluster.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": TEAM}})
    await cluster.create(ACCOUNTS, {"metadata": {"name": "owner", "namespace": TEAM}})
    rules = [
        {"apiGroups": [kind.group], "resources": [kind.plural, f"{kind.plural}/status"], "verbs": ["*"]} for kind in KINDS
    ]  # fmt: skip
    await cluster.create(ROLES, {"metadata": {"name": "ours", "namespace": TEAM}, "rules": rules})
    subject = {"kind": "ServiceAccount", "name": "owner", "namespace": TEAM}
    for kind, name in (("ClusterRole", "admin"), ("Role", "ours")):
        bound = {"roleRef": {"apiGroup": RBAC, "kind": kind, "name": name}, "subjects": [subject]}
        await cluster.create(BINDINGS, {"metadata": {"name": name, "namespace": TEAM}, **bound})
    async with embedded.client() as admin:
        path = f"/api/v1/namespaces/{TEAM}/serviceaccounts/owner/token"
        answer = await admin.post(path, json={"spec": {"expirationSeconds": 3600}})
    return str(answer.json()["status"]["token"])


@asynccontextmanager
async def occupied(directory: Path, **spec: Any) -> AsyncIterator[House]:
    """An enforcing cluster with all loops and doors, and a namespace that somebody owns, for the time of the block."""
    async with AsyncExitStack() as ending:
        options = ServerOptions(directory / "state", simulated=True)
        server = await ending.enter_async_context(open_apiserver(options, PRODUCT))
        embedded = Embedded(server, directory / "state")
        whole = {"mode": "Enforce", "simulated": True, **spec}
        world = await ending.enter_async_context(attesting_world(server.cluster, whole, places=EMBEDDED))
        entries: list[JsonObject] = []

        def collect(old: JsonObject | None, new: JsonObject | None) -> None:
            if old is None and new is not None:
                entries.extend(new["spec"]["entries"])

        world.informers.of(AUDIT_BATCH.resource).subscribe(collect)
        place = Place.embedded(embedded)
        assert place.signer is not None
        signing = NodeSigning(server.cluster, place.signer, world.clock)
        tiles = FileTiles(directory / "record")
        loops = product_loops(server.cluster, world.informers, world.clock, ENTROPY, timing=SIMULATED, tiles=tiles)
        runner = Runner([*loops, signing], world.informers, world.clock, ENTROPY)
        group = await ending.enter_async_context(asyncio.TaskGroup())
        running = group.create_task(runner.run())
        ending.callback(running.cancel)
        http = embedded.client(certificate=False, token=await _owner(embedded))
        ending.push_async_callback(http.aclose)
        house = House(embedded, JoiningSite(place, world), world, runner, Owner(http), entries)
        await house.settle()
        yield house
