"""Judging a TPM quote.

A quote proves that a key signed register values; it does not prove that the key lives in a TPM. That takes the endorsement
key and credential activation, which happen once at enrolment; `known_key` is the key that was enrolled. A bare TPM never
vouches for memory: the hardware claim of a TEE is not made here.

* The values beside the quote must be exactly the selected registers: by number, one bank, none missing and none added.
* Registers 16 and 23 can be reset by anybody; expectations may not rest on them.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any, Final

from fastness.crypto.digests import same
from fastness.crypto.errors import BadKey
from fastness.crypto.registers import hashed
from fastness.crypto.verify import AttestationKey
from fastness.domain.attestation.checks import Appraisal, Findings, Identity
from fastness.domain.attestation.replay import PCR, judge_log
from fastness.formats.tpm.envelope import TpmEvidence

RESETTABLE: Final = frozenset({16, 23})
_TCG: Final = "TPM 2.0 Library"


@dataclass(frozen=True, slots=True)
class TpmExpectations:
    """What the caller knows: the challenge, the enrolled key, the registers that must be quoted.

    An event log that is given here takes the place of the one that came with the evidence.
    """

    nonce: bytes | None = None
    known_key: AttestationKey | None = None
    registers: frozenset[int] | None = None
    event_log: bytes = b""


def appraise_tpm(evidence: TpmEvidence, expected: TpmExpectations) -> Appraisal:
    """Judge a quote."""
    findings = Findings()
    key = _key(findings, evidence, expected.known_key)
    _signature(findings, evidence, key)
    _selection(findings, evidence, expected.registers)
    _digest(findings, evidence)
    findings.nonce(evidence.quote.extra_data, expected.nonce, None)
    _clock(findings, evidence)
    findings.warn(
        "hardware",
        "memory-not-protected",
        "a TPM vouches for what was booted, not for who can read the memory",
        hint="Where the host is not trusted, ask for evidence of a TEE.",
    )
    claims = _claims(evidence, key)
    log = expected.event_log or evidence.event_log
    if log:
        events = judge_log(findings, log, evidence.bank, evidence.pcrs, PCR)
        claims["tpm"]["uefi_event_logs"] = events or []
    identity = Identity("attestation-key", str(key.thumbprint)) if key else None
    return findings.appraisal("tpm", claims, identity)


def _key(findings: Findings, evidence: TpmEvidence, known: AttestationKey | None) -> AttestationKey | None:
    carried: AttestationKey | None = None
    if evidence.ak_public:
        try:
            carried = AttestationKey(evidence.ak_public)
        except BadKey as error:
            findings.fail("attestation-key", error.code, error.message, hint=error.hint, proof=True)
            return None
    if known is None:
        if carried is None:
            findings.skip(
                "attestation-key", "key-missing", "the evidence carries no key", hint="Give the key.", proof=True
            )
        else:
            findings.skip(
                "attestation-key",
                "key-not-given",
                f"{carried.kind} {carried.thumbprint}",
                hint="Give the enrolled key: a key on its own word may live anywhere.",
                mandatory=False,
            )
        return carried
    matches = carried is None or same(carried.der, known.der)
    findings.expect(
        "attestation-key",
        matches,
        "key-differs",
        seen=str(carried.thumbprint) if carried else "",
        expected=str(known.thumbprint),
        source="the enrolled key",
        hint="Another TPM answered, or the machine made a new key: enrol it again.",
        proof=True,
    )
    return known


def _signature(findings: Findings, evidence: TpmEvidence, key: AttestationKey | None) -> None:
    signature = evidence.signature
    seen = f"{signature.scheme.name} {signature.hash.name}"
    good = key is not None and key.signed(
        signature.scheme.name, signature.hash.name, signature.numbers, evidence.quote.message
    )
    findings.expect(
        "signature",
        good,
        "signature-invalid",
        seen=seen + (f" with {key.kind}" if key else ""),
        expected="a signature of the attestation key, with SHA-256 or stronger",
        source=_TCG,
        hint="The quote was changed after signing, or another key signed it.",
        proof=True,
    )


def _selection(findings: Findings, evidence: TpmEvidence, required: frozenset[int] | None) -> None:
    selections = evidence.quote.selections
    seen = "; ".join(f"{entry.bank.name}:{','.join(map(str, entry.registers))}" for entry in selections)
    valued = tuple(sorted(evidence.pcrs))
    findings.expect(
        "register-selection",
        bool(valued)
        and len(selections) == 1
        and selections[0].bank.name == evidence.bank
        and selections[0].registers == valued,
        "register-selection-differs",
        seen=seen,
        expected=f"{evidence.bank}:{','.join(map(str, valued))}",
        source="the values beside the quote",
        hint="Values of registers outside the selection are unsigned. Quote exactly the registers that are sent.",
        proof=True,
    )
    if required is None:
        return
    missing, soft = sorted(required - set(valued)), sorted(required & RESETTABLE)
    findings.expect(
        "register-requirement",
        not missing and not soft,
        "register-resettable" if soft else "register-missing",
        seen=seen,
        expected=",".join(map(str, sorted(required))),
        source="the expectations",
        hint="Registers 16 and 23 can be reset by anybody: expect others." if soft else f"Quote also {missing}.",
    )


def _digest(findings: Findings, evidence: TpmEvidence) -> None:
    algorithm = evidence.signature.hash.name
    computed = hashed(algorithm, b"".join(value for _, value in sorted(evidence.pcrs.items())))
    findings.expect(
        "register-digest",
        same(computed, evidence.quote.digest),
        "register-digest-differs",
        seen=evidence.quote.digest.hex(),
        expected=computed.hex(),
        source="the values beside the quote",
        hint="The values are not those that the TPM signed.",
        proof=True,
    )


def _clock(findings: Findings, evidence: TpmEvidence) -> None:
    clock = evidence.quote.clock
    seen = f"{clock.milliseconds} ms, {clock.resets} resets, {clock.restarts} restarts"
    if clock.safe:
        findings.expect("clock", True, "clock-unsafe", seen=seen)
    else:
        findings.warn(
            "clock", "clock-unsafe", seen, hint="The TPM lost power without notice: its clock may have run back."
        )


def _claims(evidence: TpmEvidence, key: AttestationKey | None) -> dict[str, Any]:
    quote = evidence.quote
    return {
        "tpm": {
            **{f"pcr{index:02}": value.hex() for index, value in sorted(evidence.pcrs.items())},
            "bank": evidence.bank,
            "resettable": sorted(RESETTABLE & set(evidence.pcrs)),
            "ak": str(key.thumbprint) if key else "",
            "ak_public": base64.b64encode(key.der).decode() if key else "",
            "firmware_version": f"{quote.firmware:016x}",
            "clock": quote.clock.milliseconds,
            "reset_count": quote.clock.resets,
            "restart_count": quote.clock.restarts,
            "clock_safe": quote.clock.safe,
        },
        "report_data": quote.extra_data.hex(),
    }
