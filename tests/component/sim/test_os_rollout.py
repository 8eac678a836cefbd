"""OS images in a simulated cluster: an override goes out node by node, is taken back, and no status is ahead of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fastness.agent.host.memory_os import MemoryOs
from fastness.agent.host.states import Deployment
from fastness.app.embedded import ControlPlane, PlaneOptions, running
from fastness.attestation.values.from_images import MEASUREMENTS
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.kind import JsonObject
from fastness.kinds.kubernetes.core import NODE
from fastness.kinds.machineconfiguration import names
from fastness.kinds.machineconfiguration.config import MACHINE_CONFIG
from fastness.kinds.machineconfiguration.pool import MACHINE_CONFIG_POOL
from fastness.kinds.objects import annotations_of, condition
from fastness.kinds.trusted_execution.approvals import APPROVED_IMAGE
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.errors import NotFound
from fastness.kube.port import PatchType
from fastness.sim.hardware import Conditions
from fastness.sim.machines import VirtualMachine
from fastness.sim.registry import REPOSITORY, SimRegistry
from tests.patience import PATIENCE


class Workers:
    """The worker pool of a simulated cluster, looked at from outside and on the disks of its machines."""

    def __init__(self, plane: ControlPlane, count: int) -> None:
        self.count = count
        self.cluster = plane.server.cluster
        assert plane.simulated is not None
        self.simulation = plane.simulated.simulation
        self.registry: SimRegistry = self.simulation.registry
        self.most_at_once = 0
        self.lies: list[str] = []

    async def override(self, image: str) -> None:
        config: JsonObject = {
            "apiVersion": names.API_VERSION, "kind": "MachineConfig",
            "metadata": {"name": "99-os", "labels": {names.ROLE_LABEL: "worker"}}, "spec": {"osImageURL": image},
        }  # fmt: skip
        await self.cluster.create(MACHINE_CONFIG.resource, config)

    async def take_back(self) -> None:
        await self.cluster.delete(MACHINE_CONFIG.resource, "99-os")

    def booted(self) -> set[str]:
        context = self.simulation._open
        return {machine.machine.system.booted().image for machine in context.machines}

    async def pool(self) -> JsonObject:
        return await self.cluster.get(MACHINE_CONFIG_POOL.resource, "worker")

    async def nodes(self) -> list[dict[str, str]]:
        return [dict(annotations_of(node)) for node in (await self.cluster.list(NODE.resource)).items]

    async def look(self) -> None:
        """Every node that says Done has booted what its config asks for, and is told so truly."""
        moving = 0
        for node in (await self.cluster.list(NODE.resource)).items:
            notes = annotations_of(node)
            moving += notes.get(names.STATE) == "Working"
            machine = next(entry for entry in self.simulation._open.machines if entry.node == node["metadata"]["name"])
            config = notes.get(names.CURRENT_CONFIG, "")
            if notes.get(names.STATE) != "Done" or notes.get(names.DESIRED_CONFIG) != config or not config:
                continue
            spec = (await self.cluster.get(MACHINE_CONFIG.resource, config))["spec"]
            goal = spec.get("osImageURL") or self.registry.installed
            if machine.machine.system.booted().image.partition("@")[2] != goal.partition("@")[2]:
                self.lies.append(f"{machine.name} says that it has {config}")
        self.most_at_once = max(self.most_at_once, moving)

    async def until(self, holds: Callable[[], Awaitable[bool]]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not await holds():
                await self.look()
                await asyncio.sleep(0.02)

    async def updated(self, *, sources: bool) -> bool:
        """Whether all machines are updated to a config that is made of the override, or not."""
        try:
            pool = await self.pool()
        except NotFound:
            return False
        status, target = pool.get("status") or {}, pool["spec"].get("configuration") or {}
        listed = any(source["name"] == "99-os" for source in target.get("source") or ())
        good = (condition(pool, "Updated") or {}).get("status") == "True"
        arrived = (status.get("configuration") or {}).get("name") == target.get("name")
        return listed is sources and good and arrived and status.get("updatedMachineCount") == self.count

    async def degraded(self, kind: str) -> str:
        entry = condition(await self.pool(), kind) or {}
        return str(entry.get("message")) if entry.get("status") == "True" else ""


@asynccontextmanager
async def workers(directory: Path, count: int, profile: str = "containers") -> AsyncIterator[Workers]:
    """Machines that have joined and run what they were installed with."""
    async with running(PlaneOptions(directory / "state", machines=count, profile=profile)) as plane:
        fleet = Workers(plane, count)
        await fleet.until(lambda: fleet.updated(sources=False))
        yield fleet


@pytest.mark.row("003-18")
@pytest.mark.row("003-71")
async def test_an_override_goes_out_one_by_one_and_taking_it_back_brings_the_base_image_back(tmp_path: Path) -> None:
    async with workers(tmp_path, 3) as fleet:
        base = fleet.registry.installed
        assert fleet.booted() == {base}
        new = fleet.registry.push("43.0").reference
        await fleet.override(new)
        await fleet.until(lambda: fleet.updated(sources=True))
        assert fleet.booted() == {new}
        assert {notes[names.BOOTED_IMAGE] for notes in await fleet.nodes()} == {new}
        assert {notes[names.BASE_IMAGE] for notes in await fleet.nodes()} == {base}
        await fleet.take_back()
        await fleet.until(lambda: fleet.updated(sources=False))
        assert fleet.booted() == {base}
        # An image that no registry has: the first node says why and keeps its own, and the others are not even sent.
        missing = f"{REPOSITORY}@sha256:{'d' * 64}"
        await fleet.override(missing)

        async def reported() -> bool:
            return missing in await fleet.degraded("NodeDegraded")

        await fleet.until(reported)
        assert "no such manifest" in await fleet.degraded("NodeDegraded")
        assert (await fleet.pool())["status"]["degradedMachineCount"] == 1
        assert fleet.booted() == {base}
        await fleet.take_back()
        await fleet.until(lambda: fleet.updated(sources=False))
    assert fleet.most_at_once == 1
    assert fleet.lies == []


async def test_a_machine_that_is_rebooted_boots_what_was_staged_and_one_whose_plug_is_pulled_does_not(
    tmp_path: Path,
) -> None:
    async with workers(tmp_path, 1) as fleet:
        (machine,) = fleet.simulation._open.machines
        system, new = machine.machine.system, fleet.registry.push("43.0").reference
        in_order: list[tuple[str, str]] = []
        unplugged: list[tuple[str, str]] = []

        def noted(boot: Callable[[], None], boots: list[tuple[str, str]]) -> Callable[[], None]:
            def booting() -> None:
                # Whatever the agent staged or discarded since: what counts is what was staged when the power went.
                system.stage(Deployment(new))
                before = system.booted().image
                boot()
                boots.append((before, system.booted().image))

            return booting

        machine.machine.reboot = noted(machine.machine.reboot, in_order)  # type: ignore[method-assign]
        machine.machine.power_cut = noted(machine.machine.power_cut, unplugged)  # type: ignore[method-assign]
        base = system.booted().image
        machine.switch()

        async def lost_power() -> bool:
            return bool(unplugged)

        async def went_down() -> bool:
            # Asked for again: a machine that is still on its way up from the power cut goes on as it does.
            await fleet.simulation.reboot(machine.name)
            return bool(in_order)

        await fleet.until(lost_power)
        assert unplugged[0] == (base, base)
        await fleet.until(went_down)
        assert in_order[0] == (base, new)


async def test_a_tag_is_resolved_once_and_means_the_same_until_somebody_names_another(tmp_path: Path) -> None:
    async with workers(tmp_path, 1) as fleet:
        tagged = f"{REPOSITORY}:44.0"
        await fleet.override(tagged)

        async def unknown() -> bool:
            return "44.0 cannot be pulled" in await fleet.degraded("RenderDegraded")

        await fleet.until(unknown)
        await fleet.take_back()
        await fleet.until(lambda: fleet.updated(sources=False))
        image = fleet.registry.push("44.0").reference
        await fleet.override(tagged)
        await fleet.until(lambda: fleet.updated(sources=True))
        assert fleet.booted() == {image}
        target = (await fleet.pool())["spec"]["configuration"]["name"]
        config = await fleet.cluster.get(MACHINE_CONFIG.resource, target)
        assert config["spec"]["osImageURL"] == image
        assert annotations_of(config)[names.RESOLVED_FROM] == tagged
        # Gone from the registry, the tag still means what it was resolved to: nothing is asked again.
        fleet.registry.withdraw("44.0")
        more: JsonObject = {
            "apiVersion": names.API_VERSION, "kind": "MachineConfig",
            "metadata": {"name": "98-more", "labels": {names.ROLE_LABEL: "worker"}},
            "spec": {"config": {"ignition": {"version": "3.4.0"}, "storage": {
                "files": [{"path": "/etc/more", "contents": {"source": "data:,x"}}]}}},
        }  # fmt: skip
        await fleet.cluster.create(MACHINE_CONFIG.resource, more)

        async def rendered_again() -> bool:
            return bool((await fleet.pool())["spec"]["configuration"]["name"] != target)

        await fleet.until(rendered_again)
        name = (await fleet.pool())["spec"]["configuration"]["name"]
        assert (await fleet.cluster.get(MACHINE_CONFIG.resource, name))["spec"]["osImageURL"] == image
    assert fleet.lies == []


@pytest.mark.row("003-09")
async def test_a_pool_with_a_node_that_drifted_goes_back_when_the_config_is_deleted(tmp_path: Path) -> None:
    async with workers(tmp_path, 2) as fleet:
        files = [{"path": path, "contents": {"source": "data:,x"}} for path in ("/etc/one", "/etc/two")]
        ignition = {"ignition": {"version": "3.4.0"}, "storage": {"files": files}}
        config: JsonObject = {
            "apiVersion": names.API_VERSION, "kind": "MachineConfig",
            "metadata": {"name": "99-os", "labels": {names.ROLE_LABEL: "worker"}}, "spec": {"config": ignition},
        }  # fmt: skip
        await fleet.cluster.create(MACHINE_CONFIG.resource, config)
        await fleet.until(lambda: fleet.updated(sources=True))
        drifted = next(iter(fleet.simulation._open.machines)).machine.root
        (drifted / "etc/one").write_text("by hand")

        async def reported() -> bool:
            return "/etc/one" in await fleet.degraded("NodeDegraded")

        await fleet.until(reported)
        await fleet.take_back()
        await fleet.until(lambda: fleet.updated(sources=False))
        assert not (drifted / "etc/one").exists()
        assert await fleet.degraded("NodeDegraded") == ""
    assert fleet.lies == []


async def waiting_for(fleet: Workers, image: str) -> bool:
    message = str((condition(await fleet.pool(), "Updating") or {}).get("message"))
    return image in message and "waiting" in message


async def approve(fleet: Workers, image: str) -> None:
    approval: JsonObject = {
        "apiVersion": APPROVED_IMAGE.api_version, "kind": APPROVED_IMAGE.kind,
        "metadata": {
            "name": "next", "namespace": NAMESPACE, "annotations": {MEASUREMENTS: await fleet.simulation.manifest(image)},
        },
        "spec": {"image": image},
    }  # fmt: skip
    await fleet.cluster.create(APPROVED_IMAGE.resource, approval)


async def test_machines_that_prove_themselves_wait_for_an_approval_and_then_prove_the_new_image(tmp_path: Path) -> None:
    async with workers(tmp_path, 2, "cluster") as fleet:
        new = fleet.registry.push("43.0").reference
        await fleet.override(new)
        await fleet.until(lambda: waiting_for(fleet, new))
        assert fleet.booted() == {fleet.registry.installed}
        await approve(fleet, new)
        await fleet.until(lambda: fleet.updated(sources=True))
        assert fleet.booted() == {new}
        machines = (await fleet.cluster.list(MACHINE.resource)).items
        assert [(condition(machine, "Attested") or {}).get("status") for machine in machines] == ["True"] * fleet.count
    assert fleet.most_at_once == 1
    assert fleet.lies == []


@pytest.mark.row("003-72")
async def test_a_machine_that_does_not_attest_with_a_new_image_goes_back_alone_and_no_other_follows(
    tmp_path: Path,
) -> None:
    async with workers(tmp_path, 2, "cluster") as fleet:
        base, new = fleet.registry.installed, fleet.registry.push("43.0").reference
        tried: set[str] = set()
        for machine in fleet.simulation._open.machines:

            def measured(machine: VirtualMachine = machine) -> Conditions:
                if machine.machine.system.booted().image != new:
                    return machine.conditions
                tried.add(machine.name)
                return replace(machine.conditions, boot_loader=True, version="43.0")

            machine._booting = measured  # type: ignore[method-assign]
        await approve(fleet, new)
        await fleet.override(new)

        async def reported() -> bool:
            return "came up with" in await fleet.degraded("NodeDegraded")

        await fleet.until(reported)
        assert "was refused" in await fleet.degraded("NodeDegraded")
        await fleet.until(lambda: all_attested(fleet))
        assert fleet.booted() == {base}
        assert len(tried) == 1
        await fleet.take_back()
        await fleet.until(lambda: fleet.updated(sources=False))
        assert len(tried) == 1
    assert fleet.lies == []


@pytest.mark.row("003-72")
async def test_an_image_that_does_not_come_up_is_left_by_the_first_machine_and_no_other_tries_it(
    tmp_path: Path,
) -> None:
    async with workers(tmp_path, 2, "containers") as fleet:
        base, new = fleet.registry.installed, fleet.registry.push("43.0").reference
        tried: list[str] = []
        for machine in fleet.simulation._open.machines:
            system = machine.machine.system

            def boot(name: str = machine.name, system: MemoryOs = system, comes_up: Any = system.reboot) -> None:
                staged = system.staged()
                if staged is None or staged.image != new:
                    comes_up()
                else:
                    tried.append(name)
                    system.power_cut()  # as a boot loader does that counts: the entry of before is next

            system.reboot = boot  # type: ignore[method-assign]
        await fleet.override(new)

        async def reported() -> bool:
            return "did not bring it" in await fleet.degraded("NodeDegraded")

        await fleet.until(reported)
        assert f"booted {base}, expected {new}" in await fleet.degraded("NodeDegraded")
        assert fleet.booted() == {base}
        await fleet.take_back()
        await fleet.until(lambda: fleet.updated(sources=False))
        assert len(tried) == 1, "not twice, and nobody else"
    assert fleet.lies == []


async def all_attested(fleet: Workers) -> bool:
    machines = (await fleet.cluster.list(MACHINE.resource)).items
    return [(condition(machine, "Attested") or {}).get("status") for machine in machines] == ["True"] * fleet.count


INFRA = "infra"


async def add_infra(fleet: Workers) -> None:
    """A custom pool with one machine of its own."""
    roles = {"matchExpressions": [{"key": names.ROLE_LABEL, "operator": "In", "values": ["worker", INFRA]}]}
    spec = {"machineConfigSelector": roles, "nodeSelector": {"matchLabels": {f"{names.NODE_ROLE_PREFIX}{INFRA}": ""}}}
    body = {"apiVersion": names.API_VERSION, "kind": "MachineConfigPool", "metadata": {"name": INFRA}, "spec": spec}
    await fleet.cluster.create(MACHINE_CONFIG_POOL.resource, body)
    await fleet.simulation.add(1, pool=INFRA)


async def infra_at(fleet: Workers, image: str) -> bool:
    """Whether the machine of the custom pool has what its pool wants, and booted this image."""
    pool = await fleet.cluster.get(MACHINE_CONFIG_POOL.resource, INFRA)
    status, target = pool.get("status") or {}, (pool["spec"].get("configuration") or {}).get("name")
    arrived = bool(target) and (status.get("configuration") or {}).get("name") == target
    updated = (condition(pool, "Updated") or {}).get("status") == "True" and status.get("updatedMachineCount") == 1
    booted = [each.machine.system.booted().image for each in fleet.simulation._open.machines if each.spec.pool == INFRA]
    return arrived and updated and booted == [image]


async def test_an_approved_image_goes_through_one_pool_after_the_other_and_is_proved_in_each(tmp_path: Path) -> None:
    async with workers(tmp_path, 2, "cluster") as fleet:
        base = fleet.registry.installed
        await add_infra(fleet)
        await fleet.until(lambda: infra_at(fleet, base))
        await fleet.cluster.patch(MACHINE_CONFIG_POOL.resource, INFRA, {"spec": {"paused": True}}, PatchType.MERGE)
        new = fleet.registry.push("43.0").reference
        await fleet.override(new)
        await fleet.until(lambda: waiting_for(fleet, new))
        assert fleet.booted() == {base}, "no machine goes before the approval"
        await approve(fleet, new)
        await fleet.until(lambda: fleet.updated(sources=True))
        assert fleet.booted() == {base, new}, "the pool that its administrator holds back stays"
        await fleet.cluster.patch(MACHINE_CONFIG_POOL.resource, INFRA, {"spec": {"paused": False}}, PatchType.MERGE)
        await fleet.until(lambda: infra_at(fleet, new))
        assert fleet.booted() == {new}
        machines = (await fleet.cluster.list(MACHINE.resource)).items
        assert [(condition(machine, "Attested") or {}).get("status") for machine in machines] == ["True"] * 3
    assert fleet.lies == []
