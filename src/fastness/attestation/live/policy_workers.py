"""Processes that run policies of users: started when needed, bounded, replaced when one goes too far.

    async with PolicyWorkers(clock) as workers:
        conclusion = await workers.decide(concluding(appraisal, facts, policies, values))

A decision yields questions (`attestation.policy.query`), and each goes to a process (`sandbox`) that may be ended at any
moment without harm. What a policy was asked before, with the same input and values, is answered from memory.

* A policy that goes beyond its bounds of time or memory has its process ended and gives no answer (`Answer.exceeded`). It is not
  asked again for half a minute, so that it does not cost every caller a process; then it has another chance.
* No policy holds more than half of the processes, so a slow one never keeps another from being asked.
* Whoever waits for a process waits a few seconds at most, and then has no answer either.
* A text that never judged meets the engine in a process that was started for it alone (`tried`). One that dies, or is still
  running when its time is over, is a policy that does not parse.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from fastness.attestation.policy.cases import Trial
from fastness.attestation.policy.query import ActivePolicy, Answer, Decision, Query
from fastness.kinds.kind import JsonObject
from fastness.observe import logs, metrics
from fastness.rego.sandbox import BREAKS_ENGINE, SECONDS, Worker, WorkerEnded, in_sandbox
from fastness.rego.tasks import Task
from fastness.runtime.cache import BoundedCache
from fastness.runtime.clock import Clock

PROCESSES: Final = 4
# Half of the processes: one slow policy leaves the other half to everybody else.
EACH: Final = 2
QUESTION_SECONDS: Final = 8.0
WAIT_SECONDS: Final = 5.0
SUSPENDED_SECONDS: Final = 30.0
REMEMBERED: Final = 2048
BUSY: Final = "policy-engine-busy"
_TASKS: Final = {"evidence": Task.EVIDENCE, "resource": Task.RESOURCE}
_log = logs.logger("policies")
Made = TypeVar("Made")


def _nobody(policy: ActivePolicy, reason: str) -> None:
    """The default: nobody is told of a policy that went beyond its bounds."""


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
        self._answers = BoundedCache[tuple[str, bytes], Answer](REMEMBERED)

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
        if remembered is not None and (answer := self._answers.use(remembered)) is not None:
            return answer
        if self._suspended.get(policy.rego, 0.0) > self._clock.monotonic():
            return Answer(exceeded="it went beyond its bounds a moment ago")
        try:
            reply = await self._ask(query)
        except WorkerEnded as ended:
            return self._exceeded(policy, ended)
        error = reply.get("error")
        answer = Answer(reply.get("value"), None if error is None else str(error))
        # Only what does not depend on the time: a policy that asks for it may say no tomorrow to what it affirms today.
        if remembered is not None and not reply.get("clock", True):
            self._answers.put(remembered, answer)
        return answer

    def _exceeded(self, policy: ActivePolicy, ended: WorkerEnded) -> Answer:
        metrics.POLICIES_EXCEEDED.inc(ended.code)
        # Set aside for a while by its text: one endless loop would otherwise hold a process for each machine that comes.
        if ended.code != BUSY:
            _log.warning("policy.exceeded", policy=policy.label, code=ended.code, reason=ended.reason)
            now = self._clock.monotonic()
            self._suspended = {text: until for text, until in self._suspended.items() if until > now}
            self._suspended[policy.rego] = now + SUSPENDED_SECONDS
            self.tell(policy, ended.reason)
        return Answer(exceeded=ended.reason)

    async def _ask(self, query: Query) -> JsonObject:
        """Ask a process when it is this policy's turn; raises WorkerEnded."""
        text = query.policy.rego
        await self._begin(text)
        worker: Worker | None = None
        try:
            # Taken out of the list before it is asked: one that is killed for its bounds is simply never put back.
            worker = self._idle.pop() if self._idle else await Worker.start()
            answer: JsonObject = await worker.ask(_TASKS[query.kind], query.as_json(), QUESTION_SECONDS)
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


Try = Callable[[Mapping[str, Any]], Awaitable[Trial]]


async def run_trial(spec: Mapping[str, Any], *, seconds: float = SECONDS) -> Trial:
    """Try a policy in a process of its own. Total, but for cancellation."""
    try:
        return Trial.from_json(await in_sandbox(Task.TRIAL, {"spec": dict(spec)}, seconds))
    except WorkerEnded as ended:
        return Trial(error=ended.reason, code=ended.code)
    except (KeyError, TypeError):
        return Trial(error="the policy engine gave no answer", code=BREAKS_ENGINE)
