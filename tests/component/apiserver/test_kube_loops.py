"""What Kubernetes does itself: garbage, namespaces, definitions, accounts, budgets, roles.

The loops are driven by hand here, one reconcile at a time in an order that a seed chooses, so that interleavings are explored
without clocks.
"""

from __future__ import annotations

import random
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastness.apiserver import ApiServer, ServerOptions, open_apiserver
from fastness.apiserver.inventory import Inventory
from fastness.apiserver.loops.controllers import kube_loops
from fastness.app.product import PRODUCT
from fastness.attestation.admission.trusted_objects import WITHOUT_OWNERS
from fastness.kinds.kind import JsonObject
from fastness.kinds.registry import find
from fastness.kube.controllers.controller import Controller
from fastness.kube.errors import NotFound
from fastness.kube.events import EVENTS, Recorder
from fastness.kube.port import Cluster, DeleteOptions, PatchType, Propagation, Scope, WriteOptions
from tests.embedded.fixtures import Embedded
from tests.virtual import VirtualClock

CONFIG_MAP = find("", "v1", "configmaps").resource
NAMESPACE = find("", "v1", "namespaces").resource
ACCOUNT = find("", "v1", "serviceaccounts").resource
POD = find("", "v1", "pods").resource
BUDGET = find("policy", "v1", "poddisruptionbudgets").resource
ROLE = find("rbac.authorization.k8s.io", "v1", "clusterroles").resource
MAX_ROUNDS = 40


class Loops:
    """All loops over one API, driven by hand."""

    def __init__(self, server: ApiServer, seed: int = 0) -> None:
        self.server = server
        self.cluster: Cluster = server.cluster
        self._random = random.Random(seed)
        inventory = Inventory(server.api)
        self.clock = VirtualClock()
        loops = kube_loops(self.cluster, inventory, self.clock, "root ca", WITHOUT_OWNERS)
        self.controllers: dict[str, Controller] = {controller.name: controller for controller in loops.controllers}
        self._garbage: set[Any] = set()
        inventory.listen(self._garbage.add)

    async def keys(self, controller: Controller) -> list[Any]:
        if not controller.sources:
            return sorted(self._garbage)
        work_keys = {
            key
            for source in controller.sources
            for obj in (await self.cluster.list(source.resource)).items
            for key in source.keys(obj)
        }
        return sorted(work_keys)

    async def round(self) -> None:
        """Every key of every loop once, in an order that the seed chooses."""
        work = [(loop, key) for loop in self.controllers.values() for key in await self.keys(loop)]
        self._random.shuffle(work)
        for controller, key in work:
            await controller.reconcile(key)

    async def settle(self) -> None:
        """Rounds until one changes nothing."""
        for _ in range(MAX_ROUNDS):
            before = self.server.api.store.revision
            await self.round()
            if self.server.api.store.revision == before:
                return
        raise AssertionError("the loops do not come to rest")


def config_map(name: str, namespace: str = "default", *owners: JsonObject, block: bool = False) -> JsonObject:
    references = [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"],
         **({"blockOwnerDeletion": True} if block else {})}
        for owner in owners
    ]  # fmt: skip
    meta: JsonObject = {"name": name, "namespace": namespace}
    if references:
        meta["ownerReferences"] = references
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}


async def names(cluster: Cluster, namespace: str = "default") -> set[str]:
    config_maps = (await cluster.list(CONFIG_MAP, Scope(namespace))).items
    return {obj["metadata"]["name"] for obj in config_maps} - {"kube-root-ca.crt"}


async def test_dependents_go_when_their_last_owner_is_gone(embedded_server: Embedded) -> None:
    loops, cluster = Loops(embedded_server.server), embedded_server.cluster
    first_owner = await cluster.create(CONFIG_MAP, config_map("one"))
    two = await cluster.create(CONFIG_MAP, config_map("two"))
    child = await cluster.create(CONFIG_MAP, config_map("child", "default", first_owner, two))
    await cluster.create(CONFIG_MAP, config_map("grandchild", "default", child))
    await loops.settle()
    assert await names(cluster) == {"one", "two", "child", "grandchild"}
    await cluster.delete(CONFIG_MAP, "one", "default")
    await loops.settle()
    left = await cluster.get(CONFIG_MAP, "child", "default")
    assert [ref["name"] for ref in left["metadata"]["ownerReferences"]] == ["two"]
    await cluster.delete(CONFIG_MAP, "two", "default")
    await loops.settle()
    assert await names(cluster) == set()


async def test_a_new_object_with_an_old_name_owns_nothing(embedded_server: Embedded) -> None:
    loops, cluster = Loops(embedded_server.server), embedded_server.cluster
    owner = await cluster.create(CONFIG_MAP, config_map("owner"))
    await cluster.create(CONFIG_MAP, config_map("child", "default", owner))
    await cluster.delete(CONFIG_MAP, "owner", "default")
    await cluster.create(CONFIG_MAP, config_map("owner"))
    await loops.settle()
    assert await names(cluster) == {"owner"}


async def test_orphans_lose_the_reference_and_stay(embedded_server: Embedded) -> None:
    loops, cluster = Loops(embedded_server.server), embedded_server.cluster
    owner = await cluster.create(CONFIG_MAP, config_map("owner"))
    await cluster.create(CONFIG_MAP, config_map("child", "default", owner))
    await cluster.delete(CONFIG_MAP, "owner", "default", DeleteOptions(propagation=Propagation.ORPHAN))
    await loops.settle()
    assert await names(cluster) == {"child"}
    assert "ownerReferences" not in (await cluster.get(CONFIG_MAP, "child", "default"))["metadata"]


async def test_in_the_foreground_an_owner_waits_for_what_blocks_it(embedded_server: Embedded) -> None:
    loops, cluster = Loops(embedded_server.server), embedded_server.cluster
    owner = await cluster.create(CONFIG_MAP, config_map("owner"))
    held = config_map("held", "default", owner, block=True)
    held["metadata"]["finalizers"] = ["example.com/busy"]
    await cluster.create(CONFIG_MAP, held)
    await cluster.delete(CONFIG_MAP, "owner", "default", DeleteOptions(propagation=Propagation.FOREGROUND))
    await loops.settle()
    assert await names(cluster) == {"owner", "held"}, "the dependent is held, so the owner waits"
    await cluster.patch(CONFIG_MAP, "held", {"metadata": {"finalizers": None}}, PatchType.MERGE, "default")
    await loops.settle()
    assert await names(cluster) == set()


async def test_a_namespace_goes_after_its_content_and_says_what_holds_it(embedded_server: Embedded) -> None:
    loops, cluster = Loops(embedded_server.server), embedded_server.cluster
    await cluster.create(NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "z"}})
    held = config_map("held", "z")
    held["metadata"]["finalizers"] = ["example.com/busy"]
    await cluster.create(CONFIG_MAP, held)
    await cluster.create(CONFIG_MAP, config_map("free", "z"))
    await loops.settle()
    await cluster.delete(NAMESPACE, "z")
    await loops.settle()
    assert await names(cluster, "z") == {"held"}
    conditions = {
        condition["type"]: condition for condition in (await cluster.get(NAMESPACE, "z"))["status"]["conditions"]
    }
    assert conditions["NamespaceContentRemaining"]["status"] == "True"
    assert "configmaps" in conditions["NamespaceContentRemaining"]["message"]
    await cluster.patch(CONFIG_MAP, "held", {"metadata": {"finalizers": None}}, PatchType.MERGE, "z")
    await loops.settle()
    with pytest.raises(NotFound):
        await cluster.get(NAMESPACE, "z")


async def test_every_namespace_has_its_account_and_the_root_ca(embedded_server: Embedded) -> None:
    loops, cluster = Loops(embedded_server.server), embedded_server.cluster
    await loops.settle()
    assert (await cluster.get(ACCOUNT, "default", "kube-system"))["metadata"]["name"] == "default"
    edited = {"data": {"ca.crt": "somebody else's"}}
    await cluster.patch(CONFIG_MAP, "kube-root-ca.crt", edited, PatchType.MERGE, "default")
    await cluster.delete(ACCOUNT, "default", "default")
    await loops.settle()
    assert (await cluster.get(CONFIG_MAP, "kube-root-ca.crt", "default"))["data"] == {"ca.crt": "root ca"}
    assert await cluster.get(ACCOUNT, "default", "default")


async def test_a_budget_says_how_many_pods_may_go(embedded_server: Embedded) -> None:
    loops, cluster = Loops(embedded_server.server), embedded_server.cluster
    budget = {
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b", "namespace": "default"},
        "spec": {"minAvailable": "50%", "selector": {"matchLabels": {"app": "web"}}},
    }  # fmt: skip
    await cluster.create(BUDGET, budget)
    ready = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    for number in range(3):
        pod = {
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": f"p{number}", "namespace": "default", "labels": {"app": "web"}},
            "spec": {"containers": [{"name": "a", "image": "b"}]},
        }  # fmt: skip
        await cluster.create(POD, pod)
        await cluster.patch(POD, f"p{number}", ready, PatchType.MERGE, "default", WriteOptions(subresource="status"))
    await loops.settle()
    status = (await cluster.get(BUDGET, "b", "default"))["status"]
    assert (status["expectedPods"], status["currentHealthy"], status["desiredHealthy"]) == (3, 3, 2)
    assert status["disruptionsAllowed"] == 1


async def test_an_event_ends_an_hour_after_it_last_happened(embedded_server: Embedded) -> None:
    loops, cluster = Loops(embedded_server.server), embedded_server.cluster
    recorder = Recorder(cluster, "tester", loops.clock)
    for name in ("once", "again"):
        await recorder.normal(await cluster.create(CONFIG_MAP, config_map(name)), "Made", name)
    await loops.clock.advance(1800)
    await recorder.normal(await cluster.get(CONFIG_MAP, "again", "default"), "Made", "again")
    await loops.settle()
    assert len((await cluster.list(EVENTS)).items) == 2
    await loops.clock.advance(1801)
    await loops.settle()
    (left,) = (await cluster.list(EVENTS)).items
    assert (left["message"], left["count"]) == ("again", 2)
    await loops.clock.advance(1801)
    await loops.settle()
    assert (await cluster.list(EVENTS)).items == []


async def test_an_aggregated_role_shows_the_rules_that_it_picks(embedded_server: Embedded) -> None:
    loops, cluster = Loops(embedded_server.server), embedded_server.cluster
    await loops.settle()
    view = await cluster.get(ROLE, "view")
    assert any("configmaps" in (rule.get("resources") or ()) for rule in view["rules"])
    extra: JsonObject = {
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "more", "labels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"}},
        "rules": [{"apiGroups": ["fastness.dev"], "resources": ["verdicts"], "verbs": ["get"]}],
    }  # fmt: skip
    await cluster.create(ROLE, extra)
    await loops.settle()
    assert extra["rules"][0] in (await cluster.get(ROLE, "view"))["rules"]


Step = tuple[str, int, int]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["create", "delete", "orphan", "foreground", "round"]), st.integers(0, 5), st.integers(0, 5)
    ),
    max_size=14,
)


@settings(max_examples=12)
@given(steps=STEPS, seed=st.integers(0, 2**16))
async def test_any_interleaving_comes_to_rest_with_no_dependent_of_a_missing_owner(
    steps: list[Step], seed: int
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        async with open_apiserver(ServerOptions(Path(directory)), PRODUCT) as server:
            await _play(server, steps, seed)


async def _play(server: ApiServer, steps: list[Step], seed: int) -> None:
    loops, cluster = Loops(server, seed), server.cluster
    for action, first, second in steps:
        name = f"c{first}"
        if action == "create":
            owner = server.api.store.get(_key(f"c{second}"))
            owners = [await cluster.get(CONFIG_MAP, f"c{second}", "default")] if owner and first != second else []
            if server.api.store.get(_key(name)) is None:
                await cluster.create(CONFIG_MAP, config_map(name, "default", *owners, block=second % 2 == 0))
        elif action == "round":
            await loops.round()
        else:
            policy = {"delete": "Background", "orphan": "Orphan", "foreground": "Foreground"}[action]
            try:
                await cluster.delete(CONFIG_MAP, name, "default", DeleteOptions(propagation=Propagation(policy)))
            except NotFound:
                continue
    await loops.settle()
    rest = (await cluster.list(CONFIG_MAP, Scope("default"))).items
    uids = {obj["metadata"]["uid"] for obj in rest}
    for obj in rest:
        assert not obj["metadata"].get("deletionTimestamp"), "something is stuck on its way out"
        assert {ref["uid"] for ref in obj["metadata"].get("ownerReferences") or ()} <= uids
    before = server.api.store.revision
    await loops.round()
    assert server.api.store.revision == before, "reconciling twice changes nothing"


def _key(name: str) -> Any:
    from fastness.apiserver.store import Key

    return Key("", "configmaps", "default", name)
