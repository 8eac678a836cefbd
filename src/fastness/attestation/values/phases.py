"""PCR 11 without its boot phases: an image has one value, and machines are compared with it in every phase of their boot.

    appraisal = without_phases(appraisal, book)         # claims tpm.pcr11 as the image has it, and tpm.phase

Which phase a machine is in follows from its event log, where there is one: the log ends in the image's value. Without a log the
values that are published can show that the initrd was left, and never that it was not: a set may list what somebody measured on
a machine that ran, and whoever runs there could leave out its log to look like one that boots.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from fastness.attestation.evidence.checks import Appraisal
from fastness.attestation.evidence.phases import Phase, phase_of, words_between
from fastness.attestation.values.values import ReferenceValues

NAME: Final = "tpm_pcr11"
CLAIM: Final = "pcr11"
PHASE: Final = "phase"


def without_phases(appraisal: Appraisal, book: ReferenceValues) -> Appraisal:
    """The same appraisal with the phases taken out of the register that they are extended in."""
    if appraisal.tee != "tpm" or not appraisal.authentic:
        return appraisal
    tpm = appraisal.claims.get("tpm") or {}
    measured, bank = str(tpm.get(CLAIM) or ""), str(tpm.get("bank") or "")
    listed = {text for entry in book.tuples("tpm") for text in entry.texts.get(NAME, ())}
    # The usual case costs nothing: the log told the phase, and the value is one that somebody published.
    if not measured or (measured in listed and tpm.get(PHASE)):
        return appraisal
    explained = _explained(bank, measured, listed)
    change: dict[str, Any] = {}
    if explained and measured not in listed:
        change[CLAIM] = next(iter(explained))
    if not tpm.get(PHASE) and Phase.SYSTEM in {phase_of(words) for words in explained.values()}:
        change[PHASE] = str(Phase.SYSTEM)
    if not change:
        return appraisal
    return msgspec.structs.replace(appraisal, claims={**appraisal.claims, "tpm": {**tpm, **change}})


def _explained(bank: str, measured: str, listed: set[str]) -> dict[str, tuple[str, ...]]:
    """The published values that phases lead from to a measured one, with the words in between."""
    end = bytes.fromhex(measured)
    explained: dict[str, tuple[str, ...]] = {}
    for text in sorted(listed):
        try:
            start = bytes.fromhex(text)
        except ValueError:
            continue
        words = words_between(bank, start, end) if len(start) == len(end) else None
        if words is not None:
            explained[text] = words
    return explained
