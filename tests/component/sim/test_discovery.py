"""Feature discovery on virtual hosts: when it is wanted, what is found, and that nothing stays when it is not."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from fastness.kinds.nfd.discovery import NODE_FEATURE_DISCOVERY
from fastness.kinds.nfd.feature import NODE_FEATURE
from fastness.kinds.registry import find
from fastness.runtime.clock import SystemClock
from fastness.sim.discovery import AGAIN_EVERY, Discovery
from fastness.sim.hardware import TEES, Tee
from fastness.sim.inventory import Spec
from fastness.sim.simulation import Simulation
from tests.embedded.fixtures import Embedded

NAMESPACES = find("", "v1", "namespaces").resource
FEATURES, DISCOVERIES = NODE_FEATURE.resource, NODE_FEATURE_DISCOVERY.resource
NS = "openshift-nfd"


@dataclass
class Host:
    """A host that stands somewhere."""

    node: str
    spec: Spec


def host(number: int, tee: Tee) -> Host:
    return Host(f"worker-{number}", Spec(f"worker-{number}", number, tee))


async def elements_of_nodes(embedded: Embedded) -> dict[str, set[str]]:
    """What was found on each node about protected guests."""
    items = (await embedded.cluster.list(FEATURES)).items
    return {
        features["metadata"]["name"]: set(
            features["spec"]["features"]["attributes"].get("cpu.security", {}).get("elements", {})
        )
        for features in items
    }


@pytest.fixture
async def discovering(embedded_server: Embedded) -> Embedded:
    """A cluster that wants discovery."""
    meta = {"name": "nfd-instance", "namespace": NS}
    body = {"apiVersion": "nfd.openshift.io/v1", "kind": "NodeFeatureDiscovery", "metadata": meta, "spec": {}}
    await embedded_server.cluster.create(DISCOVERIES, body)
    return embedded_server


async def test_hosts_are_looked_at_only_while_somebody_wants_it(discovering: Embedded) -> None:
    hosts = [host(0, "tdx"), host(1, "snp"), host(2, "tpm")]
    discovery = Discovery(discovering.cluster, hosts, SystemClock())
    await discovery.look()
    elements = await elements_of_nodes(discovering)
    assert "tdx.enabled" in elements["worker-0"]
    assert "sev.snp.enabled" in elements["worker-1"]
    assert elements["worker-2"] == set()
    await discovering.cluster.delete(DISCOVERIES, "nfd-instance", NS)
    await discovery.look()
    assert await elements_of_nodes(discovering) == {}


async def test_a_host_that_goes_takes_what_was_found_with_it_and_a_new_one_is_looked_at(discovering: Embedded) -> None:
    hosts = [host(0, "tdx")]
    discovery = Discovery(discovering.cluster, hosts, SystemClock())
    await discovery.look()
    hosts[:] = [host(1, "snp")]
    await discovery.look()
    assert set(await elements_of_nodes(discovering)) == {"worker-1"}


async def test_what_somebody_deleted_comes_back(discovering: Embedded) -> None:
    discovery = Discovery(discovering.cluster, [host(0, "tdx")], SystemClock())
    await discovery.look()
    await discovering.cluster.delete(FEATURES, "worker-0", NS)
    for _ in range(AGAIN_EVERY):
        await discovery.look()
    assert set(await elements_of_nodes(discovering)) == {"worker-0"}


def test_hosts_of_containers_are_alike_and_confidential_machines_are_of_all_kinds(tmp_path: Path) -> None:
    kinds = {}
    for profile in ("containers", "cluster"):
        state = tmp_path / profile
        state.mkdir()
        simulation = Simulation(state, profile)
        simulation._grow(3, "", "worker")
        kinds[profile] = [machine.tee for machine in simulation.inventory.machines]
    assert kinds == {"containers": ["tdx"] * 3, "cluster": list(TEES)}
