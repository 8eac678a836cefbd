"""Writing event logs: the TCG crypto-agile records that `fastness.formats.evidence.eventlog` reads.

A measurement names what is hashed and, apart from it, what the log says about it: a boot loader is hashed as a file and logged as
the place that it was loaded from. Logs for TPMs and for confidential VMs differ in banks and in what a register number means.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from fastness.crypto.silicon.registers import extend, hashed
from fastness.formats.evidence.eventlog.log import EV_NO_ACTION
from fastness.formats.evidence.tpm.algorithms import HASHES

NUMBERS: Final = {entry.name: entry.number for entry in HASHES.values()}
SIZES: Final = {entry.name: entry.size for entry in HASHES.values()}


@dataclass(frozen=True, slots=True)
class Measured:
    """One measurement: register, type of event, what is hashed, what the log says, and what it is to people."""

    register: int
    kind: int
    subject: bytes
    data: bytes
    what: str = ""


def write_log(events: Iterable[Measured], banks: Sequence[str]) -> bytes:
    """A log of these events in these banks."""
    spec = b"Spec ID Event03\0" + struct.pack("<IBBBBI", 0, 0, 2, 0, 2, len(banks))
    spec += b"".join(struct.pack("<HH", NUMBERS[bank], SIZES[bank]) for bank in banks) + b"\0"
    log = [struct.pack("<II20sI", 0, EV_NO_ACTION, bytes(20), len(spec)), spec]
    for event in events:
        log.append(struct.pack("<III", event.register, event.kind, len(banks)))
        log += [struct.pack("<H", NUMBERS[bank]) + hashed(bank, event.subject) for bank in banks]
        log += [struct.pack("<I", len(event.data)), event.data]
    return b"".join(log)


def replayed(events: Iterable[Measured], bank: str) -> dict[int, bytes]:
    """Register to final value, for the registers that an event extends."""
    values: dict[int, bytes] = {}
    for event in events:
        if event.kind != EV_NO_ACTION:
            before = values.get(event.register, bytes(SIZES[bank]))
            values[event.register] = extend(bank, before, hashed(bank, event.subject))
    return values
