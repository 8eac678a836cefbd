"""Asking agent policies in a process of their own: for verbs, and for doors that must know before they let a workload in.

The Rego engine ends the process on some texts, and a policy may run for ever; `rego.sandbox` tells more. A process that dies or
does not answer in time means: the policy does not parse.

`PolicyTrials` runs a few such processes at a time and remembers answers by the digest of the policy. A failure is not
remembered, and the policy is tried again next time: the failure may have been the machine's. Both the embedded API and the
webhook ask here, so that they refuse the same policies.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fastness.crypto.digests import fingerprint
from fastness.kube.admission import PolicyTrial
from fastness.rego.sandbox import SECONDS, WorkerEnded, in_sandbox
from fastness.rego.tasks import Task
from fastness.runtime.cache import BoundedCache
from fastness.workloads.agent_policy.decide import Decision

ENGINES: Final = 4
REMEMBERED: Final = 256
ENGINE_SECONDS: Final = 6.0  # an API server waits ten for a webhook


@dataclass(frozen=True, slots=True)
class PolicyAnswers:
    """What came of it: decisions in the order of the questions, requests that are open to everybody, or a complaint."""

    decisions: tuple[Decision, ...] = ()
    opened: tuple[str, ...] = ()
    error: str | None = None


async def ask_policy(
    text: str, questions: Sequence[tuple[str, Mapping[str, Any]]] = (), *, seconds: float = SECONDS
) -> PolicyAnswers:
    """Ask a policy in a process of its own. Total, but for cancellation."""
    listed = [{"request": name, "input": dict(document)} for name, document in questions]
    try:
        answer = await in_sandbox(Task.AGENT, {"policy": text, "questions": listed}, seconds)
        decisions = tuple(Decision.from_json(decision) for decision in answer["decisions"])
        error = answer["error"]
        opened = tuple(str(name) for name in answer["opened"])
        return PolicyAnswers(decisions, opened, None if error is None else str(error))
    except WorkerEnded as ended:
        return PolicyAnswers(error=ended.reason)
    except (KeyError, TypeError):
        return PolicyAnswers(error="the policy engine gave no answer")


Trial = Callable[[str], Awaitable[PolicyAnswers]]


async def in_a_child(text: str) -> PolicyAnswers:
    """The engine's opinion of a policy, from a process of its own."""
    return await ask_policy(text, seconds=ENGINE_SECONDS)


class PolicyTrials:
    """Asks the engine about policies, a few at a time, each once."""

    def __init__(self, trial: Trial = in_a_child, engines: int = ENGINES) -> None:
        self._trial = trial
        self._free = asyncio.Semaphore(engines)
        self._remembered = BoundedCache[bytes, PolicyTrial](REMEMBERED)

    async def of(self, text: str) -> PolicyTrial:
        """What the engine says of a policy."""
        key = fingerprint(text.encode())
        if (trial := self._remembered.use(key)) is not None:
            return trial
        async with self._free:
            answers = await self._trial(text)
        fresh = PolicyTrial(answers.opened, answers.error)
        if fresh.error is None:
            self._remembered.put(key, fresh)
        return fresh
