"""What a machine took from its user-data, as an event of its log.

    event = user_data_event(user_data)        the agent extends a register with its digest, before it uses what it read
    logged(log, PCR.runtime, [event])         the log that explains the register to a verifier
    described(event.data)                     "pool worker, server https://…, ticket sha256:…"

Which pool a machine asks for and at which door is the host's word. The cluster checks what follows from it; that a machine was
told this and not that is seen afterwards only if it was measured. The registers are those that nothing is compared with: PCR 15
and RTMR 3, because a value that differs with every ticket would make each machine an image of its own.

The event names the ticket by its SHA-256, as the cluster's JoinTicket does: tickets have too much entropy to be guessed from it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from fastness.crypto.digests import sha256
from fastness.crypto.silicon.registers import hashed, replayable
from fastness.formats import json
from fastness.formats.cursor import EvidenceError
from fastness.formats.errors import JsonError
from fastness.formats.evidence.eventlog.log import EV_IPL, Event, parse_log, with_event
from fastness.formats.names import dns1123_subdomain
from fastness.protocol.door import is_origin
from fastness.protocol.user_data import UserData

USER_DATA_PCR: Final = 15
USER_DATA_RTMR: Final = 3
PHASE_PCR: Final = 11
PHASE_RTMR: Final = 3
# The word that ends the phase in which keys of disks are released; hashed without a NUL, as systemd does.
LEAVE_INITRD: Final = b"leave-initrd"
MAX_EVENT: Final = 2048
# Other programs write to the same register: the prefix keeps their texts from being read as what a machine was told.
_PREFIX: Final = b"fastness.dev/userdata/v1 "
_LIMITS: Final = json.JsonLimits(max_bytes=MAX_EVENT, max_depth=2)
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}\Z", re.ASCII)


def words_of(user_data: UserData) -> dict[str, str]:
    """User-data as anybody may see it: the ticket by its digest."""
    ticket = str(sha256(user_data.ticket.encode()))
    return {"pool": user_data.pool, "server": user_data.server, "ticket": ticket}


def sentence(words: Mapping[str, str]) -> str:
    """The same for people."""
    return f"pool {words['pool']}, server {words['server']}, ticket {words['ticket']}"


def user_data_event(user_data: UserData) -> bytes:
    """The words that are measured: equal user-data gives equal bytes."""
    return _PREFIX + json.canonical(words_of(user_data))


def described(event: bytes) -> str:
    """An event in words; empty for one that is not of user-data. The log is the machine's word, so it is read strictly."""
    if not event.startswith(_PREFIX):
        return ""
    try:
        value, repeated = json.decode_reporting_duplicates(event.removeprefix(_PREFIX), _LIMITS)
    except JsonError:
        return ""
    if repeated or not isinstance(value, dict) or set(value) != {"pool", "server", "ticket"}:
        return ""
    pool, server, ticket = value["pool"], value["server"], value["ticket"]
    if not isinstance(pool, str) or dns1123_subdomain(pool) or not is_origin(server):
        return ""
    if not isinstance(ticket, str) or _DIGEST.match(ticket) is None:
        return ""
    return sentence(value)


def digests_of(log: bytes, event: bytes) -> dict[str, bytes]:
    """What is extended for an event, by bank: all banks of the log, or SHA-256 where there is none that can be read."""
    try:
        banks = tuple(bank.name for bank in parse_log(log).banks)
    except EvidenceError:
        banks = ("sha256",)
    return {bank: hashed(bank, event) for bank in banks if replayable(bank)}


def logged(log: bytes, register: int, events: Sequence[bytes]) -> bytes:
    """The log with events of the agent behind those of the firmware; as it is where it cannot be read or has other banks."""
    try:
        for event in events:
            digests = digests_of(log, event)
            log = with_event(log, Event(register, EV_IPL, tuple(digests), tuple(digests.values()), event))
    except EvidenceError:
        return log
    return log


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
    phase: int
    """The one that boot phases are extended in, behind everything that the log tells of it."""

    def name(self, index: int) -> str:
        """What people call the register; a number that none has stays a number."""
        number = index - self.offset
        return f"{self.prefix} {number}" if 0 <= number < self.count else f"register {index}"


# systemd extends PCR 15 with the machine's id and its volumes when the root is there, in a log of its own.
PCR: Final = Register("PCR", 0, dynamic=True, count=24, runtime=USER_DATA_PCR, shared=True, phase=PHASE_PCR)
# Number 0 of a CC log is the launch measurement, which no event extends.
RTMR: Final = Register(
    "RTMR", 1, dynamic=False, count=4, runtime=USER_DATA_RTMR + 1, shared=False, phase=PHASE_RTMR + 1
)
