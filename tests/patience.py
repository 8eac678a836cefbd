"""How long a test waits for what must happen. It is a bound for a test that is broken, never a measure of speed."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

PATIENCE = 90.0  # seconds; six lanes on two cores hold a healthy server up for ten of them
PAUSE = 0.1


def eventually(ask: Callable[[], Any], what: str, seconds: float = PATIENCE) -> Any:
    """The first answer that is true.

    It pauses for as long as the last answer took: a question that starts a program costs what the awaited would use.
    """
    end = time.monotonic() + seconds
    while True:
        begun = time.monotonic()
        if answer := ask():
            return answer
        now = time.monotonic()
        assert now < end, f"{what} did not happen within {seconds:.0f} s"
        time.sleep(max(PAUSE, now - begun))
