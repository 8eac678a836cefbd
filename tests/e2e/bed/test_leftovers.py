"""A bed whose owner is killed outright leaves nothing behind: no process, no control group, no directory."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.bed import janitor
from tests.patience import PATIENCE

OWNER = """
import sys
from pathlib import Path
from tests.bed import Bed
bed = Bed.prepare(Path(sys.argv[1]), Path(sys.argv[2]), nodes=1)
print(bed.name, bed.network.pid, *(node.space.pid for node in bed.nodes), bed.sweeper.pid, flush=True)
sys.stdin.read()
"""


def test_a_bed_whose_owner_is_killed_leaves_nothing(bed_machine: Path, tmp_path: Path) -> None:
    directory = tmp_path / "bed"
    directory.mkdir()
    roots = list(janitor.mounted_controllers().values())
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, str(directory), str(bed_machine)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[3],
    ) as owner:  # fmt: skip
        assert owner.stdout is not None
        name, *words = owner.stdout.readline().split()
        pids = {int(word): janitor.start_time(int(word)) for word in words}
        inside = {int(line) for root in roots for line in members(root / name)}
        pids |= {pid: janitor.start_time(pid) for pid in inside}
        assert len(pids) > 4, "the bed runs, with containerd in the groups of its node"
        owner.kill()
    until(lambda: not any(janitor.start_time(pid) == started for pid, started in pids.items()))
    assert not [root for root in roots if (root / name).exists()]
    assert not directory.exists()


def test_groups_of_a_dead_bed_are_removed_and_those_of_a_living_one_stay(bed_machine: Path) -> None:
    root = janitor.mounted_controllers()["pids"]
    with subprocess.Popen(["sleep", "600"]) as owner:
        living, own = janitor.group_name(owner.pid), janitor.group_name(os.getpid())
        reused = f"{janitor.PREFIX}{owner.pid}-1"  # the same process id, of a process that started at another time
        for name in (living, reused):
            (root / name / "node0").mkdir(parents=True)
        try:
            dead = janitor.leftovers([root])
            assert reused in dead
            assert not {living, own} & dead
            janitor.sweep_dead()
            assert not (root / reused).exists()
            assert (root / living).exists()
        finally:
            janitor.sweep(living, [root])
            owner.kill()
    assert not (root / living).exists()


def members(group: Path) -> list[str]:
    """Process ids in a group and all below it."""
    return [line for file in group.rglob("cgroup.procs") for line in file.read_text().split()]


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)
