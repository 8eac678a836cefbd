"""Processes that run policies of users: started when needed, bounded, replaced when one goes too far.

    async with PolicyWorkers(clock) as workers:
        conclusion = await workers.decide(concluding(appraisal, facts, policies, values))

A decision yields questions (`domain.attestation.policyquery`), and each goes to a process (`policyworker`) that may be ended at
any moment without harm. What a policy was asked before, with the same input and values, is answered from memory.

* A policy that goes beyond its bounds of time or memory has its process ended and gives no answer (`Answer.exceeded`). It is not
  asked again for half a minute, so that it does not cost every caller a process; then it has another chance.
* No policy holds more than half of the processes, so a slow one never keeps another from being asked.
* Whoever waits for a process waits a few seconds at most, and then has no answer either.
* A text that was never tried meets a process of its own, which ends with the trial (`asked_alone`): no other policy ever runs
  where an untried one has.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections import Counter, OrderedDict
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeVar

import fastness
from fastness.cluster.clock import Clock
from fastness.domain.attestation.policyquery import ActivePolicy, Answer, Decision, Query
from fastness.formats import json
from fastness.formats.errors import JsonError
from fastness.formats.frames import HEAD, frame_length, framed
from fastness.model.kind import JsonObject
from fastness.observe import logs, metrics

PROCESSES: Final = 4
EACH: Final = 2
QUESTION_SECONDS: Final = 8.0
WAIT_SECONDS: Final = 5.0
START_SECONDS: Final = 60.0
SUSPENDED_SECONDS: Final = 30.0
REMEMBERED: Final = 2048
TOO_SLOW, BREAKS_ENGINE, BUSY = "policy-too-slow", "policy-breaks-engine", "policy-engine-busy"
# Without -I the working directory and the environment would choose what is imported; so the place of this package is handed over.
_PROGRAM: Final = "import sys; sys.path.insert(0, sys.argv[1]); from fastness.trust.policyworker import main; main()"
_PLACE: Final = str(Path(fastness.__file__).resolve().parent.parent)
_log = logs.logger("policies")
Made = TypeVar("Made")


class WorkerEnded(Exception):
    """A process gave no answer and is gone; the code is stable."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


class Worker:
    """One process; it serves one question at a time."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._open = False

    @classmethod
    async def start(cls) -> Worker:
        """A process that is ready; raises WorkerEnded."""
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-I", "-c", _PROGRAM, _PLACE,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
            env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"},
        )  # fmt: skip
        worker = cls(process)
        await worker._within(START_SECONDS, None)
        return worker

    async def ask(self, job: JsonObject, seconds: float) -> Any:
        """The answer to a job; raises WorkerEnded. A question that nobody waits for any more ends the process."""
        return await self._within(seconds, job)

    async def _within(self, seconds: float, job: JsonObject | None) -> Any:
        try:
            async with asyncio.timeout(seconds):
                return await self._answer(job)
        except TimeoutError as error:
            raise WorkerEnded(TOO_SLOW, f"the policy was not done within {seconds:g} seconds") from error
        except (asyncio.IncompleteReadError, ConnectionError, ValueError, JsonError) as error:
            raise self._ended(await self._status()) from error
        finally:
            if self._open:
                await self.end()

    async def _answer(self, job: JsonObject | None) -> Any:
        """Write a question and read its answer. Until that is whole the process is of no use for another one."""
        source, sink = self._process.stdout, self._process.stdin
        if source is None or sink is None:
            raise ConnectionError("the process has no pipes")
        self._open = True
        if job is not None:
            sink.write(framed(json.encode(job)))
            await sink.drain()
        head = await source.readexactly(HEAD)
        answer = json.decode(await source.readexactly(frame_length(head)))
        self._open = False
        return answer

    async def _status(self) -> int | None:
        with suppress(TimeoutError):
            async with asyncio.timeout(1):
                return await self._process.wait()
        return None

    def _ended(self, status: int | None) -> WorkerEnded:
        if status == -signal.SIGPROF:
            return WorkerEnded(TOO_SLOW, "the policy used up its time")
        return WorkerEnded(BREAKS_ENGINE, f"the policy engine ended with {status} while it ran the policy")

    async def end(self) -> None:
        """End the process, whatever it does."""
        with suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()


async def asked_alone(job: JsonObject, seconds: float) -> Any:
    """Ask a process that was started for this job and ends with it; raises WorkerEnded."""
    worker = await Worker.start()
    try:
        return await worker.ask(job, seconds)
    finally:
        await worker.end()


def _nobody(policy: ActivePolicy, reason: str) -> None:
    """Tell nobody."""


class PolicyWorkers:
    """A few processes for the policies that judge."""

    def __init__(
        self,
        clock: Clock,
        tell: Callable[[ActivePolicy, str], None] = _nobody,
        *,
        processes: int = PROCESSES,
        each: int = EACH,
    ) -> None:
        self.tell = tell
        self._clock = clock
        self._most, self._each = processes, each
        self._idle: list[Worker] = []
        self._busy: Counter[str] = Counter()
        self._turn = asyncio.Condition()
        self._suspended: dict[str, float] = {}
        self._known: OrderedDict[tuple[str, bytes], Answer] = OrderedDict()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        while self._idle:
            await self._idle.pop().end()

    async def decide(self, decision: Decision[Made]) -> Made:
        """Drive a decision to its end."""
        try:
            query = next(decision)
            while True:
                query = decision.send(await self.answer(query))
        except StopIteration as end:
            made: Made = end.value
            return made

    async def answer(self, query: Query) -> Answer:
        """What a policy says; total, but for cancellation."""
        policy = query.policy
        remembered = (policy.rego, query.key) if query.key is not None else None
        if remembered is not None and remembered in self._known:
            self._known.move_to_end(remembered)
            return self._known[remembered]
        if self._suspended.get(policy.rego, 0.0) > self._clock.monotonic():
            return Answer(exceeded="it went beyond its bounds a moment ago")
        try:
            told = await self._asked(query)
        except WorkerEnded as ended:
            return self._exceeded(policy, ended)
        answer = Answer(told.get("value"), str(told.get("error") or ""))
        if remembered is not None and not told.get("clock", True):
            self._known[remembered] = answer
            if len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        return answer

    def _exceeded(self, policy: ActivePolicy, ended: WorkerEnded) -> Answer:
        metrics.POLICIES_EXCEEDED.inc(ended.code)
        if ended.code != BUSY:
            _log.warning("policy.exceeded", policy=policy.label, code=ended.code, reason=ended.reason)
            now = self._clock.monotonic()
            self._suspended = {text: until for text, until in self._suspended.items() if until > now}
            self._suspended[policy.rego] = now + SUSPENDED_SECONDS
            self.tell(policy, ended.reason)
        return Answer(exceeded=ended.reason)

    async def _asked(self, query: Query) -> JsonObject:
        """Ask a process when it is this policy's turn; raises WorkerEnded."""
        text = query.policy.rego
        await self._begin(text)
        worker: Worker | None = None
        try:
            worker = self._idle.pop() if self._idle else await Worker.start()
            answer: JsonObject = await worker.ask(query.as_json(), QUESTION_SECONDS)
            self._idle.append(worker)
            return answer
        finally:
            async with self._turn:
                self._busy[text] -= 1
                self._busy += Counter()  # forgets texts that nobody asks about
                self._turn.notify_all()

    async def _begin(self, text: str) -> None:
        try:
            async with asyncio.timeout(WAIT_SECONDS), self._turn:
                await self._turn.wait_for(lambda: self._busy.total() < self._most and self._busy[text] < self._each)
                self._busy[text] += 1
        except TimeoutError as error:
            raise WorkerEnded(BUSY, "every process for policies is busy") from error
