"""One rule on one node.

    outcome = evaluate(rule, features)
    outcome.labels, outcome.resources, outcome.trace

Labels that are written out win over those of the template, and so do variables. A rule that cannot be answered has an `error` and
no outputs. `leaves` is what later rules can match on as `rule.matched`: labels and variables as written, before prefixes and
references.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fastness.workloads.features import outputs, templates
from fastness.workloads.features.discovered import Features
from fastness.workloads.features.errors import FeatureError
from fastness.workloads.features.match import Elements, Matched, TermTrace, match_rule, trace
from fastness.workloads.features.outputs import DEFAULT, Dropped, Settings
from fastness.workloads.features.rules import Rule, Taint


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one rule gives one node, and why."""

    rule: str
    matched: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    resources: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    vars: Mapping[str, str] = field(default_factory=dict)
    leaves: Mapping[str, str] = field(default_factory=dict)
    dropped: tuple[Dropped, ...] = ()
    error: FeatureError | None = None
    trace: tuple[TermTrace, ...] = ()


def evaluate(rule: Rule, features: Features, settings: Settings = DEFAULT, *, explain: bool = True) -> Outcome:
    """The outcome of a rule on a node, with a trace unless nobody wants it; total."""
    explanation = trace(rule, features) if explain else ()
    try:
        matched = match_rule(rule, features)
        if matched is None:
            return Outcome(rule.name, trace=explanation)
        rule_labels = {**_from_template(rule.labels_template, matched), **rule.labels}
        variables = {**_from_template(rule.vars_template, matched), **rule.vars}
    except FeatureError as error:
        return Outcome(rule.name, error=error, trace=explanation)
    labels = outputs.allowed_labels(rule_labels, features, settings)
    annotations = outputs.allowed_annotations(rule.annotations, settings)
    resources = outputs.allowed_resources(rule.resources, features, settings)
    taints, refused = outputs.allowed_taints(rule.taints, settings)
    return Outcome(
        rule.name, True, labels.entries, annotations.entries, resources.entries, tuple(taints), variables,
        {**rule_labels, **variables}, (*labels.dropped, *annotations.dropped, *resources.dropped, *refused), trace=explanation,
    )  # fmt: skip


def _from_template(template: str, matched: Matched) -> dict[str, str]:
    """The lines of a template over each group of matched elements, united."""
    lines: dict[str, str] = {}
    if template:
        for group in matched.groups:
            lines |= templates.run(template, _nested(group))
    return lines


def _nested(group: Elements) -> dict[str, Any]:
    data: dict[str, Any] = {}
    for feature, elements in group.items():
        domain, _, name = feature.partition(".")
        data.setdefault(domain, {})[name] = elements
    return data
