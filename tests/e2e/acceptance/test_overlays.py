"""Seed 000, machines of a pool that differ: a NodeOverlay for one that runs, for one that comes, and its end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.acceptance.cluster import Acceptance, a_file, until

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
    until(cluster.updated, "the pool without the overlay")


@pytest.mark.row("000-68")
def test_a_machine_that_runs_gets_an_overlay_follows_its_change_and_loses_it(cluster: Acceptance, gone: None) -> None:
    machine = cluster.get("machines.trusted-execution-clusters.io", "-A")["items"][0]
    uid, node, rendered = machine["metadata"]["uid"], machine["status"]["nodeName"], cluster.rendered()
    cluster.apply(overlay([uid]))
    until(lambda: len(holders(cluster)) == 1 and cluster.updated(), "the file on the machine")
    notes = cluster.get("node", node)["metadata"]["annotations"]
    assert notes["fastness.dev/current-overlay"] == notes["fastness.dev/desired-overlay"]
    assert notes["fastness.dev/overlays"].startswith(f"{NAME}@")
    until(lambda: cluster.condition("nodeoverlay", NAME, "Applied").get("status") == "True", "that it is applied")
    cluster.apply(overlay([uid], "8"))
    until(lambda: len(holders(cluster, "8")) == 1 and not holders(cluster), "the change on the machine")
    until(cluster.updated, "the pool at its end")
    cluster.kubectl("delete", "nodeoverlay", NAME)
    until(lambda: not holders(cluster, "8") and cluster.updated(), "the machine without the file")
    assert cluster.rendered() == rendered, "nothing was rendered for it"


@pytest.mark.row("000-67")
def test_a_new_machine_has_its_overlay_from_its_first_boot_and_the_record_names_it(
    cluster: Acceptance, gone: None
) -> None:
    body = overlay([])
    body["spec"] = {"match": {"properties": {"tee": "tdx"}}, "config": body["spec"]["config"]}  # type: ignore[index]
    before = holders(cluster)
    cluster.apply(body)
    until(lambda: cluster.condition("nodeoverlay", NAME, "Valid").get("status") == "True", "that it is good")
    added = cluster.fastness("sim", "add", "--state", str(cluster.live.state), "--tee", "tdx")
    assert added.code == 0, added.err
    name = added.out.split()[0]
    try:
        until(lambda: name in holders(cluster) and cluster.updated(), "the file on the new machine")
        assert holders(cluster) - before >= {name}
        record = cluster.fastness("audit", "show", "--what", "release", "-o", "json")
        assert f'"overlays": "{NAME}@' in record.out
    finally:
        cluster.fastness("sim", "remove", "--state", str(cluster.live.state), name)
        until(lambda: len(cluster.ready()) == cluster.workers, "the machine gone")
