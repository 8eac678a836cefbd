"""A whole cluster with virtual machines, driven with kubectl as its users do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.component.agent.directory_machine import relevant, snapshot
from tests.e2e.live import Live
from tests.patience import eventually

ROLE = "machineconfiguration.openshift.io/role"
NOTE = "machineconfiguration.openshift.io"


def machine_config(name: str, *files: dict[str, Any], **spec: Any) -> dict[str, Any]:
    """A MachineConfig for workers."""
    config = {"ignition": {"version": "3.5.0"}, "storage": {"files": list(files)}}
    meta = {"name": name, "labels": {ROLE: "worker"}}
    kind = {"apiVersion": f"{NOTE}/v1", "kind": "MachineConfig"}
    return {**kind, "metadata": meta, "spec": {"config": config, **spec}}


MOTD = machine_config("99-worker-motd", {"path": "/etc/motd", "mode": 0o644, "contents": {"source": "data:,hello%0A"}})
BROKEN = machine_config("99-worker-broken", {"path": "/etc/passwd/x", "contents": {"source": "data:,x"}})


class Cluster:
    """A running cluster and what users look at."""

    def __init__(self, live: Live, count: int) -> None:
        self.live = live
        self.machines = [f"worker-{number}" for number in range(count)]

    def root(self, machine: str) -> Path:
        return self.live.state / "machines" / machine / "root"

    def pool(self) -> list[str]:
        """UPDATED, UPDATING, DEGRADED and the four counts of the worker pool."""
        rows = self.live.kubectl("get", "mcp", "worker", "--no-headers").rows
        return rows[0][2:9] if rows and len(rows[0]) >= 9 else []

    def updated(self) -> bool:
        count = str(len(self.machines))
        return self.pool() == ["True", "False", "False", count, count, count, "0"]

    def apply(self, config: dict[str, Any]) -> None:
        applied = self.live.kubectl("apply", "-f", "-", stdin=config)
        assert applied.code == 0, applied.err

    def delete(self, name: str) -> None:
        deleted = self.live.kubectl("delete", "mc", name)
        assert deleted.code == 0, deleted.err

    def note(self, machine: str, key: str) -> str:
        node = self.live.kubectl("get", "node", machine, "-o", "json").json
        return str(node["metadata"]["annotations"].get(f"{NOTE}/{key}", ""))

    def contents(self, path: str) -> set[str | None]:
        files = [self.root(machine) / path.lstrip("/") for machine in self.machines]
        return {file.read_text() if file.exists() else None for file in files}

    def files(self) -> dict[str, dict[str, object]]:
        return {machine: relevant(snapshot(self.root(machine))) for machine in self.machines}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with Live.start(tmp_path_factory.mktemp("three"), "--profile", "containers", "--machines", "3") as live:
        yield live


@pytest.fixture
def cluster(running: Live) -> Cluster:
    """Three machines that have their first config, whatever an earlier test left."""
    virtual = Cluster(running, 3)
    for config in (MOTD, BROKEN):
        running.kubectl("delete", "mc", config["metadata"]["name"], "--ignore-not-found")
    eventually(
        lambda: virtual.updated() and virtual.contents("/etc/motd") == {None}, "the first config on all machines"
    )
    eventually(lambda: all(virtual.note(machine, "reason") == "" for machine in virtual.machines), "the first report")
    return virtual


def test_a_machineconfig_reaches_every_machine_and_its_deletion_takes_it_back(cluster: Cluster) -> None:
    before = cluster.files()
    cluster.apply(MOTD)
    rows: list[list[str]] = []

    def watched() -> bool:
        rows.append(cluster.pool())
        return cluster.contents("/etc/motd") == {"hello\n"} and cluster.updated()

    eventually(watched, "the rollout")
    assert any(row[:2] == ["False", "True"] for row in rows), rows
    assert cluster.note("worker-0", "state") == "Done"
    cluster.delete("99-worker-motd")
    eventually(lambda: cluster.contents("/etc/motd") == {None} and cluster.updated(), "the way back")
    assert cluster.files() == before
    nodes = cluster.live.kubectl("get", "nodes", "--no-headers").rows
    assert [row[1] for row in nodes] == ["Ready"] * 3


def test_a_bad_config_stops_at_the_first_machine_and_deleting_it_recovers(cluster: Cluster) -> None:
    before = cluster.files()
    cluster.apply(BROKEN)
    eventually(lambda: cluster.pool()[2:3] == ["True"], "a degraded pool")
    assert cluster.pool()[6] == "1"
    degraded = [machine for machine in cluster.machines if cluster.note(machine, "state") == "Degraded"]
    assert len(degraded) == 1
    assert "/etc/passwd" in cluster.note(degraded[0], "reason")
    cluster.delete("99-worker-broken")
    eventually(cluster.updated, "the recovery")
    assert cluster.files() == before


def test_a_changed_file_is_reported_at_once_and_well_again_when_restored(cluster: Cluster) -> None:
    cluster.apply(MOTD)
    eventually(lambda: cluster.contents("/etc/motd") == {"hello\n"} and cluster.updated(), "the rollout")
    motd = cluster.root("worker-1") / "etc/motd"
    motd.write_text("tampered\n")
    eventually(lambda: cluster.note("worker-1", "state") == "Degraded", "a report of the drift")
    assert "+tampered" in cluster.note("worker-1", "reason")
    reasons = cluster.live.kubectl("get", "events", "-A", "-o", "jsonpath={.items[*].reason}").out
    assert "ConfigDriftDetected" in reasons
    motd.write_text("hello\n")
    eventually(lambda: cluster.note("worker-1", "state") == "Done", "a machine that is well again")


def test_machines_keep_their_config_when_everything_is_started_again(tmp_path: Path) -> None:
    with Live.start(tmp_path, "--profile", "containers", "--machines", "1") as live:
        cluster = Cluster(live, 1)
        eventually(cluster.updated, "the first config")
        cluster.apply(MOTD)
        eventually(lambda: cluster.contents("/etc/motd") == {"hello\n"} and cluster.updated(), "the rollout")
    with Live.start(tmp_path, "--profile", "containers", "--machines", "1") as live:
        cluster = Cluster(live, 1)
        eventually(cluster.updated, "the same config")
        cluster.delete("99-worker-motd")
        eventually(lambda: cluster.contents("/etc/motd") == {None} and cluster.updated(), "the way back")


def test_one_file_on_two_machines_drains_and_reboots_each_of_them_once(tmp_path: Path) -> None:
    with Live.start(tmp_path, "--profile", "containers", "--machines", "2") as live:
        cluster = Cluster(live, 2)
        eventually(cluster.updated, "the first config")
        eventually(
            lambda: all(cluster.note(machine, "reason") == "" for machine in cluster.machines), "the first report"
        )
        cluster.apply(MOTD)
        eventually(lambda: cluster.contents("/etc/motd") == {"hello\n"} and cluster.updated(), "the rollout")
        reasons = live.kubectl("get", "events", "-A", "-o", "jsonpath={.items[*].reason}").out.split()
        assert {"Cordon", "Drain", "Reboot", "Uncordon"} <= set(reasons)
        assert reasons.count("Reboot") == 2
