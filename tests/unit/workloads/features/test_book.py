"""All rules together: order, back-references, errors, and the fast way agreeing with the careful one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.features import nodes, rules
from fastness.workloads.features.book import NodeOutcome, RuleBook
from fastness.workloads.features.discovered import Features, merged, read_features
from fastness.workloads.features.errors import BadRule
from fastness.workloads.features.evaluate import evaluate
from fastness.workloads.features.operators import Expression
from fastness.workloads.features.outputs import Settings
from fastness.workloads.features.rules import Rule, Term, in_order, read_object, read_rule

NODE = Features(
    {"cpu.cpuid": frozenset({"VMX"})},
    {"kernel.version": {"major": "6", "full": "6.1-x"}},
    {"pci.device": ({"vendor": "10de"},)},
)


def _one_by_one(given_rules: list[Rule], features: Features, settings: Settings = Settings()) -> NodeOutcome:  # noqa: B008
    result, left = NodeOutcome(), dict[str, str]()
    for rule in given_rules:
        outcome = evaluate(rule, features.with_matched(left) if left else features, settings)
        result.add(outcome)
        left |= outcome.leaves
    return result


def test_later_rules_see_what_earlier_ones_left_as_it_was_written() -> None:
    outcome = RuleBook(
        [
            Rule("a", {"one": "@kernel.version.major"}, vars={"v": "1"}),
            Rule("none", vars={"w": "1"}, terms=(Term("no.such"),)),
            Rule("b", {"two": "true"}, terms=(Term("rule.matched", (
                ("one", Expression("In", ("@kernel.version.major",))), ("v", Expression("Exists")),
                ("w", Expression("DoesNotExist")),
            )),)),
            Rule("c", {"three": "@rule.matched.v"}),
        ]
    ).run(NODE)  # fmt: skip
    prefix = "feature.node.kubernetes.io/"
    assert outcome.labels == {f"{prefix}one": "6", f"{prefix}two": "true", f"{prefix}three": "1"}
    assert outcome.matched == ["a", "b", "c"]


def test_the_first_rule_sees_no_earlier_ones() -> None:
    book = RuleBook([Rule("a", {"x": "1"}, terms=(Term("rule.matched"),))])
    assert book.run(NODE).labels == {}


def test_one_broken_rule_is_counted_and_the_others_still_run() -> None:
    broken = Rule("broken", {"x": "1"}, terms=(Term("kernel.version", (("full", Expression("Gt", ("1",))),)),))
    outcome = RuleBook([broken, Rule("good", {"y": "1"}), Rule("template", labels_template="{{ env }}")]).run(NODE)
    assert list(outcome.labels) == ["feature.node.kubernetes.io/y"]
    assert set(outcome.errors) == {"broken", "template"}


def test_objects_go_by_name_and_later_ones_win() -> None:
    objects: list[dict[str, Any]] = [
        {"metadata": {"name": "b"}, "spec": {"rules": [{"name": "r", "labels": {"x": "b"}}]}},
        {
            "metadata": {"name": "a"},
            "spec": {"rules": [{"name": "r", "labels": {"x": "a"}}, {"name": ""}, {"labels": 1}]},
        },
        {"metadata": {"name": "c"}, "spec": None},
    ]
    read = in_order(objects)
    assert [isinstance(rule, BadRule) for rule in read] == [False, True, True, False, True]
    book = RuleBook(read)
    assert book.run(NODE).labels == {"feature.node.kubernetes.io/x": "b"}
    assert len(book.unreadable) == 3


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        ([], "not-a-mapping"),
        ({"name": "x", "label": {}}, "unknown-member"),
        ({"name": 5}, "not-text"),
        ({"name": "x", "labels": {"a": True}}, "not-texts"),
        ({"name": "x", "matchFeatures": {}}, "not-a-list"),
        ({"name": "x", "matchFeatures": [{"matchExpressions": {}}]}, "no-feature"),
        ({"name": "x", "matchFeatures": [{"feature": "a.b", "matchExpressions": []}]}, "not-a-mapping"),
        ({"name": "x", "matchFeatures": [{"feature": "a.b", "matchName": {"op": "In", "value": [1]}}]}, "not-texts"),
        ({"name": "x", "matchAny": [{"matchFeature": []}]}, "unknown-member"),
        ({"name": "x", "taints": ["a"]}, "not-a-mapping"),
    ],
)  # fmt: skip
def test_a_rule_of_the_wrong_shape_says_where_and_what(raw: Any, code: str) -> None:
    with pytest.raises(BadRule) as caught:
        read_rule(raw)
    assert caught.value.code == code
    assert caught.value.hint


def test_what_is_wrong_on_every_node_is_found_without_one() -> None:
    rule = read_rule(
        {
            "name": "x",
            "labelsTemplate": "{{ now }}",
            "matchFeatures": [
                {"feature": "cpu", "matchExpressions": {"a": {"op": "In"}}, "matchName": {"op": "InRegexp", "value": ["("]}}
            ],
        }
    )  # fmt: skip
    assert [problem.code for problem in rule.problems()] == [
        "bad-feature",
        "bad-values",
        "bad-pattern",
        "unknown-function",
    ]


def test_several_reports_of_one_node_are_merged_in_order() -> None:
    raw = [
        {"flags": {"a.b": {"elements": {"x": {}}}}, "attributes": {"c.d": {"elements": {"k": "1", "l": "1"}}}},
        {"flags": {"A.B": {"elements": {"y": {}}}}, "attributes": {"c.d": {"elements": {"k": "2"}}},
         "instances": {"e.f": {"elements": [{"attributes": {"m": "1"}}]}}},
        {"instances": {"e.f": {"elements": [{"attributes": {"m": "2"}}]}}},
    ]  # fmt: skip
    features = merged(read_features(report) for report in raw)
    assert features.flags == {"a.b": {"x", "y"}}
    assert features.attributes == {"c.d": {"k": "2", "l": "1"}}
    assert features.instances == {"e.f": ({"m": "1"}, {"m": "2"})}
    assert read_features(features.to_json()) == features


_NAMES = st.sampled_from(["a", "b", "c"])
_EXPRESSIONS = st.builds(
    Expression,
    st.sampled_from(["", "In", "NotIn", "InRegexp", "Exists", "DoesNotExist", "Gt", "Lt", "GtLt", "IsTrue", "Odd"]),
    st.lists(st.sampled_from(["1", "3", "a", "("]), max_size=2).map(tuple),
    st.sampled_from(["", "", "version"]),
)
_TERMS = st.builds(
    Term,
    st.sampled_from(["f.one", "f.two", "rule.matched"]),
    st.one_of(
        st.none(), st.dictionaries(_NAMES, _EXPRESSIONS, max_size=2).map(lambda d: tuple(sorted(d.items(), key=str)))
    ),
    st.one_of(st.none(), st.none(), _EXPRESSIONS),
)
_RULES = st.builds(
    Rule,
    st.sampled_from(["r1", "r2", "r3"]),
    st.dictionaries(_NAMES, st.sampled_from(["1", "@f.one.a", "@rule.matched.a"]), max_size=2),
    st.sampled_from(["", "", "{{ range .f.one }}{{ .Name }}=t\n{{ end }}"]),
    terms=st.lists(_TERMS, max_size=2).map(tuple),
    any_of=st.lists(st.lists(_TERMS, max_size=2).map(tuple), max_size=2).map(tuple),
)
_VALUES = st.sampled_from(["1", "2", "true", "x"])
_NODES = st.builds(
    Features,
    st.dictionaries(st.sampled_from(["f.one", "f.two"]), st.frozensets(_NAMES), max_size=2),
    st.dictionaries(st.sampled_from(["f.one", "f.two"]), st.dictionaries(_NAMES, _VALUES), max_size=2),
    st.dictionaries(
        st.sampled_from(["f.one", "f.two"]),
        st.lists(st.dictionaries(_NAMES, _VALUES), max_size=3).map(tuple),
        max_size=2,
    ),
)


@given(st.lists(_RULES, max_size=5), st.lists(_NODES, min_size=1, max_size=3))
def test_the_book_agrees_with_the_rules_one_by_one(some: list[Rule], machines: list[Features]) -> None:
    book = RuleBook(some)
    for machine in [*machines, *machines]:
        outcome, expected = book.run(machine), _one_by_one(some, machine)
        assert (outcome.labels, outcome.matched, outcome.dropped) == (
            expected.labels,
            expected.matched,
            expected.dropped,
        )
        assert outcome.errors.keys() == expected.errors.keys()


def test_the_book_of_the_benchmark_agrees_too() -> None:
    some = rules(150)
    book = RuleBook(some)
    for machine in nodes(20):
        assert book.run(machine).labels == _one_by_one(some, machine).labels


_KEYS = st.sampled_from(
    ["spec", "rules", "name", "labels", "matchFeatures", "feature", "matchExpressions", "op", "value"]
)
_JSON = st.recursive(
    st.none() | st.booleans() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=4),
    max_leaves=15,
)


@given(_JSON)
def test_reading_rules_is_total(raw: Any) -> None:
    if isinstance(raw, dict):
        assert all(isinstance(rule, Rule | BadRule) for rule in read_object(raw))
    for rule in read_object({"spec": {"rules": [raw]}}):
        assert isinstance(rule, BadRule) or rule.name
