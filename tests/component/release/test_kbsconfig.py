"""KbsConfig and TrusteeConfig: ready when what they name is there, and then in force until they go."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fastness.attestation.loops.policies import Policies
from fastness.attestation.status.collateral import CollateralState
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.objects import ObjectName
from fastness.kube.controllers import Runner
from fastness.kube.controllers.controller import Controller
from fastness.kube.controllers.fenced import FencedCluster
from fastness.kube.controllers.misplaced import Elsewhere
from fastness.kube.errors import AlreadyExists, ApiError
from fastness.kube.events import EVENTS
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster, PatchType
from fastness.release.kbs_config import derive
from fastness.release.loops.kbs_config import (
    CONFIDENTIAL,
    CONFIGS,
    MAPS,
    POLICIES,
    SECRETS,
    SETS,
    TRUSTEES,
    KbsConfigs,
    TrusteeConfigs,
)
from fastness.runtime.clock import SystemClock, SystemEntropy
from tests.attesting import until
from tests.embedded.fixtures import Embedded
from tests.patience import PATIENCE

HERE = "fastness-system"
ELSEWHERE = "default"
CLOCK, ENTROPY = SystemClock(), SystemEntropy()
REGO = "package policy\nimport rego.v1\ndefault allow := false\n"
EVIDENCE = "package policy\nimport rego.v1\ndefault executables := 33\n"
NAMES = {
    "kbsResourcePolicyConfigMapName": "resource-policy",
    "kbsAttestationPolicyConfigMapName": "attestation-policy",
    "kbsRvpsRefValuesConfigMapName": "values",
}


class World:
    """The loops over a running cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    async def make(self, resource: Resource, name: str, namespace: str = HERE, **content: Any) -> None:
        meta = {"name": name, **({"namespace": namespace} if resource.namespaced else {})}
        made = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": meta, **content}
        try:
            await self.cluster.create(resource, made)
        except AlreadyExists:
            await self.cluster.patch(resource, name, content, PatchType.MERGE, namespace)

    async def maps(self, **values: object) -> None:
        await self.make(MAPS, "resource-policy", data={"policy.rego": REGO})
        await self.make(MAPS, "attestation-policy", data={"default_cpu.rego": EVIDENCE})
        await self.make(MAPS, "values", data={"reference-values.json": json.dumps(values or {"tpm_pcr4": ["aa"]})})

    async def ready(self, name: str = "kbs", namespace: str = HERE, resource: Resource = CONFIGS) -> Any:
        config = await self.cluster.get(resource, name, namespace)
        return (config.get("status") or {}).get("isReady")

    async def becomes(
        self, expected: bool, name: str = "kbs", namespace: str = HERE, resource: Resource = CONFIGS
    ) -> None:
        async with asyncio.timeout(PATIENCE):
            while True:
                if await self.ready(name, namespace, resource) is expected:
                    return
                await asyncio.sleep(0.02)

    async def messages(self) -> str:
        return "\n".join(event["message"] for event in (await self.cluster.list(EVENTS)).items)

    async def names(self, resource: Resource) -> list[str]:
        return [obj["metadata"]["name"] for obj in (await self.cluster.list(resource)).items]

    async def settled(self, resource: Resource, count: int) -> list[JsonObject]:
        async with asyncio.timeout(PATIENCE):
            while True:
                objects = (await self.cluster.list(resource)).items
                if len(objects) == count:
                    return objects
                await asyncio.sleep(0.02)


@asynccontextmanager
async def running(cluster: Cluster) -> AsyncIterator[World]:
    def fenced(kind: type[KbsConfigs] | type[TrusteeConfigs] | type[Policies] | type[Elsewhere]) -> FencedCluster:
        return FencedCluster(cluster, kind.name, kind.writes)

    async with Informers(cluster, clock=CLOCK, entropy=ENTROPY) as informers:
        loops: list[Controller] = [
            KbsConfigs(fenced(KbsConfigs), informers, CLOCK),
            TrusteeConfigs(fenced(TrusteeConfigs), informers, CLOCK),
            Policies(fenced(Policies), CLOCK),
            Elsewhere(fenced(Elsewhere), informers, CLOCK),
        ]
        async with asyncio.TaskGroup() as group:
            task = group.create_task(Runner(loops, informers, CLOCK, ENTROPY).run())
            yield World(cluster)
            task.cancel()


@pytest.fixture
async def world(embedded_server: Embedded) -> AsyncIterator[World]:
    async with running(embedded_server.cluster) as made:
        yield made


async def test_config_maps_become_policies_and_values_and_go_with_the_config(world: World) -> None:
    await world.maps()
    await world.make(CONFIGS, "kbs", spec=NAMES)
    await world.becomes(True)
    policies = await world.settled(POLICIES, 4)
    assert {policy["spec"]["for"]: policy["spec"]["rego"] for policy in policies} == {
        "*/*/*": REGO, "tpm": EVIDENCE, "tdx": EVIDENCE, "snp": EVIDENCE,
    }  # fmt: skip
    (values,) = await world.settled(SETS, 1)
    assert [(value["name"], value["value"]) for value in values["spec"]["values"]] == [("tpm_pcr4", "aa")]
    await world.cluster.delete(CONFIGS, "kbs", HERE)
    await world.settled(POLICIES, 0)
    await world.settled(SETS, 0)


async def test_a_changed_config_map_changes_what_it_became(world: World) -> None:
    await world.maps()
    await world.make(CONFIGS, "kbs", spec=NAMES)
    await world.settled(SETS, 1)
    await world.maps(tpm_pcr4=["bb", "cc"])
    async with asyncio.timeout(PATIENCE):
        while True:
            (values,) = await world.settled(SETS, 1)
            if [value["value"] for value in values["spec"]["values"]] == ["bb", "cc"]:
                break
            await asyncio.sleep(0.02)


async def test_a_hand_edit_of_what_was_derived_is_put_back(world: World) -> None:
    await world.maps()
    await world.make(CONFIGS, "kbs", spec={"kbsResourcePolicyConfigMapName": "resource-policy"})
    (policy,) = await world.settled(POLICIES, 1)
    name = policy["metadata"]["name"]
    await world.cluster.patch(POLICIES, name, {"spec": {"rego": "package other"}}, PatchType.MERGE)
    async with asyncio.timeout(PATIENCE):
        while True:
            if (await world.cluster.get(POLICIES, name))["spec"]["rego"] == REGO:
                break
            await asyncio.sleep(0.02)
    await world.cluster.delete(POLICIES, name)
    await world.settled(POLICIES, 1)


async def test_what_is_missing_or_unreadable_is_told_and_what_was_there_stays(world: World) -> None:
    await world.maps()
    await world.make(CONFIGS, "kbs", spec={**NAMES, "kbsSecretResources": ["keys"]})
    await world.becomes(False)
    assert "the Secret keys does not exist" in await world.messages()
    await world.make(SECRETS, "keys", type="Opaque", data={})
    await world.becomes(True)
    await world.settled(POLICIES, 4)
    await world.make(MAPS, "values", data={"reference-values.json": "not json"})
    await world.becomes(False)
    assert "reference-values.json" in await world.messages()
    assert len(await world.names(POLICIES)) == 4
    assert len(await world.names(SETS)) == 1
    await world.cluster.delete(MAPS, "values", HERE)
    await world.maps()
    await world.becomes(True)


async def test_configs_elsewhere_change_nothing(world: World) -> None:
    for name in ("resource-policy", "attestation-policy"):
        await world.make(MAPS, name, ELSEWHERE, data={"policy.rego": REGO, "default.rego": EVIDENCE})
    await world.make(CONFIGS, "kbs", ELSEWHERE, spec={name: NAMES[name] for name in list(NAMES)[:2]})
    await world.becomes(False, namespace=ELSEWHERE)
    await world.make(TRUSTEES, "trustee", ELSEWHERE, spec={"profileType": "Restricted"})
    await world.becomes(False, "trustee", ELSEWHERE, TRUSTEES)
    assert await world.names(POLICIES) == []


async def test_a_secret_is_offered_by_the_first_config_alone(world: World) -> None:
    await world.make(SECRETS, "keys", type="Opaque", data={})
    await world.make(CONFIGS, "aaa", spec={"kbsSecretResources": ["keys"]})
    await world.becomes(True, "aaa")
    await world.make(CONFIGS, "bbb", spec={"kbsSecretResources": ["keys"]})
    await world.becomes(False, "bbb")
    assert "offered by fastness-system/aaa already" in await world.messages()
    assert await world.ready("aaa") is True


async def broker_tells(world: World) -> None:
    """What a broker that runs writes down every while."""
    entry = {"broker-1": CollateralState().to_text(CLOCK.now())}
    await world.make(MAPS, "collateral", "fastness-system", data=entry)


@pytest.mark.row("001-85")
async def test_a_config_whose_policy_is_refused_is_not_ready_and_says_which(world: World) -> None:
    await world.make(MAPS, "policy", data={"policy.rego": "package policy\nallow { this is no rego"})
    await world.make(CONFIGS, "kbs", spec={"kbsResourcePolicyConfigMapName": "policy"})
    await world.becomes(False)
    await until(lambda: _tells(world, "the policy for */*/* is not in use"))
    good = {"data": {"policy.rego": REGO}}
    await world.cluster.patch(MAPS, "policy", good, PatchType.MERGE, HERE)
    await world.becomes(True)


async def _tells(world: World, words: str) -> bool:
    return words in await world.messages()


async def test_a_trustee_config_is_ready_only_while_a_broker_runs(world: World) -> None:
    await world.make(TRUSTEES, "trustee", spec={"profileType": "Restricted"})
    await world.becomes(False, "trustee", resource=TRUSTEES)
    trustee = await world.cluster.get(TRUSTEES, "trustee", HERE)
    assert trustee["status"]["conditions"][0]["reason"] == "NoBroker"
    await broker_tells(world)
    await world.becomes(True, "trustee", resource=TRUSTEES)
    trustee = await world.cluster.get(TRUSTEES, "trustee", HERE)
    assert "no Service, Route or KbsConfig is made" in trustee["status"]["conditions"][0]["message"]


async def test_permissive_is_refused_where_the_cluster_enforces(world: World) -> None:
    await broker_tells(world)
    await world.make(TRUSTEES, "trustee", spec={"profileType": "Permissive"})
    await world.becomes(True, "trustee", resource=TRUSTEES)
    await world.make(CONFIDENTIAL, "cluster", spec={"mode": "Enforce", "simulated": True})
    await world.becomes(False, "trustee", resource=TRUSTEES)
    trustee = await world.cluster.get(TRUSTEES, "trustee", HERE)
    assert trustee["status"]["conditions"][0]["reason"] == "PermissiveRefused"
    await world.cluster.patch(TRUSTEES, "trustee", {"spec": {"profileType": "Restricted"}}, PatchType.MERGE, HERE)
    await world.becomes(True, "trustee", resource=TRUSTEES)


async def test_reconciling_twice_changes_nothing(embedded_server: Embedded) -> None:
    cluster = embedded_server.cluster
    here = World(cluster)
    await here.maps()
    await here.make(CONFIGS, "kbs", spec=NAMES)
    async with Informers(cluster, clock=CLOCK, entropy=ENTROPY) as informers:
        loop = KbsConfigs(FencedCluster(cluster, KbsConfigs.name, KbsConfigs.writes), informers, CLOCK)
        await informers.synced()
        await loop.reconcile(ObjectName(HERE, "kbs"))
        before = [(await cluster.list(resource)).items for resource in (POLICIES, SETS, CONFIGS, EVENTS)]
        await loop.reconcile(ObjectName(HERE, "kbs"))
        assert before == [(await cluster.list(resource)).items for resource in (POLICIES, SETS, CONFIGS, EVENTS)]


NOW = datetime(2026, 11, 1, tzinfo=UTC)


def _derived(text: str) -> Any:
    config = {"metadata": {"name": "kbs", "namespace": HERE}, "spec": {"kbsRvpsRefValuesConfigMapName": "v"}}
    return derive(config, {"v": {"data": {"reference-values.json": text}}}, NOW)


def test_entries_that_expired_are_left_out_and_the_set_ends_with_the_first_of_the_others() -> None:
    soon, later = NOW + timedelta(hours=1), NOW + timedelta(hours=2)
    derived = _derived(
        json.dumps([
            {"name": "old", "expiration": "2020-01-01T00:00:00Z", "value": ["x"]},
            {"name": "a", "expiration": soon.isoformat(), "value": ["1"]},
            {"name": "b", "expiration": later.isoformat(), "hash-value": [{"alg": "sha384", "value": "2"}]},
            {"name": "c", "value": 3},
        ])
    )  # fmt: skip
    (made,) = derived.sets.values()
    assert {value["name"] for value in made["spec"]["values"]} == {"a", "b", "c"}
    assert (made["spec"]["validity"]["notAfter"], derived.until) == ("2026-11-01T01:00:00Z", soon)


@pytest.mark.parametrize(
    "text",
    ["", "3", "[3]", '[{"value": 1}]', '[{"name": "a"}]', '[{"name": "a", "value": {}}]', '[{"name": "a", "hash-value": [1]}]',
     '[{"name": "a", "value": "b", "expiration": "soon"}]', '[{"name": "a", "value": "b", "expiration": "2026-01-01T00:00:00"}]'],
)  # fmt: skip
def test_values_that_are_none_are_problems_and_give_nothing(text: str) -> None:
    derived = _derived(text)
    assert derived.problems
    assert not derived.sets


def test_a_mapping_without_the_map_is_a_problem() -> None:
    config: Mapping[str, Any] = {"metadata": {"name": "k", "namespace": HERE}, "spec": NAMES}
    assert len(derive(config, {}, NOW).problems) == 3
    assert issubclass(AlreadyExists, ApiError)
