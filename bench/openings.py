"""How long opening a volume takes in a machine: QEMU without KVM, the kernel and the opener that the agent has in its initrd.

The machine starts, makes a volume, and opens and closes it some times; it tells the seconds of each step by its own clock. The
start of kernel and interpreter is not in them. Time and not CPU, because it is the guest's: a busy host makes it longer.
"""

from __future__ import annotations

import base64
import shutil
import tempfile
from pathlib import Path
from typing import Any

from bench.figures import OPENING, Progress, Single, Spread
from bench.targets import TargetError
from fastness.agent.disks.mapping import TAGS
from tests.diskvm.machine import NEEDED, boot

MIB = 1024 * 1024
SIZE, NAME = 32 * MIB, "bench"
TARGET_SECONDS = 1.0
WITH_TAGS = "the same of a volume with integrity"
KEY = ["k1", base64.b64encode(b"benchmark" * 3 + b"-----").decode()]
KINDS = {OPENING: "none", WITH_TAGS: "hmac-sha256"}


def figures(say: Progress, rounds: int) -> list[Single]:
    """Seconds of an opening, without and with integrity; raises TargetError where programs for it are missing."""
    missing = [package for path, package in NEEDED.items() if not Path(path).exists() and not shutil.which(str(path))]
    if missing:
        raise TargetError(f"opening a volume in a machine needs {', '.join(missing)}")
    singles = []
    for name, integrity in KINDS.items():
        say(f"a machine that opens a volume, integrity {integrity}")
        seconds = opened(integrity, max(3, rounds))
        singles.append(Single(name, Spread.of(seconds), "s", TARGET_SECONDS))
    return singles


def opened(integrity: str, times: int) -> list[float]:
    """Seconds of each opening in one boot."""
    steps: list[tuple[str, dict[str, Any]]] = [("make", {"device": "/dev/vda", "key": KEY, "integrity": integrity})]
    for _ in range(times):
        steps.append(("open", {"device": "/dev/vda", "keys": [KEY], "expect": None, "name": NAME}))
        steps += [("remove", {"name": name}) for name in (NAME, *([f"{NAME}{TAGS}"] if integrity != "none" else []))]
    with tempfile.TemporaryDirectory(prefix="fastness-bench-") as directory:
        disk = Path(directory) / "disk"
        disk.touch()
        with disk.open("r+b") as file:
            file.truncate(SIZE)
        answers = boot(steps, [disk])
    refused = [answer for answer in answers if "code" in answer]
    if refused:
        raise TargetError(f"the machine did not open its volume: {refused[0]['code']}: {refused[0]['message']}")
    return [answer["seconds"] for answer in answers if "table" in answer]
