"""Every informer of a whole control plane, all controllers and doors, is fed with hostile objects.

They are written past the API, so that no schema and no admission stands between them and the readers: what a real API server
lets through of any kind is less than this. Each kind gets a third of them, so that it takes seconds. Nothing ends, and what is
written properly afterwards is worked on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import islice
from pathlib import Path

from fastness.apiserver.store import Key, Store, WriteStep
from fastness.app.embedded import PlaneOptions, running
from fastness.formats import json
from fastness.kinds.kind import JsonObject
from fastness.kinds.registry import find
from tests.hostile import hostile

KUBELET_CONFIGS = find("machineconfiguration.openshift.io", "v1", "kubeletconfigs").resource


async def write(store: Store, key: Key, obj: JsonObject) -> None:
    """Put an object into the store, whatever it is."""

    def make(revision: int) -> WriteStep:
        named = {"name": key.name, "uid": f"u-{key.name}", "resourceVersion": str(revision)}
        meta = {**obj["metadata"], **named, **({"namespace": key.namespace} if key.namespace else {})}
        return WriteStep(key, json.encode({**obj, "metadata": meta}), 0)

    await store.write(make)


async def eventually(holds: Callable[[], bool]) -> None:
    """Wait for an effect."""
    async with asyncio.timeout(120):
        while not holds():  # noqa: ASYNC110  # what is waited for announces itself to nobody
            await asyncio.sleep(0.05)


async def test_no_hostile_object_ends_an_informer_a_controller_or_a_door(tmp_path: Path) -> None:
    async with running(PlaneOptions(tmp_path / "state")) as plane:
        await plane.wait_ready(60)
        informers, store = plane.runner.informers, plane.server.api.store
        followed = informers.watched()
        assert len(followed) > 40
        count = 0
        for resource, scopes in followed:
            kind = find(resource.group, resource.version, resource.plural)
            storage = plane.server.api.served(resource.group, resource.version, resource.plural).storage_key
            namespace = (scopes[0].namespace or "default") if resource.namespaced else ""
            for obj in islice(hostile(kind), len(kind.kind) % 2, None, 3):
                count += 1
                await write(store, Key(*storage, namespace, f"hostile-{count}"), obj)
        good = {
            "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "KubeletConfig",
            "metadata": {"name": "good"}, "spec": {"kubeletConfig": {"maxPods": 100}},
        }  # fmt: skip
        await plane.server.cluster.create(KUBELET_CONFIGS, good)
        follower = informers.of(KUBELET_CONFIGS)
        await eventually(lambda: bool((follower.get("", "good") or {}).get("status")))
        assert informers.out_of_touch() is None
        assert plane.runner.waiting_for() is None
        print(
            f"{count} hostile objects, {len(informers.set_aside())} set aside:", *informers.set_aside()[:40], sep="\n"
        )
