"""Asking an agent policy in a process of its own.

The Rego engine ends the process on some texts, and a policy may run for ever; `sandbox` tells more. A process that dies or
does not answer in time means: the policy does not parse.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fastness.rego.sandbox import SECONDS, WorkerEnded, in_sandbox
from fastness.rego.tasks import Task
from fastness.workloads.agent_policy.decide import Decision


@dataclass(frozen=True, slots=True)
class Asked:
    """What came of it: decisions in the order of the questions, requests that are open to everybody, or a complaint."""

    decisions: tuple[Decision, ...] = ()
    opened: tuple[str, ...] = ()
    error: str = ""


async def asked(
    text: str, questions: Sequence[tuple[str, Mapping[str, Any]]] = (), *, seconds: float = SECONDS
) -> Asked:
    """Ask a policy in a process of its own. Total, but for cancellation."""
    listed = [{"request": name, "input": dict(document)} for name, document in questions]
    try:
        answer = await in_sandbox(Task.AGENT, {"policy": text, "questions": listed}, seconds)
        decisions = tuple(Decision.from_json(decision) for decision in answer["decisions"])
        return Asked(decisions, tuple(str(name) for name in answer["opened"]), str(answer["error"]))
    except WorkerEnded as ended:
        return Asked(error=ended.reason)
    except (KeyError, TypeError):
        return Asked(error="the policy engine gave no answer")
