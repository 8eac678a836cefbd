"""One object must not end the control plane: written over the wire with exactly the rights that its author has.

Each attack once ended the process and every restart of it: the API stored an object that none of its own readers could decode.
After each the control plane lives, answers, starts again from the same directory, and says which object it set aside, if any.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from fastness.apiserver.store import Key, Store, WriteStep
from fastness.app.embedded import ControlPlane, PlaneOptions, running
from fastness.crypto.x509 import Credential
from fastness.keys.ring_files import PlainRingFile
from fastness.keys.vault import Vault
from fastness.kinds.registry import find
from fastness.runtime.clock import SystemClock, SystemEntropy
from tests.patience import PATIENCE

CONFIG_MAPS = "/api/v1/namespaces/team/configmaps"
FEATURES = "/apis/nfd.k8s-sigs.io/v1alpha1/namespaces/team/nodefeatures"
KUBELET_CONFIGS = "/apis/machineconfiguration.openshift.io/v1/kubeletconfigs"
READY_SECONDS = 60.0
NAMESPACES, BINDINGS = (
    find("", "v1", "namespaces").resource,
    find("rbac.authorization.k8s.io", "v1", "rolebindings").resource,
)


def nested(levels: int) -> Any:
    """An object of so many levels."""
    value: dict[str, Any] = {}
    for _ in range(levels - 1):
        value = {"a": value}
    return value


class World:
    """A control plane that can be stopped and started again, and callers with credentials of their own."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.plane: ControlPlane
        self._stack = AsyncExitStack()

    async def start(self) -> None:
        self._stack = AsyncExitStack()
        self.plane = await self._stack.enter_async_context(running(PlaneOptions(self._directory / "state")))
        await self.plane.wait_ready(READY_SECONDS)

    async def stop(self) -> None:
        await self._stack.aclose()

    def caller(self, credential: Credential) -> httpx.AsyncClient:
        pem = self._directory / "caller.pem"
        pem.write_bytes(credential.key_pem.reveal() + credential.certificate.pem)
        context = ssl.create_default_context(cafile=str(self._directory / "state/pki/ca.crt"))
        context.load_cert_chain(pem)
        return httpx.AsyncClient(base_url=self.plane.server.url, verify=context, timeout=60)

    def admin(self) -> httpx.AsyncClient:
        return self.caller(self.plane.server.pki.admin)

    def user(self, name: str) -> httpx.AsyncClient:
        issued = self.plane.server.pki.authority.issue_client(name, [], timedelta(hours=1), datetime.now(UTC))
        return self.caller(issued)

    def node(self, name: str) -> httpx.AsyncClient:
        return self.caller(self.plane.server.pki.issue_node(name, datetime.now(UTC)))

    async def serves(self) -> None:
        """The control plane works: a write is taken, controllers follow, and it says that it is ready."""
        await self.plane.wait_ready(READY_SECONDS)
        async with self.admin() as admin:
            fresh = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "probe-"}}
            assert (await admin.post("/api/v1/namespaces/default/configmaps", json=fresh)).status_code == 201
            assert (await admin.get("/readyz")).status_code == 200
            lists = [await admin.get(path) for path in (CONFIG_MAPS, FEATURES, KUBELET_CONFIGS)]
            assert [answer.status_code for answer in lists] == [200, 200, 200]

    async def survives(self) -> None:
        """It works now, and again after a restart."""
        await self.serves()
        await self.stop()
        await self.start()
        await self.serves()


@pytest.fixture
async def world(tmp_path: Path) -> Any:
    """A control plane with a namespace in which alice has `edit`, and nothing else anywhere."""
    world = World(tmp_path)
    await world.start()
    cluster = world.plane.server.cluster
    await cluster.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": "alice", "namespace": "team"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}],
    }  # fmt: skip
    await cluster.create(BINDINGS, binding)
    yield world
    await world.stop()


async def test_a_config_map_of_150000_empty_keys_by_a_user_with_edit_in_one_namespace(world: World) -> None:
    body = {
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "wide", "namespace": "team"},
        "data": {f"k{number:06d}": "" for number in range(150_000)},
    }  # fmt: skip
    async with world.user("alice") as alice:
        answer = await alice.post(CONFIG_MAPS, json=body)
        assert answer.status_code == 413, answer.text[:300]
        assert answer.json()["reason"] == "RequestEntityTooLarge"
        assert "limit is 3145728" in answer.json()["message"]
        trial = await alice.post(f"{CONFIG_MAPS}?dryRun=All", json=body)
        assert trial.status_code == 413
        applied = await alice.patch(
            f"{CONFIG_MAPS}/wide?fieldManager=a",
            content=json.dumps(body),
            headers={"content-type": "application/apply-patch+yaml"},
        )
        assert applied.status_code == 413
    await world.survives()


async def test_an_object_cannot_be_grown_beyond_what_is_stored_step_by_step(world: World) -> None:
    """Each patch is small; what they add up to is what counts, and every manager's ownership with it."""
    async with world.user("alice") as alice:
        meta = {"name": "grown", "namespace": "team"}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"first": ""}}
        assert (await alice.post(CONFIG_MAPS, json=body)).status_code == 201
        codes = []
        for part in range(6):
            data = {f"{part}-{number:06d}": "" for number in range(30_000)}
            answer = await alice.patch(
                f"{CONFIG_MAPS}/grown",
                content=json.dumps({"data": data}),
                headers={"content-type": "application/merge-patch+json"},
            )
            codes.append(answer.status_code)
        assert codes[0] == 200
        assert codes[-1] == 413
        held = await alice.get(f"{CONFIG_MAPS}/grown")
        assert len(held.content) <= 3 * 1024 * 1024
        assert (await alice.delete(f"{CONFIG_MAPS}/grown")).status_code == 200
    await world.survives()


async def test_a_node_feature_that_the_node_itself_makes_too_large(world: World) -> None:
    elements = {f"k{number:06d}": "" for number in range(150_000)}
    body = {
        "apiVersion": "nfd.k8s-sigs.io/v1alpha1", "kind": "NodeFeature",
        "metadata": {"name": "w1", "namespace": "team", "labels": {"nfd.node.kubernetes.io/node-name": "w1"}},
        "spec": {"labels": {}, "features": {"attributes": {"x": {"elements": elements}}}},
    }  # fmt: skip
    async with world.node("w1") as node:
        answer = await node.post(FEATURES, json=body)
        assert answer.status_code == 413, answer.text[:300]
    await world.survives()


@pytest.mark.parametrize("levels", [95, 98])
async def test_a_kubelet_config_that_is_as_deep_as_a_request_may_be(world: World, levels: int) -> None:
    body = {
        "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "KubeletConfig", "metadata": {"name": "deep"},
        "spec": {"kubeletConfig": nested(levels)},
    }  # fmt: skip
    async with world.admin() as admin:
        answer = await admin.post(KUBELET_CONFIGS, json=body)
        assert answer.status_code == 422, answer.text[:300]
        [cause] = answer.json()["details"]["causes"]
        assert cause["field"].startswith("metadata.managedFields[0].fieldsV1.f:spec.f:kubeletConfig.f:a.f:a")
        assert "nests deeper than 100 levels" in cause["message"]
    await world.survives()


async def replaced(client: httpx.AsyncClient, path: str) -> httpx.Response:
    """Read an object and put it back with a label."""
    held = (await client.get(path)).json()
    return await client.put(path, json={**held, "metadata": {**held["metadata"], "labels": {"a": "b"}}})


async def test_the_deepest_object_that_is_stored_goes_through_every_verb(world: World) -> None:
    """What may be stored stays well within what every walker of ours handles: merges, ownership, pruning, CEL, tables, diffs."""
    path, deep = f"{KUBELET_CONFIGS}/deep", nested(88)
    body: dict[str, Any] = {
        "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "KubeletConfig", "metadata": {"name": "deep"},
        "spec": {"kubeletConfig": deep},
    }  # fmt: skip
    patches: list[tuple[str, Any]] = [
        ("application/merge-patch+json", {"spec": {"kubeletConfig": deep | {"b": 1}}}),
        ("application/json-patch+json", [{"op": "add", "path": "/spec/kubeletConfig/c", "value": 1}]),
        ("application/apply-patch+yaml", {**body, "spec": {"kubeletConfig": {"d": deep["a"]}}}),
    ]
    async with world.admin() as admin:
        assert (await admin.post(KUBELET_CONFIGS, json=body)).status_code == 201
        for kind, patch in patches:
            force = "&force=true" if "apply" in kind else ""
            answer = await admin.patch(
                f"{path}?fieldManager=second{force}", content=json.dumps(patch), headers={"content-type": kind}
            )
            assert answer.status_code == 200, answer.text[:300]
        async with asyncio.timeout(PATIENCE):
            while not (answer := await replaced(admin, path)).is_success:
                assert answer.status_code == 409, answer.text[:300]  # a controller wrote its status in between
        table = await admin.get(KUBELET_CONFIGS, headers={"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"})
        assert table.status_code == 200
        await world.serves()
        assert (await admin.delete(path)).is_success
    await world.survives()


async def test_an_object_as_large_as_may_be_with_a_finalizer_can_be_deleted(world: World) -> None:
    """Deletion marks the object, which adds to it: it must not fail for that."""
    async with world.user("alice") as alice:
        meta = {"name": "full", "namespace": "team", "finalizers": ["example.com/hold"]}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {}}
        low, high = 0, 16_000
        while high - low > 1:  # as many keys as fit, by a dry run
            middle = (low + high) // 2
            body["data"] = {f"{number:0200d}": "" for number in range(middle)}
            fits = (await alice.post(f"{CONFIG_MAPS}?dryRun=All", json=body)).status_code == 201
            low, high = (middle, high) if fits else (low, middle)
        body["data"] = {f"{number:0200d}": "" for number in range(low)}
        assert (await alice.post(CONFIG_MAPS, json=body)).status_code == 201
        assert (await alice.delete(f"{CONFIG_MAPS}/full")).status_code == 200
        assert (await alice.get(f"{CONFIG_MAPS}/full")).json()["metadata"]["deletionTimestamp"]
        freed = await alice.patch(
            f"{CONFIG_MAPS}/full",
            json={"metadata": {"finalizers": None}},
            headers={"content-type": "application/merge-patch+json"},
        )
        assert freed.status_code == 200
        assert (await alice.get(f"{CONFIG_MAPS}/full")).status_code == 404


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("deep", lambda meta: {"metadata": meta, "data": nested(400)}),
        ("wide", lambda meta: {"metadata": meta, "data": {"a": "b" * 9_000_000}}),
        ("odd", lambda meta: {"metadata": {**meta, "ownerReferences": "none", "labels": ["a"]}}),
        ("bare", lambda _meta: []),
    ],
)
async def test_what_an_older_version_stored_is_set_aside_by_name_and_everything_else_goes_on(
    world: World, name: str, body: Callable[[dict[str, Any]], Any], tmp_path: Path
) -> None:
    key = Key("", "configmaps", "team", name)

    def make(revision: int) -> WriteStep:
        meta = {"name": name, "namespace": "team", "uid": "u", "resourceVersion": str(revision)}
        return WriteStep(key, json.dumps(body(meta)).encode(), 0)

    await world.stop()
    await _write_past_the_api(tmp_path / "state", make)
    await world.start()
    await world.survives()
    async with world.user("alice") as alice, world.admin() as admin:
        listed = (await alice.get(CONFIG_MAPS)).json()["items"]
        assert name not in {item["metadata"]["name"] for item in listed}
        answer = await alice.get(f"{CONFIG_MAPS}/{name}")
        assert answer.status_code == 500
        assert "is set aside, because it cannot be read" in answer.json()["message"]
        again = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "team"}}
        assert (await alice.post(CONFIG_MAPS, json=again)).status_code == 409
        assert (await alice.delete(f"{CONFIG_MAPS}/{name}")).status_code == 500
        ready = await admin.get("/readyz")
        assert (ready.status_code, "1 of configmaps" in ready.text) == (200, True)
        assert name not in ready.text, "a probe is open to everybody and names nothing"
        assert "fastness_store_set_aside 1.0" in (await admin.get("/metrics")).text


async def _write_past_the_api(state: Path, make: Callable[[int], WriteStep]) -> None:
    """What a version without these bounds would have left behind."""
    clock, entropy = SystemClock(), SystemEntropy()
    vault = Vault.open_file(PlainRingFile(state / "vault.json"), clock.now(), entropy, create=False)
    store = await Store.open(state, cipher=vault, macs=vault.macs)
    try:
        await store.write(make)
    finally:
        await store.close()
