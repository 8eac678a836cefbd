"""Programs of the host: run one, bounded in time, and say plainly what it answered.

The environment is small and fixed, so that what a program prints does not depend on who started the agent.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from typing import Final

from fastness.agent.host.errors import CommandFailed

SECONDS: Final = 600.0
MAX_SHOWN: Final = 600
# systemctl and ostree answer in the language of the environment; what is parsed must always be the same.
ENVIRONMENT: Final = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8", "SYSTEMD_COLORS": "0"}

Run = Callable[[Sequence[str]], str]


def run(command: Sequence[str], *, seconds: float = SECONDS) -> str:
    """What a program printed; raises CommandFailed when it ends badly, late or not at all."""
    line = " ".join(command)[:MAX_SHOWN]
    try:
        # Without input: a tool that asks something in the middle of a boot would wait for a console that nobody reads.
        done = subprocess.run(  # noqa: S603 - the drivers write the commands; arguments never pass a shell
            command, capture_output=True, timeout=seconds, check=False, env=ENVIRONMENT, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired as error:
        raise CommandFailed(f"`{line}` did not end within {seconds:.0f} seconds") from error
    except OSError as error:
        raise CommandFailed(f"`{line}`: {error.strerror or error}", f"Install {command[0]}.") from error
    if done.returncode != 0:
        complaint = (done.stderr or done.stdout).decode(errors="replace").strip()[-MAX_SHOWN:]
        raise CommandFailed(
            f"`{line}` ended with {done.returncode}: {complaint}",
            status=done.returncode,
            output=done.stdout.decode(errors="replace"),
        )
    return done.stdout.decode(errors="replace")
