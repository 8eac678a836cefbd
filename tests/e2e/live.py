"""`fastness up` as a process of its own, and the real kubectl that talks to it.

Nothing here reaches into the product: the process is started as a user starts it, it is ready when it says so, and it is asked
with the program that users have. A port is never chosen: 0 lets the system choose, `endpoints.json` tells.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sysconfig
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.patience import PATIENCE

BIN = Path(sysconfig.get_path("scripts"))
KUBECTL = BIN / "kubectl"
FASTNESS = BIN / "fastness"


def environment(home: Path, **more: str) -> dict[str, str]:
    """The environment of a user whose shell finds the programs of this installation and nobody's settings.

    But for the collector of programs in Go (tests/conftest.py): at its default it takes a fifth of what a kubectl takes.
    """
    inherited = {key: os.environ[key] for key in ("LANG", "TMPDIR", "PYTHONPATH", "GOGC") if key in os.environ}
    return {**inherited, "PATH": f"{BIN}:/usr/local/bin:/usr/bin:/bin", "HOME": str(home), "TZ": "UTC", **more}


@dataclass(frozen=True)
class Outcome:
    """What a program said and how it ended."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        """Standard output by lines."""
        return self.out.splitlines()

    @property
    def rows(self) -> list[list[str]]:
        """Standard output as cells, for tables without blanks inside of cells."""
        return [line.split() for line in self.lines]

    @property
    def json(self) -> Any:
        """Standard output as JSON."""
        return json.loads(self.out)


def run(
    command: Sequence[str | Path], env: Mapping[str, str], stdin: str | None = None, cwd: Path | None = None
) -> Outcome:
    """Run a program to its end."""
    done = subprocess.run(
        [str(word) for word in command], env=dict(env), input=stdin if stdin is not None else "", cwd=cwd,
        capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    return Outcome(done.returncode, done.stdout, done.stderr)


@dataclass
class Live:
    """A running `fastness up`."""

    home: Path
    process: subprocess.Popen[str]
    announced: list[str] = field(default_factory=list)

    @classmethod
    def start(cls, home: Path, *options: str) -> Live:
        """Start it with its state in `home/state` and return when it says that it is up."""
        process = subprocess.Popen(
            [str(FASTNESS), "up", "--port", "0", *options], cwd=home, env=environment(home),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        live = cls(home, process)
        live._await_announcement()
        return live

    def _await_announcement(self) -> None:
        assert self.process.stdout is not None
        alarm = threading.Timer(PATIENCE, self.process.kill)
        alarm.start()
        try:
            for line in self.process.stdout:
                self.announced.append(line.rstrip("\n"))
                if "Ctrl-C ends it" in line:
                    return
        finally:
            alarm.cancel()
        raise AssertionError(f"not up: {self.announced} {self.process.communicate()[1]}")

    @property
    def state(self) -> Path:
        """Its state directory."""
        return self.home / "state"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.state / "kubeconfig"

    @property
    def url(self) -> str:
        """Where the API listens, from `endpoints.json`."""
        return str(json.loads((self.state / "endpoints.json").read_text())["api"])

    def kubectl(self, *words: str, stdin: Any = None, binary: Path = KUBECTL, **env: str) -> Outcome:
        """Run kubectl as administrator; `stdin` is text, or an object that is sent as JSON."""
        text = stdin if isinstance(stdin, str) or stdin is None else json.dumps(stdin)
        return run(
            [binary, *words], environment(self.home, KUBECONFIG=str(self.kubeconfig), **env), text, cwd=self.home
        )

    def stop(self, number: int = signal.SIGINT) -> Outcome:
        """End it as Ctrl-C does, and return what it said."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            out, err = self.process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        return Outcome(self.process.returncode, "\n".join(self.announced) + out, err)

    def __enter__(self) -> Live:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
