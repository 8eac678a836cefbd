"""Seed 000, scaling up: a machine that is new has the configuration of its pool from its first boot."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.acceptance.cluster import GROUP, Acceptance, a_file, machine_config
from tests.patience import eventually

POOL = "infra"
FILE = "/etc/infra-alone"


@pytest.fixture
def infra(cluster: Acceptance) -> Iterator[str]:
    """A custom pool, as its documentation has a user write it, and a config of its own; taken away afterwards."""
    roles = {"key": f"{GROUP}/role", "operator": "In", "values": ["worker", POOL]}
    cluster.apply(
        {
            "apiVersion": f"{GROUP}/v1",
            "kind": "MachineConfigPool",
            "metadata": {"name": POOL},
            "spec": {
                "machineConfigSelector": {"matchExpressions": [roles]},
                "nodeSelector": {"matchLabels": {f"node-role.kubernetes.io/{POOL}": ""}},
            },
        }
    )
    cluster.apply(machine_config("50-infra", POOL, a_file(FILE, "infra")))
    eventually(
        lambda: (
            "50-infra" in [source["name"] for source in cluster.get("mcp", POOL)["spec"]["configuration"]["source"]]
            if cluster.rendered(POOL)
            else False
        ),
        "a rendered config with 50-infra",
    )
    yield POOL
    cluster.kubectl("delete", "mc", "50-infra")
    cluster.kubectl("delete", "mcp", POOL)


@pytest.mark.row("000-40")
def test_a_machine_of_a_custom_pool_boots_into_that_pool(cluster: Acceptance, infra: str) -> None:
    rendered = cluster.rendered(infra)
    added = cluster.fastness("sim", "add", "--state", str(cluster.live.state), "--pool", infra)
    assert added.code == 0, added.err
    name = added.out.split()[0]
    eventually(
        lambda: cluster.updated(infra) and cluster.get("mcp", infra)["status"]["machineCount"] == 1, "the pool's node"
    )
    machine = next(each for each in cluster.get("machines", "-A")["items"] if each["status"]["pool"] == infra)
    node = cluster.get("node", machine["status"]["nodeName"])
    notes = node["metadata"]["annotations"]
    # What it booted with, not what an update brought: the first config that a machine has is on record as its pivot.
    assert notes[f"{GROUP}/firstPivotConfig"] == notes[f"{GROUP}/currentConfig"] == rendered
    assert f"node-role.kubernetes.io/{infra}" in node["metadata"]["labels"]
    assert {root.parent.name for root in cluster.roots() if (root / FILE.lstrip("/")).exists()} == {name}
    removed = cluster.fastness("sim", "remove", "--state", str(cluster.live.state), name)
    assert removed.code == 0, removed.err


def test_a_machine_of_a_pool_that_does_not_exist_is_refused_with_those_that_do(cluster: Acceptance) -> None:
    refused = cluster.fastness("sim", "add", "--state", str(cluster.live.state), "--pool", "infro")
    assert refused.code != 0
    assert "there is no pool 'infro': choose one of master, worker" in refused.err


NAMESPACE = "openshift-machine-api"
PROVIDER = {
    "apiVersion": "fastness.dev/v1alpha1",
    "kind": "VirtualMachineProviderSpec",
    "userDataSecret": {"name": "worker-user-data-managed"},
}


def scale(cluster: Acceptance, name: str, replicas: int) -> None:
    cluster.kubectl("scale", "machineset", name, "-n", NAMESPACE, f"--replicas={replicas}")


def machines_of(cluster: Acceptance, name: str) -> list[dict[str, Any]]:
    items = cluster.get("machines.machine.openshift.io", "-n", NAMESPACE).get("items", [])
    return [item for item in items if any(o["name"] == name for o in item["metadata"].get("ownerReferences", []))]


def phases(cluster: Acceptance, name: str) -> set[str]:
    """How far the machines of a set are."""
    return {machine.get("status", {}).get("phase", "") for machine in machines_of(cluster, name)}


def disks(cluster: Acceptance) -> set[str]:
    """The machines that have something on a disk."""
    return {place.name for place in (cluster.live.state / "machines").iterdir()}


@pytest.mark.row("000-36")
def test_scaling_a_machine_set_boots_machines_and_scaling_down_takes_them_away(cluster: Acceptance) -> None:
    before, disks_before = set(cluster.ready()), disks(cluster)
    scale(cluster, "worker-a", cluster.workers + 2)
    eventually(lambda: len(cluster.ready()) == cluster.workers + 2 and cluster.updated(), "two more nodes")
    eventually(lambda: phases(cluster, "worker-a") == {"Running"}, "machines that say so")
    machines = machines_of(cluster, "worker-a")
    assert {machine["status"]["nodeRef"]["name"] for machine in machines} == set(cluster.ready())
    counts = [str(cluster.workers + 2)] * 4
    eventually(
        lambda: cluster.kubectl("get", "machineset", "worker-a", "-n", NAMESPACE).rows[1][1:5] == counts,
        "a set that counts them",
    )
    # The new ones are those that go: the first are marked by nobody and have nodes too, so a person says which.
    for machine in machines:
        if machine["status"]["nodeRef"]["name"] not in before:
            name = machine["metadata"]["name"]
            note = "machine.openshift.io/delete-machine=true"
            cluster.kubectl("annotate", "machines.machine.openshift.io", name, "-n", NAMESPACE, note)
    scale(cluster, "worker-a", cluster.workers)
    eventually(
        lambda: set(cluster.ready()) == before and len(machines_of(cluster, "worker-a")) == cluster.workers, "two gone"
    )
    proved = cluster.get("machines.trusted-execution-clusters.io", "-A")["items"]
    assert {machine["status"]["nodeName"] for machine in proved} == before
    eventually(lambda: disks(cluster) == disks_before, "nothing that is left of what the machines had on their disks")


def names_in_simulation(cluster: Acceptance) -> set[str]:
    """The virtual machines, by the names that they have there."""
    listed = cluster.fastness("sim", "list", "--state", str(cluster.live.state), "-o", "json")
    return {str(entry["name"]) for entry in listed.json["machines"]}


def proved(cluster: Acceptance, state: str) -> list[dict[str, Any]]:
    """What `fastness machine list` says of the machines in a state."""
    listed = cluster.fastness("machine", "list", "-o", "json")
    return [entry for entry in listed.json if entry["state"] == state]


@pytest.mark.row("000-47")
@pytest.mark.row("000-57")
def test_who_boots_something_else_before_the_approval_scales_nothing_up_and_the_reason_is_everywhere(
    cluster: Acceptance,
) -> None:
    state = ("--state", str(cluster.live.state))
    before, others = set(cluster.ready()), names_in_simulation(cluster)
    cluster.confirm(join={"approval": "Manual"})
    scale(cluster, "worker-a", cluster.workers + 1)
    eventually(lambda: proved(cluster, "Pending"), "a machine that waits for its approval")
    (waiting,) = proved(cluster, "Pending")
    (name,) = names_in_simulation(cluster) - others
    assert cluster.fastness("sim", "tamper", name, "changed-boot-loader", *state).code == 0
    assert cluster.fastness("machine", "approve", waiting["name"]).code == 0

    def machine() -> dict[str, Any]:
        return cluster.get("machines.trusted-execution-clusters.io", waiting["name"], "-n", "fastness-system")

    eventually(lambda: machine()["status"].get("standingReason") == "ValueDiffers", "the reason at the machine")
    eventually(
        lambda: any(
            event["involvedObject"]["name"] == waiting["name"] and "value-differs" in event["message"]
            for event in cluster.events("Refused")
        ),
        "the event",
    )

    def recorded() -> list[dict[str, Any]]:
        who = machine()["status"]["keyThumbprint"]
        return list(cluster.fastness("audit", "show", "--who", who, "-o", "json").json)

    eventually(lambda: any(entry["what"] == "refusal" and "verdict" in entry for entry in recorded()), "the record")
    assert not [entry for entry in recorded() if entry["what"] in ("release", "join")]
    console = cluster.fastness("sim", "list", *state).out
    assert any(line.startswith(name) and "value-differs" in line for line in console.splitlines())
    # Nothing of a configuration, no node, and a set that says how many of its machines are there.
    root = cluster.live.state / "machines" / name / "root"
    assert not (root / "etc/kubernetes").exists()
    assert set(cluster.ready()) == before
    assert phases(cluster, "worker-a") == {"Running", "Provisioned"}
    counts = cluster.kubectl("get", "machineset", "worker-a", "-n", NAMESPACE).rows[1][1:4]
    assert counts == [str(cluster.workers + 1), str(cluster.workers + 1), str(cluster.workers)]
    cluster.confirm(join={"approval": "Automatic"})
    (unborn,) = (each for each in machines_of(cluster, "worker-a") if "nodeRef" not in each["status"])
    note = "machine.openshift.io/delete-machine=true"
    cluster.kubectl("annotate", "machines.machine.openshift.io", unborn["metadata"]["name"], "-n", NAMESPACE, note)
    scale(cluster, "worker-a", cluster.workers)
    eventually(lambda: len(machines_of(cluster, "worker-a")) == cluster.workers, "the machine to go")


@pytest.mark.row("002-28")
def test_a_machine_set_boots_machines_with_the_secret_that_it_names(cluster: Acceptance) -> None:
    labels = {"set": "by-hand"}
    cluster.apply(
        {
            "apiVersion": "machine.openshift.io/v1beta1",
            "kind": "MachineSet",
            "metadata": {"name": "by-hand", "namespace": NAMESPACE},
            "spec": {
                "replicas": 0,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": {"providerSpec": {"value": PROVIDER}}},
            },
        }
    )
    scale(cluster, "by-hand", 1)
    eventually(
        lambda: [m["status"].get("phase") for m in machines_of(cluster, "by-hand")] == ["Running"], "its machine"
    )
    node = machines_of(cluster, "by-hand")[0]["status"]["nodeRef"]["name"]
    assert node in cluster.ready()
    scale(cluster, "by-hand", 0)
    eventually(lambda: node not in cluster.ready() and not machines_of(cluster, "by-hand"), "it to go")
    # With a Secret that leads nowhere the machine exists, and never becomes a node.
    other = {**PROVIDER, "userDataSecret": {"name": "nobody-user-data-managed"}}
    patch = {"spec": {"template": {"spec": {"providerSpec": {"value": other}}}}}
    cluster.kubectl("patch", "machineset", "by-hand", "-n", NAMESPACE, "--type=merge", "-p", json.dumps(patch))
    scale(cluster, "by-hand", 1)
    eventually(
        lambda: [m["status"].get("phase") for m in machines_of(cluster, "by-hand")] == ["Provisioned"], "a machine"
    )
    assert len(cluster.ready()) == cluster.workers
    scale(cluster, "by-hand", 0)
    eventually(lambda: not machines_of(cluster, "by-hand"), "the machine to go")
    cluster.kubectl("delete", "machineset", "by-hand", "-n", NAMESPACE)


def test_a_set_of_another_provider_is_left_alone_and_says_so(cluster: Acceptance) -> None:
    labels = {"set": "elsewhere"}
    value = {"kind": "AWSMachineProviderConfig"}
    cluster.apply(
        {
            "apiVersion": "machine.openshift.io/v1beta1",
            "kind": "MachineSet",
            "metadata": {"name": "elsewhere", "namespace": NAMESPACE},
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": {"providerSpec": {"value": value}}},
            },
        }
    )
    eventually(lambda: cluster.events("MachineSetLeftAlone"), "the event")
    assert (
        "not managed by Fastness: provider aws (AWSMachineProviderConfig)"
        in cluster.events("MachineSetLeftAlone")[0]["message"]
    )
    assert not machines_of(cluster, "elsewhere")
    cluster.kubectl("delete", "machineset", "elsewhere", "-n", NAMESPACE)
