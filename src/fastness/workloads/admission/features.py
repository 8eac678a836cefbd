"""Rules about NodeFeatureRules: what is wrong with one on every node is told to whoever writes it, not to the nodes later.

A template that cannot be read is refused, with its field, line and column: it would never make a label. Anything else that is
wrong with a rule is a warning, because the project that the kind comes from takes such rules and skips them.

Where another discovery may read the same objects, a function that only ours does not have is a warning too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from fastness.kinds.nfd import GROUP, UPSTREAM
from fastness.kube.admission import AdmissionLookups, AdmissionRequest, Allowed, Answer, invalid
from fastness.workloads.features.errors import BadTemplate, FeatureError
from fastness.workloads.features.rules import Rule, read_rule

GROUPS: Final = (GROUP, UPSTREAM)
RESOURCE: Final = "nodefeaturerules"
MOST: Final = 8
UNKNOWN_FUNCTION: Final = "unknown-function"


def templates_can_be_read(request: AdmissionRequest, lookups: AdmissionLookups) -> Answer | None:
    """Refuse a template that cannot be read, and warn of what else is wrong."""
    return _judged(request, warned_of=())


def templates_are_templates(request: AdmissionRequest, lookups: AdmissionLookups) -> Answer | None:
    """The same where another discovery may know functions that ours does not."""
    return _judged(request, warned_of=(UNKNOWN_FUNCTION,))


def _judged(request: AdmissionRequest, warned_of: tuple[str, ...]) -> Answer | None:
    rules = _rules(request.new)
    # Who changes a label of an old object did not write its templates.
    if rules == _rules(request.old or {}):
        return None
    warnings = []
    for place, problem in _problems(rules):
        field = f"{place}.{problem.path}" if isinstance(problem, BadTemplate) else place
        if isinstance(problem, BadTemplate) and problem.code not in warned_of:
            return invalid(request, field, f"{problem.message}. {problem.hint}")
        warnings.append(f"{field}: {problem if field == place else problem.message}. {problem.hint}")
    return Allowed(tuple(warnings[:MOST])) if warnings else None


def _rules(obj: Mapping[str, Any]) -> list[Any]:
    spec = obj.get("spec")
    rules = spec.get("rules") if isinstance(spec, Mapping) else None
    return rules if isinstance(rules, list) else []


def _problems(rules: list[Any]) -> Iterator[tuple[str, FeatureError]]:
    """What is wrong with rules, with the place of each."""
    for number, raw in enumerate(rules):
        place = f"spec.rules[{number}]"
        try:
            rule: Rule = read_rule(raw)
        except FeatureError as error:
            yield place, error
            continue
        for problem in rule.problems():
            yield place, problem
