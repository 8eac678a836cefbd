"""An older Fastness beside this one, as programs: its agent at our doors, and our agent at its doors.

The older one is taken out of the repository's own history. `make test` sends what it sent, byte by byte, to the doors of now
(tests/component/release/broker/test_version_skew.py).
"""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.live import environment, run
from tests.patience import PATIENCE, eventually
from tests.soaking import SOAK

ROOT = Path(__file__).resolve().parents[3]
OLDER = "bc4fe12f21dec5ab93fd9c12865ffc699b76c41d"  # 2026-11-17, before there was a chart
WALK = Path(__file__).with_name("agent_walk.py")
STEPS = "src/fastness/cli/support/selftest_walk.py"
WHOLE_WAY = (
    "attested",
    "read default/attestation-status/status",
    "got the configuration of pool worker from the gate, signed for this machine",
    "the same machine with another boot loader is refused: value-differs",
)
pytestmark = [
    pytest.mark.processes,
    pytest.mark.soak,
    pytest.mark.skipif(not SOAK, reason="in `make soak`: `make test` has what the older version sent"),
]


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The older tree, with the steps of now: they drive its agent, and are no part of it."""
    directory = tmp_path_factory.mktemp("older")
    taken = subprocess.run(["git", "archive", OLDER, "src"], cwd=ROOT, capture_output=True, check=False)
    if taken.returncode != 0:
        pytest.skip(f"this clone has no commit {OLDER}: fetch its whole history")
    with tarfile.open(fileobj=io.BytesIO(taken.stdout)) as archive:
        archive.extractall(directory, filter="data") if hasattr(tarfile, "data_filter") else archive.extractall(
            directory
        )
    shutil.copy(ROOT / STEPS, directory / STEPS)
    return directory / "src"


@contextmanager
def control_plane(source: Path, home: Path) -> Iterator[Path]:
    """`fastness up` of a tree; the state directory."""
    state, log = home / "state", home / "up.log"
    command = [
        sys.executable,
        "-c",
        "from fastness.cli.main import main; main()",
        "up",
        "--port",
        "0",
        "--state",
        str(state),
    ]
    with log.open("w") as sink:
        child = subprocess.Popen(
            command, cwd=home, env=environment(home, PYTHONPATH=str(source)), stdout=sink, stderr=sink
        )
    try:
        eventually(lambda: "Ctrl-C" in log.read_text(), "a control plane")
        yield state
    finally:
        child.terminate()
        child.wait(PATIENCE)


@pytest.mark.row("000-91")
@pytest.mark.parametrize("which", ["agent", "doors"])
def test_a_machine_goes_the_whole_way_although_one_side_is_older(which: str, older: Path, tmp_path: Path) -> None:
    ours = ROOT / "src"
    agent, doors = (older, ours) if which == "agent" else (ours, older)
    with control_plane(doors, tmp_path) as state:
        walked = run([sys.executable, WALK, state], environment(tmp_path, PYTHONPATH=str(agent)))
    lines = walked.out.splitlines()
    assert walked.code == 0, walked.err[-2000:]
    assert lines[0] == str(agent / "fastness" / "__init__.py")
    assert lines[1].startswith("enrolled as machine-")
    assert tuple(lines[2:]) == WHOLE_WAY
