"""Where the key lies that is a machine's identity, and what follows from it for everybody who looks at the machine.

An attestation key never leaves its TPM. A guest key is a file, and as long as no attestation opens the disk that it lies on,
whoever owns the host reads it. What the key is good for is bounded by the chip (`dispute.py`); that it can be read is said
wherever the machine is shown: on the Machine (`status.identity`), in each verdict, on the command line and on the page.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from fastness.attestation.evidence.checks import Check, Result
from fastness.attestation.verdict.conclude import Conclusion
from fastness.kinds.trusted_execution.machine import IDENTITIES, Machine
from fastness.kinds.trusted_execution.subject import KeyKind, key_kind

IN_TPM, OPEN_DISK = IDENTITIES
NOTE: Final = "identity on an open disk"


def identity_place(tee: str) -> str:
    """Where the key of a machine with this kind of evidence lies."""
    return OPEN_DISK if key_kind(tee) is KeyKind.GUEST else IN_TPM


def told_open_disk(conclusion: Conclusion, tee: str) -> Conclusion:
    """The same conclusion, with a warning where the machine's key lies on a disk that anybody can open."""
    if identity_place(tee) != OPEN_DISK:
        return conclusion
    check = Check(
        "identity", Result.WARN, "identity-on-open-disk", NOTE, "a key that only this machine can use", "the kind of evidence",
        "Whoever reads the machine's disk has its key. It counts on the machine's own chip alone.",
    )  # fmt: skip
    return replace(conclusion, checks=(*conclusion.checks, check))


def identity_notes(machine: Machine) -> tuple[str, ...]:
    """What must be said beside the machine about its key; empty for nothing."""
    place = machine.status.identity or (identity_place(machine.status.tee) if machine.status.tee else "")
    return (NOTE,) if place == OPEN_DISK else ()
