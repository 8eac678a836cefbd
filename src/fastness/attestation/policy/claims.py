"""What a policy gets to see and what it answers: claims of an appraisal in, an AR4SI trust vector out.

In, the shape that policies of the field are written against (`policy_input`):

    {"<tee>": {…}, "report_data": hex, "runtime_data_claims": {…}, "init_data": hex, "init_data_claims": {…} or null,
     "appraisal": {"authentic", "acceptable", "identity", "checks"}}

* `init_data` is the field of the evidence, whether or not the caller sent a text for it; `init_data_claims` is null unless the
  text was sent and its digest is what the hardware signed. A text that nobody measured tells a policy nothing.
* Events that no signed register confirms are left out, so that a rule that walks all events meets only true ones.
* TDX claims say `collateral_expiration_status`: "0" while Intel's documents were in date, "1" otherwise.
* `appraisal` is ours: how the checks went, for policies that want to rest on them. Of checks with one name the worst is shown.

Out, a vector of claims (`TrustVector`), each a signed byte. Its tier says how good it is: none (-1 to 1), affirming, warning,
contraindicated (draft-ietf-rats-ar4si).

* A machine is affirmed when every mandatory claim of its kind of evidence is affirming and no claim is worse than that. No
  assertion (0) is not good enough for a mandatory claim, and a claim that the policy does not mention counts as 0.
* A name that nobody knows crashes nothing and helps nobody, but a bad value under it still counts against the machine: a typing
  error must not hide a warning.
* A policy that could not be evaluated gives a vector with an `error`, which affirms nothing.
* A bare TPM says nothing about who can read the memory: `seen_by` takes its hardware claim away, whatever a policy says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Final

from fastness.attestation.evidence.checks import Appraisal, Result
from fastness.crypto.silicon.registers import extend
from fastness.kinds.fastness_dev.verdict import RESULTS
from fastness.kinds.kind import JsonObject

CLAIMS: Final = (
    "instance-identity",
    "configuration",
    "executables",
    "file-system",
    "hardware",
    "runtime-opaque",
    "storage-opaque",
    "sourced-data",
)
AFFIRMED, REFUSED, NOT_ASSESSED = RESULTS
_TEE: Final = ("hardware", "executables", "configuration")
MANDATORY: Final[Mapping[str, tuple[str, ...]]] = {
    "tpm": ("instance-identity", "executables", "configuration"),
    "snp": _TEE,
    "tdx": _TEE,
    "az-snp-vtpm": _TEE,
    "az-tdx-vtpm": _TEE,
    "nvidia": ("hardware", "configuration"),
}
# Nothing in a quote says that the machine around the TPM is real, or who can read its memory (pitfall 6).
_WITHOUT_HARDWARE: Final = frozenset({"tpm"})
EVENTS: Final = "uefi_event_logs"
INIT_DATA_PCR: Final = "pcr08"
_BADNESS: Final = (Result.PASS, Result.WARN, Result.NOT_ASSESSED, Result.FAIL)
_STALE: Final = frozenset({"collateral-expired", "collateral-from-the-future", "crl-expired"})
_LIFTED: Final = ("report_data", "init_data")


def policy_input(
    appraisal: Appraisal,
    runtime_claims: Mapping[str, Any],
    init_data: bytes | None = None,
    init_data_claims: Mapping[str, Any] | None = None,
) -> JsonObject:
    """The input of a policy. `init_data` is the digest of the text that the caller sent, `init_data_claims` what is in it."""
    claims: JsonObject = {name: _verified(value) for name, value in appraisal.claims.items() if name not in _LIFTED}
    if "tcb_status" in claims.get("tdx", {}):
        stale = any(check.code in _STALE for check in appraisal.checks)
        claims["tdx"] = {**claims["tdx"], "collateral_expiration_status": "1" if stale else "0"}
    bound = init_data is not None and init_data_bound(appraisal, init_data)
    return {
        **claims,
        "report_data": str(appraisal.claims.get("report_data", "")),
        "init_data": str(appraisal.claims.get("init_data", "")),
        "runtime_data_claims": dict(runtime_claims),
        "init_data_claims": dict(init_data_claims) if bound and init_data_claims is not None else None,
        "appraisal": _appraisal(appraisal),
    }


def init_data_bound(appraisal: Appraisal, digest: bytes) -> bool:
    """Whether the evidence carries this digest: in its field, cut or filled up with zeros, or for a TPM in PCR 8."""
    if not digest:
        return False
    if appraisal.tee == "tpm":
        tpm = appraisal.claims.get("tpm", {})
        # PCR 8 of this bank is extended once, from zero, with a digest of this length; nothing else can be compared.
        if tpm.get("bank") != "sha256" or len(digest) != 32:
            return False
        return bool(tpm.get(INIT_DATA_PCR) == extend("sha256", bytes(32), digest).hex())
    field = bytes.fromhex(str(appraisal.claims.get("init_data", "")))
    return bool(field) and digest[: len(field)].ljust(len(field), b"\0") == field


def without_events(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Claims without event logs, as tokens carry them."""
    return {
        name: {key: part for key, part in value.items() if key != EVENTS} if isinstance(value, dict) else value
        for name, value in document.items()
    }


def _verified(value: Any) -> Any:
    """Claims of one TEE without the events that nothing confirms."""
    if not isinstance(value, dict) or EVENTS not in value:
        return value
    return {**value, EVENTS: [event for event in value[EVENTS] if event.get("verified") is True]}


def _appraisal(appraisal: Appraisal) -> JsonObject:
    checks: dict[str, Result] = {}
    for check in appraisal.checks:
        name, result = check.name, check.result
        # The worst: a policy that looks up a name must not meet the one that passed.
        checks[name] = max(checks[name], result, key=_BADNESS.index) if name in checks else result
    identity = appraisal.identity if appraisal.authentic else None
    return {
        "authentic": appraisal.authentic,
        "acceptable": appraisal.acceptable,
        "identity": {"kind": identity.kind, "value": identity.value} if identity else None,
        "checks": {name: str(result) for name, result in checks.items()},
    }


def proves_host(tee: str) -> bool:
    """Whether evidence of a kind says who can read the memory. A bare TPM does not: the host may be anything."""
    return tee not in _WITHOUT_HARDWARE


class Tier(IntEnum):
    """How good a claim is; the greatest of a vector is its status, and the numbers are those of the numeric form."""

    NONE = 0
    AFFIRMING = 2
    WARNING = 32
    CONTRAINDICATED = 96

    def __str__(self) -> str:
        return self.name.lower()


def tier(value: int) -> Tier:
    """The tier of a claim's value; what does not fit a signed byte is contraindicated."""
    # The bounds are those of AR4SI, which mirrors each tier below zero: -32 is affirming, and -1 asserts nothing.
    if -1 <= value <= 1:
        return Tier.NONE
    if 2 <= value <= 31 or -32 <= value <= -2:
        return Tier.AFFIRMING
    if 32 <= value <= 95 or -96 <= value <= -33:
        return Tier.WARNING
    return Tier.CONTRAINDICATED


@dataclass(frozen=True, slots=True)
class TrustVector:
    """Claims by their AR4SI names; `unknown` are claims of other names, `error` says why there are none."""

    claims: Mapping[str, int] = field(default_factory=dict)
    unknown: Mapping[str, int] = field(default_factory=dict)
    error: str | None = None

    @classmethod
    def of(cls, answer: object) -> TrustVector:
        """What a policy answered, with underscores or hyphens; an answer of another shape is an error. Total."""
        if not isinstance(answer, dict):
            return cls(error="the policy gives no object of claims")
        claims: dict[str, int] = {}
        unknown: dict[str, int] = {}
        for name, value in answer.items():
            # Rego has one type of number: 2 may come back as 2.0.
            whole = int(value) if isinstance(value, float) and value.is_integer() else value
            if not isinstance(whole, int) or isinstance(whole, bool) or not -128 <= whole <= 127:
                return cls(error=f"the claim {name[:64]!r} is not a whole number from -128 to 127")
            plain = str(name).replace("_", "-")
            (claims if plain in CLAIMS else unknown)[plain] = whole
        return cls({name: claims[name] for name in CLAIMS if name in claims}, unknown)

    def value(self, claim: str) -> int:
        """The value of a claim; 0 when nothing was said."""
        return self.claims.get(claim, 0)

    @property
    def status(self) -> Tier:
        """The worst tier of all claims."""
        if self.error is not None:
            return Tier.CONTRAINDICATED
        return max((tier(value) for value in (*self.claims.values(), *self.unknown.values())), default=Tier.NONE)

    def unaffirmed(self, tee: str) -> tuple[str, ...]:
        """The mandatory claims of a kind of evidence that are not affirming; of an unknown kind all are mandatory."""
        return tuple(
            claim
            for claim in MANDATORY.get(tee, CLAIMS)
            if self.error is not None or tier(self.value(claim)) is not Tier.AFFIRMING
        )

    def affirms(self, tee: str) -> bool:
        """Whether every mandatory claim is affirmed and nothing speaks against the machine."""
        return self.status is Tier.AFFIRMING and not self.unaffirmed(tee)

    def result(self, tee: str) -> str:
        """The vector as the result of a Verdict; NotAssessed when the policy asserted nothing at all."""
        if self.affirms(tee):
            return AFFIRMED
        return NOT_ASSESSED if self.status is Tier.NONE else REFUSED

    def seen_by(self, tee: str) -> TrustVector:
        """The vector without what this kind of evidence can never prove."""
        if proves_host(tee) or tier(self.value("hardware")) is not Tier.AFFIRMING:
            return self
        return TrustVector({**self.claims, "hardware": 0}, self.unknown, self.error)


def worst_of(vectors: Iterable[TrustVector]) -> TrustVector:
    """Several policies at once: of each claim the worst value, so that one more policy never helps a machine.

    A claim that one of them leaves out is unasserted; among affirming values the weaker (greater) one is kept.
    """
    all_of = list(vectors)
    if len(all_of) == 1:
        return all_of[0]
    if not all_of:
        return TrustVector(error="no policy judged")
    error = next((vector.error for vector in all_of if vector.error is not None), None)
    if error is not None:
        return TrustVector(error=error)
    claims = {
        name: _worst([vector.value(name) for vector in all_of])
        for name in CLAIMS
        if any(name in vector.claims for vector in all_of)
    }
    names = {name for vector in all_of for name in vector.unknown}
    return TrustVector(
        claims, {name: _worst([v.unknown[name] for v in all_of if name in v.unknown]) for name in sorted(names)}
    )


def _worst(values: list[int]) -> int:
    """The value that helps least: something bad before nothing, nothing before something good."""
    return max(values, key=lambda value: (tier(value) > Tier.AFFIRMING, tier(value) is Tier.NONE, tier(value), value))
