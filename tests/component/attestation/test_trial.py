"""Trying a policy in a process of its own: whatever the text does to the engine, the caller lives and says no."""

from __future__ import annotations

import asyncio

import pytest

from fastness.attestation.live.policy_workers import run_trial
from fastness.attestation.policy.cases import try_policy
from fastness.attestation.policy.policy import built_in_text
from fastness.kinds.kind import JsonObject
from tests.unit.attestation.policyinputs import GOOD_VALUES, good_input

HEAD = "package policy\nimport rego.v1\n"
HUNGRY = HEAD + "hardware := 2 if count([x | some x in numbers.range(1, 40000000)]) > 3\n"
SLOW = (
    HEAD
    + "hardware := 2 if count([1 | some x in numbers.range(1, 3000); some y in numbers.range(1, 3000); x == y]) < 0\n"
)


def spec(rego: str, *cases: JsonObject) -> JsonObject:
    return {"for": "tpm", "rego": rego, "cases": list(cases)}


async def test_a_child_gives_the_same_answer_as_this_process() -> None:
    good = {"name": "good", "input": good_input("tpm"), "data": GOOD_VALUES["tpm"], "expect": "Affirmed"}
    bad = {"name": "bad", "input": {}, "expect": "Affirmed"}
    for policy in (spec(built_in_text("tpm"), good, bad), spec("package policy\nhardware := {"), spec("")):
        assert await run_trial(policy) == try_policy(policy)


async def test_a_text_that_ends_the_engine_is_a_policy_that_does_not_parse() -> None:
    trial = await run_trial(spec(HUNGRY))
    assert (trial.parsed, trial.code) == (False, "policy-breaks-engine")


async def test_a_text_that_runs_too_long_is_ended() -> None:
    trial = await run_trial(spec(SLOW), seconds=1.0)
    assert (trial.parsed, trial.code) == (False, "policy-too-slow")


async def test_a_trial_that_nobody_waits_for_leaves_no_process_behind() -> None:
    task = asyncio.create_task(run_trial(spec(SLOW)))
    await asyncio.sleep(0.3)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
