"""What the agent measured after the kernel started: the kernel's own log of the boot ends before that.

One event a line, in a file of /run: it belongs to this boot, outlives the initial file system, and is gone with the next boot, as
the registers are. `agent boot` writes it; whoever proves the machine later appends it to the log that the firmware left.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from fastness.protocol.user_data_event import MAX_EVENT, logged

PLACE: Final = Path("/run/fastness/measured")
MAX_EVENTS: Final = 16


class RuntimeLog:
    """The events of this boot, in order."""

    def __init__(self, place: Path = PLACE) -> None:
        self._place = place

    def append(self, event: bytes) -> None:
        """Keep one more; raises OSError."""
        self._place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(self._place, flags, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(event + b"\n")

    def events(self) -> list[bytes]:
        """Those that were kept; none where there is no file."""
        try:
            descriptor = os.open(self._place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return []
        with os.fdopen(descriptor, "rb") as file:
            return file.read(MAX_EVENTS * MAX_EVENT).splitlines()[:MAX_EVENTS]

    def behind(self, log: bytes, register: int) -> bytes:
        """The log of the firmware with these events behind its own; an empty one stays empty, nobody could read it."""
        return logged(log, register, self.events()) if log else log
