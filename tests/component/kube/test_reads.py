"""Loops that say which fields they read: woken for these, not for others, and reading nothing that they did not say."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from fastness.apiserver.local import LocalCluster
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.kubernetes.core import NODE
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import ObjectName
from fastness.kinds.registry import find
from fastness.kinds.trusted_execution.machine import MACHINE, SENT
from fastness.kube.controllers import Runner
from fastness.kube.controllers.controller import Controller, Done, Source
from fastness.kube.controllers.reads import fields
from fastness.kube.informers import Informer, Informers
from fastness.kube.port import PatchType, WriteOptions
from fastness.runtime.clock import SystemClock, SystemEntropy
from tests.component.machineconfig.test_product_loops import Loops, populate
from tests.embedded.fixtures import Embedded
from tests.patience import PATIENCE
from tests.virtual import SeededEntropy

NODES = NODE.resource
DISCOVERIES = find("nfd.openshift.io", "v1", "nodefeaturediscoveries").resource
# What every loop may ask of an object, and what wakes everybody.
OF_EVERYBODY = {
    f"metadata.{name}" for name in ("name", "namespace", "uid", "resourceVersion", "deletionTimestamp", "generation")
}

PARTS = ("metadata", "spec", "status", "metadata.labels", "metadata.annotations")


class Reader:
    """Follows one annotation and the taints of nodes."""

    name = "reader"
    writes: Sequence[Resource] = ()
    sources: Sequence[Source] = (Source(NODES, reads=fields("spec.taints", annotations=("example.dev/a",))),)

    def __init__(self) -> None:
        self.looks: list[str] = []
        self.looked = asyncio.Condition()

    async def reconcile(self, key: ObjectName) -> Done:
        async with self.looked:
            self.looks.append(key.name)
            self.looked.notify_all()
        return Done()

    async def looked_at(self, name: str) -> None:
        async with asyncio.timeout(PATIENCE), self.looked:
            await self.looked.wait_for(lambda: name in self.looks)


def node(name: str, **annotations: str) -> JsonObject:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "annotations": annotations}}


async def test_a_loop_is_woken_for_what_it_reads_and_not_for_anything_else(embedded_server: Embedded) -> None:
    reader, clock, entropy, cluster = Reader(), SystemClock(), SystemEntropy(), embedded_server.cluster
    async with Informers(cluster, clock=clock, entropy=entropy) as informers:
        task = asyncio.create_task(Runner([reader], informers, clock, entropy).run())

        async def looks_after(patch: JsonObject, options: WriteOptions | None = None) -> int:
            """How often the loop looked at n because of a write; a node that comes afterwards marks that it is through."""
            before = len(reader.looks)
            await cluster.patch(NODES, "n", patch, PatchType.MERGE, "", *((options,) if options else ()))
            await arrival()
            return reader.looks[before:].count("n")

        async def arrival() -> None:
            mark = f"mark-{len(reader.looks)}"
            await cluster.create(NODES, node(mark))
            await reader.looked_at(mark)

        await cluster.create(NODES, node("n"))
        await arrival()
        status = WriteOptions(manager="kubelet", subresource="status")
        assert await looks_after({"metadata": {"annotations": {"example.dev/a": "1"}}}) == 1
        assert await looks_after({"metadata": {"annotations": {"example.dev/b": "1"}}}) == 0
        assert await looks_after({"metadata": {"labels": {"l": "1"}}}) == 0
        assert await looks_after({"status": {"capacity": {"cpu": "2"}}}, status) == 0
        assert await looks_after({"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}}) == 1
        assert await looks_after({"metadata": {"annotations": {"example.dev/a": None}}}) == 1
        before = len(reader.looks)
        await cluster.delete(NODES, "n")
        await arrival()
        assert "n" in reader.looks[before:], "an object that goes concerns everybody"
        task.cancel()
        await asyncio.wait([task])


class Watched(dict[str, Any]):
    """An object that notes which of its fields somebody reads; whoever copies it as a whole is not noticed."""

    def __init__(self, value: JsonObject, path: str, log: set[str]) -> None:
        super().__init__(value)
        self._path, self._log = path, log

    def _read(self, key: str, value: Any) -> Any:
        path = f"{self._path}.{key}" if self._path else key
        if path in PARTS:
            return Watched(value, path, self._log) if isinstance(value, dict) else value
        self._log.add(path)
        return value

    def get(self, key: str, default: Any = None) -> Any:
        return self._read(key, super().get(key, default))

    def __getitem__(self, key: str) -> Any:
        return self._read(key, super().__getitem__(key))

    def __contains__(self, key: object) -> bool:
        self._log.add(f"{self._path}.{key}" if self._path else str(key))
        return super().__contains__(key)

    def __iter__(self) -> Iterator[str]:
        self._log.add(self._path)
        return super().__iter__()

    def items(self) -> Any:
        self._log.add(self._path)
        return super().items()


def watch_nodes(monkeypatch: pytest.MonkeyPatch, log: set[str]) -> None:
    """Have every node that a loop is given note what is read of it."""

    def noted(resource: Resource, obj: Any) -> Any:
        return Watched(obj, "", log) if resource == NODES and obj is not None else obj

    get, listed, indexed, fetched = Informer.get, Informer.list, Informer.by_index, LocalCluster.get

    async def ask(self: LocalCluster, resource: Resource, name: str, namespace: str = "") -> JsonObject:
        result: JsonObject = noted(resource, await fetched(self, resource, name, namespace))
        return result

    monkeypatch.setattr(Informer, "get", lambda self, *place: noted(self.resource, get(self, *place)))
    monkeypatch.setattr(Informer, "list", lambda self, *p: [noted(self.resource, obj) for obj in listed(self, *p)])
    monkeypatch.setattr(Informer, "by_index", lambda self, *p: [noted(self.resource, o) for o in indexed(self, *p)])
    monkeypatch.setattr(LocalCluster, "get", ask)


def declared(controller: Controller) -> frozenset[str] | None:
    """What a loop says that it reads of nodes; None where it says nothing, or does not follow them."""
    declared = [source.reads for source in controller.sources if source.resource == NODES]
    return (
        None
        if not declared or any(reads is None for reads in declared)
        else frozenset().union(*(r for r in declared if r))
    )


async def test_loops_read_no_field_of_a_node_that_they_did_not_declare(
    embedded_server: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, log = embedded_server.cluster, set[str]()
    async with Informers(cluster, clock=SystemClock(), entropy=SeededEntropy(1)) as informers:
        loops = Loops(embedded_server, informers, 1)
        await populate(cluster)
        drain = {names.DESIRED_DRAIN: "drain-c", names.DESIRED_CONFIG: "c", names.CURRENT_CONFIG: "b"}
        await cluster.create(NODES, node("drained", **drain))
        await cluster.create(NODES, node("new", **{names.FIRST_PIVOT_CONFIG: "rendered-worker-0"}))
        await cluster.create(DISCOVERIES, {
            "apiVersion": "nfd.openshift.io/v1", "kind": "NodeFeatureDiscovery",
            "metadata": {"name": "all", "namespace": "default"}, "spec": {},
        })  # fmt: skip
        await loops.round()
        declaring = [entry for entry in loops.controllers if declared(entry) is not None]
        reads: dict[str, set[str]] = {entry.name: set() for entry in declaring}
        watch_nodes(monkeypatch, log)
        for entry in declaring:
            for obj in (await cluster.list(NODES)).items:
                log.clear()
                await entry.reconcile(ObjectName("", obj["metadata"]["name"]))
                reads[entry.name] |= log
    assert {"machine-config-drain", "machine-config-nodes", "machine-config-first-labels", "standing"} <= reads.keys()
    assert any(reads.values())
    for entry in declaring:
        allowed = (declared(entry) or frozenset()) | OF_EVERYBODY
        undeclared = {
            path for path in reads[entry.name] if not any(path == p or path.startswith(f"{p}.") for p in allowed)
        }
        assert undeclared == set(), entry.name


async def test_where_a_rollout_sends_a_machine_gives_nothing_to_do_to_loops_that_do_not_read_it(
    embedded_server: Embedded,
) -> None:
    cluster, key = embedded_server.cluster, ObjectName(NAMESPACE, "machine-1")
    status = WriteOptions(manager="doors", subresource="status")
    async with Informers(cluster, clock=SystemClock(), entropy=SeededEntropy(1)) as informers:
        loops = Loops(embedded_server, informers, 1)
        await populate(cluster)
        spec = {"id": "0b0e7f0e-0000-4000-8000-000000000001", "approval": "Approved"}
        meta = {"name": key.name, "namespace": key.namespace}
        await cluster.create(
            MACHINE.resource, {"apiVersion": MACHINE.api_version, "kind": "Machine", "metadata": meta, "spec": spec}
        )
        facts = {"nodeName": "n1", "keyThumbprint": "sha256:" + "a" * 64, "tee": "tpm", "pool": "worker"}
        await cluster.patch(MACHINE.resource, key.name, {"status": facts}, PatchType.MERGE, NAMESPACE, status)
        await loops.settle()
        deaf = [
            entry
            for entry in loops.controllers
            if any(source.resource == MACHINE.resource and source.unread for source in entry.sources)
        ]
        sent = {path.partition(".")[2]: "rendered-worker-0" for path in SENT if path.endswith("Config")}
        await cluster.patch(MACHINE.resource, key.name, {"status": sent}, PatchType.MERGE, NAMESPACE, status)
        await informers.synced()
        before = loops.store.revision
        for entry in deaf:
            for source in entry.sources:
                if source.resource == MACHINE.resource:
                    for each in source.keys(await cluster.get(MACHINE.resource, key.name, NAMESPACE)):
                        await entry.reconcile(each)
            assert loops.store.revision == before, f"{entry.name} acts on what it says that it does not read"
    assert {"machines", "disk-keys", "standing", "distrust", "joins"} <= {e.name for e in deaf}
