"""Trying a policy before it judges, in a process of its own.

A text that a user wrote meets the engine here first: a process that was started for it tries the spec of an AppraisalPolicy and
ends (`sandbox`). One that dies, or is still running when its time is over, is a policy that does not parse.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from fastness.attestation.policy.cases import Trial
from fastness.rego.sandbox import BREAKS_ENGINE, SECONDS, WorkerEnded, in_sandbox
from fastness.rego.tasks import Task

Try = Callable[[Mapping[str, Any]], Awaitable[Trial]]


async def tried(spec: Mapping[str, Any], *, seconds: float = SECONDS) -> Trial:
    """Try a policy in a process of its own. Total, but for cancellation."""
    try:
        return Trial.from_json(await in_sandbox(Task.TRIAL, {"spec": dict(spec)}, seconds))
    except WorkerEnded as ended:
        return Trial(error=ended.reason, code=ended.code)
    except (KeyError, TypeError):
        return Trial(error="the policy engine gave no answer", code=BREAKS_ENGINE)
