"""Where a real boot left the prediction.

    judge_measurement(findings, measurement, signed_registers, event_log)

Registers say that something differs; the event log says what. The log is believed only for registers whose signed value its
replay ends in. The first difference is the first in time: everything after it may differ only because of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fastness.attestation.evidence.checks import Findings
from fastness.attestation.evidence.replay import replay
from fastness.formats.cursor import EvidenceError
from fastness.formats.evidence.eventlog.log import EV_NO_ACTION, Event, parse_log
from fastness.images.measurement import BANK, MeasuredEvent, Measurement
from fastness.protocol.user_data_event import PCR


@dataclass(frozen=True, slots=True)
class Difference:
    """One place where the log and the prediction part: the event that was expected, and the one that was logged."""

    pcr: int
    position: int
    expected: MeasuredEvent | None
    measured: Event | None

    def __str__(self) -> str:
        place = f"event {self.position} of PCR {self.pcr}"
        if self.expected is None and self.measured is not None:
            return f"{place} was not expected: {self.measured.name} {self._logged}"
        event = f"{self.expected.description} ({self.expected.digest.hex()})" if self.expected else "nothing"
        if self.measured is None:
            return f"{place} is missing: {event}"
        return f"{place} differs: expected {event}, the machine measured {self.measured.name} {self._logged}"

    @property
    def _logged(self) -> str:
        return self.measured.digests[BANK].hex() if self.measured else ""


def first_differences(measurement: Measurement, events: Sequence[Event]) -> list[Difference]:
    """The first difference of each predicted register, in the order of the boot; what is missing comes last."""
    waiting = {pcr: list(measurement.of_register(pcr)) for pcr in measurement.registers}
    done = dict.fromkeys(waiting, 0)
    differences: dict[int, Difference] = {}
    for event in events:
        pcr = event.register
        if event.kind == EV_NO_ACTION or pcr not in waiting or pcr in differences:
            continue
        position = done[pcr]
        expected = waiting[pcr][position] if position < len(waiting[pcr]) else None
        if expected is None or expected.digest != event.digests[BANK]:
            differences[pcr] = Difference(pcr, position + 1, expected, event)
        done[pcr] += 1
    for pcr, rows in waiting.items():
        if pcr not in differences and done[pcr] < len(rows):
            differences[pcr] = Difference(pcr, done[pcr] + 1, rows[done[pcr]], None)
    return list(differences.values())


def judge_measurement(
    findings: Findings, measurement: Measurement, signed: Mapping[int, bytes], event_log: bytes = b"", source: str = ""
) -> Difference | None:
    """Check signed registers against a prediction; returns the first difference that the log proves."""
    differences = _explained(measurement, signed, event_log)
    by_register = {difference.pcr: difference for difference in differences}
    for pcr, value in sorted(measurement.registers.items()):
        measured = signed.get(pcr)
        why = by_register.get(pcr)
        findings.expect(
            f"measured {PCR.name(pcr)}",
            measured == value,
            "measurement-differs" if measured is not None else "measurement-missing",
            seen=measured.hex() if measured is not None else "",
            expected=value.hex(),
            source=source or "the measured image",
            hint=f"{_sentence(why)}." if why else _unexplained(measured),
        )
    return differences[0] if differences else None


def _explained(measurement: Measurement, signed: Mapping[int, bytes], event_log: bytes) -> list[Difference]:
    if not event_log:
        return []
    try:
        log = parse_log(event_log)
    except EvidenceError:
        return []
    ends = replay(log).get(BANK)
    if ends is None:
        return []
    differing = {pcr for pcr, value in measurement.registers.items() if signed.get(pcr) not in (None, value)}
    return [
        entry
        for entry in first_differences(measurement, log.events)
        if entry.pcr in differing and signed.get(entry.pcr) == ends.get(entry.pcr, bytes(32))
    ]


def _unexplained(measured: bytes | None) -> str:
    if measured is None:
        return "Quote this register as well."
    return "Send the event log with the evidence: it says which event differs."


def _sentence(difference: Difference) -> str:
    text = str(difference)
    return text[:1].upper() + text[1:]
