"""A verdict as data: checks in order, each with what was seen, what was expected, who says so and what to do.

    findings = Findings()
    findings.expect("signature", good, "signature-invalid", proof=True, hint="…")
    findings.answer(SIGNATURE, good, "ECDSA sha256", expected)  # the same with a Question that is written once
    appraisal = findings.appraisal("snp", claims, identity)

* `proof` marks the checks that authenticity rests on: all of them must pass before the evidence counts as the hardware's word.
* A mandatory check that could not be made refuses as a failed one does; an optional one only says so.
* Codes are stable: scripts and policies may match them. A passed check has the code `ok`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, NamedTuple

import msgspec

DEBUG: Final = "debug-allowed"


class Result(StrEnum):
    """How a check went; the spelling is that of Verdict objects."""

    PASS = "Pass"
    FAIL = "Fail"
    WARN = "Warn"
    NOT_ASSESSED = "NotAssessed"


# A member of an enumeration is looked up in its class each time, slowly; a verdict asks two dozen times.
_PASS: Final = Result.PASS
_FAIL: Final = Result.FAIL
_NOT_ASSESSED: Final = Result.NOT_ASSESSED


def instant(at: datetime) -> str:
    """A time in UTC as verdicts write it; a fifth of the cost of strftime, which every report would pay twice."""
    return at.isoformat(timespec="seconds")[:19] + "Z"


class Check(msgspec.Struct, frozen=True, gc=False):
    """One check and its outcome. A verdict has a dozen: a struct is made in a quarter of the time of a dataclass."""

    name: str
    result: Result
    code: str
    seen: str = ""
    expected: str = ""
    source: str = ""
    hint: str = ""
    proof: bool = False
    mandatory: bool = True

    @property
    def refuses(self) -> bool:
        """Whether this check alone is enough to say no."""
        # What could not be looked at counts as bad: otherwise leaving a document or a certificate out would be the way in
        # (pitfall 19).
        return self.result is _FAIL or (self.result is _NOT_ASSESSED and self.mandatory)

    def as_json(self) -> dict[str, Any]:
        """The check as Verdict objects carry it, and whether it was mandatory."""
        return {
            "name": self.name,
            "result": str(self.result),
            "code": self.code,
            "seen": self.seen,
            "expected": self.expected,
            "source": self.source,
            "hint": self.hint,
            "mandatory": self.mandatory,
        }


class Question(msgspec.Struct, frozen=True, gc=False):
    """The part of a check that is the same for all evidence: what it is called, who says so, what to do when it fails."""

    name: str
    code: str
    source: str
    hint: str
    proof: bool = False


class Identity(NamedTuple):
    """Whom the hardware vouches for: a chip, a platform, a cloud, a key."""

    kind: str
    value: str


class Claims(Mapping[str, Any]):
    """What the evidence says, made when somebody asks: nobody does for evidence that is refused."""

    __slots__ = ("_made", "_make")

    def __init__(self, make: Callable[[], Mapping[str, Any]]) -> None:
        self._make = make
        self._made: Mapping[str, Any] | None = None

    def _all(self) -> Mapping[str, Any]:
        if self._made is None:
            self._made = self._make()
        return self._made

    def __getitem__(self, name: str) -> Any:
        return self._all()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())


class Appraisal(msgspec.Struct, frozen=True):
    """One piece of evidence, judged: the checks in their order, what it claims, and whom it is of."""

    tee: str
    checks: tuple[Check, ...]
    claims: Mapping[str, Any]
    identity: Identity | None

    @property
    def authentic(self) -> bool:
        """Whether every check that authenticity rests on passed."""
        # None at all is not all of them: an appraisal that ended early proves nothing.
        proved = False
        for check in self.checks:
            if check.proof:
                if check.result is not _PASS:
                    return False
                proved = True
        return proved

    @property
    def acceptable(self) -> bool:
        """Whether the evidence is authentic and nothing refuses it."""
        proved = False
        for check in self.checks:
            if check.result is not _PASS:
                if check.proof or check.refuses:
                    return False
            elif check.proof:
                proved = True
        return proved

    @property
    def reason(self) -> str:
        """The code of the first check that refuses; empty when none does."""
        return next((check.code for check in self.checks if check.refuses), "")

    def as_json(self) -> dict[str, Any]:
        """The appraisal for machines. Unproven evidence names nobody."""
        # A chip id out of a report that nobody signed would put somebody else's name into a log.
        identity = self.identity if self.authentic else None
        return {
            "tee": self.tee,
            "authentic": self.authentic,
            "acceptable": self.acceptable,
            "reason": self.reason,
            "checks": [check.as_json() for check in self.checks],
            "claims": dict(self.claims),
            "identity": {"kind": identity.kind, "value": identity.value} if identity else None,
        }


_NONCE: Final = Question(
    "nonce",
    "nonce-differs",
    "the challenge",
    "The evidence answers another challenge: it is old, replayed, or bound to another key.",
)


class Findings:
    """Collects checks in the order in which they are made."""

    __slots__ = ("checks",)

    def __init__(self) -> None:
        self.checks: list[Check] = []

    @property
    def refused(self) -> bool:
        """Whether a check so far refuses."""
        return any(check.refuses for check in self.checks)

    def expect(
        self,
        name: str,
        good: bool,
        code: str,
        *,
        seen: str = "",
        expected: str = "",
        source: str = "",
        hint: str = "",
        proof: bool = False,
    ) -> bool:
        """A check that passes or fails; returns which. The hint is kept for failures."""
        if good:
            self.checks.append(Check(name, _PASS, "ok", seen, expected, source, "", proof))
        else:
            self.checks.append(Check(name, _FAIL, code, seen, expected, source, hint, proof))
        return good

    def answer(self, question: Question, good: bool, seen: str, expected: str) -> None:
        """A check that every evidence of a kind goes through: a call with few arguments is half of what it costs."""
        if good:
            self.checks.append(Check(question.name, _PASS, "ok", seen, expected, question.source, "", question.proof))
        else:
            self.checks.append(
                Check(
                    question.name, _FAIL, question.code, seen, expected, question.source, question.hint, question.proof
                )
            )

    def production(
        self, good: bool, code: str, *, seen: str, expected: str, source: str, hint: str, simulated: bool
    ) -> None:
        """Whether nobody can look inside. Where all hardware is simulated anybody can: then it is a warning, left to policy."""
        # Of a real vendor this always refuses: a guest that its host may debug has told its host everything it is given
        # (pitfall 10).
        if good or not simulated:
            self.expect("debug", good, code, seen=seen, expected=expected, source=source, hint=hint)
        else:
            self.warn("debug", code, seen, expected=expected, source=source, hint=hint)

    def fail(self, name: str, code: str, seen: str, *, source: str = "", hint: str = "", proof: bool = False) -> None:
        """Add a check that failed."""
        self.checks.append(Check(name, _FAIL, code, seen, "", source, hint, proof))

    def warn(self, name: str, code: str, seen: str, *, expected: str = "", source: str = "", hint: str = "") -> None:
        """Something that an operator should know and that refuses nothing."""
        self.checks.append(Check(name, Result.WARN, code, seen, expected, source, hint, mandatory=False))

    def skip(
        self, name: str, code: str, seen: str, *, hint: str = "", mandatory: bool = True, proof: bool = False
    ) -> None:
        """A check that could not be made."""
        self.checks.append(Check(name, _NOT_ASSESSED, code, seen, "", "", hint, proof, mandatory))

    def nonce(self, seen: bytes, challenge: bytes | None, size: int | None) -> None:
        """Freshness: the caller's bytes, filled up with zeros where the field has a fixed size."""
        if challenge is None:
            # Only somebody who judges files has no challenge; the verifier of a cluster asks for a passed check of this name
            # (pitfall 14).
            self.skip("nonce", "nonce-not-given", seen.hex(), hint="Give the nonce of the challenge.", mandatory=False)
            return
        # Filled up and compared whole: comparing the beginning alone would take evidence that commits to something more
        # (pitfall 12).
        field = challenge if size is None else challenge.ljust(size, b"\0")
        # Not in constant time, and need not be: the challenge is no secret to whoever answers it.
        digits, good = seen.hex(), field == seen
        self.answer(_NONCE, good, digits, digits if good else field.hex())

    def appraisal(self, tee: str, claims: Mapping[str, Any], identity: Identity | None) -> Appraisal:
        """The checks so far as an appraisal, with what the evidence claims and whom it is of."""
        return Appraisal(tee, tuple(self.checks), claims, identity)
