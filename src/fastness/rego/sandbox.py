"""A process for texts of users: started when needed, bounded, ended at any moment without harm.

    answer = await in_sandbox(Task.TRIAL, {"spec": spec})       # a process of its own, gone afterwards
    worker = await Worker.start()                               # one that answers several questions, one after the other

The engine ends the process on some texts, and a policy may run for ever. So what a user wrote is compiled and asked in another
process (`worker`), which says what it does by a name (`tasks`). One that dies, or does not answer in time, gave no answer.
A text that was never tried meets a process of its own: no other policy ever runs where an untried one has.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import fastness
from fastness.formats import json
from fastness.formats.errors import JsonError
from fastness.kinds.kind import JsonObject
from fastness.rego.tasks import HEAD, Task, frame_length, framed

SECONDS: Final = 30.0
START_SECONDS: Final = 60.0
TOO_SLOW, BREAKS_ENGINE = "policy-too-slow", "policy-breaks-engine"
# Without -I the working directory and the environment would choose what is imported; so the place of this package is handed over.
_PROGRAM: Final = "import sys; sys.path.insert(0, sys.argv[1]); from fastness.rego.worker import main; main()"
_PLACE: Final = str(Path(fastness.__file__).resolve().parent.parent)


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
            # Nothing of ours: the environment of a door may hold paths to its keys.
            env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"},
        )  # fmt: skip
        worker = cls(process)
        await worker._within(START_SECONDS, None)
        return worker

    async def ask(self, task: Task, document: Mapping[str, Any], seconds: float) -> Any:
        """The answer to a question; raises WorkerEnded. A question that nobody waits for any more ends the process."""
        return await self._within(seconds, {"task": task.name, "document": document})

    async def _within(self, seconds: float, job: JsonObject | None) -> Any:
        try:
            async with asyncio.timeout(seconds):
                return await self._answer(job)
        except TimeoutError as error:
            raise WorkerEnded(TOO_SLOW, f"the policy was not done within {seconds:g} seconds") from error
        except (asyncio.IncompleteReadError, ConnectionError, ValueError, JsonError) as error:
            raise self._ended(await self._status()) from error
        finally:
            # A frame that was read half would be the beginning of the next answer: such a process answers nobody any more.
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


async def in_sandbox(task: Task, document: Mapping[str, Any], seconds: float = SECONDS) -> Any:
    """Ask a process that was started for this question and ends with it; raises WorkerEnded."""
    worker = await Worker.start()
    try:
        return await worker.ask(task, document, seconds)
    finally:
        await worker.end()
