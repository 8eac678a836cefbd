"""Enforcing means day two as well, on a real kube-apiserver: who gets a new configuration, how, and who does not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fastness.agent.boot.configs import ConfigRefused
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.machineconfiguration import names
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.errors import Forbidden
from fastness.kube.port import PatchType
from fastness.protocol.machine_names import machine_of_node
from fastness.sim.machines import VirtualMachine
from tests.e2e.machineconfig.enforcing import (
    CONFIGS,
    NODES,
    PLAIN,
    Enforcing,
    ask_gate,
    enforcing,
    report_on_failure,
    until,
)
from tests.realkube import RealKube

STRANGER, ORDINARY = "stranger", "plain-1"


@pytest.fixture
def fresh_kube(real_kube_binaries: Path, tmp_path: Path) -> Iterator[RealKube]:
    """A server of its own for each try: what a first one left would change what a second one sees."""
    with RealKube.start(tmp_path / "kube", real_kube_binaries, unsafe_no_fsync=True) as kube:
        yield kube


@pytest.mark.long("a real Kubernetes with every role, and machines that are drained and rebooted")
async def test_day_two_of_an_enforcing_cluster_takes_the_doors_on_a_real_api_server(
    fresh_kube: RealKube, tmp_path: Path
) -> None:
    async with enforcing(fresh_kube, tmp_path) as world, report_on_failure(world):
        first, second = world.machines
        await until(lambda: _run(world.machines), "two machines that attested and run")
        before = await world.goal(names.WORKER)
        for machine in world.machines:
            await world.arrived(machine.node, before)
        await world.node(STRANGER, names.WORKER)
        root = await world.ordinary(ORDINARY)

        goal = await world.change(names.WORKER, "one")
        await _reaches_attested_machines_through_the_gate(world, goal)
        await _gives_nothing_to_a_node_that_never_attested(world, before, goal)
        await _shows_no_config_to_the_credential_of_a_node(world, first.node, goal)
        await _serves_a_node_of_a_pool_without_attestation_on_22624(world, root)
        await _gives_nothing_to_a_machine_in_quarantine(world, first, second, goal)


async def _run(machines: list[VirtualMachine]) -> bool:
    return all(machine.running for machine in machines)


async def _reaches_attested_machines_through_the_gate(world: Enforcing, goal: str) -> None:
    for machine in world.machines:
        await world.arrived(machine.node, goal)
        assert (machine.machine.root / "etc/day-two").read_text() == "one"
    released = [entry for entry in await world.recorded("release") if entry["detail"].get("config") == goal]
    thumbprints = {entry["who"] for entry in released}
    assert len(thumbprints) == len(world.machines)
    for entry in released:
        assert (entry["door"].split("-")[0], entry["detail"]["basis"]) == ("gate", "verdict")
        assert entry["grant"]
        assert entry["verdict"]


async def _gives_nothing_to_a_node_that_never_attested(world: Enforcing, before: str, goal: str) -> None:
    notes = await world.notes(STRANGER)
    assert (notes[names.DESIRED_CONFIG], notes[names.CURRENT_CONFIG]) == (before, before)
    # Whoever has its credential writes its annotations as it likes, and asks everywhere.
    itself = world.as_node(STRANGER)
    forged = {"metadata": {"annotations": {names.DESIRED_CONFIG: goal}}}
    await itself.patch(NODES, STRANGER, forged, PatchType.MERGE)
    with pytest.raises(ConfigRefused, match="attestation-required"):
        await world.node_configs(STRANGER).fetch(goal)
    with pytest.raises(Forbidden):
        await itself.get(CONFIGS, goal)
    answer = await ask_gate(world, f"/config/{names.WORKER}?rendered={goal}", world.credential(STRANGER))
    assert (answer.status_code, answer.json()["code"]) == (401, "token-required")
    assert not [entry for entry in await world.recorded("release") if entry["who"] == f"system:node:{STRANGER}"]


async def _shows_no_config_to_the_credential_of_a_node(world: Enforcing, node: str, goal: str) -> None:
    """Not even to an attested one: RBAC cannot tell pools apart."""
    for name in (node, ORDINARY):
        itself = world.as_node(name)
        assert (await itself.get(NODES, name))["metadata"]["name"] == name
        with pytest.raises(Forbidden):
            await itself.get(CONFIGS, goal)
        with pytest.raises(Forbidden):
            await itself.list(CONFIGS)


async def _serves_a_node_of_a_pool_without_attestation_on_22624(world: Enforcing, root: Path) -> None:
    goal = await world.change(PLAIN, "two")
    await world.arrived(ORDINARY, goal)
    assert (root / "etc/day-two").read_text() == "two"
    released = [entry for entry in await world.recorded("release") if entry["who"] == f"system:node:{ORDINARY}"]
    assert goal in {entry["detail"]["config"] for entry in released}
    for entry in released:
        assert (entry["door"].split("-")[0], entry["detail"]["basis"]) == ("configserver", "node-certificate")
        assert entry["detail"]["certificate"].startswith("sha256:")


async def _gives_nothing_to_a_machine_in_quarantine(
    world: Enforcing, barred: VirtualMachine, other: VirtualMachine, before: str
) -> None:
    name = machine_of_node(barred.node)
    await world.admin.patch(MACHINE.resource, name, {"spec": {"approval": "Quarantined"}}, PatchType.MERGE, NAMESPACE)
    goal = await world.change(names.WORKER, "three")
    await world.arrived(other.node, goal)
    configs = barred._configs()
    assert configs is not None
    for config in (goal, before):
        with pytest.raises(ConfigRefused):
            await configs.fetch(config)
    with pytest.raises(ConfigRefused, match=r"attestation-required|revoked"):
        await world.node_configs(barred.node).fetch(goal)
    assert (await world.notes(barred.node))[names.CURRENT_CONFIG] == before
    assert (barred.machine.root / "etc/day-two").read_text() == "one"
    released = [entry for entry in await world.recorded("release") if entry["detail"].get("config") == goal]
    assert len({entry["who"] for entry in released}) == 1
