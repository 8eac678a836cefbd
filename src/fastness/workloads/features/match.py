"""Terms and rules against features, with a trace.

A rule matches when one element of matchAny matches (or there is none) and all of matchFeatures do. Elements and terms are
looked at in order, and the first that decides ends the look; an expression that cannot be answered raises, which skips the rule.

The trace tells each step: which element was looked at, what was seen there and whether that held. `trace` also looks behind the
point where the decision fell, because whoever asks for a trace wants to see everything that is wrong at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from fastness.workloads.features.discovered import Attributes, Features
from fastness.workloads.features.errors import BadExpression
from fastness.workloads.features.operators import ANY, Expression, holds
from fastness.workloads.features.rules import Rule, Term

ABSENT: Final = "(absent)"
FLAG: Final = "(flag)"
NAMES: Final = "(names)"
Elements = dict[str, list[Attributes]]


@dataclass(frozen=True, slots=True)
class Check:
    """One expression: where it looked, what it saw, whether it held, or why it cannot be answered."""

    element: str
    expression: Expression
    observed: str
    held: bool
    error: str = ""


@dataclass(frozen=True, slots=True)
class TermTrace:
    """One term; `branch` is the element of matchAny that it belongs to, None for matchFeatures."""

    branch: int | None
    feature: str
    held: bool
    note: str
    checks: tuple[Check, ...]


@dataclass(frozen=True, slots=True)
class Matched:
    """A rule that matched: the elements behind it, once per matching element of matchAny and once for matchFeatures."""

    groups: tuple[Elements, ...]


def match_rule(rule: Rule, features: Features) -> Matched | None:
    """What a rule matched, or None; raises BadExpression."""
    groups: list[Elements] = []
    for branch in rule.any_of:
        elements = _match_all(branch, features)
        if elements is not None:
            groups.append(elements)
            if not rule.has_template:
                break
    if rule.any_of and not groups:
        return None
    if rule.terms:
        elements = _match_all(rule.terms, features)
        if elements is None:
            return None
        groups.append(elements)
    # A rule without requirements matches nothing in particular; its template still runs, once.
    return Matched(tuple(groups or [{}]))


def _match_all(terms: Sequence[Term], features: Features) -> Elements | None:
    elements: Elements = {}
    for term in terms:
        matched = match_term(term, features)
        if matched is None:
            return None
        elements.setdefault(term.feature, []).extend(matched)
    return elements


def match_term(term: Term, features: Features) -> list[Attributes] | None:
    """The elements that a term matched, or None; raises BadExpression."""
    if not features.has(term.feature):
        return None
    elements: list[Attributes] = []
    if term.expressions is not None:
        matched = _match_expressions(term.feature, term.expressions, features)
        if matched is None:
            return None
        elements += matched
    if term.name is not None:
        matched = _match_names(term.feature, term.name, features)
        if matched is None:
            return None
        elements += matched
    return elements


def _match_expressions(
    feature: str, expressions: Sequence[tuple[str, Expression]], features: Features
) -> list[Attributes] | None:
    matched, elements = False, list[Attributes]()
    if features.has_plain(feature):
        flags, attributes = features.flags.get(feature, frozenset()), features.attributes.get(feature, {})
        # All are asked even if the first does not hold: an expression that cannot be answered must not hide behind the order.
        answers = [plain_holds(name, expression, flags, attributes) for name, expression in expressions]
        matched = all(answers)
        if matched:
            elements += [_item(name, attributes) for name, _ in expressions]
    for instance in features.instances.get(feature, ()):
        answers = [holds(expression, name in instance, instance.get(name)) for name, expression in expressions]
        if all(answers):
            matched = True
            elements.append(instance)
    return elements if matched else None


def plain_holds(name: str, expression: Expression, flags: frozenset[str], attributes: Attributes) -> bool:
    """Whether an expression holds for the flags or for the attributes of a feature; raises BadExpression."""
    in_flags, in_attributes = name in flags, name in attributes
    if expression.op in ("DoesNotExist", "Exists", ANY) or not in_attributes:
        return holds(expression, in_flags or in_attributes, None)
    return holds(expression, True, attributes[name])


def _item(name: str, attributes: Attributes) -> Attributes:
    return {"Name": name, "Value": attributes.get(name, "")}


def _match_names(feature: str, expression: Expression, features: Features) -> list[Attributes] | None:
    attributes = features.attributes.get(feature, {})
    plain = sorted({*features.flags.get(feature, ()), *attributes})
    elements = [_item(name, attributes) for name in plain if holds(expression, True, name)]
    elements += [instance for instance in features.instances.get(feature, ()) if _has_name(instance, expression)]
    return elements or None


def _has_name(instance: Attributes, expression: Expression) -> bool:
    # Every name is judged, so that an unanswerable one is found in any order.
    return True in [holds(expression, True, name) for name in instance]


def trace(rule: Rule, features: Features) -> tuple[TermTrace, ...]:
    """Every term of a rule, explained; total."""
    branches = [_traced(number, term, features) for number, branch in enumerate(rule.any_of) for term in branch]
    return (*branches, *(_traced(None, term, features) for term in rule.terms))


def _traced(branch: int | None, term: Term, features: Features) -> TermTrace:
    if not features.has(term.feature):
        return TermTrace(branch, term.feature, False, "the node has no such feature", ())
    try:
        held, note = match_term(term, features) is not None, ""
    except BadExpression as error:
        held, note = False, str(error)
    checks = tuple(_checks(term, features))
    if not note and not checks:
        note = "the feature is enough" if held else "the feature has no instance"
    return TermTrace(branch, term.feature, held, note, checks)


def _checks(term: Term, features: Features) -> Iterator[Check]:
    flags, attributes = features.flags.get(term.feature, frozenset()), features.attributes.get(term.feature, {})
    instances = features.instances.get(term.feature, ())
    for name, expression in term.expressions or ():
        if features.has_plain(term.feature):
            observed = attributes.get(name, FLAG if name in flags else ABSENT)
            yield _check(name, expression, observed, partial(plain_holds, name, expression, flags, attributes))
        for instance in _nearest(term, instances):
            observed = instance.get(name, ABSENT)
            yield _check(name, expression, observed, partial(holds, expression, name in instance, instance.get(name)))
    if term.name is not None:
        names = term.name
        by_name = Term(term.feature, None, names)
        yield _check(
            NAMES, names, _listed(flags, attributes, instances), lambda: match_term(by_name, features) is not None
        )


def _nearest(term: Term, instances: Sequence[Attributes]) -> Sequence[Attributes]:
    """The instance that comes closest: with thousands of devices nobody reads why each was another."""

    def score(instance: Attributes) -> int:
        total = 0
        for name, expression in term.expressions or ():
            try:
                total += holds(expression, name in instance, instance.get(name))
            except BadExpression:
                total -= 1
        return total

    return [max(instances, key=score)] if instances else []


def _check(name: str, expression: Expression, observed: str, ask: Callable[[], bool]) -> Check:
    try:
        return Check(name, expression, observed, ask())
    except BadExpression as error:
        return Check(name, expression, observed, False, str(error))


def _listed(flags: frozenset[str], attributes: Attributes, instances: Sequence[Attributes]) -> str:
    names = sorted({*flags, *attributes, *(name for instance in instances[:100] for name in instance)})
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "") or "(none)"
