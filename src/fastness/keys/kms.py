"""Runs the KMS command of an operator: bytes in, bytes out, in bounded time.

The command is a list of arguments and never a shell line. Its standard error goes to ours, so that the operator sees what it
says; its output is key material and goes nowhere but to the caller (`vault.WrappedRingFile`).
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from typing import Final

from fastness.keys.errors import KmsFailed

PATIENCE_SECONDS: Final = 30.0


def run(command: Sequence[str], data: bytes, patience: float = PATIENCE_SECONDS) -> tuple[int, bytes]:
    """Exit status and output; raises KmsFailed when the command cannot start or does not end."""
    try:
        done = subprocess.run(list(command), input=data, stdout=subprocess.PIPE, timeout=patience, check=False)  # noqa: S603
    except OSError as error:
        raise KmsFailed(
            f"the KMS command {command[0]} cannot be started: {error.strerror}",
            "Check its path and that it is executable.",
        ) from error
    except subprocess.TimeoutExpired:
        # Not `from` the original: it carries the output, which may be the key.
        raise KmsFailed(
            f"the KMS command {command[0]} did not end within {patience:g} seconds",
            "Check that the KMS can be reached.",
        ) from None
    return done.returncode, done.stdout
