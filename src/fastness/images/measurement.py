"""A prediction: events in the order in which they happen, and the registers that they end in.

The manifest has the shape that image labels carry (`{"pcrs": [{"id", "value", "events": [{"name", "pcr", "hash", "id"}]}]}`);
ours adds a description to each event. Reading one back replays it: a value that its events do not end in is refused, so a
manifest cannot approve something else than it lists.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fastness.crypto.silicon.registers import extend
from fastness.images.errors import BadManifest

BANK: Final = "sha256"
SIZE: Final = 32
MAX_EVENTS: Final = 4096
_HEX: Final = re.compile(r"[0-9a-f]{64}\Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class MeasuredEvent:
    """One extension: register, type of the event in a log, digest, what it is in words, and a stable name for it."""

    pcr: int
    name: str
    digest: bytes
    description: str
    id: str = ""


@dataclass(frozen=True, slots=True)
class Measurement:
    """What a machine will measure: the final registers, the events in order, and what was not predicted and why."""

    registers: Mapping[int, bytes]
    events: tuple[MeasuredEvent, ...]
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, registers: Sequence[int], events: Sequence[MeasuredEvent], notes: Sequence[str] = ()) -> Measurement:
        """The measurement that these events make in these registers; a register without events stays zero."""
        chosen = tuple(event for event in events if event.pcr in set(registers))
        return cls({pcr: replayed(chosen, pcr) for pcr in sorted(registers)}, chosen, tuple(notes))

    def of_register(self, pcr: int) -> tuple[MeasuredEvent, ...]:
        """The events of one register."""
        return tuple(event for event in self.events if event.pcr == pcr)

    def reference_values(self, state: str = "Current") -> list[dict[str, Any]]:
        """`spec.values` of a ReferenceValueSet."""
        return [
            {"name": f"tpm_pcr{pcr}", "register": f"pcr{pcr}", "algorithm": BANK, "value": value.hex(), "state": state}
            for pcr, value in sorted(self.registers.items())
        ]

    def to_manifest(self) -> dict[str, Any]:
        """The manifest of an approval."""
        return {
            "pcrs": [
                {"id": pcr, "value": value.hex(), "events": [_event_json(event) for event in self.of_register(pcr)]}
                for pcr, value in sorted(self.registers.items())
            ]
        }


def replayed(events: Sequence[MeasuredEvent], pcr: int) -> bytes:
    """Where the events leave a register that began at zero."""
    value = bytes(SIZE)
    for event in events:
        if event.pcr == pcr:
            value = extend(BANK, value, event.digest)
    return value


def parse_manifest(value: object) -> Measurement:
    """Read a manifest, one made here or the label of an image; raises BadManifest."""
    rows = value.get("pcrs") if isinstance(value, dict) else None
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise BadManifest("not-a-manifest", "a manifest is an object with a list pcrs")
    registers: dict[int, bytes] = {}
    events: list[MeasuredEvent] = []
    for row in rows:
        pcr = row.get("id")
        if not isinstance(pcr, int) or isinstance(pcr, bool) or not 0 <= pcr < 24 or pcr in registers:
            raise BadManifest("bad-register", f"{pcr!r} is not the number of a register, or is listed twice")
        registers[pcr] = _digest(row.get("value"), f"the value of PCR {pcr}")
        events += _events(row.get("events", []), pcr)
        if len(events) > MAX_EVENTS:
            raise BadManifest("too-many-events", f"a manifest has at most {MAX_EVENTS} events")
        if replayed(events, pcr) != registers[pcr]:
            raise BadManifest("does-not-add-up", f"the events of PCR {pcr} do not end in its value")
    return Measurement(dict(sorted(registers.items())), tuple(events))


def _events(rows: object, pcr: int) -> list[MeasuredEvent]:
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise BadManifest("not-a-manifest", f"the events of PCR {pcr} are not a list of objects")
    events = []
    for row in rows:
        texts = [row.get(key, "") for key in ("name", "description", "id")]
        if row.get("pcr", pcr) != pcr or not all(isinstance(text, str) and len(text) <= 512 for text in texts):
            raise BadManifest("bad-event", f"an event of PCR {pcr} names another register, or has a damaged text")
        events.append(MeasuredEvent(pcr, texts[0], _digest(row.get("hash"), "a hash"), texts[1] or texts[2], texts[2]))
    return events


def _digest(value: object, what: str) -> bytes:
    if not isinstance(value, str) or _HEX.match(value) is None:
        raise BadManifest("bad-digest", f"{what} is not a SHA-256 in lower-case hex")
    return bytes.fromhex(value)


def _event_json(event: MeasuredEvent) -> dict[str, Any]:
    return {
        "name": event.name,
        "pcr": event.pcr,
        "hash": event.digest.hex(),
        "id": event.id,
        "description": event.description,
    }
