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
from fastness.protocol.registers import PCR


@dataclass(frozen=True, slots=True)
class Difference:
    """One place where the log and the prediction part: the event that was expected, and the one that was logged."""

    pcr: int
    position: int
    expected: MeasuredEvent | None
    seen: Event | None

    def __str__(self) -> str:
        place = f"event {self.position} of PCR {self.pcr}"
        if self.expected is None and self.seen is not None:
            return f"{place} was not expected: {self.seen.name} {self._logged}"
        wanted = f"{self.expected.description} ({self.expected.digest.hex()})" if self.expected else "nothing"
        if self.seen is None:
            return f"{place} is missing: {wanted}"
        return f"{place} differs: expected {wanted}, the machine measured {self.seen.name} {self._logged}"

    @property
    def _logged(self) -> str:
        return self.seen.digests[BANK].hex() if self.seen else ""


def first_differences(measurement: Measurement, events: Sequence[Event]) -> list[Difference]:
    """The first difference of each predicted register, in the order of the boot; what is missing comes last."""
    waiting = {pcr: list(measurement.of_register(pcr)) for pcr in measurement.registers}
    done = dict.fromkeys(waiting, 0)
    found: dict[int, Difference] = {}
    for event in events:
        pcr = event.register
        if event.kind == EV_NO_ACTION or pcr not in waiting or pcr in found:
            continue
        position = done[pcr]
        wanted = waiting[pcr][position] if position < len(waiting[pcr]) else None
        if wanted is None or wanted.digest != event.digests[BANK]:
            found[pcr] = Difference(pcr, position + 1, wanted, event)
        done[pcr] += 1
    for pcr, rows in waiting.items():
        if pcr not in found and done[pcr] < len(rows):
            found[pcr] = Difference(pcr, done[pcr] + 1, rows[done[pcr]], None)
    return list(found.values())


def judge_measurement(
    findings: Findings, measurement: Measurement, signed: Mapping[int, bytes], event_log: bytes = b"", source: str = ""
) -> Difference | None:
    """Check signed registers against a prediction; returns the first difference that the log proves."""
    differences = _explained(measurement, signed, event_log)
    by_register = {difference.pcr: difference for difference in differences}
    for pcr, value in sorted(measurement.registers.items()):
        seen = signed.get(pcr)
        why = by_register.get(pcr)
        findings.expect(
            f"measured {PCR.name(pcr)}",
            seen == value,
            "measurement-differs" if seen is not None else "measurement-missing",
            seen=seen.hex() if seen is not None else "",
            expected=value.hex(),
            source=source or "the measured image",
            hint=f"{_sentence(why)}." if why else _unexplained(seen),
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


def _unexplained(seen: bytes | None) -> str:
    if seen is None:
        return "Quote this register as well."
    return "Send the event log with the evidence: it says which event differs."


def _sentence(difference: Difference) -> str:
    text = str(difference)
    return text[:1].upper() + text[1:]
