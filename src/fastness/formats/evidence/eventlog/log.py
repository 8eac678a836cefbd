"""The TCG crypto-agile event log (PC Client Platform Firmware Profile, "Event Logging"; CCEL uses the same records).

The first record has the old SHA-1 layout and names the banks; all others carry one digest per bank. ACPI hands the log over
in an area of fixed size that is filled up with 0x00 or 0xFF: eight such bytes end it, and nothing but filling may follow.

* Sizes are claims; the number of events and the size of the log are bounded.
* A record whose digests are not exactly those of the announced banks is refused: a replay of one bank would skip it silently.
* Firmware writes the digests in the announced order, so the head of a record has one layout for the whole log; a record in
  another order is read piece by piece.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct
from typing import Final

import msgspec

from fastness.formats.cursor import Cursor, EvidenceError
from fastness.formats.evidence.tpm.algorithms import HASHES, Hash

# Logs of real boots have some tens of kilobytes; each event costs a hash per bank when it is replayed.
MAX_LOG: Final = 1024 * 1024
MAX_EVENTS: Final = 16_384
MAX_BANKS: Final = 8
EV_NO_ACTION: Final = 3
EV_IPL: Final = 0x0D
_SIGNATURE: Final = b"Spec ID Event03\0"
_ENDS: Final = (b"\x00" * 8, b"\xff" * 8)

EVENT_NAMES: Final[Mapping[int, str]] = {
    0x00000000: "EV_PREBOOT_CERT",
    0x00000001: "EV_POST_CODE",
    0x00000003: "EV_NO_ACTION",
    0x00000004: "EV_SEPARATOR",
    0x00000005: "EV_ACTION",
    0x00000006: "EV_EVENT_TAG",
    0x00000007: "EV_S_CRTM_CONTENTS",
    0x00000008: "EV_S_CRTM_VERSION",
    0x00000009: "EV_CPU_MICROCODE",
    0x0000000A: "EV_PLATFORM_CONFIG_FLAGS",
    0x0000000B: "EV_TABLE_OF_DEVICES",
    0x0000000C: "EV_COMPACT_HASH",
    0x0000000D: "EV_IPL",
    0x0000000E: "EV_IPL_PARTITION_DATA",
    0x0000000F: "EV_NONHOST_CODE",
    0x00000010: "EV_NONHOST_CONFIG",
    0x00000011: "EV_NONHOST_INFO",
    0x00000012: "EV_OMIT_BOOT_DEVICE_EVENTS",
    0x00000013: "EV_POST_CODE2",
    0x80000001: "EV_EFI_VARIABLE_DRIVER_CONFIG",
    0x80000002: "EV_EFI_VARIABLE_BOOT",
    0x80000003: "EV_EFI_BOOT_SERVICES_APPLICATION",
    0x80000004: "EV_EFI_BOOT_SERVICES_DRIVER",
    0x80000005: "EV_EFI_RUNTIME_SERVICES_DRIVER",
    0x80000006: "EV_EFI_GPT_EVENT",
    0x80000007: "EV_EFI_ACTION",
    0x80000008: "EV_EFI_PLATFORM_FIRMWARE_BLOB",
    0x80000009: "EV_EFI_HANDOFF_TABLES",
    0x8000000A: "EV_EFI_PLATFORM_FIRMWARE_BLOB2",
    0x8000000B: "EV_EFI_HANDOFF_TABLES2",
    0x8000000C: "EV_EFI_VARIABLE_BOOT2",
    0x8000000D: "EV_EFI_GPT_EVENT2",
    0x80000010: "EV_EFI_HCRTM_EVENT",
    0x800000E0: "EV_EFI_VARIABLE_AUTHORITY",
    0x800000E1: "EV_EFI_SPDM_FIRMWARE_BLOB",
    0x800000E2: "EV_EFI_SPDM_FIRMWARE_CONFIG",
    0x800000E3: "EV_EFI_SPDM_DEVICE_POLICY",
    0x800000E4: "EV_EFI_SPDM_DEVICE_AUTHORITY",
}


class Event(msgspec.Struct, frozen=True, gc=False):
    """One record: register, type, a digest for each of the log's banks, and data that the digest may or may not cover."""

    register: int
    kind: int
    banks: tuple[str, ...]
    values: tuple[bytes, ...]
    data: bytes

    @property
    def name(self) -> str:
        """The TCG's name of the type."""
        return EVENT_NAMES.get(self.kind, f"{self.kind:#010x}")

    @property
    def digests(self) -> Mapping[str, bytes]:
        """The digests by bank. Who reads many events takes the place of the bank once, and then `values`."""
        return dict(zip(self.banks, self.values, strict=True))


class EventLog(msgspec.Struct, frozen=True, gc=False):
    """The banks that the log announces and its records after the header, each with its digests in the order of the banks."""

    banks: tuple[Hash, ...]
    events: tuple[Event, ...]


def parse_log(data: bytes) -> EventLog:
    """Read a crypto-agile log; raises EvidenceError."""
    return _parsed(data)[0]


def with_event(data: bytes, event: Event) -> bytes:
    """A log with one record more, where its filling began; raises EvidenceError when the event has not the banks of the log."""
    log, end = _parsed(data)
    numbers = {bank.name: bank.number for bank in log.banks}
    if tuple(numbers) != event.banks:
        raise EvidenceError("missing-digest", "an event has not the banks that the log announces")
    digests = b"".join(
        numbers[name].to_bytes(2, "little") + value for name, value in zip(event.banks, event.values, strict=True)
    )
    head = Struct("<III").pack(event.register, event.kind, len(event.banks))
    return data[:end] + head + digests + len(event.data).to_bytes(4, "little") + event.data


def _parsed(data: bytes) -> tuple[EventLog, int]:
    """The log, and where its last record ends."""
    if len(data) > MAX_LOG:
        raise EvidenceError("too-long", f"an event log has at most {MAX_LOG} bytes, not {len(data)}")
    cursor = Cursor(data, "the event log", "little")
    banks = _header(cursor)
    head = _Head(banks)
    events: list[Event] = []
    while True:
        head.read(cursor, events)
        if _ended(cursor):
            return EventLog(tuple(banks.values()), tuple(events)), cursor.offset
        if len(events) == MAX_EVENTS:
            raise EvidenceError("too-many-events", f"an event log has at most {MAX_EVENTS} events")
        events.append(_event(cursor, banks))


class _Head:
    """Register, type and digests of a record in the announced order: one layout for all records of a log."""

    __slots__ = ("_names", "_numbers", "_size", "_unpack")

    def __init__(self, banks: Mapping[int, Hash]) -> None:
        self._names = tuple(bank.name for bank in banks.values())
        self._numbers = tuple(banks)
        layout = Struct("<III" + "".join(f"H{bank.size}s" for bank in banks.values()) + "I")
        self._size, self._unpack = layout.size, layout.unpack_from

    def read(self, cursor: Cursor, events: list[Event]) -> None:
        """The next records, up to one that is written in another way, is cut off, or may be filling; that one stays."""
        data, total, start = cursor.data, cursor.size, cursor.offset
        names, numbers, size, unpack = self._names, self._numbers, self._size, self._unpack
        count = len(names)
        while len(events) < MAX_EVENTS:
            begin = start + size
            if begin > total:
                break
            fields = unpack(data, start)
            register, kind = fields[0], fields[1]
            # Eight equal bytes, the filling, are equal numbers here.
            if register == kind or fields[2] != count or fields[3:-1:2] != numbers:
                break
            end: int = begin + fields[-1]
            if end > total:
                break
            events.append(Event(register, kind, names, fields[4:-1:2], data[begin:end]))
            start = end
        cursor.offset = start


def _header(cursor: Cursor) -> dict[int, Hash]:
    cursor.u32("register")
    kind = cursor.u32("eventType")
    cursor.take(20, "digest")
    size = cursor.u32("eventDataSize")
    inner = Cursor(cursor.take(size, "the header"), "the header of the event log", "little")
    # The header itself extends nothing; of another type it would be an event with a SHA-1 digest alone.
    if kind != EV_NO_ACTION or inner.take(len(_SIGNATURE), "signature") != _SIGNATURE:
        raise EvidenceError(
            "not-crypto-agile",
            "the log does not begin with a Spec ID Event03 record",
            hint="Logs of TPM 1.2 (SHA-1 only) are not evidence.",
        )
    inner.take(8, "platform class and version")
    count = inner.u32("numberOfAlgorithms")
    if not 1 <= count <= MAX_BANKS:
        raise EvidenceError("too-many-banks", f"the log announces {count} banks; 1 to {MAX_BANKS} are possible")
    banks = [_bank(inner) for _ in range(count)]
    inner.take(inner.u8("vendorInfoSize"), "vendorInfo")
    inner.finish()
    table = {bank.number: bank for bank in banks}
    # Two places for one bank would leave open which digest counts.
    if len(table) != count:
        raise EvidenceError("repeated-bank", "the log announces the same bank twice")
    return table


def _bank(cursor: Cursor) -> Hash:
    number, size = cursor.u16("algorithmId"), cursor.u16("digestSize")
    bank = HASHES.get(number)
    if bank is None:
        raise EvidenceError("unknown-hash", f"the log announces a bank of unknown algorithm {number:#06x}")
    # A bank that announces another length for its hash would shift every digest after it.
    if bank.size != size:
        raise EvidenceError("bad-size", f"the log announces {bank.name} with {size} bytes; it has {bank.size}")
    return bank


def _ended(cursor: Cursor) -> bool:
    filling = cursor.data[cursor.offset : cursor.offset + 8]
    if not filling:
        return True
    # A record cannot begin so: register 0 with type 0 (pre-boot certificate, never used) or register 0xFFFFFFFF.
    if filling not in _ENDS and (len(filling) == 8 or (filling.strip(b"\0") and filling.strip(b"\xff"))):
        return False
    rest = cursor.data[cursor.offset :]
    if rest.count(rest[:1]) != len(rest):
        raise EvidenceError("trailing-bytes", "something other than filling follows the end of the event log")
    return True


def _event(cursor: Cursor, banks: Mapping[int, Hash]) -> Event:
    register, kind = cursor.u32("register"), cursor.u32("eventType")
    count = cursor.u32("digestCount")
    if count != len(banks):
        raise EvidenceError("missing-digest", f"an event has {count} digests, the log announces {len(banks)} banks")
    digests: dict[str, bytes] = {}
    for _ in range(count):
        bank = banks.get(cursor.u16("algorithmId"))
        if bank is None or bank.name in digests:
            raise EvidenceError("missing-digest", "an event has a digest that the log does not announce, or one twice")
        digests[bank.name] = cursor.take(bank.size, "digest")
    names = tuple(bank.name for bank in banks.values())
    data = cursor.take(cursor.u32("eventSize"), "event")
    return Event(register, kind, names, tuple(digests[name] for name in names), data)
