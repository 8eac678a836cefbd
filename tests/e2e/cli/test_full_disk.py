"""A disk without a free byte under `fastness up`: deletions are taken, and a start says what is wrong or works."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from fastness.app.embedded import RESERVE_BYTES
from tests.e2e.live import FASTNESS, Live, Outcome, environment, run

BIG = 400_000


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of its own, small enough to be filled."""
    place = tmp_path / "disk"
    place.mkdir()
    size = RESERVE_BYTES + 8 * 1024 * 1024
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", place], capture_output=True, text=True, check=False
    )
    if made.returncode != 0:
        pytest.skip(f"only root can make a disk: {made.stderr.strip()}")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


def fill(disk: Path) -> None:
    """Write until nothing more goes in."""
    with (disk / "other-data").open("ab", buffering=0) as file:
        for size in (65536, 4096, 1):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                continue
    assert os.statvfs(disk).f_bavail == 0


def create(live: Live, name: str) -> Outcome:
    data = {"x": "y" * BIG}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}
    return live.kubectl("create", "-f", "-", stdin=body)


def test_deletions_are_taken_on_a_full_disk_and_a_start_works_or_says_what_is_wrong(disk: Path) -> None:
    with Live.start(disk, "--machines", "0") as live:
        for name in ("a", "b", "c"):
            assert create(live, name).code == 0
        fill(disk)
        refused = create(live, "d")
        assert refused.code == 1
        assert "Free space under the state directory" in refused.err
        assert live.kubectl("delete", "configmap", "a").code == 0
        assert live.kubectl("delete", "configmap", "b").code == 0
    fill(disk)
    with Live.start(disk, "--machines", "0") as live:
        # What was kept back for deletions lets it start; and they are taken.
        assert live.kubectl("get", "configmap", "c").code == 0
        assert live.kubectl("delete", "configmap", "c").code == 0
    (disk / "state" / "state.reserve").unlink(missing_ok=True)
    fill(disk)
    outcome = run([FASTNESS, "up", "--port", "0", "--machines", "0"], environment(disk), cwd=disk)
    assert outcome.code == 3, outcome.err
    assert "Traceback" not in outcome.err
    assert "space" in outcome.err
    assert "Free space" in outcome.err
    (disk / "other-data").unlink()
    with Live.start(disk, "--machines", "0") as live:
        assert live.kubectl("get", "configmap", "-o", "name").out.strip() == "configmap/kube-root-ca.crt"
        assert create(live, "d").code == 0
