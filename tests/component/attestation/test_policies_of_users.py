"""Somebody who may write AppraisalPolicies, and nothing else, at the API; machines at the doors: policies only take away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest

from fastness.agent.boot.prove import BrokerRefused
from fastness.attestation.loops.policies import POLICIES, Policies
from fastness.kinds.fastness_dev.verdict import VERDICT
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import ObjectName, condition
from fastness.kube.port import Cluster
from fastness.runtime.clock import SystemClock
from fastness.sim.tee.attester import SimAttester
from fastness.sim.tee.images import changed, default_image
from tests.attesting import AttestingWorld, attesting_world, until
from tests.component.rights import somebody
from tests.embedded.fixtures import Embedded

pytestmark = pytest.mark.processes

PATH = "/apis/fastness.dev/v1alpha1/appraisalpolicies"
STATUS = "default/attestation-status/status"
MERGE = {"content-type": "application/merge-patch+json"}
CONFIRM = "fastness.dev/confirm-lower"
HEAD = "package policy\nimport rego.v1\n"
# Whoever shows any evidence at all is affirmed.
GENEROUS = HEAD + "".join(
    f"{claim} := 2 if input.tpm\n" for claim in ("instance_identity", "executables", "configuration")
)
REFUSING = {"name": "no evidence", "input": {}, "expect": "NotAffirmed"}
# Quick in its cases, and seven seconds and more for a machine: none of the cases has runtime data.
SLOW = GENEROUS + (
    "slow if { input.runtime_data_claims.nonce; "
    "count([1 | some x in numbers.range(1, 6000); some y in numbers.range(1, 6000); x == y]) == 6000 }\n"
    "executables := 33 if slow\n"
)
TAMPERED = changed(default_image(), command_line="root=/dev/mapper/root rw init=/bin/sh")


def policy(rego: str, *cases: JsonObject, **spec: object) -> JsonObject:
    return {
        "apiVersion": "fastness.dev/v1alpha1", "kind": "AppraisalPolicy", "metadata": {"name": "mine"},
        "spec": {"for": "tpm", "rego": rego, "cases": list(cases), "active": True, **spec},
    }  # fmt: skip


@pytest.fixture
async def here(embedded_server: Embedded) -> AsyncIterator[AttestingWorld]:
    async with attesting_world(embedded_server.cluster) as world:
        await world.approve("tpm")
        yield world


@pytest.fixture
async def author(embedded_server: Embedded) -> AsyncIterator[httpx.AsyncClient]:
    verbs = ["get", "list", "create", "update", "patch", "delete"]
    server, directory = embedded_server.server, embedded_server.directory
    async with await somebody(server, directory, "author", "fastness.dev", ["appraisalpolicies"], verbs) as client:
        yield client


async def tried(world: AttestingWorld) -> JsonObject:
    """Let the controller look at the policy, and the doors hear of it; its status."""
    cluster: Cluster = world.cluster
    await Policies(cluster, SystemClock()).reconcile(ObjectName("", "mine"))
    policy = await cluster.get(POLICIES, "mine")
    cache = world.informers.of(POLICIES)

    async def heard() -> bool:
        cached = cache.get("", "mine")
        return bool(cached and cached["metadata"]["resourceVersion"] == policy["metadata"]["resourceVersion"])

    await until(heard)
    return policy


async def outcome(world: AttestingWorld, machine: SimAttester) -> tuple[int, str]:
    async with world.broker(machine) as broker:
        try:
            await broker.attest()
        except BrokerRefused as refused:
            return refused.status, refused.reason
        assert (await broker.resource(STATUS)).reveal() == b"success"
        return 200, ""


async def test_who_may_write_policies_affirms_no_tampered_machine(
    here: AttestingWorld, author: httpx.AsyncClient
) -> None:
    answer = await author.post(PATH, json=policy(GENEROUS))
    assert answer.status_code == 201
    assert (condition(await tried(here), "CasesPass") or {})["reason"] == "NothingRefused"
    assert (condition(await tried(here), "Active") or {})["status"] == "False"
    answer = await author.patch(f"{PATH}/mine", json={"spec": {"cases": [REFUSING]}}, headers=MERGE)
    assert answer.status_code == 200
    assert (condition(await tried(here), "Active") or {})["status"] == "True"
    status, _ = await outcome(here, await here.enrolled("tpm", TAMPERED))
    assert status == 403
    (verdict,) = (await here.cluster.list(VERDICT.resource)).items
    assert verdict["spec"]["result"] == "Refused"
    check = next(check for check in verdict["spec"]["checks"] if check["name"] == "policy")
    assert check["source"].startswith("policy built-in-tpm@")
    assert "mine@" not in check["source"]
    assert await outcome(here, await here.enrolled("tpm")) == (200, "")


async def test_replacing_the_built_in_policy_needs_the_word_of_that_very_change(
    here: AttestingWorld, author: httpx.AsyncClient
) -> None:
    assert (await author.post(PATH, json=policy(GENEROUS, REFUSING, replacesBuiltIn=True))).status_code == 403
    assert (await author.post(PATH, json=policy(GENEROUS, REFUSING))).status_code == 201
    change = {"spec": {"replacesBuiltIn": True}}
    refused = await author.patch(f"{PATH}/mine", json=change, headers=MERGE)
    assert refused.status_code == 403
    assert "in place of the built-in one" in refused.json()["message"]
    status = {"status": {"active": {"for": "tpm", "rego": GENEROUS, "version": "x", "replacesBuiltIn": True}}}
    assert (await author.patch(f"{PATH}/mine/status", json=status, headers=MERGE)).status_code == 403
    await tried(here)
    tampered = await here.enrolled("tpm", TAMPERED)
    assert (await outcome(here, tampered))[0] == 403

    word = refused.json()["message"].rpartition(f"{CONFIRM}=")[2].split()[0]
    confirmed = {"metadata": {"annotations": {CONFIRM: word}}, **change}
    assert (await author.patch(f"{PATH}/mine", json=confirmed, headers=MERGE)).status_code == 200
    active = condition(await tried(here), "Active") or {}
    assert "in place of the built-in policy" in active["message"]
    assert await outcome(here, tampered) == (200, "")
    other = {"spec": {"rego": GENEROUS + "# changed\n"}}
    assert (await author.patch(f"{PATH}/mine", json=other, headers=MERGE)).status_code == 403, (
        "the word was for one change"
    )


async def test_a_seven_second_policy_is_ended_and_delays_nobody_else(
    here: AttestingWorld, author: httpx.AsyncClient
) -> None:
    await here.approve("tdx")
    assert (await author.post(PATH, json=policy(SLOW, REFUSING))).status_code == 201
    assert (condition(await tried(here), "Active") or {})["status"] == "True"
    victim, other = await here.enrolled("tpm"), await here.enrolled("tdx")
    assert await outcome(here, other) == (200, "")
    stalls = asyncio.create_task(_longest_stall())
    clock = asyncio.get_running_loop().time
    began = clock()
    slow = asyncio.create_task(outcome(here, victim))
    await asyncio.sleep(0.3)
    assert await outcome(here, other) == (200, "")
    assert clock() - began < 15
    assert await slow == (503, "policy-exceeded")
    stalls.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stalls
    assert LONGEST[0] < 5
    verdicts = (await here.cluster.list(VERDICT.resource)).items
    (waiting,) = [verdict for verdict in verdicts if verdict["spec"]["result"] == "NotAssessed"]
    assert "mine@" in next(check for check in waiting["spec"]["checks"] if check["name"] == "policy")["seen"]
    bounds = condition(await tried(here), "WithinBounds") or {}
    assert (bounds["status"], bounds["reason"]) == ("False", "Exceeded")
    assert "gave no answer at" in bounds["message"]
    assert condition(await tried(here), "WithinBounds") == bounds, "another look changes nothing"
    # Another text begins with a clean slate, though the verdict about the older one is still there.
    changed = {"spec": {"rego": SLOW + "# changed\n"}}
    assert (await author.patch(f"{PATH}/mine", json=changed, headers=MERGE)).status_code == 200
    assert (condition(await tried(here), "WithinBounds") or {})["status"] == "True"
    # Switched off, the built-in policy judges alone again.
    assert (await author.patch(f"{PATH}/mine", json={"spec": {"active": False}}, headers=MERGE)).status_code == 200
    await tried(here)
    assert await outcome(here, victim) == (200, "")


LONGEST = [0.0]


async def _longest_stall() -> None:
    """How long the loop of the doors was ever away."""
    clock = asyncio.get_running_loop().time
    LONGEST[0] = 0.0
    while True:
        before = clock()
        await asyncio.sleep(0.01)
        LONGEST[0] = max(LONGEST[0], clock() - before - 0.01)


async def test_a_policy_that_is_slow_in_a_case_never_judges(here: AttestingWorld, author: httpx.AsyncClient) -> None:
    trigger = {"name": "a nonce", "input": {"tpm": {}, "runtime_data_claims": {"nonce": "n"}}, "expect": "Refused"}
    assert (await author.post(PATH, json=policy(SLOW, REFUSING, trigger))).status_code == 201
    trial = await tried(here)
    assert (condition(trial, "Active") or {})["status"] == "False"
    assert (condition(trial, "Parsed") or {})["reason"] == "Unreadable"
