"""Rules on objects: who is asked, what is seen, what is reported."""

from __future__ import annotations

from typing import Any

import pytest

from fastness.apiserver.schema import CompiledSchema, structural_problems
from fastness.apiserver.schema.cel.presentation import escape
from fastness.apiserver.schema.cel.rules import LONGEST_OBEYED, MOST_OBEYED, loop_depth
from fastness.kube.errors import Cause

INT = {"type": "integer"}
TEXT = {"type": "string"}


def causes(spec: dict[str, Any], value: Any, old: Any = None, **root: Any) -> list[Cause]:
    compiled = CompiledSchema({"type": "object", "properties": {"spec": spec}, **root})
    return compiled.validate(
        {"kind": "K", "metadata": {"name": "me"}, "spec": value}, None if old is None else {"spec": old}
    )


def with_rule(spec: dict[str, Any], rule: str, **more: Any) -> dict[str, Any]:
    return {**spec, "x-kubernetes-validations": [{"rule": rule, **more}]}


def obj(**fields: Any) -> dict[str, Any]:
    return {"type": "object", "properties": fields}


@pytest.mark.parametrize(
    ("more", "field", "reason", "message"),
    [
        ({}, "spec", "FieldValueInvalid", 'Invalid value: "object": failed rule: self.a > 5'),
        ({"message": " too small "}, "spec", "FieldValueInvalid", 'Invalid value: "object": too small'),
        ({"messageExpression": "'got ' + string(self.a)"}, "spec", "FieldValueInvalid",
        'Invalid value: "object": got 1'),
        ({"messageExpression": "self.s", "message": "m"}, "spec", "FieldValueInvalid", 'Invalid value: "object": m'),
        ({"messageExpression": "' '", "message": "m"}, "spec", "FieldValueInvalid", 'Invalid value: "object": m'),
        ({"reason": "FieldValueForbidden", "message": "no"}, "spec", "FieldValueForbidden", "Forbidden: no"),
        ({"reason": "FieldValueRequired", "message": "no"}, "spec", "FieldValueRequired", "Required value: no"),
        ({"reason": "FieldValueDuplicate"}, "spec", "FieldValueDuplicate", 'Duplicate value: "object"'),
        ({"fieldPath": ".a"}, "spec.a", "FieldValueInvalid", 'Invalid value: "object": failed rule: self.a > 5'),
        ({"fieldPath": "['d-e']"}, "spec.d-e", "FieldValueInvalid", 'Invalid value: "object": failed rule: self.a > 5'),
        ({"fieldPath": ".m.k"}, "spec.m[k]", "FieldValueInvalid", 'Invalid value: "object": failed rule: self.a > 5'),
    ],
)  # fmt: skip
def test_a_broken_rule_reports_what_it_was_told_to(more: dict[str, Any], field: str, reason: str, message: str) -> None:
    fields = {"a": INT, "s": TEXT, "d-e": TEXT, "m": {"type": "object", "additionalProperties": TEXT}}
    assert causes(with_rule(obj(**fields), "self.a > 5", **more), {"a": 1}) == [Cause(field, reason, message)]


def test_a_rule_that_fails_while_it_runs_counts_as_broken() -> None:
    (cause,) = causes(with_rule(obj(a=INT), "10 / self.a > 1"), {"a": 0})
    assert (cause.field, cause.reason) == ("spec", "FieldValueInvalid")
    assert "zero" in cause.message
    assert cause.message.endswith("evaluating rule: 10 / self.a > 1")


def test_rules_wait_until_the_structure_is_sound() -> None:
    problems = causes(with_rule(obj(a=INT), "self.a > 5"), {"a": "x"})
    assert [cause.field for cause in problems] == ["spec.a", "<nil>"]
    assert "not checked" in problems[1].message


def test_rules_still_run_beside_problems_that_do_not_hide_types() -> None:
    problems = causes(with_rule(obj(a={"type": "integer", "maximum": 3}), "self.a < 2"), {"a": 5})
    assert [cause.field for cause in problems] == ["spec.a", "spec"]


@pytest.mark.parametrize(
    ("schema", "value", "rule"),
    [
        ({"type": "string", "format": "date-time"}, "2021-05-01T00:00:00.5+02:00",
        "self.a.getFullYear('+02:00') == 2021"),
        ({"type": "string", "format": "date"}, "2021-05-01", "self.a == timestamp('2021-05-01T00:00:00Z')"),
        ({"type": "string", "format": "duration"}, "1h30m", "self.a == duration('5400s')"),
        ({"type": "string", "format": "byte"}, "YWJj", "self.a == b'abc'"),
        ({"type": "number"}, 2, "self.a * 1.5 == 3.0"),
        ({"x-kubernetes-int-or-string": True}, "5%", "type(self.a) == string && self.a.endsWith('%')"),
        ({"type": "array", "items": {"type": "string", "format": "date"}}, ["2021-05-01"],
        "self.a.all(d, d.getMonth() == 4)"),
        ({"type": "object", "additionalProperties": {"type": "number"}}, {"x-y": 1}, "self.a['x-y'] + 0.5 == 1.5"),
        ({"type": "string", "nullable": True}, None, "self.a == null"),
    ],
)  # fmt: skip
def test_values_have_the_types_of_their_schema(schema: dict[str, Any], value: Any, rule: str) -> None:
    assert causes(with_rule(obj(a=schema), rule), {"a": value}) == []


@pytest.mark.parametrize(
    ("name", "escaped"),
    [("foo-bar", "foo__dash__bar"), ("a.b", "a__dot__b"), ("a/b", "a__slash__b"), ("a__b", "a__underscores__b"),
     ("namespace", "__namespace__"), ("in", "__in__"), ("plain_name", "plain_name"), ("$ref", None), ("9a", None), ("",
     None)],
)  # fmt: skip
def test_names_are_escaped_as_kubernetes_does(name: str, escaped: str | None) -> None:
    assert escape(name) == escaped
    if escaped:
        assert causes(with_rule(obj(**{name: INT}), f"self.{escaped} == 1"), {name: 1}) == []


def test_the_root_sees_its_name_and_kind_and_nothing_else_of_metadata() -> None:
    rule = "self.metadata.name == 'me' && self.kind == 'K' && !has(self.metadata.generateName) && self.spec.a == 1"
    assert causes(obj(a=INT), {"a": 1}, **{"x-kubernetes-validations": [{"rule": rule}]}) == []
    (cause,) = causes(obj(a=INT), {"a": 1}, **{"x-kubernetes-validations": [{"rule": "has(self.metadata.labels)"}]})
    assert "undefined field 'labels'" in cause.message


def test_rules_run_on_entries_and_keys() -> None:
    positive = with_rule(INT, "self > 0")
    spec = obj(l={"type": "array", "items": positive}, m={"type": "object", "additionalProperties": positive})
    problems = causes(spec, {"l": [1, 0], "m": {"a": 1, "b.c": -1}})
    assert [cause.field for cause in problems] == ["spec.l[1]", "spec.m[b.c]"]


def test_null_is_not_asked() -> None:
    assert causes(obj(a=with_rule({"type": "string", "nullable": True}, "self != ''")), {"a": None}) == []


KEYED = {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
         "items": obj(k=TEXT, v=with_rule(INT, "self >= oldSelf"))}  # fmt: skip


@pytest.mark.parametrize(
    ("spec", "old", "new", "fields"),
    [
        (with_rule(INT, "self == oldSelf"), 1, 2, ["spec"]),
        (with_rule(INT, "self == oldSelf"), 1, 1, []),
        (obj(a=with_rule(INT, "self == oldSelf")), {}, {"a": 2}, []),
        (obj(a=with_rule(INT, "self == oldSelf")), {"a": 1}, {}, []),
        (KEYED, [{"k": "a", "v": 5}, {"k": "b", "v": 1}], [{"k": "b", "v": 1}, {"k": "a", "v": 4}], ["spec[1].v"]),
        (KEYED, [{"k": "a", "v": 5}], [{"k": "new", "v": 1}], []),
        (obj(m={"type": "object", "additionalProperties": with_rule(INT, "self >= oldSelf")}), {"m": {"x": 2}},
        {"m": {"x": 1, "y": 0}}, ["spec.m[x]"]),
        (with_rule(INT, "!oldSelf.hasValue() || oldSelf.value() <= self", optionalOldSelf=True), 2, 1, ["spec"]),
        (with_rule(obj(d={"type": "string", "format": "date"}), "self.d >= oldSelf.d"), {"d": "2021-01-02"},
        {"d": "2021-01-01"}, ["spec"]),
    ],
)  # fmt: skip
def test_transition_rules_compare_where_an_old_value_is_found(spec: Any, old: Any, new: Any, fields: list[str]) -> None:
    assert [cause.field for cause in causes(spec, new, old)] == fields


def test_transition_rules_are_silent_on_create_unless_the_old_value_is_optional() -> None:
    assert causes(with_rule(INT, "self == oldSelf"), 1) == []
    assert causes(with_rule(INT, "oldSelf.hasValue()", optionalOldSelf=True), 1) != []
    assert causes(with_rule(INT, "oldSelf.orValue(3) == 3", optionalOldSelf=True), 1) == []


def test_a_value_that_did_not_change_is_forgiven_and_a_comparison_is_not() -> None:
    spec = obj(a=with_rule(obj(x=INT), "self.x > 5"), b=INT)
    assert causes(spec, {"a": {"x": 1}, "b": 2}, {"a": {"x": 1}, "b": 1}) == []
    assert causes(spec, {"a": {"x": 2}}, {"a": {"x": 1}}) != []
    assert causes(with_rule(INT, "self > oldSelf"), 1, 1) != []


def test_entries_of_an_unchanged_atomic_list_are_forgiven() -> None:
    spec = obj(l={"type": "array", "items": with_rule(INT, "self > 5")}, b=INT)
    assert causes(spec, {"l": [1], "b": 2}, {"l": [1], "b": 1}) == []
    assert [cause.field for cause in causes(spec, {"l": [1, 7]}, {"l": [1]})] == ["spec.l[0]"]


def test_a_rule_that_does_not_compile_refuses_every_object() -> None:
    (cause,) = causes(with_rule(obj(a=INT), "self.b == 1"), {"a": 1})
    assert "compile" in cause.message


def test_loops_inside_of_loops_are_refused_where_they_would_take_too_long() -> None:
    spec = with_rule(obj(l={"type": "array", "items": INT}), "self.l.all(x, self.l.exists(y, y == x))")
    assert causes(spec, {"l": list(range(100))}) == []
    (cause,) = causes(spec, {"l": list(range(2000))})
    assert "cost budget" in cause.message


@pytest.mark.parametrize(
    ("rule", "depth"),
    [("self.a", 0), ("self.l.all(x, (x > 1))", 1), ("self.l.all(x, self.l.map(y, y) == [])", 2),
    ("'.all(.all(' == self", 0),
     ("self.l.all(x, f(x)) && self.m.exists(y, self.l . filter (z, true).size() > 0)", 2)],
)  # fmt: skip
def test_depth_of_loops(rule: str, depth: int) -> None:
    assert loop_depth(rule) == depth


def test_texts_and_comments_in_a_rule_are_not_names() -> None:
    assert causes(with_rule(obj(a=TEXT), "self.a != 'self.b oldSelf' // self.c oldSelf"), {"a": "x"}) == []


@pytest.mark.parametrize(
    ("rule", "fits"),
    [
        ("self.d == 1", False), ("self.d > 1 && self.d <= 1.5", True), ("self.n == null", False),
        ("has(self.o.x) && self.o.x == 1", True),
        ("self.o.x == 'a'", False), ("self.l.all(x, x > 'a')", False), ("self.l.all(x, x > 1)",
        True),
        ("self.n.matches('(')", False), ("self.n.matches(r'\\d+')", True), ("self.p == 1 || self.p == 'x'", True),
        ("self.t > timestamp('2020-01-01T00:00:00Z') && oldSelf.d > 1.0", True), ("self.?d.orValue(1.0) > 0.5", True),
    ],
)  # fmt: skip
def test_a_definition_is_refused_when_types_of_fields_do_not_fit(rule: str, fits: bool) -> None:
    fields = {"d": {"type": "number"}, "n": {**TEXT, "nullable": True}, "o": obj(x=INT), "l": {"type": "array",
    "items": INT},
              "p": {"x-kubernetes-int-or-string": True}, "t": {"type": "string", "format": "date-time"}}  # fmt: skip
    problems = structural_problems({"type": "object", "properties": {"spec": with_rule(obj(**fields), rule)}})
    assert [cause.field for cause in problems] == (
        [] if fits else ["properties[spec].x-kubernetes-validations[0].rule"]
    )


def test_numbers_of_different_types_compare() -> None:
    assert causes(with_rule({"type": "number"}, "self <= 100 && self > 0"), 5) == []
    assert causes(with_rule({"type": "number"}, "self <= 100"), 100.5) != []


def test_a_broken_value_that_was_forgiven_in_a_list_is_refused_elsewhere() -> None:
    small = with_rule(INT, "self < 5")
    spec = obj(list={"type": "array", "items": with_rule(INT, "self < 5")}, other=small)
    compiled = CompiledSchema({"type": "object", "properties": {"spec": spec}})
    stored = {"spec": {"list": [7, 1]}}
    changed = {"spec": {"list": [7, 1], "other": 1}}
    assert compiled.validate(changed, stored) == []
    assert [cause.field for cause in compiled.validate({"spec": {"list": [7, 1]}})] == ["spec.list[0]"]


def test_values_that_obeyed_are_told_apart_from_others_that_equal_them() -> None:
    compares = with_rule({"type": "integer", "nullable": True}, "self >= oldSelf")
    compiled = CompiledSchema({"type": "object", "properties": {"a": compares}})

    def judged(new: Any, *old: Any) -> list[str]:
        return [cause.field for cause in compiled.validate({"a": new}, {"a": old[0]} if old else None)]

    assert judged(2) == []
    assert judged(2, 3) == ["a"]
    assert judged(2, 2) == []
    assert judged(2, 2) == [], "now from memory"
    assert judged(2, 3) == ["a"]
    assert judged(2, None) == [], "nothing to compare with"
    assert judged(2, [3]) != [], "stored under another schema: it cannot be compared"


def test_what_is_remembered_of_values_is_bounded() -> None:
    compiled = CompiledSchema({"type": "object", "properties": {"a": with_rule(TEXT, "self.startsWith('a')")}})
    for number in range(3 * MOST_OBEYED):
        assert compiled.validate({"a": f"a{number}"}) == []
    assert compiled.validate({"a": "a" * (LONGEST_OBEYED + 1)}) == []
    (rules,) = compiled._rules._by_node.values()
    assert 0 < len(rules._obeyed) <= MOST_OBEYED
    assert max(len(value) for _, value, _, _ in rules._obeyed) <= LONGEST_OBEYED
    assert [cause.field for cause in compiled.validate({"a": "b"})] == ["a"]
