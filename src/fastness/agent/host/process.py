"""Programs of the host: run one, bounded in time, and say plainly what it answered.

The environment is small and fixed, so that what a program prints does not depend on who started the agent.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Final, Protocol

from fastness.agent.host.errors import CommandFailed

SECONDS: Final = 600.0
MAX_SHOWN: Final = 600
# systemctl and ostree answer in the language of the environment; what is parsed must always be the same.
ENVIRONMENT: Final = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8", "SYSTEMD_COLORS": "0"}
_NOTHING_MORE: Final[Mapping[str, str]] = MappingProxyType({})

MAX_OUTPUT: Final = 16 * 1024 * 1024
Run = Callable[[Sequence[str]], str]


def run(
    command: Sequence[str], *, seconds: float = SECONDS, environment: Mapping[str, str] = _NOTHING_MORE
) -> str:  # fmt: skip
    """What a program printed; raises CommandFailed when it ends badly, late or not at all."""
    line = " ".join(command)[:MAX_SHOWN]
    try:
        # Without input: a tool that asks something in the middle of a boot would wait for a console that nobody reads. In a
        # session of its own: a pull that hangs has children, and all of them have to go for the wait to end.
        process = subprocess.Popen(  # noqa: S603 - the drivers write the commands; arguments never pass a shell
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**ENVIRONMENT, **environment},
            stdin=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        raise CommandFailed(f"`{line}`: {error.strerror or error}", f"Install {command[0]}.") from error
    with process:
        try:
            stdout, stderr = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired as error:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            raise CommandFailed(f"`{line}` did not end within {seconds:.0f} seconds") from error
    if process.returncode != 0:
        complaint = (stderr or stdout).decode(errors="replace").strip()[-MAX_SHOWN:]
        raise CommandFailed(
            f"`{line}` ended with {process.returncode}: {complaint}",
            status=process.returncode,
            output=stdout.decode(errors="replace"),
        )
    return stdout.decode(errors="replace")


class Ask(Protocol):
    """Runs a program that may take long; whoever is cancelled ends it."""

    def __call__(self, command: Sequence[str], *, typed: str = "") -> Awaitable[bytes]:
        """What it printed; raises CommandFailed. `typed` is what a person would type when it asks for a password."""


async def ask(command: Sequence[str], *, typed: str = "") -> bytes:
    """What a program printed, at most 16 MiB of it; raises CommandFailed. It is killed when the caller is cancelled."""
    line = " ".join(command)[:MAX_SHOWN]
    ours, theirs = _terminal(typed) if typed else (-1, subprocess.DEVNULL)
    try:
        process = await asyncio.create_subprocess_exec(
            *command, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT
        )
    except OSError as error:
        raise CommandFailed(f"`{line}`: {error.strerror or error}", f"Install {command[0]}.") from error
    finally:
        if typed:
            os.close(theirs)
    try:
        output, complaint = await asyncio.gather(_read(process.stdout), _read(process.stderr))
        if len(output) > MAX_OUTPUT or len(complaint) > MAX_OUTPUT:
            raise CommandFailed(f"`{line}` printed more than {MAX_OUTPUT} bytes")
        status = await process.wait()
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        if typed:
            os.close(ours)
    if status != 0:
        said = (complaint or output).decode(errors="replace").strip()[-MAX_SHOWN:]
        raise CommandFailed(f"`{line}` ended with {status}: {said}", status=status)
    return output


async def _read(stream: asyncio.StreamReader | None) -> bytes:
    """What comes until the end, and one byte more than allowed when there is more."""
    chunks = bytearray()
    while stream is not None and len(chunks) <= MAX_OUTPUT and (chunk := await stream.read(65536)):
        chunks += chunk
    return bytes(chunks[: MAX_OUTPUT + 1])


def _terminal(typed: str) -> tuple[int, int]:
    """A terminal on which a line is typed already: passwords on a command line are for everybody on the machine to read."""
    ours, theirs = os.openpty()
    os.write(ours, f"{typed}\n".encode())
    return ours, theirs
