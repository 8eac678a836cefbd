"""The console's dashboard: a copy that follows its source, and nothing that is not ours is touched."""

from __future__ import annotations

from fastness.kinds.kind import JsonObject
from fastness.workloads.kata.inputs import Ref
from fastness.workloads.kata.mode import FeatureGates
from fastness.workloads.kata.objects import DASHBOARD_COPY, DASHBOARD_SOURCE
from tests.unit.workloads.kata.pretend_cluster import PretendCluster

PANELS = {"sandboxes.json": '{"title": "Sandboxes"}'}


def config_map(ref: Ref, labels: dict[str, str] | None = None, **data: str) -> JsonObject:
    meta = {"name": ref.name, "namespace": ref.namespace, "labels": dict(labels or {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


def with_source() -> PretendCluster:
    world = PretendCluster(FeatureGates(), 1)
    world.objects[DASHBOARD_SOURCE] = config_map(DASHBOARD_SOURCE, None, **PANELS)
    return world


def test_the_dashboard_is_copied_when_the_last_node_is_done() -> None:
    world = with_source()
    world.look()
    assert DASHBOARD_COPY not in world.objects
    world.settle()
    copy = world.objects[DASHBOARD_COPY]
    assert copy["metadata"]["namespace"] == "openshift-config-managed"
    assert copy["metadata"]["labels"]["console.openshift.io/dashboard"] == "true"
    assert copy["data"] == PANELS
    assert world.look().actions == ()


def test_the_copy_follows_its_source_and_strangers_words_in_it_do_not_last() -> None:
    world = with_source()
    world.settle()
    world.objects[DASHBOARD_SOURCE]["data"] = {"more.json": "{}"}
    world.settle()
    assert world.objects[DASHBOARD_COPY]["data"] == {"more.json": "{}"}
    world.objects[DASHBOARD_COPY]["data"]["mine.json"] = "{}"
    world.settle()
    assert world.objects[DASHBOARD_COPY]["data"] == {"more.json": "{}"}
    del world.objects[DASHBOARD_SOURCE]["data"]
    world.look()
    assert not world.objects[DASHBOARD_COPY]["data"]


def test_the_copy_goes_with_its_source() -> None:
    world = with_source()
    world.settle()
    del world.objects[DASHBOARD_SOURCE]
    world.settle()
    assert DASHBOARD_COPY not in world.objects


def test_the_copy_goes_with_the_installation_and_the_source_stays() -> None:
    world = with_source()
    world.settle()
    world.delete()
    world.settle()
    assert world.config is None
    assert DASHBOARD_COPY not in world.objects
    assert DASHBOARD_SOURCE in world.objects


def test_without_a_source_or_without_a_console_nothing_is_made() -> None:
    world = PretendCluster(FeatureGates(), 1)
    world.settle()
    assert DASHBOARD_COPY not in world.objects
    world = with_source()
    world.console = False
    world.settle()
    assert DASHBOARD_COPY not in world.objects


def test_a_dashboard_that_somebody_else_put_there_is_neither_changed_nor_removed() -> None:
    world = with_source()
    theirs = config_map(DASHBOARD_COPY, {"console.openshift.io/dashboard": "true"}, own="{}")
    world.objects[DASHBOARD_COPY] = theirs
    world.settle()
    assert world.objects[DASHBOARD_COPY] == theirs
    world.delete()
    world.settle()
    assert world.objects[DASHBOARD_COPY] == theirs
