"""The ControlPlaneMachineSet with real loops: hosts of Metal3 are exchanged one after the other."""

from __future__ import annotations

from typing import Any

import pytest

from fastness.kinds.kind import JsonObject
from fastness.kinds.kubernetes.native import DEPLOYMENT
from fastness.kinds.machineconfiguration.names import USER_DATA_NAMESPACE
from fastness.kinds.objects import condition
from fastness.kinds.openshift.machines import CONTROL_PLANE_MACHINE_SET, FINALIZER, PROVIDER_MACHINE
from fastness.kube.port import PatchType, WriteOptions
from fastness.machineconfig.loops.machines import bare_metal
from fastness.machineconfig.loops.machines.other_machine_api import CONTROL_PLANE_OPERATOR
from fastness.machineconfig.scaling.control_plane import MACHINE_TYPE
from tests.component.machineconfig.test_bare_metal import MACHINES, Metal, provider, running
from tests.embedded.fixtures import Embedded

SETS = CONTROL_PLANE_MACHINE_SET.resource
LABELS = {"role": "master"}
NEWER = {"url": "http://images.example/newer.raw", "checksum": "http://images.example/newer.sha256", "format": "raw"}


def machine(index: int) -> JsonObject:
    return {
        "apiVersion": PROVIDER_MACHINE.api_version, "kind": "Machine",
        "metadata": {"name": f"master-{index}", "namespace": USER_DATA_NAMESPACE, "labels": LABELS, "finalizers": [FINALIZER]},
        "spec": {"providerSpec": {"value": provider()}},
    }  # fmt: skip


def a_set(state: str = "Active", value: JsonObject | None = None) -> JsonObject:
    part = {"metadata": {"labels": LABELS}, "spec": {"providerSpec": {"value": value or provider()}}}
    return {
        "apiVersion": CONTROL_PLANE_MACHINE_SET.api_version, "kind": CONTROL_PLANE_MACHINE_SET.kind,
        "metadata": {"name": "cluster", "namespace": USER_DATA_NAMESPACE},
        "spec": {
            "state": state, "replicas": 3, "selector": {"matchLabels": LABELS},
            "template": {"machineType": MACHINE_TYPE, MACHINE_TYPE: part},
        },
    }  # fmt: skip


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bare_metal, "WAIT_SECONDS", 0.1)


async def says(metal: Metal, kind: str, status: str, words: str) -> None:
    async def told() -> bool:
        entry: Any = condition(await metal.cluster.get(SETS, "cluster", USER_DATA_NAMESPACE), kind) or {}
        return entry.get("status") == status and words in entry.get("message", "")

    await metal.until(told)


async def join_all(metal: Metal, *joined: str) -> None:
    """Every host that is provisioned registers its node, once."""
    for host in await metal.hosts_in("provisioned"):
        name, number = host["metadata"]["name"], int(host["spec"]["bootMACAddress"][-2:], 16)
        if name not in joined:
            await metal.join(f"node-{name}", f"192.168.7.{number}")


async def test_the_control_plane_is_exchanged_one_host_at_a_time(embedded_server: Embedded) -> None:
    async with running(embedded_server) as metal:
        await metal.register("m-1", "m-2", "m-3", "m-4")
        for index in range(3):
            await metal.cluster.create(MACHINES, machine(index))
        await metal.phases("Provisioned", "Provisioned", "Provisioned")
        await join_all(metal)
        await metal.phases("Running", "Running", "Running")
        await metal.cluster.create(SETS, a_set())
        await says(metal, "Available", "True", "3 of 3 are ready")
        changed = {"spec": {"template": a_set(value=provider(image=NEWER))["spec"]["template"]}}
        await metal.cluster.patch(SETS, "cluster", changed, PatchType.MERGE, USER_DATA_NAMESPACE)
        await says(metal, "Progressing", "True", "index 0 is replaced")
        machines = await metal.phases("Running", "Running", "Running", "Provisioned")
        (fresh,) = (each for each in machines if each["status"]["phase"] == "Provisioned")
        assert fresh["metadata"]["name"].endswith("-0")
        hosts = [await metal.host(name) for name in ("m-1", "m-2", "m-3", "m-4")]
        (free,) = (each["metadata"]["name"] for each in hosts if each["spec"].get("image") == NEWER)
        await metal.join(f"node-{free}", f"192.168.7.{free[-1]}")

        async def replaced() -> bool:
            return "master-0" not in [each["metadata"]["name"] for each in await metal.machines()]

        await metal.until(replaced)
        assert fresh["metadata"]["name"] in [each["metadata"]["name"] for each in await metal.machines()]
        await says(metal, "Progressing", "True", "index 1 is replaced")


async def test_a_set_that_is_not_active_or_has_no_machines_makes_none_and_says_so(embedded_server: Embedded) -> None:
    async with running(embedded_server) as metal:
        await metal.register("m-1")
        await metal.cluster.create(SETS, a_set("Inactive"))
        await says(metal, "Progressing", "False", "spec.state is Inactive")
        await metal.cluster.patch(SETS, "cluster", {"spec": {"state": "Active"}}, PatchType.MERGE, USER_DATA_NAMESPACE)
        await says(metal, "Degraded", "True", "was not made of Machines")
        other = {"spec": {"template": a_set(value={"kind": "PowerVSMachineProviderConfig"})["spec"]["template"]}}
        await metal.cluster.patch(SETS, "cluster", other, PatchType.MERGE, USER_DATA_NAMESPACE)
        await says(metal, "Degraded", "True", "not managed by Fastness: provider powervs")
        assert await metal.machines() == []


AWS_SHAPE = {"kind": "AWSMachineProviderConfig", "instanceType": "m", "placement": {"region": "eu"}}


def aws_set(*zones: str, shape: JsonObject | None = None) -> JsonObject:
    machine_set = a_set(value=shape or AWS_SHAPE)
    domains = [{"placement": {"availabilityZone": zone}} for zone in zones]
    machine_set["spec"]["template"][MACHINE_TYPE]["failureDomains"] = {"platform": "AWS", "aws": domains}
    return machine_set


def aws_machine(index: int, zone: str) -> JsonObject:
    value = {**AWS_SHAPE, "placement": {"region": "eu", "availabilityZone": zone}}
    return {**machine(index), "spec": {"providerSpec": {"value": value}}}


async def play_the_cloud(metal: Metal) -> None:
    """What the provider's controllers do: every Machine becomes a node, and goes when it is deleted."""
    for each in await metal.machines():
        name = each["metadata"]["name"]
        if each["metadata"].get("deletionTimestamp"):
            await metal.cluster.patch(
                MACHINES, name, {"metadata": {"finalizers": None}}, PatchType.MERGE, USER_DATA_NAMESPACE
            )
        elif not (each.get("status") or {}).get("nodeRef"):
            await metal.join(f"node-{name}", f"10.9.0.{len(name)}")
            status = {"status": {"nodeRef": {"kind": "Node", "name": f"node-{name}"}}}
            await metal.cluster.patch(
                MACHINES, name, status, PatchType.MERGE, USER_DATA_NAMESPACE, WriteOptions(subresource="status")
            )


async def test_a_control_plane_of_a_cloud_is_spread_over_its_failure_domains(embedded_server: Embedded) -> None:
    async with running(embedded_server) as metal:
        for index, zone in enumerate("aab"):
            await metal.cluster.create(MACHINES, aws_machine(index, zone))
        await play_the_cloud(metal)
        await metal.cluster.create(SETS, aws_set("a", "b", "c"))
        await says(metal, "Progressing", "True", "index 1 is replaced in failure domain c")

        async def spread_over(*zones: str) -> bool:
            await play_the_cloud(metal)
            places = [each["spec"]["providerSpec"]["value"]["placement"] for each in await metal.machines()]
            return sorted(place["availabilityZone"] for place in places) == sorted(zones)

        await metal.until(lambda: spread_over("a", "b", "c"))
        await says(metal, "Progressing", "False", "")
        bigger = {"spec": aws_set("a", "b", "c", shape={**AWS_SHAPE, "instanceType": "xl"})["spec"]}
        await metal.cluster.patch(SETS, "cluster", bigger, PatchType.MERGE, USER_DATA_NAMESPACE)

        async def all_bigger() -> bool:
            await play_the_cloud(metal)
            values = [each["spec"]["providerSpec"]["value"] for each in await metal.machines()]
            return len(values) == 3 and {value["instanceType"] for value in values} == {"xl"}

        await metal.until(all_bigger)
        assert await spread_over("a", "b", "c"), "each was replaced in its own domain"


def operator_deployment(name: str) -> JsonObject:
    labels = {"app": name}
    pod = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "c", "image": "registry.example/operator"}]},
    }
    return {
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": USER_DATA_NAMESPACE},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": pod},
    }  # fmt: skip


async def test_a_set_that_another_operator_follows_is_left_to_it(embedded_server: Embedded) -> None:
    async with running(embedded_server) as metal:
        for index, zone in enumerate("aab"):
            await metal.cluster.create(MACHINES, aws_machine(index, zone))
        await metal.cluster.create(DEPLOYMENT.resource, operator_deployment(CONTROL_PLANE_OPERATOR))
        await metal.cluster.create(SETS, aws_set("a", "b", "c"))
        await says(metal, "Progressing", "False", f"{CONTROL_PLANE_OPERATOR} wants 1 replica")
        assert len(await metal.machines()) == 3
        elsewhere = {"spec": aws_set("a", "b", shape={"kind": "GCPMachineProviderSpec"})["spec"]}
        await metal.cluster.patch(SETS, "cluster", elsewhere, PatchType.MERGE, USER_DATA_NAMESPACE)
        await says(metal, "Degraded", "True", "domains of AWS cannot be written into a GCPMachineProviderSpec")
