"""How a verb ends: its exit code, and the error that a person reads.

Nothing of the rooms is imported here: every verb needs this module, and the agent's wheel has none of the server's rooms. What
the rooms raise becomes a `CliError` in `room_errors`, what the agent raises in `machine/agent`.
"""

from __future__ import annotations

from enum import IntEnum

import click


class Exit(IntEnum):
    """Exit codes, the same for every verb.

    | code | meaning |
    | --- | --- |
    | 0 | done |
    | 1 | the answer is no: something is wrong with what was asked about |
    | 2 | the request itself is wrong: unknown option, unreadable file |
    | 3 | something that is needed is missing or in use: a port, a directory, a component |
    | 4 | the cluster cannot be reached or refused the caller |
    | 70 | a defect of ours |
    | 130 | interrupted |

    One verb has a code of its own: `plan` ends with 2 when something will reboot, so that a pipeline can stop there.
    """

    OK = 0
    NO = 1
    USAGE = 2
    MISSING = 3
    CLUSTER = 4
    DEFECT = 70
    INTERRUPTED = 130


class CliError(click.ClickException):
    """A sentence, a hint and an exit code."""

    def __init__(self, message: str, hint: str = "", code: Exit = Exit.NO) -> None:
        super().__init__(message)
        self.hint = hint
        self.exit_code = int(code)  # type: ignore[misc]  # click declares it on the class and reads it from the instance

    def show(self, file: object = None) -> None:
        """Print it to standard error."""
        click.echo(f"fastness: {self.message}", err=True)
        if self.hint:
            click.echo(f"  {self.hint}", err=True)
