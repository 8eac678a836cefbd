"""One TPM, asked by tpm2-tools one operation at a time: a thread, a lock and a private directory for each.

- Secrets pass through a private directory that is removed, and never through what a program prints.
- Without a resource manager (swtpm) nobody else cleans up: what a command left in the TPM is flushed after each operation.
"""

from __future__ import annotations

import asyncio
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, TypeVar

from fastness.agent.host.errors import CommandFailed, TpmFailure
from fastness.agent.host.process import Run, run
from fastness.crypto.errors import CryptoError
from fastness.formats.cursor import EvidenceError

# A discrete chip may take half a minute for an RSA key; one that hangs must not hold a boot for ever.
SECONDS: Final = 120.0
T = TypeVar("T")


class TpmCommands:
    """The tools, on one TPM (`tcti`)."""

    def __init__(self, tcti: str, run: Run | None = None) -> None:
        self._tcti = tcti
        self._run = run or _bounded
        # A TPM does one thing at a time; a lock of threads also holds when the one who asked was cancelled.
        self._lock = threading.Lock()

    async def perform(self, operation: Callable[[Path], T]) -> T:
        """An operation with a scratch directory of its own; raises TpmFailure."""
        return await asyncio.to_thread(self._alone, operation)

    def _alone(self, operation: Callable[[Path], T]) -> T:
        with self._lock, tempfile.TemporaryDirectory(prefix="fastness-tpm-") as scratch:
            try:
                return operation(Path(scratch))
            except CommandFailed as error:
                raise TpmFailure(error.message, error.hint if error.status is None else "") from error
            except (OSError, EvidenceError, CryptoError) as error:
                raise TpmFailure(f"what the TPM gave cannot be used: {error}") from error
            finally:
                self.clean()

    def tool(self, name: str, *words: str) -> None:
        """Run `tpm2_<name>`; raises CommandFailed."""
        # Quiet: some of the tools print secrets.
        self._run([f"tpm2_{name}", "-T", self._tcti, "-Q", *words])

    def printed(self, name: str, *words: str) -> str:
        """What `tpm2_<name>` prints; raises CommandFailed."""
        return self._run([f"tpm2_{name}", "-T", self._tcti, *words])

    def clean(self) -> None:
        """Flush what commands left in a TPM without a resource manager."""
        if "tpmrm" in self._tcti or "tabrmd" in self._tcti:
            return
        for kind in ("-t", "-l", "-s"):
            try:
                self.tool("flushcontext", kind)
            except CommandFailed:
                return  # the TPM is gone; what was asked of it has said so already


def _bounded(command: Sequence[str]) -> str:
    return run(command, seconds=SECONDS)
