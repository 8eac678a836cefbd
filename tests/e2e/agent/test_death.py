"""kill -9 of a real process at points of the journal: the next start undoes or completes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fastness.agent.host.states import File
from tests.component.agent.directory_machine import file, make_machine, relevant, rendered, snapshot, unit

ROOT = Path(__file__).parents[3]
CHILD = Path(__file__).with_name("child.py")
OLD = rendered("rendered-worker-old", files=[file("/etc/motd", "old\n")], units=[unit("a.service")])
NEW = rendered(
    "rendered-worker-new",
    files=[file("/etc/new/file", "new\n", 0o600), file("/etc/large", "small\n")],
    units=[unit("a.service", "[Service]\nExecStart=/bin/false\n"), unit("b.service")],
    users=[{"name": "core", "passwordHash": "hash"}],
)
STRIDE = 1 if os.environ.get("FASTNESS_SOAK") else 4


def child(directory: Path, point: int, old: Path, new: str) -> subprocess.CompletedProcess[str]:
    """Run the child to its end, whatever end that is."""
    return subprocess.run(
        [sys.executable, str(CHILD), str(directory), str(point), str(old), new],
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


@pytest.fixture
def prepared(tmp_path: Path) -> Path:
    """A machine with the old config, to be copied for every death."""
    machine = make_machine(tmp_path / "start")
    machine.host.root.put("/etc/large", File(bytes(range(256)) * 4000, 0o640))
    for name, config in (("empty", rendered("rendered-worker-empty")), ("old", OLD), ("new", NEW)):
        (tmp_path / f"{name}.json").write_text(json.dumps(config))
    done = child(tmp_path / "start", 0, tmp_path / "empty.json", str(tmp_path / "old.json"))
    assert "ended" in done.stdout, done.stderr
    return tmp_path


def test_a_process_that_is_killed_at_any_point_leaves_the_old_machine_or_the_new_one(prepared: Path) -> None:
    old, new = prepared / "old.json", str(prepared / "new.json")
    shutil.copytree(prepared / "start", prepared / "whole", symlinks=True)
    points = int(child(prepared / "whole", 0, old, new).stdout.split()[-1])
    before, after = snapshot(prepared / "start/root"), relevant(snapshot(prepared / "whole/root"))
    outcomes = {"reverted": 0, "completed": 0}
    for point in [*range(1, points, STRIDE), points - 1, points]:
        directory = prepared / f"m{point}"
        if directory.exists():
            shutil.rmtree(directory)
        shutil.copytree(prepared / "start", directory, symlinks=True)
        assert child(directory, point, old, new).returncode == -signal.SIGKILL
        recovered = child(directory, 0, old, "-")
        assert recovered.returncode == 0, recovered.stderr
        survived = snapshot(directory / "root")
        if "committed" in recovered.stdout or point == points:
            assert relevant(survived) == after
            outcomes["completed"] += 1
        else:
            assert survived == before
            assert not (directory / "agent/journal").exists()
            assert not list(directory.glob("agent/kept/*"))
            outcomes["reverted"] += 1
    assert min(outcomes.values()) > 0
