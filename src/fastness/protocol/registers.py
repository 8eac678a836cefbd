"""The registers that hardware keeps measurements in: how people call them, where they begin, and which one is the agent's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fastness.protocol.user_data_event import USER_DATA_PCR, USER_DATA_RTMR


@dataclass(frozen=True, slots=True)
class Register:
    """How the registers of a platform are called and where they begin."""

    prefix: str
    offset: int
    dynamic: bool
    count: int
    runtime: int
    """The one that the agent extends with what it took from user-data, in the numbers of the log."""
    shared: bool
    """Whether others extend that one, too, after the agent and beside this log."""

    def name(self, index: int) -> str:
        """What people call the register; a number that none has stays a number."""
        number = index - self.offset
        return f"{self.prefix} {number}" if 0 <= number < self.count else f"register {index}"


# systemd extends PCR 15 with the machine's id and its volumes when the root is there, in a log of its own.
PCR: Final = Register("PCR", 0, dynamic=True, count=24, runtime=USER_DATA_PCR, shared=True)
# Number 0 of a CC log is the launch measurement, which no event extends.
RTMR: Final = Register("RTMR", 1, dynamic=False, count=4, runtime=USER_DATA_RTMR + 1, shared=False)
