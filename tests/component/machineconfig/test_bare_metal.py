"""Machine sets whose machines are hosts of Metal3: hosts are taken, become nodes, and are given back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from fastness.app.other_operators import held_back
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.kubernetes.core import NODE, POD
from fastness.kinds.kubernetes.native import DEPLOYMENT
from fastness.kinds.machineconfiguration.names import USER_DATA_NAMESPACE
from fastness.kinds.objects import condition, object_name
from fastness.kinds.openshift.machines import BARE_METAL_HOST, MACHINE_SET, PROVIDER_MACHINE
from fastness.kube.controllers.runner import Runner
from fastness.kube.errors import NotFound
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster, PatchType, Scope, WriteOptions
from fastness.machineconfig.loops.machines import bare_metal
from fastness.machineconfig.loops.machines.bare_metal import BareMetalMachines
from fastness.machineconfig.loops.machines.machine_api import machine_api_loops
from fastness.machineconfig.loops.machines.other_machine_api import FAMILY
from fastness.machineconfig.scaling.metal3 import HOST_OF_MACHINE, PAUSED, provider_id
from fastness.runtime.clock import SystemClock, SystemEntropy
from tests.bare_metal import BareMetalOperator, host
from tests.embedded.fixtures import Embedded
from tests.patience import PATIENCE

HOSTS, MACHINES, SETS = BARE_METAL_HOST.resource, PROVIDER_MACHINE.resource, MACHINE_SET.resource
STATUS = WriteOptions(subresource="status")
IMAGE = {"url": "http://images.example/node.raw", "checksum": "http://images.example/node.raw.sha256", "format": "raw"}


def provider(**more: Any) -> JsonObject:
    return {
        "apiVersion": "baremetal.cluster.k8s.io/v1alpha1", "kind": "BareMetalMachineProviderSpec", "image": IMAGE,
        "userData": {"name": "worker-user-data-managed"}, "hostSelector": {"matchLabels": {"rack": "7"}}, **more,
    }  # fmt: skip


def machine_set(replicas: int, value: JsonObject | None = None) -> JsonObject:
    labels = {"set": "metal"}
    return {
        "apiVersion": MACHINE_SET.api_version, "kind": MACHINE_SET.kind,
        "metadata": {
            "name": "metal", "namespace": USER_DATA_NAMESPACE,
            "labels": {"machine.openshift.io/cluster-api-cluster": "one"},
        },
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"providerSpec": {"value": value or provider()}}},
        },
    }  # fmt: skip


class Metal:
    """A cluster with the loops that make machines, and the operator that moves hosts."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.operator = BareMetalOperator(cluster)
        self.works = True

    async def operate(self) -> None:
        while True:
            if self.works:
                await self.operator.step()
            await asyncio.sleep(0.02)

    async def until(self, holds: Callable[[], Awaitable[Any]]) -> Any:
        async with asyncio.timeout(PATIENCE):
            while not (result := await holds()):  # noqa: ASYNC110 - what is waited for is in the API
                await asyncio.sleep(0.02)
        return result

    async def machines(self) -> list[JsonObject]:
        return (await self.cluster.list(MACHINES, Scope(namespace=USER_DATA_NAMESPACE))).items

    async def host(self, name: str) -> JsonObject:
        return await self.cluster.get(HOSTS, name, USER_DATA_NAMESPACE)

    async def hosts_in(self, state: str) -> list[JsonObject]:
        hosts = (await self.cluster.list(HOSTS, Scope(namespace=USER_DATA_NAMESPACE))).items
        return [each for each in hosts if ((each.get("status") or {}).get("provisioning") or {}).get("state") == state]

    async def register(self, *names: str, **spec: Any) -> None:
        """Hosts that are inspected and available."""
        for number, name in enumerate(names, 1):
            await self.cluster.create(HOSTS, host(name, number, **spec))

        async def available() -> bool:
            return len(await self.hosts_in("available")) == len(names)

        await self.until(available)

    async def phases(self, *phases: str) -> list[JsonObject]:
        """The Machines, once these are their phases."""

        async def there() -> list[JsonObject]:
            machines = await self.machines()
            reached = sorted(str((machine.get("status") or {}).get("phase")) for machine in machines)
            return machines if reached == sorted(phases) and machines else []

        return list(await self.until(there))

    async def join(self, name: str, address: str, provider_name: str = "") -> None:
        """The kubelet of a host registers."""
        spec = {"providerID": provider_name} if provider_name else {}
        await self.cluster.create(
            NODE.resource, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": spec}
        )
        status = {"addresses": [{"type": "InternalIP", "address": address}], "conditions": [
            {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}  # fmt: skip
        await self.cluster.patch(NODE.resource, name, {"status": status}, PatchType.MERGE, "", STATUS)

    async def scale(self, replicas: int) -> None:
        await self.cluster.patch(SETS, "metal", {"spec": {"replicas": replicas}}, PatchType.MERGE, USER_DATA_NAMESPACE)

    async def has_ready(self, count: int) -> bool:
        """Whether the set says that so many of its machines are ready nodes."""
        stored = await self.cluster.get(SETS, "metal", USER_DATA_NAMESPACE)
        return bool((stored.get("status") or {}).get("readyReplicas") == count)

    async def gone(self) -> None:
        async def none() -> bool:
            return not await self.machines()

        await self.until(none)


@asynccontextmanager
async def running(embedded: Embedded) -> AsyncIterator[Metal]:
    clock, entropy = SystemClock(), SystemEntropy()
    async with Informers(embedded.cluster, clock=clock, entropy=entropy) as informers:
        runner, metal = (
            Runner(machine_api_loops(embedded.cluster, clock), informers, clock, entropy),
            Metal(embedded.cluster),
        )
        async with asyncio.TaskGroup() as tasks:
            work = [tasks.create_task(runner.run()), tasks.create_task(metal.operate())]
            try:
                yield metal
            finally:
                for task in work:
                    task.cancel()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bare_metal, "WAIT_SECONDS", 0.1)


@pytest.mark.row("004-27")
async def test_registered_hosts_are_inspected_and_taken_up_by_whoever_waits_for_one(embedded_server: Embedded) -> None:
    async with running(embedded_server) as metal:
        metal.works = False
        await metal.cluster.create(SETS, machine_set(1))
        for number, name in enumerate(("m-1", "m-2"), 1):
            await metal.cluster.create(HOSTS, host(name, number))

        async def waiting(for_what: str) -> bool:
            (machine,) = await metal.machines() or [{}]
            return (condition(machine, "HostReady") or {}).get("message") == f"no host is free: {for_what}"

        await metal.until(lambda: waiting("2 in state unknown"))
        for state in ("registering", "inspecting"):
            await metal.operator.step()
            await metal.until(lambda state=state: waiting(f"2 in state {state}"))  # type: ignore[misc]
        metal.works = True
        (machine,) = await metal.phases("Provisioned")
        assert metal.operator.states["m-1"][:4] == ["registering", "inspecting", "preparing", "available"]
        inspected = [await metal.host(name) for name in ("m-1", "m-2")]
        assert [each["status"]["hardware"]["nics"][0]["ip"] for each in inspected] == ["192.168.7.1", "192.168.7.2"]
        assert [(each["spec"].get("consumerRef") or {}).get("name") for each in inspected] == [
            machine["metadata"]["name"], None,
        ]  # fmt: skip


async def test_a_set_takes_hosts_in_one_write_and_its_machines_become_nodes(embedded_server: Embedded) -> None:
    async with running(embedded_server) as metal:
        await metal.register("m-1", "m-2")
        await metal.cluster.create(SETS, machine_set(1))
        (machine,) = await metal.phases("Provisioned")
        taken = await metal.host("m-1")
        spec = taken["spec"]
        assert spec["image"] == IMAGE
        assert spec["userData"] == {"name": "worker-user-data-managed", "namespace": USER_DATA_NAMESPACE}
        assert spec["consumerRef"]["name"] == machine["metadata"]["name"]
        assert spec["online"]
        assert machine["metadata"]["annotations"][HOST_OF_MACHINE] == f"{USER_DATA_NAMESPACE}/m-1"
        assert machine["metadata"]["labels"]["machine.openshift.io/cluster-api-cluster"] == "one"
        assert machine["spec"]["providerID"] == provider_id(taken)
        assert {"type": "InternalIP", "address": "192.168.7.1"} in machine["status"]["addresses"]
        assert "consumerRef" not in (await metal.host("m-2"))["spec"]
        assert metal.operator.states["m-1"][-2:] == ["provisioning", "provisioned"]
        await metal.join("node-1", "192.168.7.1")
        (machine,) = await metal.phases("Running")
        assert machine["status"]["nodeRef"]["name"] == "node-1"
        node = await metal.cluster.get(NODE.resource, "node-1")
        assert node["spec"]["providerID"] == provider_id(taken)

        await metal.until(lambda: metal.has_ready(1))


async def test_a_set_counts_its_nodes_as_they_come_fail_recover_and_go(embedded_server: Embedded) -> None:
    async with running(embedded_server) as metal:
        await metal.register("m-1")
        await metal.cluster.create(SETS, machine_set(1))
        await metal.phases("Provisioned")
        await metal.join("node-1", "192.168.7.1")
        await metal.until(lambda: metal.has_ready(1))
        for status, count in (("Unknown", 0), ("True", 1)):
            ready = {"type": "Ready", "status": status, "lastTransitionTime": "2026-01-01T00:00:00Z"}
            patch = {"status": {"conditions": [ready]}}
            await metal.cluster.patch(NODE.resource, "node-1", patch, PatchType.MERGE, "", STATUS)
            await metal.until(lambda count=count: metal.has_ready(count))  # type: ignore[misc]
        await metal.cluster.delete(NODE.resource, "node-1")
        await metal.until(lambda: metal.has_ready(0))


async def test_scaling_down_drains_empties_the_host_and_leaves_it_free_for_the_next(embedded_server: Embedded) -> None:
    async with running(embedded_server) as metal:
        await metal.register("m-1")
        await metal.cluster.create(SETS, machine_set(1))
        (machine,) = await metal.phases("Provisioned")
        await metal.join("node-1", "192.168.7.1")
        await metal.phases("Running")
        pod = {
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default"},
            "spec": {"nodeName": "node-1", "containers": [{"name": "c", "image": "i"}]},
        }  # fmt: skip
        await metal.cluster.create(POD.resource, pod)
        await metal.scale(0)

        async def evicted() -> bool:
            try:
                return bool(
                    (await metal.cluster.get(POD.resource, "p", "default"))["metadata"].get("deletionTimestamp")
                )
            except NotFound:
                return True

        await metal.until(evicted)
        with_pod = await metal.host("m-1")
        if not await _absent(metal.cluster, POD.resource, "p", "default"):
            assert with_pod["spec"]["image"], "the host is not touched while a pod is on it"
            await metal.cluster.delete(POD.resource, "p", "default")
        await metal.gone()
        released = await metal.host("m-1")
        assert not {"image", "userData", "consumerRef"} & {key for key, value in released["spec"].items() if value}
        assert released["spec"]["online"] is False
        assert "deprovisioning" in metal.operator.states["m-1"]
        assert await _absent(metal.cluster, NODE.resource, "node-1", "")
        await metal.scale(1)
        (another,) = await metal.phases("Provisioned")
        assert another["metadata"]["name"] != machine["metadata"]["name"]


async def _absent(cluster: Cluster, resource: Resource, name: str, namespace: str) -> bool:
    try:
        await cluster.get(resource, name, namespace)
    except NotFound:
        return True
    return False


async def test_machines_without_a_host_say_what_keeps_the_hosts_and_take_one_that_becomes_free(
    embedded_server: Embedded,
) -> None:
    async with running(embedded_server) as metal:
        await metal.register("m-1", "m-2")
        note = {"metadata": {"annotations": {PAUSED: ""}}}
        await metal.cluster.patch(HOSTS, "m-2", note, PatchType.MERGE, USER_DATA_NAMESPACE)
        await metal.cluster.create(SETS, machine_set(2))
        machines = await metal.phases("Provisioned", "Provisioning")
        (waiting,) = (machine for machine in machines if machine["status"]["phase"] == "Provisioning")
        assert (condition(waiting, "HostReady") or {})["message"] == "no host is free: 1 in use, 1 paused or detached"
        unpaused = {"metadata": {"annotations": {PAUSED: None}}}
        await metal.cluster.patch(HOSTS, "m-2", unpaused, PatchType.MERGE, USER_DATA_NAMESPACE)
        await metal.phases("Provisioned", "Provisioned")
        consumers = {(await metal.host(name))["spec"]["consumerRef"]["name"] for name in ("m-1", "m-2")}
        assert len(consumers) == 2


async def test_an_error_of_a_host_stands_on_its_machine_until_its_operator_gets_over_it(
    embedded_server: Embedded,
) -> None:
    async with running(embedded_server) as metal:
        await metal.register("m-1")
        metal.operator.failing["m-1"] = "image checksum does not match"
        await metal.cluster.create(SETS, machine_set(1))

        async def told() -> bool:
            (machine,) = await metal.machines() or [{}]
            return "image checksum does not match" in (condition(machine, "HostReady") or {}).get("message", "")

        await metal.until(told)
        (machine,) = await metal.machines()
        assert machine["status"]["phase"] == "Provisioning"
        metal.operator.failing.clear()
        await metal.phases("Provisioned")


async def test_a_paused_host_holds_the_deletion_of_its_machine_and_is_not_touched(embedded_server: Embedded) -> None:
    async with running(embedded_server) as metal:
        await metal.register("m-1")
        await metal.cluster.create(SETS, machine_set(1))
        await metal.phases("Provisioned")
        note = {"metadata": {"annotations": {PAUSED: ""}}}
        paused = await metal.cluster.patch(HOSTS, "m-1", note, PatchType.MERGE, USER_DATA_NAMESPACE)
        await metal.scale(0)

        async def waits() -> bool:
            (machine,) = await metal.machines()
            return "m-1 is paused" in (condition(machine, "HostReady") or {}).get("message", "")

        await metal.until(waits)
        assert (await metal.host("m-1"))["spec"] == paused["spec"]
        await metal.cluster.patch(
            HOSTS, "m-1", {"metadata": {"annotations": {PAUSED: None}}}, PatchType.MERGE, USER_DATA_NAMESPACE
        )
        await metal.gone()


async def test_hooks_of_others_hold_the_drain_and_the_end(embedded_server: Embedded) -> None:
    async with running(embedded_server) as metal:
        await metal.register("m-1")
        await metal.cluster.create(SETS, machine_set(1))
        (machine,) = await metal.phases("Provisioned")
        name = machine["metadata"]["name"]
        hook = {"spec": {"lifecycleHooks": {"preTerminate": [{"name": "backup", "owner": "storage"}]}}}
        await metal.cluster.patch(MACHINES, name, hook, PatchType.MERGE, USER_DATA_NAMESPACE)
        await metal.scale(0)

        async def waits() -> bool:
            (stored,) = await metal.machines()
            return (condition(stored, "HostReady") or {}).get("message") == "backup of storage"

        await metal.until(waits)
        assert (await metal.host("m-1"))["spec"]["image"] == IMAGE
        free = {"spec": {"lifecycleHooks": {"preTerminate": None}}}
        await metal.cluster.patch(MACHINES, name, free, PatchType.MERGE, USER_DATA_NAMESPACE)
        await metal.gone()


async def test_a_machine_whose_host_is_taken_away_fails_and_takes_no_other(embedded_server: Embedded) -> None:
    async with running(embedded_server) as metal:
        await metal.register("m-1", "m-2")
        await metal.cluster.create(SETS, machine_set(1))
        await metal.phases("Provisioned")
        await metal.cluster.delete(HOSTS, "m-1", USER_DATA_NAMESPACE)
        (machine,) = await metal.phases("Failed")
        assert machine["status"]["errorReason"] == "MachineLost"
        assert "consumerRef" not in (await metal.host("m-2"))["spec"]


async def test_a_machine_that_nothing_can_become_fails_with_what_to_correct(embedded_server: Embedded) -> None:
    async with running(embedded_server) as metal:
        await metal.register("m-1")
        await metal.cluster.create(SETS, machine_set(1, provider(image=None)))
        (machine,) = await metal.phases("Failed")
        assert machine["status"]["errorReason"] == "InvalidConfiguration"
        assert "image.url" in machine["status"]["errorMessage"]


async def test_a_set_of_another_provider_is_left_alone_and_says_so(embedded_server: Embedded) -> None:
    async with running(embedded_server) as metal:
        await metal.cluster.create(SETS, machine_set(1, {"kind": "AWSMachineProviderConfig"}))

        async def told() -> Any:
            return condition(await metal.cluster.get(SETS, "metal", USER_DATA_NAMESPACE), "Managed")

        managed = await metal.until(told)
        assert managed["status"] == "False"
        assert managed["message"].startswith("not managed by Fastness: provider aws (AWSMachineProviderConfig)")
        assert await metal.machines() == []


async def test_looking_again_at_a_machine_that_is_settled_writes_nothing(embedded_server: Embedded) -> None:
    async with running(embedded_server) as metal:
        await metal.register("m-1")
        await metal.cluster.create(SETS, machine_set(1))
        await metal.phases("Provisioned")
        await metal.join("node-1", "192.168.7.1")
        (machine,) = await metal.phases("Running")
        metal.works = False
        name = machine["metadata"]["name"]

        async def versions() -> list[str]:
            objects = [await metal.cluster.get(MACHINES, name, USER_DATA_NAMESPACE), await metal.host("m-1"),
                       await metal.cluster.get(NODE.resource, "node-1")]  # fmt: skip
            return [obj["metadata"]["resourceVersion"] for obj in objects]

        before, loop = await versions(), BareMetalMachines(metal.cluster, SystemClock())
        place = object_name(machine)
        for _ in range(2):
            await loop.reconcile(place)
        assert await versions() == before


async def test_where_another_machine_api_operator_works_nothing_is_driven_unless_it_is_adopted(
    embedded_server: Embedded,
) -> None:
    cluster, now = embedded_server.cluster, SystemClock().now()
    labels = {"app": "mao"}
    deployment = {
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "machine-api-operator", "namespace": USER_DATA_NAMESPACE},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}},
    }  # fmt: skip
    assert FAMILY not in await held_back(cluster, (), now)
    await cluster.create(DEPLOYMENT.resource, deployment)
    assert "wants 1 replica" in (await held_back(cluster, (), now))[FAMILY]
    assert FAMILY not in await held_back(cluster, (FAMILY,), now)
    scaled = {"spec": {"replicas": 0}}
    await cluster.patch(DEPLOYMENT.resource, "machine-api-operator", scaled, PatchType.MERGE, USER_DATA_NAMESPACE)
    assert FAMILY not in await held_back(cluster, (), now)
