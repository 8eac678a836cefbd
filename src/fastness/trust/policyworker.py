"""The process in which policies of users run: one question after the other, and nothing else.

    length, job as JSON  →  standard input        length, answer as JSON  ←  standard output

The engine ends the process on some texts, and a policy may run for ever or fill the memory. None of that may happen where
evidence is judged and secrets are released, so it happens here (`policyworkers` starts, bounds and replaces such processes):

* CPU time is bounded for each step, by a timer whose signal ends the process: time to compile, and time for each evaluation. A
  trial has the same bounds for each of its cases as a question in service, so that what passes the one holds in the other.
* Memory is bounded as address space beyond what is taken when the engine is loaded.
* No file, socket or pipe can be opened any more, nothing can be written but to the pipes that are there, and no privilege is
  gained by running another program. There is no environment to be read but a path. What a policy prints goes nowhere.
* Of the kernel it can ask for memory and the time (`systemcalls`): it traces, signals, renames and runs nothing.
"""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Final

from fastness.domain.attestation.cases import try_policy
from fastness.domain.attestation.errors import BadPolicy
from fastness.domain.attestation.policy import (
    Policy,
    Request,
    ResourcePolicy,
    Shown,
    compile_policy,
    compile_resource_policy,
    default_resource_policy,
)
from fastness.domain.workloads.agentpolicy.decide import decide, open_requests
from fastness.formats import json
from fastness.formats.frames import HEAD, frame_length, framed
from fastness.model.kind import JsonObject
from fastness.trust.systemcalls import allow_computing

COMPILE_SECONDS: Final = 3.0
EVALUATE_SECONDS: Final = 1.0
# Policies of agents are long, and each of a few dozen questions compiles one anew.
AGENT_SECONDS: Final = 20.0
MEMORY: Final = 512 * 1024**2
READY: Final[JsonObject] = {"ready": True}


def main() -> None:
    """Answer until standard input ends."""
    source, sink = os.dup(0), os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nowhere, standard)
    # Whatever the engine and the interpreter load late is loaded while that is possible.
    default_resource_policy().allow({}, Request(("a", "b", "c")))
    _write(sink, {**READY, "confined": confine()})
    while (job := _read(source)) is not None:
        answer = handled(job)
        limit_cpu(0)
        _write(sink, answer)


def confine() -> bool:
    """Give up what no policy needs; whether the kernel refuses all but computing from now on."""
    most = _reserved_memory() + MEMORY
    for kind, limit in (
        (resource.RLIMIT_AS, most), (resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_NPROC, 0),
        (resource.RLIMIT_NOFILE, 0),
    ):  # fmt: skip
        resource.setrlimit(kind, (limit, limit))
    return allow_computing()


def limit_cpu(seconds: float) -> None:
    """End this process when it has used so much CPU time from now on; 0 for no bound. Nobody catches the signal."""
    signal.setitimer(signal.ITIMER_PROF, seconds)


def handled(job: Mapping[str, Any]) -> JsonObject:
    """The answer to one job."""
    match job["do"]:
        case "evidence":
            return _evidence(job)
        case "resource":
            return _resource(job)
        case "trial":
            limit_cpu(COMPILE_SECONDS)
            return try_policy(job["spec"], partial(limit_cpu, EVALUATE_SECONDS)).as_json()
        case _:
            limit_cpu(AGENT_SECONDS)
            return _agent(job)


def _evidence(job: Mapping[str, Any]) -> JsonObject:
    policy = _compiled(_policy, job["rego"])
    if isinstance(policy, str):
        return {"error": policy}
    limit_cpu(EVALUATE_SECONDS)
    vector = policy.answer(Shown(job["input"], job["data"], job["digest"]))
    claims = {**vector.claims, **vector.strangers}
    return {"value": claims, "error": vector.error, "clock": policy.reads_clock}


def _resource(job: Mapping[str, Any]) -> JsonObject:
    gate = _compiled(_gate, job["rego"])
    if isinstance(gate, str):
        return {"error": gate}
    limit_cpu(EVALUATE_SECONDS)
    return {"value": gate.answer(job["input"], job["data"]), "error": "", "clock": gate.reads_clock}


def _agent(job: Mapping[str, Any]) -> JsonObject:
    text = job["policy"]
    try:
        decisions = [decide(text, asked["request"], asked["input"]).as_json() for asked in job["questions"]]
        return {"decisions": decisions, "opened": open_requests(text), "error": ""}
    except BadPolicy as error:
        return {"decisions": [], "opened": [], "error": error.message}


def _compiled(compile_text: Any, rego: str) -> Any:
    """A compiled policy, or why it is none any more."""
    limit_cpu(COMPILE_SECONDS)
    try:
        return compile_text(rego)
    except BadPolicy as error:
        return f"the policy cannot be compiled any more: {error.message}"


@lru_cache(maxsize=32)
def _policy(rego: str) -> Policy:
    return compile_policy(rego)


@lru_cache(maxsize=32)
def _gate(rego: str) -> ResourcePolicy:
    return compile_resource_policy(rego)


def _read(source: int) -> Any:
    """The next job; None at the end."""
    head = _exactly(source, HEAD)
    return json.decode(_exactly(source, frame_length(head))) if head else None


def _exactly(source: int, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        part = os.read(source, size - len(parts))
        if not part:
            return b""
        parts += part
    return bytes(parts)


def _write(sink: int, answer: JsonObject) -> None:
    data = framed(json.encode(answer))
    while data:
        data = data[os.write(sink, data) :]


def _reserved_memory() -> int:
    """Address space that is taken already: the engine's allocator reserves 256 GiB when it is loaded, and uses little of it."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


if __name__ == "__main__":
    main()
