"""How fast the cost of something grows with its input, said so that a busy machine changes nothing.

Seconds depend on the machine and on who else uses it, by a factor of ten on a bad day. How much more a larger input takes does
not: what is linear takes sixteen times as much for sixteen times the input, and what is quadratic takes 256 times as much. The
bound lies between, as far from both. Whoever runs beside can make a look slower and never faster, so the fastest look counts.

    assert in_proportion(lambda size: scrubbed("x=" * size), 100_000)
    assert lines(lambda: authorize(attributes, policy)) < 50      # without a clock, for what is written in Python
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

TIMES = 16
LOOKS = 5
SHORTEST = 0.002  # seconds; below it the clock itself would be measured


def in_proportion(work: Callable[[int], object], size: int) -> bool:
    """Whether the work of a size takes about as much more than that of a sixteenth as it is larger."""
    small = large = float("inf")
    for _ in range(LOOKS):
        small = min(small, _seconds(work, size // TIMES))
        large = min(large, _seconds(work, size))
        if large < max(small, SHORTEST) * TIMES**1.5:
            return True
    return False


def lines(work: Callable[[], object]) -> int:
    """How many lines of Python a work runs, its own and those of what it calls: the same on every machine."""
    counted = 0

    def traced(_frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal counted
        counted += event == "line"
        return traced

    before = sys.gettrace()
    sys.settrace(traced)
    try:
        work()
    finally:
        sys.settrace(before)
    return counted


def _seconds(work: Callable[[int], object], size: int) -> float:
    begun = time.thread_time()
    work(size)
    return time.thread_time() - begun
