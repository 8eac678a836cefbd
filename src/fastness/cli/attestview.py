"""An appraisal for people: the answer first, then each check; where one did not pass, what was expected and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fastness.domain.attestation.checks import Appraisal, Check, Result

_WORDS: Final = {
    Result.PASS: "pass",
    Result.FAIL: "FAIL",
    Result.WARN: "warn",
    Result.NOT_ASSESSED: "not assessed",
}
_WIDTH: Final = 100


def shown(appraisal: Appraisal) -> str:
    """The appraisal as text."""
    width = max(len(check.name) for check in appraisal.checks)
    lines = [_answer(appraisal), ""]
    for check in appraisal.checks:
        lines += _check(check, width)
    return "\n".join(lines)


def _answer(appraisal: Appraisal) -> str:
    authentic = "authentic" if appraisal.authentic else "not proven authentic"
    identity = appraisal.identity
    whose = f", {identity.kind} {_short(identity.value)}" if identity and appraisal.authentic else ""
    if appraisal.acceptable:
        return f"{appraisal.tee} evidence accepted: {authentic}{whose}"
    return f"{appraisal.tee} evidence refused ({appraisal.reason}): {authentic}{whose}"


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
