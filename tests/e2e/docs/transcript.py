"""Transcripts in the documentation: how they are written, run and compared.

A fenced block tagged `console` is a session of a shell:

    $ command            is run; lines that begin with "> " belong to it
    output               is what it must print; "…" in a line stands for anything, a line "…" for any lines
    ^C                   ends the program that stays in the foreground (`make up`, `fastness up`, `fastness serve`)

Blocks of one page are one session: directory and exported variables stay. What differs from run to run is compared by shape:
ages (`5s`), times, ports of 127.0.0.1, and the width of blanks. A program that stays in the foreground listens on a free port
instead of the one that people get, and so does a registry that a page starts on port 5000. The exit code is not shown on a page
and not compared; a command that fails says so.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.realkube.cluster import free_ports

FENCE = re.compile(r"^```([\w-]*)[^\n]*\n(.*?)^```\s*$", re.MULTILINE | re.DOTALL)
MAKE_UP = "fastness up --machines 5"
"""What `make up` runs; a test keeps it in step with the Makefile."""
FOREGROUND = ("make up", "fastness up", "fastness serve")
INTERRUPT = "^C"
REGISTRY = "127.0.0.1:5000"
"""Where pages start a registry of their own."""
PATIENCE = 120.0
_SHAPES = (
    (re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z"), "TIME"),
    (re.compile(r"(?<![\w.:-])(\d+[smhd])+(?![\w.])"), "AGE"),
    (re.compile(r"127\.0\.0\.1:\d+"), "127.0.0.1:PORT"),
    (re.compile(r"[ \t]+"), " "),
)


@dataclass
class Step:
    """A command and what it must print."""

    command: str
    expected: list[str] = field(default_factory=list)


def blocks(text: str) -> Iterator[tuple[str, str]]:
    """The fenced blocks of a page: tag and content."""
    for block in FENCE.finditer(text):
        yield block[1], block[2]


def steps(text: str) -> list[Step]:
    """The steps of all transcripts of a page."""
    transcript: list[Step] = []
    for tag, content in blocks(text):
        if tag == "console":
            transcript += _session(content)
    return transcript


def _session(content: str) -> Iterator[Step]:
    step: Step | None = None
    for line in content.rstrip("\n").split("\n"):
        if line.startswith("$ "):
            if step:
                yield step
            step = Step(line[2:])
        elif line == INTERRUPT:
            if step:
                yield step
            step = Step(INTERRUPT)
        elif step is None:
            raise ValueError(f"a transcript begins with a command, not with {line!r}")
        elif line.startswith("> ") and not step.expected:
            step.command += f"\n{line[2:]}"
        else:
            step.expected.append(line)
    if step:
        yield step


def shape(line: str) -> str:
    """A line without what differs from run to run."""
    for pattern, stand_in in _SHAPES:
        line = pattern.sub(stand_in, line)
    return line.strip()


def matches(expected: list[str], actual: list[str]) -> bool:
    """Whether the output is what the page shows."""
    if not expected:
        return not actual
    first, rest = expected[0], expected[1:]
    if first.strip() == "…":
        return any(matches(rest, actual[count:]) for count in range(len(actual) + 1))
    return bool(actual) and _same(first, actual[0]) and matches(rest, actual[1:])


def _same(expected: str, actual: str) -> bool:
    pattern = ".*".join(re.escape(part) for part in shape(expected).split("…"))
    return re.fullmatch(pattern, shape(actual)) is not None


def lines(output: str) -> list[str]:
    """Output by lines, without blank ones at the end."""
    return output.rstrip().split("\n") if output.strip() else []


class Shell:
    """The session of one page: a directory, variables, and the program in the foreground of another terminal."""

    def __init__(
        self, directory: Path, env: Mapping[str, str], enter: Sequence[str] = (), patience: float = PATIENCE
    ) -> None:
        """A session in a directory; `enter` is a command that becomes the shell, in another namespace for instance.

        A command may take as long as `patience`.
        """
        self._patience = patience
        self.directory = directory
        self._enter = tuple(enter)
        self._env = dict(env)
        self._kept = directory / ".session"
        self._running: subprocess.Popen[str] | None = None
        self._shown_in_part = False
        self._registry = f"127.0.0.1:{free_ports(1)[0]}"

    def run(self, step: Step) -> list[str]:
        """Run one step; returns what it printed."""
        if step.command == INTERRUPT:
            output = self._interrupt()
            return output[-len(step.expected) :] if self._shown_in_part else output
        if step.command.startswith(FOREGROUND):
            return self._start(step)
        return self._command(step.command.replace(REGISTRY, self._registry))

    def _command(self, command: str) -> list[str]:
        restore = f"[ -e {self._kept} ] && . {self._kept}"
        script = f'{restore}\n{command}\n{{ export -p; echo cd $(printf %q "$PWD"); }} > {self._kept}\n'
        done = subprocess.run(
            [*self._enter, shutil.which("bash") or "bash", "-c", script], cwd=self.directory, env=self._env, text=True,
            timeout=self._patience, check=False, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        return lines(done.stdout)

    def _start(self, step: Step) -> list[str]:
        """Start a program that stays, and return as many lines as the page shows of it."""
        if self._running is not None:
            self._running.communicate(
                timeout=PATIENCE
            )  # the one before has ended by itself: it was refused, and said why
        words = shlex.split(step.command.replace("make up", MAKE_UP, 1))
        self._shown_in_part = step.expected[-1:] == ["…"]
        option = "--metrics-port" if words[1] == "serve" else "--port"
        self._running = subprocess.Popen(
            [*words, option, "0"], cwd=self.directory, env=self._env, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        assert self._running.stdout is not None
        alarm = threading.Timer(PATIENCE, self._running.kill)
        alarm.start()
        try:
            output: list[str] = []
            while len(output) < len(step.expected) and (line := self._running.stdout.readline()):
                output.append(line.rstrip("\n"))
            return output
        finally:
            alarm.cancel()

    def _interrupt(self) -> list[str]:
        assert self._running is not None, "^C without a program in the foreground"
        self._running.send_signal(signal.SIGINT)
        output, _ = self._running.communicate(timeout=PATIENCE)
        self._running = None
        return lines(output)

    def close(self) -> None:
        """End what the page left running: its foreground, and what it put behind it with the number in a file `….pid`."""
        for pid_file in self.directory.glob("*.pid"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid_file.read_text()), signal.SIGTERM)
        if self._running is not None:
            if self._running.poll() is None:
                os.kill(self._running.pid, signal.SIGINT)
            self._running.communicate(timeout=PATIENCE)
