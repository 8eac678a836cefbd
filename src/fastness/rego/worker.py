"""The process in which policies of users run: one question after the other, and nothing else.

    length, job as JSON  →  standard input        length, answer as JSON  ←  standard output

The engine ends the process on some texts, and a policy may run for ever or fill the memory. None of that may happen where
evidence is judged and secrets are released, so it happens here (`sandbox` starts, bounds and ends such processes):

* CPU time is bounded for each step, by a timer whose signal ends the process: what does the work (`tasks`) says how much a step
  may take.
* Memory is bounded as address space beyond what is taken when the engine is loaded.
* No file, socket or pipe can be opened any more, nothing can be written but to the pipes that are there, and no privilege is
  gained by running another program. There is no environment to be read but a path. What a policy prints goes nowhere.
* Of the kernel it can ask for memory and the time (`system_calls`): it traces, signals, renames and runs nothing.
"""

from __future__ import annotations

import os
import resource
import signal
from pathlib import Path
from typing import Any, Final

from fastness.formats import json
from fastness.kinds.kind import JsonObject
from fastness.rego.engine import Program
from fastness.rego.system_calls import allow_computing
from fastness.rego.tasks import HEAD, Task, frame_length, framed

MEMORY: Final = 512 * 1024**2
READY: Final[JsonObject] = {"ready": True}
_ANY: Final = "package any\nimport rego.v1\ndefault allow := false\n"


def main() -> None:
    """Answer until standard input ends."""
    source, sink = os.dup(0), os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    # What the engine prints would otherwise be read as the frame of an answer.
    for standard in (0, 1, 2):
        os.dup2(nowhere, standard)
    # Whatever the engine and the interpreter load late is loaded while that is possible.
    works = {task.name: task.load() for task in Task}
    Program({"any.rego": _ANY}, "x := data.any.allow").ask({}, {}, "")
    _write(sink, {**READY, "confined": confine()})
    while (job := _read(source)) is not None:
        answer = works[job["task"]](job["document"], limit_cpu)
        limit_cpu(0)
        _write(sink, answer)


def confine() -> bool:
    """Give up what no policy needs; whether the kernel refuses all but computing from now on."""
    most = _reserved_memory() + MEMORY
    for kind, limit in (
        # No core file: the memory of this process holds claims of machines, and a crash is something that a policy can cause.
        (resource.RLIMIT_AS, most), (resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_NPROC, 0),
        (resource.RLIMIT_NOFILE, 0),
    ):  # fmt: skip
        resource.setrlimit(kind, (limit, limit))
    return allow_computing()


def limit_cpu(seconds: float) -> None:
    """End this process when it has used so much CPU time from now on; 0 for no bound. Nobody catches the signal."""
    # CPU time and not the clock on the wall: on a busy machine a good policy must not fail for having had to wait.
    signal.setitimer(signal.ITIMER_PROF, seconds)


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
