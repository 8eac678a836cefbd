"""Seed 000, machines of a pool that differ: a NodeOverlay for one that runs, for one that comes, and its end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fastness.formats import json
from tests.e2e.acceptance.cluster import Acceptance, a_file
from tests.patience import eventually

FILE = "/etc/rack-alone"
NAME = "rack-7"


def overlay(uids: list[str], text: str = "7") -> dict[str, object]:
    config = {"ignition": {"version": "3.4.0"}, **a_file(FILE, text)}
    return {
        "apiVersion": "fastness.dev/v1alpha1",
        "kind": "NodeOverlay",
        "metadata": {"name": NAME},
        "spec": {"match": {"machines": uids}, "config": config},
    }


def holders(cluster: Acceptance, text: str = "7") -> set[str]:
    """The nodes whose machines have the file, by the roots of those machines."""

    def has(root: Path) -> bool:
        file = root / FILE.lstrip("/")
        return file.exists() and file.read_text() == text

    return {root.parent.name for root in cluster.roots() if has(root)}


@pytest.fixture
def gone(cluster: Acceptance) -> Iterator[None]:
    """No overlay is left for the next test."""
    yield
    cluster.kubectl("delete", "nodeoverlay", NAME, "--ignore-not-found")
    eventually(cluster.updated, "the pool without the overlay")


@pytest.mark.row("000-68")
def test_a_machine_that_runs_gets_an_overlay_follows_its_change_and_loses_it(cluster: Acceptance, gone: None) -> None:
    machine = cluster.get("machines.trusted-execution-clusters.io", "-A")["items"][0]
    uid, node, rendered = machine["metadata"]["uid"], machine["status"]["nodeName"], cluster.rendered()
    cluster.apply(overlay([uid]))
    eventually(lambda: len(holders(cluster)) == 1 and cluster.updated(), "the file on the machine")
    notes = cluster.get("node", node)["metadata"]["annotations"]
    assert notes["fastness.dev/current-overlay"] == notes["fastness.dev/desired-overlay"]
    assert notes["fastness.dev/overlays"].startswith(f"{NAME}@")
    eventually(lambda: cluster.condition("nodeoverlay", NAME, "Applied").get("status") == "True", "that it is applied")
    cluster.apply(overlay([uid], "8"))
    eventually(lambda: len(holders(cluster, "8")) == 1 and not holders(cluster), "the change on the machine")
    eventually(cluster.updated, "the pool at its end")
    cluster.kubectl("delete", "nodeoverlay", NAME)
    eventually(lambda: not holders(cluster, "8") and cluster.updated(), "the machine without the file")
    assert cluster.rendered() == rendered, "nothing was rendered for it"


@pytest.mark.row("000-67")
def test_a_new_machine_has_its_overlay_from_its_first_boot_and_the_record_names_it(
    cluster: Acceptance, gone: None
) -> None:
    body = overlay([])
    body["spec"] = {"match": {"properties": {"tee": "tdx"}}, "config": body["spec"]["config"]}  # type: ignore[index]
    before = holders(cluster)
    cluster.apply(body)
    eventually(lambda: cluster.condition("nodeoverlay", NAME, "Valid").get("status") == "True", "that it is good")
    added = cluster.fastness("sim", "add", "--state", str(cluster.live.state), "--tee", "tdx")
    assert added.code == 0, added.err
    name = added.out.split()[0]
    try:
        eventually(lambda: name in holders(cluster) and cluster.updated(), "the file on the new machine")
        assert holders(cluster) - before >= {name}
        record = cluster.fastness("audit", "show", "--what", "release", "-o", "json")
        assert f'"overlays": "{NAME}@' in record.out
    finally:
        cluster.fastness("sim", "remove", "--state", str(cluster.live.state), name)
        eventually(lambda: len(cluster.ready()) == cluster.workers, "the machine gone")


@pytest.fixture
def through_the_broker(cluster: Acceptance) -> Iterator[None]:
    """Configurations come through the broker, and afterwards the way that they did."""
    before = cluster.get("confidentialcluster", "cluster")["spec"].get("delivery") or {}
    deliver(cluster, {"via": "Broker", "sync": "OnDemand"})
    yield
    deliver(cluster, {"via": before.get("via", "Gate"), "sync": before.get("sync", "OnDemand")})


def deliver(cluster: Acceptance, delivery: dict[str, str]) -> None:
    patch = json.encode({"spec": {"delivery": delivery}}).decode()
    patched = cluster.kubectl("patch", "confidentialcluster", "cluster", "--type", "merge", "-p", patch)
    assert patched.code == 0, patched.err


def released_by(cluster: Acceptance) -> list[str]:
    """The doors that released something with the overlay, by the record."""
    record = cluster.fastness("audit", "show", "--what", "release", "-o", "json")
    entries = [entry for entry in entries_in(json.decode(record.out.encode())) if "door" in entry]
    return [str(entry["door"]) for entry in entries if "overlays" in json.canonical(entry).decode()]


def entries_in(value: Any) -> Iterator[dict[str, Any]]:
    """Every object anywhere in a document."""
    if isinstance(value, dict):
        yield value
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for member in members:
        yield from entries_in(member)


@pytest.mark.row("000-81")
def test_a_machine_gets_its_own_file_through_the_broker_as_well(
    cluster: Acceptance, through_the_broker: None, gone: None
) -> None:
    machine = cluster.get("machines.trusted-execution-clusters.io", "-A")["items"][0]
    before = released_by(cluster)
    cluster.apply(overlay([machine["metadata"]["uid"]], "9"))
    eventually(lambda: len(holders(cluster, "9")) == 1 and cluster.updated(), "the file on the machine")
    fresh = released_by(cluster)[len(before) :]
    assert fresh
    assert all(door.startswith("broker-") for door in fresh), fresh
