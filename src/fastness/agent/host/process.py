"""Programs of the host: run one, bounded in time, and say plainly what it answered.

The environment is small and fixed, so that what a program prints does not depend on who started the agent.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Final

from fastness.agent.host.errors import CommandFailed

SECONDS: Final = 600.0
MAX_SHOWN: Final = 600
# systemctl and ostree answer in the language of the environment; what is parsed must always be the same.
ENVIRONMENT: Final = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8", "SYSTEMD_COLORS": "0"}
_NOTHING_MORE: Final[Mapping[str, str]] = MappingProxyType({})

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
