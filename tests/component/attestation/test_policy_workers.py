"""Processes for policies of users: the same answers, bounds on time and memory, nothing to reach, nobody held up."""

from __future__ import annotations

import asyncio
import errno
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fastness.attestation.live.policy_workers import SUSPENDED_SECONDS, PolicyWorkers
from fastness.attestation.policy.query import ActivePolicy, Answer, about_evidence
from fastness.attestation.policy.resource_policy import Request, about_resource
from fastness.rego.sandbox import _PLACE, Worker, WorkerEnded, in_sandbox
from fastness.rego.tasks import Task
from tests.patience import PATIENCE
from tests.unit.attestation.policyinputs import book
from tests.virtual import VirtualClock

pytestmark = pytest.mark.processes

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
    documents = list[object]()

    async def count(worker: Worker, task: Task, document: object, seconds: float) -> object:
        documents.append(document)
        return {"value": {}, "error": "", "clock": False}

    monkeypatch.setattr(Worker, "ask", count)
    assert (await ask(workers, body, "1")).value == {"hardware": 2}
    assert documents == []
    await ask(workers, dated, "1")
    assert len(documents) == 1, "what was answered by the clock is asked again"


async def test_it_answers_for_resources(workers: PolicyWorkers) -> None:
    mine = ActivePolicy(
        "mine", "*/*/*", HEAD + 'allow if { input.sub == "me"; data["resource-path"][0] == "a" }\n', "v"
    )
    for sub, path, allowed in (("me", "a", True), ("you", "a", False), ("me", "b", False)):
        answer = await workers.answer(about_resource(mine, {"sub": sub}, Request((path, "b", "c"))))
        assert answer.value is allowed


async def test_a_text_that_is_no_policy_any_more_gives_an_error(workers: PolicyWorkers) -> None:
    for text, words in (("{", "cannot be compiled"), ("opa.runtime()", "may not call opa.runtime")):
        error = (await ask(workers, text)).error
        assert error is not None
        assert words in error


async def test_a_policy_that_takes_too_long_is_ended_told_and_left_alone_for_a_while(
    workers: PolicyWorkers, monkeypatch: pytest.MonkeyPatch
) -> None:
    reports = list[str]()
    workers.tell = lambda policy, reason: reports.append(f"{policy.label}: {reason}")
    late = await ask(workers, f"input.a == 7; {SLOW}", 7)
    assert late.exceeded
    assert reports == [f"mine@v: {late.exceeded}"]
    with monkeypatch.context() as meanwhile:
        meanwhile.delattr(Worker, "ask")  # no process is asked
        assert (await ask(workers, f"input.a == 7; {SLOW}", 8)).exceeded
    assert isinstance(workers._clock, VirtualClock)
    await workers._clock.advance(SUSPENDED_SECONDS + 1)
    assert (await ask(workers, f"input.a == 7; {SLOW}", 8)).value == {"hardware": 97}


async def test_a_slow_policy_never_has_every_process(workers: PolicyWorkers) -> None:
    assert (await ask(workers, "input.a == 1")).value == {"hardware": 2}
    slow = [asyncio.create_task(ask(workers, SLOW, number)) for number in range(3)]
    await asyncio.sleep(0.1)
    assert (await ask(workers, "input.a == 1", 2)).value == {"hardware": 97}
    assert not all(task.done() for task in slow), "it was answered while a slow one still ran"
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
        # Each thread has its own filter: there is one thread, or all of them have it.
        for thread in (place / "task").iterdir():
            assert "Seccomp:\t2" in (thread / "status").read_text()
        opened = [path.readlink().as_posix() for path in (place / "fd").iterdir()]
        assert [name for name in opened if not name.startswith(("pipe:", "/dev/null", "anon_inode"))] == []
    finally:
        await worker.end()


async def test_a_process_that_nobody_waits_for_is_gone() -> None:
    spec = {"for": "snp", "rego": policy(SLOW).rego, "cases": []}
    task = asyncio.create_task(in_sandbox(Task.TRIAL, {"spec": spec}))
    await asyncio.sleep(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    with pytest.raises(WorkerEnded) as ended:
        await in_sandbox(Task.EVIDENCE, {"rego": policy(SLOW).rego, "input": {}, "data": {}, "digest": ""}, 0.2)
    assert ended.value.code == "policy-too-slow"


# What somebody would try who found a hole in the engine: none of it needs a descriptor, so limits on resources do not stop it.
ESCAPES = """
import ctypes, os, resource, signal, sys
sys.path.insert(0, sys.argv[1]); from fastness.rego.worker import confine
victim, file = int(sys.argv[2]), sys.argv[3]
sink = os.dup(1)
kernel = ctypes.CDLL(None, use_errno=True)
own = ctypes.create_string_buffer(8)
class Piece(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))
piece = Piece(ctypes.addressof(own), 8)
def read_memory():
    if kernel.process_vm_readv(victim, ctypes.byref(piece), 1, ctypes.byref(piece), 1, 0) < 0:
        raise OSError(ctypes.get_errno(), "")
attempts = {
    "signal": lambda: os.kill(victim, 0), "trace": lambda: read_memory(), "rename": lambda: os.rename(file, file + "2"),
    "delete": lambda: os.unlink(file), "mode": lambda: os.chmod(file, 0o777), "run": lambda: os.execv("/bin/true", ["true"]),
    "look": lambda: os.stat(file), "limits": lambda: resource.prlimit(victim, resource.RLIMIT_NOFILE),
}
confined = confine()
results = []
for name, attempt in attempts.items():
    try:
        attempt()
    except OSError as error:
        results.append(f"{name}={error.errno}")
    else:
        results.append(f"{name}=done")
os.write(sink, " ".join([str(confined), *results]).encode())
"""


def test_a_process_for_policies_can_do_nothing_to_the_door_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "vault.json"
    file.write_text("secret")
    words = [sys.executable, "-I", "-c", ESCAPES, _PLACE, str(os.getpid()), str(file)]
    result = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE, check=False)
    confined, *attempts = result.stdout.split()
    assert confined == "True", result.stderr
    assert attempts == [
        f"{name}={errno.EPERM}" for name in ("signal", "trace", "rename", "delete", "mode", "run", "look", "limits")
    ]
    assert file.read_text() == "secret"
