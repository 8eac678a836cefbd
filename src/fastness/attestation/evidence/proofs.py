"""What evidence proved when it is judged from files: signature, endorsement and freshness, each by itself.

    proved = proofs_of(appraisal)
    missing = proved.missing(allowed)             # names of what was neither proved nor allowed to be missing

A quote that a self-made key signed has a good signature and nothing else: anybody can make one. So an answer says which of the
three were shown, and only all of them together are a yes.

* signature: the bytes, and the values beside them, were signed by the key that the evidence names.
* endorsement: that key lives where it says. A chain to a vendor's pinned root shows it for SNP and TDX; for a TPM it takes
  credential activation, so here only the key that was enrolled (`--ak`) does.
* freshness: the evidence answers the challenge that it was asked.

Evidence of the simulator is marked: by the organization in its certificates, and by the firmware version that its TPMs sign.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from fastness.attestation.evidence.checks import Appraisal, Result

SIMULATED_ORGANIZATION: Final = "Fastness Simulated Silicon"
SIMULATED_TPM_FIRMWARE: Final = 0x2026_0101_0000_0001
# May be missing where somebody says so; a signature may not: without it there is no evidence.
ALLOWABLE: Final = ("endorsement", "freshness")
_SIGNED: Final = frozenset({"signature", "report-data", "register-selection", "register-digest", "register-bank"})
_ENDORSED: Final = {"tpm": "attestation-key", "snp": "certificate-chain", "tdx": "certificate-chain"}


@dataclass(frozen=True, slots=True)
class Proofs:
    """Which of the three were proved."""

    signature: bool
    endorsement: bool
    freshness: bool

    def missing(self, allowed: Collection[str] = ()) -> tuple[str, ...]:
        """What was not proved, but for what may be missing."""
        return tuple(name for name, proved in self.to_json().items() if not proved and name not in allowed)

    def to_json(self) -> dict[str, bool]:
        """The three as JSON, in the order in which people read them."""
        return {"signature": self.signature, "endorsement": self.endorsement, "freshness": self.freshness}


def proofs_of(appraisal: Appraisal) -> Proofs:
    """What an appraisal shows to be proved. A check that is not there was not made, so it proved nothing."""
    results = {check.name: check.result for check in appraisal.checks}
    # Values beside a quote are as good as signed only where the digest in the quote is theirs, so those checks belong to it.
    signed = [results[name] for name in _SIGNED if name in results]
    signature = results.get("signature") is Result.PASS and all(outcome is Result.PASS for outcome in signed)
    endorsed = results.get(_ENDORSED.get(appraisal.tee, "")) is Result.PASS
    # Nothing without the signature: a nonce or a chain beside bytes that nobody signed was pasted there.
    return Proofs(
        signature, signature and endorsed and appraisal.authentic, signature and results.get("nonce") is Result.PASS
    )
