"""A process that applies a config to a directory and dies by SIGKILL at the nth point that its journal reaches.

Usage: child.py DIRECTORY POINT OLD NEW, the configs being files; POINT 0 does not die. With NEW `-` it only recovers.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

from fastness.agent.apply import disk
from fastness.agent.apply.apply import Applier
from fastness.agent.apply.hosts import DirectoryMachine
from fastness.agent.apply.journal import Begin
from fastness.agent.apply.steps import Disk, plan_steps
from fastness.agent.host.file_changes import PollingWatcher
from fastness.runtime.clock import SystemClock


def main(directory: Path, point: int, old: Path, new: str) -> None:
    """Apply and die, or recover."""
    machine = DirectoryMachine(directory, PollingWatcher(directory, SystemClock()), lambda: "boot")
    host, reached = machine.host, [0]

    def die(name: str) -> None:
        reached[0] += 1
        if reached[0] == point:
            os.kill(os.getpid(), signal.SIGKILL)

    applier = Applier(host, die)
    journal = applier.recover()
    print(journal.phase, flush=True)
    if new == "-":
        return
    before = disk.goal(host.root, json.loads(old.read_text()))
    config = json.loads(Path(new).read_text())
    after = disk.goal(host.root, config)
    steps = plan_steps(before.desired, after.desired, config, Disk(host.root, host.originals, host.units))
    applier.apply(Begin(before.name, after.name), steps)
    applier.end()
    print("ended", reached[0], flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]), sys.argv[4])
