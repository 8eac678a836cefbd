"""The terms of one feature, answered together for many rules.

An entry is one way for a rule to match: its matchFeatures with one element of its matchAny. Entries are bits. `answer` gives two
integers: the entries that fail because of this feature, and those that cannot be answered. All expressions on one element are
answered at once, and what a value does to the entries is remembered, so a node costs one step per element that some rule names.

A term on instances must hold as a whole on one of them, so there the terms that hold are collected first; equal instances (the
same devices are in many nodes) are answered once. A feature that has both kinds at once is rare and is asked term by term.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Final, TypeVar

from fastness.workloads.features.discovered import Attributes, Features
from fastness.workloads.features.errors import BadExpression
from fastness.workloads.features.match import match_term
from fastness.workloads.features.operators import Expression, holds
from fastness.workloads.features.rules import Term

REMEMBERED: Final = 8192
Answer = tuple[int, int]
K = TypeVar("K")
V = TypeVar("V")
_NO_FLAGS: Final[frozenset[str]] = frozenset()
_NO_TEXTS: Final[Attributes] = {}


class _Element:
    """What one element does to the entries: absent, as a flag, and with each value that was met."""

    __slots__ = ("absent", "flag", "name", "questions", "values")

    def __init__(self, name: str, questions: list[tuple[Expression, int]]) -> None:
        self.name = name
        self.questions = questions
        self.absent = self._answer(False, None)
        self.flag = self._answer(True, None)
        self.values: dict[str, Answer] = {}

    def of(self, value: str) -> Answer:
        answer = self.values.get(value)
        if answer is None:
            answer = _remember(self.values, value, self._answer(True, value))
        return answer

    def _answer(self, present: bool, value: str | None) -> Answer:
        failed = errors = 0
        for expression, entries in self.questions:
            try:
                if not holds(expression, present, value):
                    failed |= entries
            except BadExpression:
                errors |= entries
        return failed, errors


class Group:
    """The terms of one feature, each with the entries that need it."""

    def __init__(self, feature: str, terms: Mapping[Term, int]) -> None:
        self._feature = feature
        self._terms = terms
        self._all = _union(terms.values())
        self._exact = {term: entries for term, entries in terms.items() if term.name is not None}
        expressions_of: dict[str, dict[Expression, int]] = {}
        for term, entries in terms.items():
            for name, expression in term.expressions or () if term.name is None else ():
                entries_of = expressions_of.setdefault(name, {})
                entries_of[expression] = entries_of.get(expression, 0) | entries
        self._elements = [_Element(name, list(expressions.items())) for name, expressions in expressions_of.items()]
        self._names = frozenset(expressions_of)
        # Terms hash slowly, so the loops over instances go by bits.
        self._needing = [(1 << at, term, entries) for at, (term, entries) in enumerate(terms.items()) if term.needs]
        self._unheld: dict[int, int] = {}
        self._instances: dict[Hashable, Answer] = {}

    def answer(self, features: Features) -> Answer:
        """The entries that fail on a node, and those that cannot be answered there."""
        if not features.has(self._feature):
            return self._all, 0
        plain, several = features.has_plain(self._feature), self._feature in features.instances
        if plain and several:
            return self._term_by_term(self._terms, features)
        failed, errors = self._by_instances(features) if several else self._by_elements(features)
        if self._exact:
            more, wrong = self._term_by_term(self._exact, features)
            failed, errors = failed | more, errors | wrong
        return failed, errors

    def _by_elements(self, features: Features) -> Answer:
        flags = features.flags.get(self._feature, _NO_FLAGS)
        texts = features.attributes.get(self._feature, _NO_TEXTS)
        failed = errors = 0
        if not texts:
            # Most features are sets of names: this loop is the hottest of all.
            for element in self._elements:
                more, wrong = element.flag if element.name in flags else element.absent
                failed |= more
                if wrong:
                    errors |= wrong
            return failed, errors
        for element in self._elements:
            value = texts.get(element.name)
            if value is None:
                more, wrong = element.flag if element.name in flags else element.absent
            else:
                more, wrong = element.values.get(value) or element.of(value)
            failed |= more
            if wrong:
                errors |= wrong
        return failed, errors

    def _by_instances(self, features: Features) -> Answer:
        held = errors = 0
        for instance in features.instances[self._feature]:
            key = frozenset([item for item in instance.items() if item[0] in self._names])
            answer = self._instances.get(key)
            if answer is None:
                answer = _remember(self._instances, key, self._by_instance(instance))
            held |= answer[0]
            errors |= answer[1]
        failed = self._unheld.get(held)
        if failed is None:
            lacking = [entries for bit, _, entries in self._needing if not held & bit]
            failed = _remember(self._unheld, held, _union(lacking))
        return failed, errors

    def _by_instance(self, instance: Attributes) -> Answer:
        """The bits of the terms that hold on one instance, and the entries that cannot be answered there."""
        features = Features(instances={self._feature: (instance,)})
        held = errors = 0
        for bit, term, entries in self._needing:
            try:
                if match_term(term, features) is not None:
                    held |= bit
            except BadExpression:
                errors |= entries
        return held, errors

    def _term_by_term(self, terms: Mapping[Term, int], features: Features) -> Answer:
        failed = errors = 0
        for term, entries in terms.items():
            try:
                failed |= entries if match_term(term, features) is None else 0
            except BadExpression:
                errors |= entries
        return failed, errors


def _union(masks: Iterable[int]) -> int:
    result = 0
    for mask in masks:
        result |= mask
    return result


def _remember(memory: dict[K, V], key: K, value: V) -> V:
    """Keep an answer; a memory that is full starts anew."""
    if len(memory) >= REMEMBERED:
        memory.clear()
    memory[key] = value
    return value
