"""A program of the real cluster never outlives the one who started it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.patience import PATIENCE
from tests.realkube.process import Program

pytestmark = pytest.mark.processes

SLEEP = Path(shutil.which("sleep") or "/bin/sleep")


def running(pid: int) -> bool:
    """Whether the process runs; one that waits to be collected does not."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False


def test_log_is_kept_and_its_end_is_shown(tmp_path: Path) -> None:
    program = Program.start(SLEEP, ["not-a-time"], tmp_path, os.getpid())
    program.child.wait(PATIENCE)
    assert program.ended()
    failure = program.failure("ended")
    assert "not-a-time" in str(failure)
    assert str(tmp_path / "sleep.log") in str(failure)


def test_program_that_ignores_the_polite_signal_is_ended_by_force(tmp_path: Path) -> None:
    deaf = tmp_path / "deaf"
    deaf.write_text("#!/bin/sh\ntrap '' TERM\necho ready\nwhile :; do sleep 0.1; done\n")
    deaf.chmod(0o755)
    program = Program.start(deaf, [], tmp_path, os.getpid())
    while "ready" not in program.tail():
        assert not program.ended()
        time.sleep(0.02)
    program.stop(patience=0.2)
    assert program.child.returncode == -9


def test_stop_of_an_ended_program_does_nothing(tmp_path: Path) -> None:
    program = Program.start(SLEEP, ["0"], tmp_path, os.getpid())
    program.child.wait(PATIENCE)
    program.stop()
    assert program.child.returncode == 0


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's parent-death signal is a Linux facility")
def test_program_dies_with_a_starter_that_is_killed(tmp_path: Path) -> None:
    script = (
        "import os, sys, time\nfrom pathlib import Path\nfrom tests.realkube.process import Program\n"
        "program = Program.start(Path(sys.argv[1]), ['600'], Path(sys.argv[2]), os.getpid())\n"
        "while Path(f'/proc/{program.pid}/comm').read_text() != 'sleep\\n': time.sleep(0.02)\n"
        "print(program.pid, flush=True)\nos.kill(os.getpid(), 9)\n"
    )
    root = Path(__file__).parents[3]
    starter = subprocess.run(
        [sys.executable, "-c", script, str(SLEEP), str(tmp_path)], cwd=root, capture_output=True, text=True, timeout=30
    )
    assert starter.returncode == -9, starter.stderr
    pid = int(starter.stdout)
    deadline = time.monotonic() + PATIENCE
    while running(pid):
        assert time.monotonic() < deadline, "the program outlived its starter"
        time.sleep(0.02)
