"""The evidence of a machine: the first difference in plain words, then every check, expected and seen side by side."""

from __future__ import annotations

from collections.abc import Sequence

from fastness.attestation.verdict.explain import Explanation
from fastness.formats.words import counted
from fastness.kinds.fastness_dev.verdict import Check
from fastness.page.markup import Child, Markup, tag
from fastness.page.pages.parts import advice, badge, folded, section, side_by_side, table

_HEADS = ("Check", "Result", "Expected", "Seen", "By")


def difference_section(explained: Explanation) -> Markup | None:
    """What decided against a machine, and what fixes it; None for a machine that nothing speaks against."""
    first = first_difference(explained)
    if first is None:
        return None
    sentence = first.hint or f"{first.name} is not what was expected."
    fixes = (tag("h3", "What to do"), advice(explained.actions)) if explained.actions else None
    return section(
        "The first difference",
        tag("p", tag("strong", first.name), ": ", sentence, class_="plainly"),
        side_by_side(first.expected, first.seen),
        tag("p", "Compared with ", tag("code", first.source), class_="hint") if first.source else None,
        fixes, id_="difference", kind="attention",
    )  # fmt: skip


def first_difference(explained: Explanation) -> Check | None:
    """The check that decided against a machine: the first that failed, or else the first that could not be made."""
    if explained.attested:
        return None
    failed = (check for check in explained.why if check.result == "Fail")
    return next(failed, explained.why[0] if explained.why else None)


def evidence_section(explained: Explanation) -> Markup | None:
    """Every check of the last verdict: first those that decided, then the others, folded."""
    if not explained.why and not explained.others:
        return None
    passed = [check for check in explained.others if check.result == "Pass"]
    warned = [check for check in explained.others if check.result != "Pass"]
    return section(
        "Evidence",
        _summary(explained, len(passed)),
        _checks("Checks that decided against it", explained.why) if explained.why else None,
        _checks("Checks that only warn", warned) if warned else None,
        folded(f"{counted(len(passed), 'check')} passed", _checks("Checks that passed", passed)) if passed else None,
        id_="evidence",
    )  # fmt: skip


def _summary(explained: Explanation, passed: int) -> Markup:
    total = len(explained.why) + len(explained.others)
    return tag("p", f"The last verdict made {counted(total, 'check')}; {passed} passed.", class_="hint")


def _checks(caption: str, checks: Sequence[Check]) -> Markup:
    return table(caption, _HEADS, map(_check, checks), "checks")


def _check(check: Check) -> tuple[Child, ...]:
    same = check.seen == check.expected
    hint = tag("small", check.hint) if check.hint else None
    return (
        tag("div", check.name, hint), badge(check.result, check.code),
        "the same" if same and check.seen else tag("code", check.expected) if check.expected else "–",
        tag("code", check.seen) if check.seen else "–", check.source or "–",
    )  # fmt: skip
