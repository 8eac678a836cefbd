"""Trying a policy in a process of its own.

The Rego engine ends the process on some texts instead of refusing them, and a policy may run for ever. A text that a user
wrote meets the engine here first: a child reads the spec of an AppraisalPolicy from standard input, tries it, and prints
what came of it. A child that dies, or is still running when its time is over, is a policy that does not parse.

* The child gets no environment but a path, no arguments from the user, and bounded memory and CPU time.
* Only what survived this is ever compiled in a process that judges.
"""

from __future__ import annotations

import asyncio
import resource
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from fastness.domain.attestation.cases import Trial, try_policy
from fastness.formats import json
from fastness.formats.errors import JsonError

SECONDS: Final = 30.0
CPU_SECONDS: Final = 20
MEMORY: Final = 2 * 1024**3
MAX_ANSWER: Final = 4 * 1024**2
Try = Callable[[Mapping[str, Any]], Awaitable[Trial]]


async def tried(spec: Mapping[str, Any], *, seconds: float = SECONDS) -> Trial:
    """Try a policy in a child process. Total, but for cancellation."""
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-I", "-m", "fastness.trust.trial",
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"},
    )  # fmt: skip
    try:
        async with asyncio.timeout(seconds):
            said, _ = await child.communicate(json.encode(dict(spec)))
    except TimeoutError:
        return Trial(error=f"the policy was not done within {seconds:g} seconds", code="policy-too-slow")
    finally:
        if child.returncode is None:
            with suppress(ProcessLookupError):
                child.kill()
            await child.wait()
    return _answer(said, child.returncode)


def _answer(said: bytes, status: int | None) -> Trial:
    if status == 0 and len(said) <= MAX_ANSWER:
        with suppress(JsonError, KeyError, TypeError):
            return Trial.from_json(json.decode(said))
    return Trial(error=f"the policy engine ended with {status} while it read the policy", code="policy-breaks-engine")


def main() -> None:
    """The child."""
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    most = reserved_memory() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    spec = json.decode(sys.stdin.buffer.read())
    sys.stdout.buffer.write(json.encode(try_policy(spec).as_json()))


def reserved_memory() -> int:
    """Address space that is taken already: the engine's allocator reserves 256 GiB when it is loaded, and uses little of it."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


if __name__ == "__main__":
    main()
