"""An appraisal for people: the answer first, then each check; where one did not pass, what was expected and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from fastness.attestation.evidence.checks import Appraisal, Check, Result
from fastness.attestation.evidence.proofs import Proofs

_WORDS: Final = {
    Result.PASS: "pass",
    Result.FAIL: "FAIL",
    Result.WARN: "warn",
    Result.NOT_ASSESSED: "not assessed",
}
_WIDTH: Final = 100


@dataclass(frozen=True, slots=True)
class OfflineAnswer:
    """What was found in evidence from files; `allowed` is what may be missing."""

    appraisal: Appraisal
    proofs: Proofs
    allowed: tuple[str, ...]
    simulated: bool

    @property
    def acceptable(self) -> bool:
        """Whether nothing refuses the evidence and everything was proved that has to be."""
        return self.appraisal.acceptable and not self.proofs.missing(self.allowed)

    @property
    def reason(self) -> str:
        """Why it is refused; empty when it is not."""
        missing = self.proofs.missing(self.allowed)
        return self.appraisal.reason or (f"{missing[0]}-not-proved" if missing else "")

    def to_json(self) -> dict[str, Any]:
        """For machines. What is not endorsed names nobody, and is not authentic."""
        fields = self.appraisal.as_json()
        whole = self.appraisal.authentic and self.proofs.endorsement
        return {
            **fields, "authentic": whole, "identity": fields["identity"] if whole else None, "acceptable": self.acceptable,
            "reason": self.reason, "proved": self.proofs.to_json(), "allowed": list(self.allowed), "simulated": self.simulated,
        }  # fmt: skip


def answer_text(answer: OfflineAnswer) -> str:
    """The answer as text."""
    appraisal = answer.appraisal
    width = max(len(check.name) for check in appraisal.checks)
    lines = [_answer(answer), _proofs(answer)]
    if answer.simulated:
        lines.append("simulated: this evidence comes from the simulator, and vouches for no hardware")
    lines.append("")
    for check in appraisal.checks:
        lines += _check(check, width)
    return "\n".join(lines)


def _answer(answer: OfflineAnswer) -> str:
    appraisal, whole = answer.appraisal, answer.appraisal.authentic and answer.proofs.endorsement
    authentic = "authentic" if whole else "not proven authentic"
    identity = appraisal.identity
    whose = f", {identity.kind} {_short(identity.value)}" if identity and whole else ""
    if answer.acceptable:
        return f"{appraisal.tee} evidence accepted: {authentic}{whose}"
    return f"{appraisal.tee} evidence refused ({answer.reason}): {authentic}{whose}"


def _proofs(answer: OfflineAnswer) -> str:
    """Which of the three were proved, and which need not be."""

    def proof_text(name: str, proved: bool) -> str:
        if proved:
            return f"{name} proved"
        return f"{name} NOT proved{' (allowed)' if name in answer.allowed else ''}"

    return ", ".join(proof_text(name, proved) for name, proved in answer.proofs.to_json().items())


def _check(check: Check, width: int) -> Iterator[str]:
    yield f"{_WORDS[check.result]:<12}  {check.name:<{width}}  {_short(check.seen)}".rstrip()
    if check.result is Result.PASS:
        return
    margin = " " * 14
    if check.expected:
        by = f" ({check.source})" if check.source else ""
        yield f"{margin}expected: {_short(check.expected)}{by}"
    if check.hint:
        yield f"{margin}{check.hint}"


def _short(text: str) -> str:
    """Long values are cut for the eye; JSON has all of them. Sentences stay whole."""
    return text if " " in text or len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"
