"""No image of this process is left on a disk: it would hold every secret that the process ever had.

Two settings, because each leaves a gap. A limit of zero ends dumps into files, but the kernel hands a dump to a program (as
systemd-coredump is) whatever the limit; a process that is not dumpable is not dumped at all (prctl(2), PR_SET_DUMPABLE), but only
for as long as it does not start another program in its place. Not dumpable also means that no other process of the same user
reads its memory.
"""

from __future__ import annotations

import ctypes
import resource
from typing import Final

_SET_DUMPABLE: Final = 4  # PR_SET_DUMPABLE of prctl(2)


def forbid() -> None:
    """From now on nothing of this process is dumped."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # Never refused for the value 0; where the call is missing, the limit remains.
    ctypes.CDLL(None).prctl(_SET_DUMPABLE, 0, 0, 0, 0)
