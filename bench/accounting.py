"""What processes cost: CPU time to the nanosecond and resident memory, read from the kernel.

The CPU clock of another process has a number that follows from its process id (clock_getcpuclockid(3)); the figures of
/proc/PID/stat would come in steps of 10 ms, as long as a whole list of 5,000 objects takes.
"""

from __future__ import annotations

import resource
import subprocess
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

_SCHEDULER_CLOCK = 2  # CPUCLOCK_SCHED: user and system time of all threads, also of those that ended
KIB = 1024


def cpu_seconds(pids: Iterable[int]) -> float:
    """User and system time that these processes have used so far."""
    return sum(time.clock_gettime((~pid << 3) | _SCHEDULER_CLOCK) for pid in pids)


def queued_seconds(pid: int) -> float:
    """How long the main thread of a process was ready to run and had no processor: the share of others in its wall time."""
    _, queued, _ = Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()
    return int(queued) / 1e9


def resident_bytes(pids: Iterable[int]) -> int:
    """Resident memory of these processes."""
    return sum(_status_kib(pid, "VmRSS") * KIB for pid in pids)


def peak_bytes(pids: Iterable[int]) -> int:
    """The most resident memory that each of these processes had so far, together."""
    return sum(_status_kib(pid, "VmHWM") * KIB for pid in pids)


def _status_kib(pid: int, field: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == field:
            return int(value.split()[0])
    raise ValueError(f"process {pid} does not say its {field}")


def child_cpu(command: Sequence[str]) -> float:
    """CPU time of one run of a command, in seconds; raises CalledProcessError."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime - before.ru_utime) + (after.ru_stime - before.ru_stime)
