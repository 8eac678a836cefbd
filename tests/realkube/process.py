"""One program of the real cluster: started with its log in a file, ended by its own process id.

A test run that is killed outright must not leave servers behind, so on Linux each program asks the kernel to be killed
with the thread that started it: start a cluster from a thread that lives as long as the cluster does.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

# Runs in the child and then becomes the program: a pre-exec hook would do the same but is unsafe beside threads.
LEASH = """
import ctypes, os, signal, sys
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    if os.getppid() != int(sys.argv[1]):
        sys.exit("the starter is gone")
os.execv(sys.argv[2], sys.argv[2:])
"""


class StartFailed(Exception):
    """A program ended or was not ready in time; the message holds the end of its log."""

    code = "StartFailed"
    hint = "read the log in the cluster's directory"


@dataclass
class Program:
    """A running program and where its log is."""

    name: str
    child: subprocess.Popen[bytes]
    log: Path

    @classmethod
    def start(
        cls, binary: Path, flags: Sequence[str], directory: Path, starter: int, enter: Sequence[str] = ()
    ) -> Program:
        """Run a binary with its output in `<directory>/<name>.log`; `starter` is our own process id.

        `enter` is a command that becomes the binary, in another namespace for instance.
        """
        log = directory / f"{binary.name}.log"
        with log.open("wb") as sink:
            child = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", LEASH, str(starter), *enter, str(binary), *flags],
                cwd=directory,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
            )
        return cls(binary.name, child, log)

    @property
    def pid(self) -> int:
        """Process id, for measuring what the program costs."""
        return self.child.pid

    def ended(self) -> bool:
        """Whether the program is no longer running."""
        return self.child.poll() is not None

    def tail(self, lines: int = 25) -> str:
        """The end of the log, each line cut to a readable length."""
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return "\n".join(line[:400] for line in text.splitlines()[-lines:])

    def failure(self, why: str) -> StartFailed:
        """An error that shows what the program said last."""
        return StartFailed(f"{self.name} {why}; log {self.log} ends:\n{self.tail()}")

    def stop(self, patience: float = 5.0) -> None:
        """End the program: politely, then by force after the patience."""
        if self.ended():
            return
        self.child.terminate()
        try:
            self.child.wait(patience)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()
