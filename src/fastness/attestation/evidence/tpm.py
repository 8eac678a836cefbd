"""Judging a TPM quote.

A quote proves that a key signed register values; it does not prove that the key lives in a TPM. That takes the endorsement
key and credential activation, which happen once at enrolment; `known_key` is the key that was enrolled. A bare TPM never
vouches for memory: the hardware claim of a TEE is not made here.

* The values beside the quote must be exactly the selected registers: by number, one bank, none missing and none added.
* The sender does not choose how weak the bank is: SHA-1 has collisions, so its registers prove nothing about what was booted.
* Registers 16 and 23 can be reset by anybody; expectations may not rest on them.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Final

from fastness.attestation.evidence.checks import Appraisal, Check, Claims, Findings, Identity, Question, Result
from fastness.attestation.evidence.replay import judge_log, logged_phase
from fastness.crypto.errors import BadKey
from fastness.crypto.silicon.registers import hashed
from fastness.crypto.silicon.verify import AttestationKey
from fastness.formats.evidence.tpm.algorithms import Scheme
from fastness.formats.evidence.tpm.envelope import TpmEvidence
from fastness.protocol.user_data_event import PCR

# Debug and application support (PC Client Platform TPM Profile): any locality may reset them, so a machine sets them as it likes.
RESETTABLE: Final = frozenset({16, 23})
BANKS: Final = ("sha256", "sha384", "sha512")
_TCG: Final = "TPM 2.0 Library"
# A bare TPM never affirms hardware: the same warning for all of them.
_BARE: Final = Check(
    "hardware",
    Result.WARN,
    "memory-not-protected",
    "a TPM vouches for what was booted, not for who can read the memory",
    hint="Where the host is not trusted, ask for evidence of a TEE.",
    mandatory=False,
)
_KEY: Final = Question(
    "attestation-key",
    "key-differs",
    "the enrolled key",
    "Another TPM answered, or the machine made a new key: enrol it again.",
    proof=True,
)
_SIGNATURE: Final = Question(
    "signature",
    "signature-invalid",
    _TCG,
    "The quote was changed after signing, or another key signed it.",
    proof=True,
)
_SIGNED: Final = "a signature of the attestation key, with SHA-256 or stronger"
_SELECTION: Final = Question(
    "register-selection",
    "register-selection-differs",
    "the values beside the quote",
    "Values of registers outside the selection are unsigned. Quote exactly the registers that are sent.",
    proof=True,
)
_DIGEST: Final = Question(
    "register-digest",
    "register-digest-differs",
    "the values beside the quote",
    "The values are not those that the TPM signed.",
    proof=True,
)
_BANK: Final = Question(
    "register-bank",
    "bank-refused",
    _TCG,
    "Quote the SHA-256 bank: two different boots can be made to end in the same SHA-1 registers.",
)
_BANKS: Final = " or ".join(BANKS)
_CLOCK: Final = Question("clock", "clock-unsafe", "", "")
_SCHEMES: Final = {scheme: scheme.name for scheme in Scheme}  # Enum.name is slow
_CLAIMS: Final = tuple(f"pcr{index:02}" for index in range(24))


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
    """Judge a quote, the register values beside it, and the event log if there is one."""
    findings = Findings()
    key = _key(findings, evidence, expected.known_key)
    _signature(findings, evidence, key)
    _selection(findings, evidence, expected.registers)
    _digest(findings, evidence)
    # Qualifying data has the length that was asked for: it is compared whole, and nothing is filled up.
    findings.nonce(evidence.quote.extra_data, expected.nonce, None)
    _clock(findings, evidence)
    # Said in every verdict: whoever owns the host reads the memory of a machine with a bare TPM, and no quote tells (pitfall 6).
    findings.checks.append(_BARE)
    # The log has no signature of its own and needs none: wherever it comes from, it counts as far as it ends in quoted values.
    log, events, phase = expected.event_log or evidence.event_log, None, ""
    if log:
        events = judge_log(findings, log, evidence.bank, evidence.pcrs, PCR) or []
        logged = logged_phase(log, evidence.bank, evidence.pcrs, PCR)
        phase = logged.phase if logged is not None else ""
    claims = Claims(partial(_claims, evidence, key, events, phase))
    identity = Identity("attestation-key", key.name) if key else None
    return findings.appraisal("tpm", claims, identity)


def _key(findings: Findings, evidence: TpmEvidence, enrolled: AttestationKey | None) -> AttestationKey | None:
    carried: AttestationKey | None = None
    # The usual case, without reading the key again: that costs a quarter of what checking a signature does.
    if enrolled is not None and evidence.ak_public == enrolled.der:
        carried = enrolled
    elif evidence.ak_public:
        try:
            carried = AttestationKey(evidence.ak_public)
        except BadKey as error:
            # A key that cannot be read beside a good enrolled one still refuses: somebody put it there, and it is not noise.
            findings.fail("attestation-key", error.code, error.message, hint=error.hint, proof=True)
            return None
    if enrolled is None:
        if carried is None:
            findings.skip(
                "attestation-key", "key-missing", "the evidence carries no key", hint="Give the key.", proof=True
            )
        else:
            findings.skip(
                "attestation-key",
                "key-not-given",
                f"{carried.kind} {carried.name}",
                hint="Give the enrolled key: a key on its own word may live anywhere.",
                mandatory=False,
            )
        return carried
    # Bytes, not names: a name is a digest that was computed from the key here, the encoding is what was enrolled.
    matches = carried is None or carried is enrolled or carried.der == enrolled.der
    findings.answer(_KEY, matches, carried.name if carried else "", enrolled.name)
    # Never the carried one: whatever the sender brings, the signature is checked with the key that was activated (pitfall 6).
    return enrolled


def _signature(findings: Findings, evidence: TpmEvidence, key: AttestationKey | None) -> None:
    signature = evidence.signature
    scheme, algorithm = _SCHEMES[signature.scheme], signature.hash.name
    # Over the bytes as they came: writing the parsed quote anew could differ from what the TPM signed, or hide what it did not.
    good = key is not None and key.signed(scheme, algorithm, signature.numbers, evidence.quote.message)
    findings.answer(_SIGNATURE, good, _made_with(scheme, algorithm, key.kind if key else ""), _SIGNED)


@lru_cache(maxsize=64)
def _made_with(scheme: str, algorithm: str, key: str) -> str:
    """How a signature was made, as people write it."""
    return f"{scheme} {algorithm} with {key}" if key else f"{scheme} {algorithm}"


def _selection(findings: Findings, evidence: TpmEvidence, required: frozenset[int] | None) -> None:
    selections, valued = evidence.quote.selections, evidence.pcrs.order
    complete = _listed(evidence.bank, valued)
    # The signed digest is over the values alone, one after the other (TPM 2.0 Part 2, TPMS_QUOTE_INFO). Which register a value is
    # of stands in the selection and nowhere else: with another one, the value of PCR 16 could be shown as that of PCR 4
    # (pitfall 5).
    exact = (
        bool(valued)
        and len(selections) == 1
        and selections[0].bank.name == evidence.bank
        and selections[0].registers == valued
    )
    selected = complete if exact else "; ".join([_listed(entry.bank.name, entry.registers) for entry in selections])
    findings.answer(_SELECTION, exact, selected, complete)
    findings.answer(_BANK, evidence.bank in BANKS, evidence.bank, _BANKS)
    if required is not None:
        _requirement(findings, selected, valued, required)


@lru_cache(maxsize=256)
def _listed(bank: str, registers: tuple[int, ...]) -> str:
    """A selection as people write it; a fleet uses a handful."""
    return f"{bank}:{','.join(map(str, registers))}"


def _requirement(findings: Findings, selected: str, quoted: tuple[int, ...], required: frozenset[int]) -> None:
    code, expected, hint = _lacking(quoted, required)
    findings.expect(
        "register-requirement",
        code is None,
        code or "",
        seen=selected,
        expected=expected,
        source="the expectations",
        hint=hint,
    )


@lru_cache(maxsize=256)
def _lacking(quoted: tuple[int, ...], required: frozenset[int]) -> tuple[str | None, str, str]:
    """What a selection lacks: a code, None when nothing; what is expected; what to do. A fleet has a handful of answers."""
    missing, soft = sorted(required - set(quoted)), required & RESETTABLE
    expected = ",".join(map(str, sorted(required)))
    # Before what is missing: an expectation that rests on them is wrong, whatever was quoted.
    if soft:
        return "register-resettable", expected, "Registers 16 and 23 can be reset by anybody: expect others."
    return ("register-missing", expected, f"Quote also {missing}.") if missing else (None, expected, "")


def _digest(findings: Findings, evidence: TpmEvidence) -> None:
    # By the hash of the signing scheme, whatever the bank (TPM 2.0 Part 3, TPM2_Quote).
    algorithm = evidence.signature.hash.name
    computed = hashed(algorithm, evidence.pcrs.joined)
    # This is what ties the values to the signature. A quote without it signs a digest that nobody looked at, and the registers
    # beside it are whatever the sender likes.
    quoted, agree = evidence.quote.digest.hex(), computed == evidence.quote.digest
    findings.answer(_DIGEST, agree, quoted, quoted if agree else computed.hex())


def _clock(findings: Findings, evidence: TpmEvidence) -> None:
    # A warning, because a machine that lost its power is not an attacker's. Resets and restarts are compared with the last boot
    # elsewhere (`verdict/dispute`): there a clock that ran back can refuse.
    clock = evidence.quote.clock
    counters = f"{clock.milliseconds} ms, {clock.resets} resets, {clock.restarts} restarts"
    if clock.safe:
        findings.answer(_CLOCK, True, counters, "")
    else:
        findings.warn(
            "clock", "clock-unsafe", counters, hint="The TPM lost power without notice: its clock may have run back."
        )


def _claims(
    evidence: TpmEvidence, key: AttestationKey | None, events: list[dict[str, Any]] | None = None, phase: str = ""
) -> dict[str, Any]:
    quote, pcrs = evidence.quote, evidence.pcrs
    tpm: dict[str, Any] = {_CLAIMS[index]: value.hex() for index, value in pcrs.items()}
    tpm["bank"] = evidence.bank
    # Policies are written by others: they see which of the values a machine can set as it likes.
    tpm["resettable"] = sorted(RESETTABLE & pcrs.keys())
    tpm["ak"] = key.name if key else ""
    tpm["ak_public"] = base64.b64encode(key.der).decode() if key else ""
    tpm["firmware_version"] = f"{quote.firmware:016x}"
    clock = quote.clock
    tpm |= {"clock": clock.milliseconds, "reset_count": clock.resets, "restart_count": clock.restarts}
    tpm["clock_safe"] = clock.safe
    if phase:
        tpm["phase"] = phase
    if events is not None:
        tpm["uefi_event_logs"] = events
    return {"tpm": tpm, "report_data": quote.extra_data.hex()}
