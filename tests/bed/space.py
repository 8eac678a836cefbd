"""Namespaces of a bed: started with a first process that only reaps, entered by programs, ended by ending that process.

    space = Space.start(whole=True, groups=groups)      # a machine of its own; without `whole` programs enter its network alone
    space.script("ip link set lo up")
    program = space.run(binary, flags, directory)

The first process asks the kernel to be killed with the thread that started it, and everything in its process namespace is killed
with it: a test run that is killed outright leaves no container behind.

* A program in a process namespace is a grandchild of ours, so it asks to be killed when `nsenter`, our child, ends.
* A program joins the control groups of its node before it enters: a process that enters a namespace keeps its groups.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.realkube.process import LEASH, Program, StartFailed

# The shell waits for any child, so orphans of the namespace are reaped; a first process that does not leaves dead shims behind.
REAPER = ("/bin/sh", "-c", "echo ready; sleep infinity & wait")
KINDS = (
    "--net", "--mount", "--pid", "--uts", "--ipc", "--cgroup", "--fork", "--kill-child", "--mount-proc",
)  # fmt: skip
JOIN_GROUPS = 'while [ "$1" != -- ]; do echo 0 > "$1/cgroup.procs"; shift; done; shift; exec "$@"'


def command(name: str) -> str:
    """The full path of a program; the fixture has made sure that it is there."""
    path = shutil.which(name)
    if path is None:
        raise StartFailed(f"{name} is missing")
    return path


@dataclass(frozen=True)
class Space:
    """A running set of namespaces."""

    child: subprocess.Popen[bytes]
    whole: bool
    groups: tuple[Path, ...] = ()

    @classmethod
    def start(cls, *, whole: bool, groups: Sequence[Path] = (), first: Sequence[str] = REAPER) -> Space:
        """Make the namespaces. With `whole` programs enter all of them, else the network alone; all join the control groups.

        `first` is the first process: it says `ready` on its output, and may wait for `release`.
        """
        words = [*joined(groups), command("unshare"), *KINDS, *first]
        child = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", LEASH, str(os.getpid()), *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for the tests, which then end their bed in order
        )
        assert child.stdout is not None
        if child.stdout.readline() != b"ready\n":
            child.kill()
            child.communicate()
            raise StartFailed("the namespaces of a bed could not be made; what unshare says stands above")
        return cls(child, whole, tuple(groups))

    @property
    def pid(self) -> int:
        """A process whose namespaces, as the machine sees them, are the ones of this space."""
        return self.child.pid

    @property
    def network(self) -> str:
        """The network namespace, as a file."""
        return f"/proc/{self.pid}/ns/net"

    @property
    def enter(self) -> list[str]:
        """What to put before a command so that it runs inside; its first word is a full path."""
        kinds = [f"--net={self.network}"]
        if self.whole:
            files = {"mount": "mnt", "uts": "uts", "ipc": "ipc", "cgroup": "cgroup", "pid": "pid_for_children"}
            kinds += [f"--{kind}=/proc/{self.pid}/ns/{file}" for kind, file in files.items()]
        # The program must not outlive nsenter, which waits for it outside.
        leash = [command("setpriv"), "--pdeathsig", "KILL"] if self.whole else []
        return [*joined(self.groups), command("nsenter"), *kinds, "--", *leash]

    def path(self, inside: str) -> Path:
        """A file inside, as we see it."""
        return Path(f"/proc/{self.pid}/root{inside}")

    def script(self, text: str) -> str:
        """Run a shell script inside to its end; its output. Raises StartFailed with what it said."""
        done = subprocess.run([*self.enter, "/bin/sh", "-euc", text], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise StartFailed(f"a script ended with code {done.returncode}: {done.stderr.strip()}\n{text}")
        return done.stdout

    def run(self, binary: Path, flags: list[str], directory: Path) -> Program:
        """Start a program inside, with its log in the directory."""
        return Program.start(binary, flags, directory, os.getpid(), self.enter)

    def release(self) -> None:
        """Let a first process go on that waits for the end of its input."""
        assert self.child.stdin is not None
        self.child.stdin.close()

    def stop(self) -> None:
        """End the first process, and with it everything inside."""
        self.child.kill()
        self.child.wait()
        for stream in (self.child.stdin, self.child.stdout):
            assert stream is not None
            stream.close()


def joined(groups: Sequence[Path]) -> list[str]:
    """What to put before a command so that it runs in control groups."""
    return ["/bin/sh", "-c", JOIN_GROUPS, "join", *map(str, groups), "--"] if groups else []
