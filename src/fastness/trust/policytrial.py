"""Asking an agent policy in a process of its own.

The Rego engine ends the process on some texts, and a policy may run for ever; `trial` tells more. A child reads the policy and
the questions from standard input and prints the decisions. A child that dies or does not end in time means: the policy does not
parse.
"""

from __future__ import annotations

import asyncio
import resource
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from fastness.domain.attestation.errors import BadPolicy
from fastness.domain.workloads.agentpolicy.decide import Decision, decide, open_requests
from fastness.formats import json
from fastness.formats.errors import JsonError
from fastness.model.kind import JsonObject
from fastness.trust.trial import CPU_SECONDS, MAX_ANSWER, MEMORY, SECONDS, reserved_memory


@dataclass(frozen=True, slots=True)
class Asked:
    """What came of it: decisions in the order of the questions, requests that are open to everybody, or a complaint."""

    decisions: tuple[Decision, ...] = ()
    opened: tuple[str, ...] = ()
    error: str = ""


async def asked(
    text: str, questions: Sequence[tuple[str, Mapping[str, Any]]] = (), *, seconds: float = SECONDS
) -> Asked:
    """Ask a policy in a child process. Total, but for cancellation."""
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-I", "-m", "fastness.trust.policytrial",
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"},
    )  # fmt: skip
    given = {"policy": text, "questions": [{"request": name, "input": dict(document)} for name, document in questions]}
    try:
        async with asyncio.timeout(seconds):
            said, _ = await child.communicate(json.encode(given))
    except TimeoutError:
        return Asked(error=f"the policy was not done within {seconds:g} seconds")
    finally:
        if child.returncode is None:
            with suppress(ProcessLookupError):
                child.kill()
            await child.wait()
    if child.returncode == 0 and len(said) <= MAX_ANSWER:
        with suppress(JsonError, KeyError, TypeError):
            return _read(said)
    return Asked(error=f"the policy engine ended with {child.returncode} while it read the policy")


def _read(said: bytes) -> Asked:
    # A policy may print, and what it prints comes first.
    raw = json.decode(said.rpartition(b"\n")[2])
    decisions = tuple(Decision.from_json(one) for one in raw["decisions"])
    return Asked(decisions, tuple(str(name) for name in raw["opened"]), str(raw["error"]))


def answered(given: Mapping[str, Any]) -> JsonObject:
    """What the child does."""
    text = given["policy"]
    try:
        decisions = [decide(text, one["request"], one["input"]).as_json() for one in given["questions"]]
        return {"decisions": decisions, "opened": open_requests(text), "error": ""}
    except BadPolicy as error:
        return {"decisions": [], "opened": [], "error": error.message}


def main() -> None:
    """The child."""
    most = reserved_memory() + MEMORY
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    answer = answered(json.decode(sys.stdin.buffer.read()))
    sys.stdout.buffer.write(b"\n" + json.encode(answer))


if __name__ == "__main__":
    main()
