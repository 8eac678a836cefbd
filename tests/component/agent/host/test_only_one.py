"""One agent at a time, and a lock that no crash leaves behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from fastness.agent.host.errors import AlreadyRunning
from fastness.agent.host.own_process import only_one
from fastness.cli.machine.agent_run import run

pytestmark = pytest.mark.processes

HOLDER = """
import sys, time
from pathlib import Path
from fastness.agent.host.own_process import only_one
with only_one(Path(sys.argv[1])):
    print("holding", flush=True)
    time.sleep(60)
"""


def test_a_second_agent_is_told_who_the_first_is(tmp_path: Path) -> None:
    with (
        only_one(tmp_path),
        pytest.raises(AlreadyRunning, match=f"process {os.getpid()} is the agent"),
        only_one(tmp_path),
    ):
        pass
    with only_one(tmp_path):
        pass


def test_an_agent_that_was_killed_holds_nothing(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "holding\n"
        with pytest.raises(AlreadyRunning, match=f"process {holder.pid} "), only_one(tmp_path):
            pass
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    with only_one(tmp_path):
        pass


def test_a_second_agent_is_refused_before_it_looks_for_a_cluster_or_an_identity(tmp_path: Path) -> None:
    root, nothing = tmp_path / "root", str(tmp_path / "nothing")
    words = ["--root", str(root), "--identity", nothing, "--kubeconfig", nothing]
    with only_one(root.with_name("root.state") / "agent"):
        second = CliRunner().invoke(run, words)
    assert second.exit_code != 0
    assert "is the agent of this machine already" in second.output
    alone = CliRunner().invoke(run, words)
    assert "is the agent of this machine already" not in alone.output
