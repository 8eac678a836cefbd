"""A policy judges only after it was read and passed its cases; one that does not leaves the older one in charge."""

from __future__ import annotations

from pathlib import Path

import pytest

from fastness.apiserver import ServerOptions, open_apiserver
from fastness.app.product import PRODUCT
from fastness.attestation.live.policy_workers import run_trial
from fastness.attestation.loops.images import IMAGES
from fastness.attestation.loops.policies import POLICIES
from fastness.kinds.kind import JsonObject
from fastness.kube.port import DELETE, PatchType
from tests.component.attestation.approvals import approved_image, quoted, world
from tests.embedded.fixtures import Embedded

STRICT = """package policy
import rego.v1
default executables := 33
default configuration := 2
default instance_identity := 2
executables := 3 if input.tpm.pcr09 == "aa"
"""
GOOD = {"name": "good", "input": {"tpm": {"pcr09": "aa"}}, "expect": "Affirmed", "expectVector": {"executables": 3}}
BAD = {"name": "bad", "input": {"tpm": {"pcr09": "bb"}}, "expect": "Refused"}


def machine(pcr09: str) -> JsonObject:
    """What a machine of the approved image shows; the built-in policy does not look at PCR 9."""
    document = quoted()
    document["tpm"]["pcr09"] = pcr09
    return document


def policy(rego: str = STRICT, cases: list[JsonObject] | None = None, **spec: object) -> JsonObject:
    return {
        "apiVersion": POLICIES.api_version,
        "kind": "AppraisalPolicy",
        "metadata": {"name": "mine"},
        "spec": {"for": "tpm", "rego": rego, "cases": [GOOD, BAD] if cases is None else cases, "active": True, **spec},
    }


async def test_a_policy_that_passes_its_cases_judges_beside_the_built_in_one(embedded_server: Embedded) -> None:
    async with world(embedded_server.cluster) as here:
        await here.cluster.create(IMAGES, approved_image())
        await here.settle()
        await here.cluster.create(POLICIES, policy())
        assert (await here.judge(machine("bb"))).affirms("tpm"), "nobody has tried it yet"
        await here.settle()
        assert (await here.judge(machine("aa"))).affirms("tpm")
        assert not (await here.judge(machine("bb"))).affirms("tpm")
        assert not (await here.judge({"tpm": {"pcr09": "aa"}})).affirms("tpm"), "the built-in policy judges too"
        status = (await here.cluster.get(POLICIES, "mine"))["status"]
        assert status["cases"] == "2/2"
        assert {entry["type"]: entry["status"] for entry in status["conditions"]} == {
            "Parsed": "True",
            "CasesPass": "True",
            "Active": "True",
        }


@pytest.mark.parametrize("cases", [[], [GOOD]], ids=["none", "none-that-refuses"])
async def test_a_policy_without_a_case_that_it_refuses_is_not_activated(
    embedded_server: Embedded, cases: list[JsonObject]
) -> None:
    async with world(embedded_server.cluster) as here:
        await here.cluster.create(POLICIES, policy(cases=cases))
        await here.settle()
        assert (await here.condition(POLICIES, "mine", "CasesPass"))["reason"] == "NothingRefused"
        assert (await here.condition(POLICIES, "mine", "Active"))["status"] == "False"
        assert "active" not in (await here.cluster.get(POLICIES, "mine"))["status"]


@pytest.mark.parametrize(
    ("broken", "conditions"),
    [
        ({"rego": "package policy\nexecutables := {"}, {"Parsed": "False", "CasesPass": "Unknown"}),
        ({"rego": STRICT.replace('"aa"', '"bb"')}, {"Parsed": "True", "CasesPass": "False"}),
        ({"rego": STRICT.replace("33", "3"), "cases": []}, {"Parsed": "True", "CasesPass": "False"}),
    ],
    ids=["unreadable", "failing-case", "accepts-nothing-at-all"],
)
async def test_a_policy_that_does_not_pass_leaves_the_older_one_in_charge(
    embedded_server: Embedded, broken: JsonObject, conditions: dict[str, str]
) -> None:
    async with world(embedded_server.cluster) as here:
        await here.cluster.create(IMAGES, approved_image())
        await here.cluster.create(POLICIES, policy())
        await here.settle()
        await here.cluster.patch(POLICIES, "mine", {"spec": broken}, PatchType.MERGE)
        await here.settle()
        status = (await here.cluster.get(POLICIES, "mine"))["status"]
        statuses = {entry["type"]: entry["status"] for entry in status["conditions"]}
        assert statuses == {**conditions, "Active": "True"}
        assert next(entry for entry in status["conditions"] if entry["type"] == "Active")["reason"] == "OlderVersion"
        assert status["active"]["rego"] == STRICT
        assert (await here.judge(machine("aa"))).affirms("tpm")
        assert not (await here.judge(machine("bb"))).affirms("tpm")


async def test_a_first_policy_that_does_not_pass_never_judges(embedded_server: Embedded) -> None:
    async with world(embedded_server.cluster) as here:
        await here.cluster.create(IMAGES, approved_image())
        await here.cluster.create(POLICIES, policy("package policy\nexecutables := ("))
        await here.settle()
        assert "active" not in (await here.cluster.get(POLICIES, "mine"))["status"]
        assert (await here.judge(quoted())).affirms("tpm"), "the built-in policy judges"


async def test_the_older_text_stays_active_across_a_restart(tmp_path: Path) -> None:
    options = ServerOptions(tmp_path / "state")
    async with open_apiserver(options, PRODUCT) as server, world(server.cluster) as here:
        await here.cluster.create(IMAGES, approved_image())
        await here.cluster.create(POLICIES, policy())
        await here.settle()
        await here.cluster.patch(POLICIES, "mine", {"spec": {"rego": "package policy\nx := {"}}, PatchType.MERGE)
        await here.settle()
    async with open_apiserver(options, PRODUCT) as server, world(server.cluster) as here:
        assert (await here.judge(machine("aa"))).affirms("tpm"), "before any loop has run"
        await here.settle()
        assert (await here.judge(machine("aa"))).affirms("tpm")
        assert not (await here.judge(machine("bb"))).affirms("tpm")


async def test_switching_off_or_deleting_leaves_the_built_in_policy_alone(embedded_server: Embedded) -> None:
    async with world(embedded_server.cluster) as here:
        await here.cluster.create(IMAGES, approved_image())
        await here.cluster.create(POLICIES, policy())
        await here.settle()
        assert not (await here.judge(machine("bb"))).affirms("tpm")
        await here.cluster.patch(POLICIES, "mine", {"spec": {"active": False}}, PatchType.MERGE)
        await here.settle()
        assert (await here.judge(machine("bb"))).affirms("tpm")
        await here.cluster.patch(POLICIES, "mine", {"spec": {"active": True}}, PatchType.MERGE)
        await here.settle()
        assert not (await here.judge(machine("bb"))).affirms("tpm")
        await here.cluster.delete(POLICIES, "mine", "", DELETE)
        assert (await here.judge(machine("bb"))).affirms("tpm")


async def test_a_text_that_kills_the_engine_is_refused_by_a_controller_that_lives(embedded_server: Embedded) -> None:
    hungry = (
        "package policy\nimport rego.v1\nexecutables := 3 if count([x | some x in numbers.range(1, 40000000)]) > 3\n"
    )
    async with world(embedded_server.cluster, attempt=run_trial) as here:
        await here.cluster.create(POLICIES, policy(hungry, []))
        await here.settle(1)
        parsed = await here.condition(POLICIES, "mine", "Parsed")
        assert parsed["status"] == "False"
        assert "engine ended" in parsed["message"]
        assert "active" not in (await here.cluster.get(POLICIES, "mine"))["status"]


async def test_another_look_changes_nothing(embedded_server: Embedded) -> None:
    async with world(embedded_server.cluster) as here:
        await here.cluster.create(POLICIES, policy())
        await here.settle()
        before = embedded_server.server.api.store.revision
        await here.settle()
        assert embedded_server.server.api.store.revision == before
