"""NodeFeatureRule: turns what was found on nodes into labels, taints and resources.

A rule matches by expressions on features. The operators are a closed set; how many values each takes depends on the operator and
is judged when the rule is evaluated (`workloads`), where one bad rule does not stop the others.
"""

from __future__ import annotations

from dataclasses import replace

from fastness.kinds import schema as s
from fastness.kinds.kind import AGE, Kind, Scope
from fastness.kinds.nfd import GROUP, UPSTREAM

OPERATORS = (
    "In", "NotIn", "InRegexp", "Exists", "DoesNotExist", "Gt", "Ge", "Lt", "Le", "GtLt", "GeLe", "IsTrue", "IsFalse",
)  # fmt: skip

_EXPRESSION = s.obj(
    {
        "op": s.enum(*OPERATORS, description="How the element relates to the values."),
        "value": s.array(s.string(), "The values; how many depends on the operator.", **s.ATOMIC),
        "type": s.string("How values are compared; `version` compares them as versions."),
    },
    "A requirement on one element.",
    required=("op",),
)


def _terms(description: str) -> s.Fragment:
    term = s.obj(
        {
            "feature": s.string("The feature, as `<domain>.<feature>`."),
            "matchExpressions": s.mapping(_EXPRESSION, "Requirements by name of the element; all must hold."),
            "matchName": {**_EXPRESSION, "description": "A requirement on the names of elements."},
        },
        "A requirement on one feature.",
        required=("feature",),
    )
    return s.array(term, description, **s.ATOMIC)


_TAINT = s.obj(
    {
        "key": s.string("Key of the taint."),
        "value": s.string("Value of the taint."),
        "effect": s.enum("NoSchedule", "PreferNoSchedule", "NoExecute", description="What it does to pods."),
        "timeAdded": s.timestamp("When it was added."),
    },
    required=("key", "effect"),
)

_RULE = s.obj(
    {
        "name": s.string("Name of the rule."),
        "labels": s.mapping(s.string(), "Labels that a matching node gets."),
        "labelsTemplate": s.string("Template whose lines are further labels."),
        "annotations": s.mapping(s.string(), "Annotations that a matching node gets."),
        "vars": s.mapping(s.string(), "Values that later rules can match on."),
        "varsTemplate": s.string("Template whose lines are further values."),
        "taints": s.array(_TAINT, "Taints that a matching node gets.", **s.ATOMIC),
        "extendedResources": s.mapping(s.string(), "Resources that a matching node offers."),
        "matchFeatures": _terms("Requirements that must all hold."),
        "matchAny": s.array(
            s.obj({"matchFeatures": _terms("Requirements that must all hold.")}, required=("matchFeatures",)),
            "Sets of requirements of which one must hold.",
            **s.ATOMIC,
        ),
    },
    "One rule.",
    required=("name",),
)

NODE_FEATURE_RULE = Kind(
    group=GROUP,
    version="v1alpha1",
    kind="NodeFeatureRule",
    plural="nodefeaturerules",
    short_names=("nfr",),
    scope=Scope.CLUSTER,
    description="Turns what was found on nodes into labels, taints and resources.",
    schema=s.obj(
        {
            "spec": s.obj(
                {"rules": s.array(_RULE, "The rules, in order.", **s.ATOMIC)}, "The rules.", required=("rules",)
            )
        },
        required=("spec",),
    ),
    columns=(AGE,),
)

KINDS = (
    NODE_FEATURE_RULE,
    replace(NODE_FEATURE_RULE, version="v1", storage_version=False),
    replace(NODE_FEATURE_RULE, group=UPSTREAM, storage=NODE_FEATURE_RULE.storage),
)
