"""What a NodeFeatureRule says, read once.

A rule of the wrong shape becomes a BadRule, and the other rules of the object are still read. What depends on the node (a number
that is none, an element that is missing) is judged later; `Rule.problems` tells what is wrong with a rule on every node.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Final

from fastness.workloads.features.errors import BadRule, FeatureError
from fastness.workloads.features.operators import Expression, problem

_FEATURE: Final = re.compile(r"[^.\s]+\.[^\s]+\Z", re.ASCII)
_MEMBERS: Final = frozenset({
    "name", "labels", "labelsTemplate", "annotations", "vars", "varsTemplate", "taints", "extendedResources",
    "matchFeatures", "matchAny",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Term:
    """A requirement on one feature; None means that a part was not given, which is not the same as empty."""

    feature: str
    expressions: tuple[tuple[str, Expression], ...] | None = None
    name: Expression | None = None

    @property
    def needs(self) -> bool:
        """Whether the term has expressions and nothing else."""
        return self.expressions is not None and self.name is None


@dataclass(frozen=True, slots=True)
class Taint:
    """A taint that a rule asks for."""

    key: str
    effect: str
    value: str = ""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of a NodeFeatureRule."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    labels_template: str = ""
    annotations: Mapping[str, str] = field(default_factory=dict)
    vars: Mapping[str, str] = field(default_factory=dict)
    vars_template: str = ""
    taints: tuple[Taint, ...] = ()
    resources: Mapping[str, str] = field(default_factory=dict)
    terms: tuple[Term, ...] = ()
    any_of: tuple[tuple[Term, ...], ...] = ()
    source: str = ""

    @property
    def has_template(self) -> bool:
        """Whether matched elements are needed after the match."""
        return bool(self.labels_template or self.vars_template)

    @property
    def all_terms(self) -> Iterator[Term]:
        """Every term, wherever it stands."""
        yield from self.terms
        for branch in self.any_of:
            yield from branch

    def problems(self) -> list[FeatureError]:
        """What is wrong with the rule on every node."""
        from fastness.workloads.features.templates import parsed

        problems: list[FeatureError] = []
        for term in self.all_terms:
            if _FEATURE.match(term.feature) is None:
                problems.append(BadRule("bad-feature", f"{term.feature!r} is not <domain>.<feature>", _FEATURE_HINT))
            named = [(f"{term.feature}/{name}", expression) for name, expression in term.expressions or ()]
            named += [(f"{term.feature}/matchName", term.name)] if term.name else []
            for place, expression in named:
                wrong = problem(expression)
                if wrong is not None:
                    wrong.path = place
                    problems.append(wrong)
        for place, text in (("labelsTemplate", self.labels_template), ("varsTemplate", self.vars_template)):
            try:
                parsed(text)
            except FeatureError as error:
                error.path = place
                problems.append(error)
        return problems


_FEATURE_HINT: Final = "Write for example cpu.cpuid."


def read_object(obj: Mapping[str, Any]) -> list[Rule | BadRule]:
    """The rules of a NodeFeatureRule, in order; a rule that cannot be read stands as its error. Total."""
    source = str((obj.get("metadata") or {}).get("name") or "") if isinstance(obj.get("metadata"), dict) else ""
    spec = obj.get("spec")
    rules = spec.get("rules") if isinstance(spec, dict) else None
    if not isinstance(rules, list):
        return [BadRule("no-rules", "spec.rules is not a list", "Write the rules below spec.rules.", source)]
    read: list[Rule | BadRule] = []
    for number, raw in enumerate(rules):
        try:
            read.append(read_rule(raw, source))
        except BadRule as error:
            error.path = f"{source}: spec.rules[{number}]{'.' + error.path if error.path else ''}"
            read.append(error)
    return read


def in_order(objects: Iterable[Mapping[str, Any]]) -> list[Rule | BadRule]:
    """The rules of all objects, objects by their names."""
    ordered = sorted(objects, key=lambda obj: str((obj.get("metadata") or {}).get("name", "")))
    return [rule for obj in ordered for rule in read_object(obj)]


def read_rule(raw: Any, source: str = "") -> Rule:
    """Read one rule; raises BadRule."""
    members = _members(raw, "", _MEMBERS)
    name = _text(members.get("name"), "name")
    if not name:
        raise BadRule("no-name", "a rule has a name", "Give it one.", "name")
    return Rule(
        name=name,
        labels=_texts(members.get("labels"), "labels"),
        labels_template=_text(members.get("labelsTemplate"), "labelsTemplate"),
        annotations=_texts(members.get("annotations"), "annotations"),
        vars=_texts(members.get("vars"), "vars"),
        vars_template=_text(members.get("varsTemplate"), "varsTemplate"),
        taints=tuple(_taint(taint, path) for taint, path in _items(members.get("taints"), "taints")),
        resources=_texts(members.get("extendedResources"), "extendedResources"),
        terms=_terms(members.get("matchFeatures"), "matchFeatures"),
        any_of=tuple(
            _terms(_members(branch, path, frozenset({"matchFeatures"})).get("matchFeatures"), f"{path}.matchFeatures")
            for branch, path in _items(members.get("matchAny"), "matchAny")
        ),
        source=source,
    )


def _terms(raw: Any, path: str) -> tuple[Term, ...]:
    return tuple(_term(term, place) for term, place in _items(raw, path))


def _term(raw: Any, path: str) -> Term:
    members = _members(raw, path, frozenset({"feature", "matchExpressions", "matchName"}))
    feature = _text(members.get("feature"), f"{path}.feature").lower()
    if not feature:
        raise BadRule("no-feature", "a term names its feature", _FEATURE_HINT, f"{path}.feature")
    expressions, name = members.get("matchExpressions"), members.get("matchName")
    if expressions is not None and not isinstance(expressions, dict):
        raise BadRule("not-a-mapping", "this is not a mapping", "Map names to {op, value}.", f"{path}.matchExpressions")
    return Term(
        feature,
        None
        if expressions is None
        else tuple(
            (str(key), _expression(value, f"{path}.matchExpressions[{key}]"))
            for key, value in sorted(expressions.items(), key=lambda item: str(item[0]))
        ),
        None if name is None else _expression(name, f"{path}.matchName"),
    )


def _expression(raw: Any, path: str) -> Expression:
    members = _members(raw, path, frozenset({"op", "value", "type"}))
    values = members.get("value")
    if values is not None and not (isinstance(values, list) and all(isinstance(value, str) for value in values)):
        raise BadRule("not-texts", "value is a list of texts", "Put numbers and true in quotes.", f"{path}.value")
    return Expression(
        _text(members.get("op"), f"{path}.op"), tuple(values or ()), _text(members.get("type"), f"{path}.type")
    )


def _taint(raw: Any, path: str) -> Taint:
    members = _members(raw, path, frozenset({"key", "value", "effect", "timeAdded"}))
    return Taint(*(_text(members.get(name), f"{path}.{name}") for name in ("key", "effect", "value")))


def _members(raw: Any, path: str, allowed: frozenset[str]) -> Mapping[str, Any]:
    if not isinstance(raw, dict):
        raise BadRule("not-a-mapping", "this is not a mapping", "Compare with the reference of NodeFeatureRule.", path)
    unknown = sorted(str(name) for name in raw if name not in allowed)
    if unknown:
        near = get_close_matches(unknown[0], allowed, n=1)
        raise BadRule(
            "unknown-member", f"{unknown[0]!r} is not known here",
            f"Did you mean {near[0]}?" if near else f"Known are {', '.join(sorted(allowed))}.", path,
        )  # fmt: skip
    return raw


def _items(raw: Any, path: str) -> list[tuple[Any, str]]:
    if raw is not None and not isinstance(raw, list):
        raise BadRule("not-a-list", "this is not a list", "Write a list.", path)
    return [(value, f"{path}[{number}]") for number, value in enumerate(raw or [])]


def _text(raw: Any, path: str) -> str:
    if raw is not None and not isinstance(raw, str):
        raise BadRule("not-text", "this is not a text", "Put it in quotes.", path)
    return raw or ""


def _texts(raw: Any, path: str) -> Mapping[str, str]:
    if raw is None:
        return {}
    if not isinstance(raw, dict) or not all(isinstance(v, str) and isinstance(k, str) for k, v in raw.items()):
        raise BadRule("not-texts", "this is not a mapping of texts", 'Put values in quotes: "true".', path)
    return raw
