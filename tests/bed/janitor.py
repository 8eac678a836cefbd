"""What a bed leaves in the kernel that does not end with its processes: control groups. Their names say whose they are.

    group = f"fastness-bed-{pid}-{start}"       # of the process that owns the bed, and when the kernel started it

Processes, mounts, interfaces and rules of a bed end with its namespaces, and these with the process that owns the bed. Control
groups are directories of the machine and stay. So they carry the owner's process id and start time (a process id alone is soon
somebody else's), and are removed three times over:

* by `Bed.stop`;
* by the sweeper, a process that starts with the bed and outlives its owner: it wakes when the owner is gone, however that ended;
* by the next bed, which first removes the groups of all beds whose owners are gone.

`sweep` ends what still runs in such a group, by its process id, and removes the group. It touches no other group.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

PREFIX = "fastness-bed-"
NAME = re.compile(rf"{PREFIX}(\d+)-(\d+)")
ENDING = 20.0  # seconds until what was killed has left its group; a bound for a broken kernel


def start_time(pid: int) -> str:
    """When the kernel started a process, in ticks since boot; empty when there is no such process, or one that has ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    # The second field is the program's name in brackets and may hold anything; the others are counted from behind it.
    fields = text.rpartition(")")[2].split()
    # A process that has ended stays until its parent looks, which the first process of some containers never does.
    return "" if fields[0] in "ZX" else fields[19]


def group_name(pid: int) -> str:
    """The name of the groups of a bed that a process owns."""
    return f"{PREFIX}{pid}-{start_time(pid)}"


def owner_lives(name: str) -> bool:
    """Whether the process that a group is named after still runs."""
    match = NAME.fullmatch(name)
    return match is not None and start_time(int(match[1])) == match[2]


def controllers(mounts: str) -> dict[str, Path]:
    """Where the controllers of version 1 are mounted, by name; `mounts` is the text of /proc/self/mounts."""
    rows = (line.split() for line in mounts.splitlines())
    return {Path(row[1]).name: Path(row[1]) for row in rows if row[2] == "cgroup"}


def mounted_controllers() -> dict[str, Path]:
    """The controllers of this machine."""
    return controllers(Path("/proc/self/mounts").read_text())


def leftovers(roots: list[Path]) -> set[str]:
    """Names of the groups of beds whose owners are gone."""
    names = {path.name for root in roots for path in root.glob(f"{PREFIX}*") if NAME.fullmatch(path.name)}
    return {name for name in names if not owner_lives(name)}


def sweep(name: str, roots: list[Path]) -> None:
    """End what runs in the groups of a bed and remove them; what cannot be removed stays, for the next sweep."""
    end = time.monotonic() + ENDING
    while time.monotonic() < end:
        groups = [group for root in roots for group in _tree(root / name)]
        if not groups:
            return
        for group in groups:
            _end_members(group)
            with suppress(OSError):  # busy until the members are gone
                group.rmdir()
        time.sleep(0.02)


def _tree(group: Path) -> list[Path]:
    """A group and all below it, the deepest first."""
    return [Path(place) for place, _, _ in os.walk(group, topdown=False)]


def _end_members(group: Path) -> None:
    with suppress(OSError):
        for word in (group / "cgroup.procs").read_text().split():
            # 0 is a process of a namespace that we cannot see into: not ours to end.
            if int(word) not in (0, os.getpid()):
                os.kill(int(word), signal.SIGKILL)


def sweep_dead() -> None:
    """Remove what beds left whose owners are gone."""
    roots = list(mounted_controllers().values())
    for name in leftovers(roots):
        sweep(name, roots)


def main(name: str, directory: str) -> None:
    """The sweeper: wait for the end of standard input, which the owner holds, then clean up."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the owner, whose end is what we wait for
    sys.stdin.read()
    sweep(name, list(mounted_controllers().values()))
    shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
