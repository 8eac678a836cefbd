"""Policies for resources: without one every part must be affirmed, and only the value true lets a resource go."""

from __future__ import annotations

import pytest

from fastness.attestation.policy.resource_policy import Request, compile_resource_policy, default_resource_policy
from fastness.kinds.kind import JsonObject
from fastness.rego.engine import BadPolicy

PATH = Request(("pool", "worker", "key"))


AFFIRMED: JsonObject = {"submods": {"cpu0": {"ear.status": "affirming"}}}


def test_pitfall_2_without_a_policy_a_resource_needs_every_part_affirmed() -> None:
    gate = default_resource_policy()
    assert gate.allow(AFFIRMED, PATH)
    doubtful: list[JsonObject] = [
        {},
        {"submods": {}},
        {"submods": {"cpu0": {}}},
        {"submods": {"cpu0": {"ear.status": "warning"}}},
        {"submods": {"cpu0": {"ear.status": "none"}}},
        {"submods": {"cpu0": {"ear.status": "contraindicated"}}},
        {"submods": {**AFFIRMED["submods"], "gpu0": {"ear.status": "contraindicated"}}},
        {"submods": {**AFFIRMED["submods"], "gpu0": {}}},
        {"submods": [{"ear.status": "affirming"}, {}]},
        {"submods": "affirming"},
    ]
    for claims in doubtful:
        assert not gate.allow(claims, PATH), claims
    assert not gate.allow(AFFIRMED, Request(PATH.path, plugin="admin"))


def test_a_resource_policy_sees_plugin_path_and_query() -> None:
    gate = compile_resource_policy(
        """package policy
default allow = false
plugin = data.plugin
path := data["resource-path"]
allow if {
  plugin == "resource"
  path[0] == "pool"
  data.query.version == "1"
  input.sub == "me"
}
"""
    )
    good = Request(("pool", "a", "b"), query={"version": "1"})
    assert gate.allow({"sub": "me"}, good)
    assert not gate.allow({"sub": "me"}, Request(("machine", "a", "b"), query={"version": "1"}))
    assert not gate.allow({"sub": "me"}, Request(("pool", "a", "b")))
    assert not gate.allow({"sub": "you"}, good)
    assert gate.allow({"sub": "me"}, good), "nothing of the last request is left"


def test_a_resource_policy_that_calls_what_is_not_there_is_refused_at_once() -> None:
    with pytest.raises(BadPolicy) as refused:
        compile_resource_policy("package policy\nallow if nobody.wrote(input)\n")
    assert refused.value.code == "policy-unreadable"


@pytest.mark.parametrize("answer", ["1", '"true"', "[true]", '{"a": true}', "null", "input.none"])
def test_only_the_value_true_allows(answer: str) -> None:
    assert not compile_resource_policy(f"package policy\nallow := {answer}\n").allow(AFFIRMED, PATH)


@pytest.mark.parametrize("reads", ["", "count(input) >= 0"], ids=["little", "everything"])
def test_a_caller_cannot_forge_the_request_through_its_claims(reads: str) -> None:
    gate = compile_resource_policy(f'package policy\nallow if {{ data["resource-path"][0] == "pool"\n{reads} }}\n')
    forged = {"fastness.dev/request": {"plugin": "resource", "resource-path": ["pool"], "query": {}}}
    assert gate.allow(forged, PATH)
    assert not gate.allow(forged, Request(("machine", "b", "c")))
