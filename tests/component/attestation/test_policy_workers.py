"""Processes for policies of users: the same answers, bounds on time and memory, nothing to reach, nobody held up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fastness.domain.attestation.policy import Request
from fastness.domain.attestation.policyquery import ActivePolicy, Answer, about_evidence, about_resource
from fastness.trust.policyworkers import SUSPENDED_SECONDS, PolicyWorkers, Worker, WorkerEnded, asked_alone
from tests.unit.domain.attestation.policyinputs import book
from tests.virtual import VirtualClock

HEAD = "package policy\nimport rego.v1\n"
SLOW = "count([1 | some x in numbers.range(1, 6000); some y in numbers.range(1, 6000); x == y]) == 6000"
HUNGRY = {
    "one great list": "count([x | some x in numbers.range(1, 40000000)]) > 3",
    "many small ones": "count([[y | some y in numbers.range(1, 1000)] | some x in numbers.range(1, 100000)]) > 3",
    "a text": 'count(concat("", [sprintf("%0100000d", [x]) | some x in numbers.range(1, 20000)])) > 3',
}


def policy(body: str, name: str = "mine") -> ActivePolicy:
    return ActivePolicy(name, "snp", HEAD + f"default hardware := 97\nhardware := 2 if {{ {body} }}\n", "v")


@pytest.fixture
async def workers() -> AsyncIterator[PolicyWorkers]:
    async with PolicyWorkers(VirtualClock(), processes=2, each=1) as made:
        yield made


async def ask(workers: PolicyWorkers, body: str, document: object = 1) -> Answer:
    return await workers.answer(about_evidence(policy(body), {"a": document}, book({"n": ["1"]})))


async def test_it_answers_and_remembers_by_what_the_policy_read(
    workers: PolicyWorkers, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = 'input.a in query_reference_value("n")'
    assert (await ask(workers, body, "1")).value == {"hardware": 2}
    assert (await ask(workers, body, "2")).value == {"hardware": 97}
    dated = f"{body}; time.now_ns() > 0"
    assert (await ask(workers, dated, "1")).value == {"hardware": 2}
    asked = list[object]()

    async def count(worker: Worker, job: object, seconds: float) -> object:
        asked.append(job)
        return {"value": {}, "error": "", "clock": False}

    monkeypatch.setattr(Worker, "ask", count)
    assert (await ask(workers, body, "1")).value == {"hardware": 2}
    assert asked == []
    await ask(workers, dated, "1")
    assert len(asked) == 1, "what was answered by the clock is asked again"


async def test_it_answers_for_resources(workers: PolicyWorkers) -> None:
    mine = ActivePolicy(
        "mine", "*/*/*", HEAD + 'allow if { input.sub == "me"; data["resource-path"][0] == "a" }\n', "v"
    )
    for sub, path, allowed in (("me", "a", True), ("you", "a", False), ("me", "b", False)):
        answer = await workers.answer(about_resource(mine, {"sub": sub}, Request((path, "b", "c"))))
        assert answer.value is allowed


async def test_a_text_that_is_no_policy_any_more_gives_an_error(workers: PolicyWorkers) -> None:
    assert "cannot be compiled" in (await ask(workers, "{")).error
    assert "may not call opa.runtime" in (await ask(workers, "opa.runtime()")).error


async def test_a_policy_that_takes_too_long_is_ended_told_and_left_alone_for_a_while(workers: PolicyWorkers) -> None:
    told = list[str]()
    workers.tell = lambda policy, reason: told.append(f"{policy.label}: {reason}")
    late = await ask(workers, f"input.a == 7; {SLOW}", 7)
    assert late.exceeded
    assert told == [f"mine@v: {late.exceeded}"]
    clock = asyncio.get_running_loop().time
    began = clock()
    assert (await ask(workers, f"input.a == 7; {SLOW}", 8)).exceeded
    assert clock() - began < 1
    assert isinstance(workers._clock, VirtualClock)
    await workers._clock.advance(SUSPENDED_SECONDS + 1)
    assert (await ask(workers, f"input.a == 7; {SLOW}", 8)).value == {"hardware": 97}


async def test_a_slow_policy_never_has_every_process(workers: PolicyWorkers) -> None:
    assert (await ask(workers, "input.a == 1")).value == {"hardware": 2}
    slow = [asyncio.create_task(ask(workers, SLOW, number)) for number in range(3)]
    await asyncio.sleep(0.1)
    clock = asyncio.get_running_loop().time
    began = clock()
    assert (await ask(workers, "input.a == 1", 2)).value == {"hardware": 97}
    assert clock() - began < 5
    assert all(answer.exceeded for answer in await asyncio.gather(*slow))


@pytest.mark.parametrize("body", HUNGRY.values(), ids=HUNGRY.keys())
async def test_a_policy_that_fills_the_memory_is_ended(workers: PolicyWorkers, body: str) -> None:
    answer = await ask(workers, body)
    assert answer.exceeded or answer.error
    assert (await ask(workers, "input.a == 1")).value == {"hardware": 2}


async def test_a_process_has_nothing_to_reach() -> None:
    worker = await Worker.start()
    try:
        place = Path(f"/proc/{worker._process.pid}")
        environment = dict(entry.split("=", 1) for entry in (place / "environ").read_text().split("\0") if entry)
        assert sorted(environment) == ["LC_ALL", "PATH"]
        limits = {line[:25].strip(): line[26:].split()[:2] for line in (place / "limits").read_text().splitlines()[1:]}
        for name in ("Max open files", "Max file size", "Max core file size"):
            assert limits[name] == ["0", "0"], name
        assert "NoNewPrivs:\t1" in (place / "status").read_text()
        opened = [path.readlink().as_posix() for path in (place / "fd").iterdir()]
        assert [name for name in opened if not name.startswith(("pipe:", "/dev/null", "anon_inode"))] == []
    finally:
        await worker.end()


async def test_a_process_that_nobody_waits_for_is_gone() -> None:
    job = {"do": "trial", "spec": {"for": "snp", "rego": policy(SLOW).rego, "cases": []}}
    task = asyncio.create_task(asked_alone(job, 30))
    await asyncio.sleep(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    with pytest.raises(WorkerEnded) as ended:
        await asked_alone({"do": "evidence", "rego": policy(SLOW).rego, "input": {}, "data": {}, "digest": ""}, 0.2)
    assert ended.value.code == "policy-too-slow"
