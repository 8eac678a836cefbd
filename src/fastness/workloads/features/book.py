"""All rules of a cluster, compiled once and asked for every node.

A thousand rules on five thousand nodes are five million questions, so they are not asked one by one:

* Each way in which a rule can match (its matchFeatures with one element of its matchAny) is an entry, a bit in one integer.
* The terms of a feature are answered together (`group.py`): the result is the set of entries that fail. What is left when all
  features have answered are the entries that match, in the order of the rules.
* The outputs of a rule are checked when the book is made; only `@` references are left for the node.

What does not fit that (templates, back-references to earlier rules, anything that cannot be answered) goes the way of
`evaluate`, which also is the judge in tests: the book must agree with it on every rule and every node.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from fastness.workloads.features import outputs
from fastness.workloads.features.discovered import RULE_MATCHED, Features
from fastness.workloads.features.errors import BadRule, FeatureError
from fastness.workloads.features.evaluate import Outcome, evaluate
from fastness.workloads.features.group import Group
from fastness.workloads.features.outputs import DEFAULT, REFERENCE, Dropped, Settings
from fastness.workloads.features.rules import Rule, Taint, Term

NO_FEATURES: Final = Features()


@dataclass(slots=True)
class NodeOutcome:
    """What all rules together give one node."""

    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    resources: dict[str, str] = field(default_factory=dict)
    taints: list[Taint] = field(default_factory=list)
    matched: list[str] = field(default_factory=list)
    dropped: list[Dropped] = field(default_factory=list)
    errors: dict[str, FeatureError] = field(default_factory=dict)

    def add(self, outcome: Outcome) -> None:
        """Take over the outcome of one rule; later rules win."""
        if outcome.error is not None:
            self.errors[outcome.rule] = outcome.error
        if not outcome.matched:
            return
        self.matched.append(outcome.rule)
        self.labels |= outcome.labels
        if outcome.annotations:
            self.annotations |= outcome.annotations
        if outcome.resources:
            self.resources |= outcome.resources
        if outcome.dropped:
            self.dropped += outcome.dropped
        for taint in outcome.taints:
            others = [other for other in self.taints if (other.key, other.effect) != (taint.key, taint.effect)]
            self.taints = [*others, taint]


@dataclass(frozen=True, slots=True)
class _Entry:
    """One way for a rule to match; `ready` is the outcome where it does not depend on the node, else `outputs` gives it."""

    rule: Rule
    slow: bool
    terms: frozenset[Term]
    outputs: Rule
    ready: Outcome | None


class RuleBook:
    """Rules in their order, ready to be asked."""

    def __init__(self, rules: Iterable[Rule | BadRule], settings: Settings = DEFAULT) -> None:
        given = list(rules)
        self.settings = settings
        self.unreadable = [rule for rule in given if isinstance(rule, BadRule)]
        self.rules = [rule for rule in given if isinstance(rule, Rule)]
        self._looks_back = any(_looks_back(rule) for rule in self.rules)
        self._entries = [entry for rule in self.rules for entry in self._entries_of(rule)]
        self._all = (1 << len(self._entries)) - 1
        self._slow = sum(1 << number for number, entry in enumerate(self._entries) if entry.slow)
        self._groups = self._grouped()

    def run(self, features: Features) -> NodeOutcome:
        """The outcome of all rules on one node; total."""
        failed = errors = 0
        for group in self._groups:
            more, wrong = group.answer(features)
            failed |= more
            errors |= wrong
        uncertain = errors | self._slow
        result, left, last = NodeOutcome(), dict[str, str](), None
        for number in _bits(self._all & ~failed | uncertain):
            entry = self._entries[number]
            if entry.rule is last:
                continue
            if uncertain >> number & 1:
                context = features.with_matched(left) if self._looks_back and left else features
                outcome = evaluate(entry.rule, context, self.settings, explain=False)
            else:
                outcome = entry.ready or evaluate(entry.outputs, features, self.settings, explain=False)
            last = entry.rule
            result.add(outcome)
            if self._looks_back:
                left.update(outcome.leaves)
        return result

    def _entries_of(self, rule: Rule) -> list[_Entry]:
        slow = rule.has_template or _looks_back(rule)
        outputs = _always(rule)
        fixed = not any(text.startswith(REFERENCE) for text in (*rule.labels.values(), *rule.resources.values()))
        ready = evaluate(outputs, NO_FEATURES, self.settings, explain=False) if fixed and not slow else None
        branches = [()] if slow else rule.any_of or [()]
        return [_Entry(rule, slow, frozenset((*rule.terms, *branch)), outputs, ready) for branch in branches]

    def _grouped(self) -> list[Group]:
        """The terms of the entries by feature; those of slow rules are asked elsewhere."""
        by_feature: dict[str, dict[Term, int]] = {}
        for number, entry in enumerate(self._entries):
            for term in () if entry.slow else entry.terms:
                entries_of_term = by_feature.setdefault(term.feature, {})
                entries_of_term[term] = entries_of_term.get(term, 0) | 1 << number
        return [Group(feature, terms) for feature, terms in by_feature.items()]


def _bits(mask: int) -> Iterator[int]:
    """The numbers of the bits that are set, in order."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def _looks_back(rule: Rule) -> bool:
    return _refers_back(rule) or any(term.feature == RULE_MATCHED for term in rule.all_terms)


def _refers_back(rule: Rule) -> bool:
    texts: Mapping[str, str] = {**rule.labels, **{f"resource {key}": text for key, text in rule.resources.items()}}
    return any(text.lower().startswith(f"{outputs.REFERENCE}{RULE_MATCHED}.") for text in texts.values())


def _always(rule: Rule) -> Rule:
    """The same outputs without requirements."""
    return Rule(
        rule.name, rule.labels, "", rule.annotations, rule.vars, "", rule.taints, rule.resources, source=rule.source
    )
