"""A machine's pool is its ticket's and its Machine's: no label moves it, and a person who does is on the record."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from fastness.agent.apply.node import Agent
from fastness.agent.boot.configs import AttestedConfigs
from fastness.agent.boot.enrol import Doors
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.nfd.discovery import NODE_FEATURE_DISCOVERY
from fastness.kinds.nfd.feature import NODE_FEATURE, NODE_NAME_LABEL
from fastness.kinds.objects import annotations_of, condition, labels_of
from fastness.kinds.registry import find
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.errors import Invalid
from fastness.kube.port import PatchType
from fastness.sim.tee.attester import SimAttester
from tests.attesting import ENTROPY, until
from tests.component.agent.directory_machine import make_machine
from tests.component.insiders.owner import MERGE, NODES, POOLS, RBAC, STATUS, House, occupied

MACHINES = MACHINE.resource
CONFIGS = find("machineconfiguration.openshift.io", "v1", "machineconfigs").resource
CLUSTER_ROLES = find(RBAC, "v1", "clusterroles").resource
CLUSTER_BINDINGS = find(RBAC, "v1", "clusterrolebindings").resource
CONFIG_NODES = find("machineconfiguration.openshift.io", "v1", "machineconfignodes").resource
INFRA = "node-role.kubernetes.io/infra"
SECRET = "data:,what%20only%20infra%20may%20have"


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    """An enforcing cluster with a second pool that has a file of its own."""
    async with occupied(tmp_path) as opened:
        cluster = opened.world.cluster
        roles = {"key": names.ROLE_LABEL, "operator": "In", "values": ["worker", "infra"]}
        await cluster.create(POOLS, {
            "apiVersion": names.API_VERSION, "kind": "MachineConfigPool", "metadata": {"name": "infra"},
            "spec": {"machineConfigSelector": {"matchExpressions": [roles]}, "nodeSelector": {"matchLabels": {INFRA: ""}}},
        })  # fmt: skip
        file = {"path": "/etc/infra", "mode": 384, "contents": {"source": SECRET}}
        await cluster.create(CONFIGS, {
            "apiVersion": names.API_VERSION, "kind": "MachineConfig",
            "metadata": {"name": "50-infra", "labels": {names.ROLE_LABEL: "infra"}},
            "spec": {"config": {"ignition": {"version": "3.4.0"}, "storage": {"files": [file]}}},
        })  # fmt: skip
        await opened.world.approve("tpm")
        await opened.settle()
        yield opened


async def goal(house: House, pool: str) -> str:
    """What the machines of a pool should have."""
    stored = await house.world.cluster.get(POOLS, pool)
    name = str(stored["spec"]["configuration"]["name"])
    assert name.startswith(f"rendered-{pool}-")
    return name


async def worker(house: House) -> tuple[SimAttester, str]:
    """An attested machine of pool worker and its node, which has what its pool wants."""
    machine = await house.site.attested()
    node = await house.site.node(machine)
    has = await goal(house, "worker")
    notes = {names.CURRENT_CONFIG: has, names.DESIRED_CONFIG: has, names.STATE: "Done"}
    body = {"apiVersion": "v1", "kind": "Node"}
    meta = {"name": node, "labels": {"node-role.kubernetes.io/worker": ""}, "annotations": notes}
    await house.world.cluster.create(NODES, {**body, "metadata": meta})
    await house.settle()
    return machine, node


async def somebody(house: House, name: str, *rules: JsonObject) -> httpx.AsyncClient:
    """A user with a role of these rules, in the whole cluster."""
    cluster, embedded = house.world.cluster, house.embedded
    await cluster.create(
        find("", "v1", "serviceaccounts").resource, {"metadata": {"name": name, "namespace": "default"}}
    )
    await cluster.create(CLUSTER_ROLES, {"metadata": {"name": name}, "rules": list(rules)})
    role = {"apiGroup": RBAC, "kind": "ClusterRole", "name": name}
    subject = {"kind": "ServiceAccount", "name": name, "namespace": "default"}
    await cluster.create(CLUSTER_BINDINGS, {"metadata": {"name": name}, "roleRef": role, "subjects": [subject]})
    async with embedded.client() as admin:
        answer = await admin.post(f"/api/v1/namespaces/default/serviceaccounts/{name}/token", json={"spec": {}})
    return embedded.client(certificate=False, token=answer.json()["status"]["token"])


def rule(group: str, *resources: str) -> JsonObject:
    return {"apiGroups": [group], "resources": list(resources), "verbs": ["get", "patch"]}


async def patched(http: httpx.AsyncClient, path: str, patch: Any) -> int:
    return (await http.patch(path, json=patch, headers=MERGE)).status_code


async def attestation_of(house: House, node: str) -> str:
    return annotations_of(await house.world.cluster.get(NODES, node))[names.DESIRED_CONFIG]


async def test_a_label_moves_no_machine_into_another_pool(house: House) -> None:
    """The attacker may write labels of Nodes, as whoever runs a scheduler's helpers may."""
    machine, node = await worker(house)
    before = await attestation_of(house, node)
    async with await somebody(house, "labeller", rule("", "nodes")) as labeller:
        assert await patched(labeller, NODES.path(name=node), {"metadata": {"labels": {INFRA: ""}}}) == 200
    await house.settle()
    assert await attestation_of(house, node) == before
    status = (await house.world.machine_object(machine))["status"]
    assert status["pool"] == "worker"
    assert await goal(house, "infra") not in (status.get("desiredConfig"), status.get("currentConfig"))
    assert (await house.world.cluster.get(POOLS, "infra"))["status"]["machineCount"] == 0
    assert (await house.world.cluster.get(POOLS, "worker"))["status"]["machineCount"] == 1
    assert (await house.world.cluster.get(CONFIG_NODES, node))["spec"]["pool"]["name"] == "worker"
    assert house.recorded("machine-moved") == []


async def test_a_status_moves_no_machine_into_another_pool(house: House) -> None:
    """Not even where Machines count."""
    machine, _ = await worker(house)
    name = (await house.world.machine_object(machine))["metadata"]["name"]
    with pytest.raises(Invalid, match=r"status\.pool changes only to the pool that spec\.pool names"):
        await house.world.cluster.patch(
            MACHINES, name, {"status": {"pool": "infra"}}, PatchType.MERGE, NAMESPACE, STATUS
        )


async def test_a_right_to_write_status_attests_no_machine(house: House) -> None:
    """The attacker may patch Machines and their status everywhere, also where they count."""
    machine = await house.world.enrolled("tpm")
    before = await house.world.machine_object(machine)
    proved = {"lastAttested": "2026-01-01T00:00:00Z", "attestedUntil": "2099-01-01T00:00:00Z", "epoch": 7}
    async with await somebody(
        house, "writer", rule("trusted-execution-clusters.io", "machines", "machines/status")
    ) as writer:
        path = MACHINES.path(NAMESPACE, before["metadata"]["name"])
        assert await patched(writer, f"{path}/status", {"status": proved}) == 403
        assert await patched(writer, path, {"status": proved}) == 200, "which leaves the status as it is"
    after = (await house.world.machine_object(machine))["status"]
    assert {name: after.get(name) for name in proved} == {name: before["status"].get(name) for name in proved}


async def test_a_person_moves_a_machine_on_the_record_and_it_proves_itself_anew(house: House) -> None:
    machine, node = await worker(house)
    stored = await house.world.machine_object(machine)
    epoch = stored["status"].get("epoch", 0)
    spec = {"pool": "infra", "poolReason": "it runs the routers now"}
    async with await somebody(house, "decider", rule("trusted-execution-clusters.io", "machines")) as decider:
        path = MACHINES.path(NAMESPACE, stored["metadata"]["name"])
        assert await patched(decider, path, {"spec": spec}) == 200
    await house.settle()
    moved = await house.world.machine_object(machine)
    attested = condition(moved, "Attested")
    assert attested is not None
    assert (attested["status"], attested["reason"]) == ("False", "Moved")
    assert (moved["status"]["pool"], moved["status"]["epoch"]) == ("infra", epoch + 1), "tokens of before are dead"
    assert (await attestation_of(house, node)).startswith("rendered-worker-"), (
        "nothing of the new pool before a new proof"
    )
    (act,) = house.recorded("act-move-machine")
    assert (act["who"], act["detail"]["reason"]) == ("system:serviceaccount:default:decider", spec["poolReason"])
    (entry,) = house.recorded("machine-moved")
    assert (entry["detail"]["pool"], entry["detail"]["to"]) == ("worker", "infra")
    async with house.world.broker(machine) as broker:
        await broker.attest()
        assert broker.pool == "infra"
    await house.settle()
    assert await attestation_of(house, node) == await goal(house, "infra")
    assert (await house.world.machine_object(machine))["status"]["desiredConfig"] == await goal(house, "infra")
    assert (await house.world.cluster.get(CONFIG_NODES, node))["spec"]["pool"]["name"] == "infra"


async def test_a_machine_that_was_moved_proves_itself_at_once(house: House, tmp_path: Path) -> None:
    """Its agent reads on the Node that it was moved; the interval of a quarter of an hour is not waited for."""
    machine, node = await worker(house)
    world, cluster = house.world, house.world.cluster
    name = (await world.machine_object(machine))["metadata"]["name"]
    doors = Doors(f"https://127.0.0.1:{world.doors.broker.port}", "https://127.0.0.1:1")
    believed: Any = SimpleNamespace(tls=world.trust)
    configs = AttestedConfigs(machine, lambda: doors, lambda: believed, world.clock, ENTROPY)
    host = make_machine(tmp_path / "machine").host
    agent = Agent(cluster, host, node, world.clock, ENTROPY, configs=configs, prove=configs.prove)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(agent.run())
        await cluster.patch(MACHINES, name, {"spec": {"pool": "infra"}}, PatchType.MERGE, NAMESPACE)

        async def proved() -> bool:
            stored = await world.machine_object(machine)
            attested = condition(stored, "Attested") or {}
            return stored["status"]["pool"] == "infra" and attested.get("status") == "True"

        await until(proved)
        running.cancel()


async def test_a_moved_machine_enrols_again_with_the_ticket_that_it_came_with(house: House) -> None:
    world = house.world
    ticket = await world.ticket("worker")
    machine = world.machine("tpm")
    await world.enrol(machine, ticket)
    name = (await world.machine_object(machine))["metadata"]["name"]
    await world.cluster.patch(MACHINES, name, {"spec": {"pool": "infra"}}, PatchType.MERGE, NAMESPACE)
    await house.settle()
    await world.enrol(machine, ticket)
    assert (await world.machine_object(machine))["status"]["pool"] == "infra"


async def test_features_write_no_label_by_which_a_pool_chooses(house: House) -> None:
    """From whoever may write NodeFeatures and their settings where they count."""
    cluster = house.world.cluster
    labels = {INFRA: "", "team.example/pool": "gold", "team.example/colour": "blue"}
    await cluster.patch(
        POOLS, "infra", {"spec": {"nodeSelector": {"matchLabels": {"team.example/pool": "gold"}}}}, PatchType.MERGE
    )
    await house.node("w")
    for resource, name, spec, meta in (
        (NODE_FEATURE_DISCOVERY.resource, "d", {"extraLabelNs": ["team.example", "node-role.kubernetes.io"]}, {}),
        (NODE_FEATURE.resource, "w", {"features": {}, "labels": labels}, {"labels": {NODE_NAME_LABEL: "w"}}),
    ):
        kind = {"apiVersion": resource.api_version, "kind": resource.kind}
        await cluster.create(
            resource, {**kind, "metadata": {"name": name, "namespace": "openshift-nfd", **meta}, "spec": spec}
        )
    await house.settle()
    written = labels_of(await cluster.get(NODES, "w"))
    assert written.get("team.example/colour") == "blue", "other labels of an allowed namespace are written"
    assert not {INFRA, "team.example/pool"} & set(written)
