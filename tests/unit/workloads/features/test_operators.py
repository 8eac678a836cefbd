"""Every operator, against absent elements, flags and texts."""

from __future__ import annotations

import pytest

from fastness.workloads.features.errors import BadExpression
from fastness.workloads.features.operators import Expression, holds, problem


@pytest.mark.parametrize(
    ("op", "values", "value", "expected"),
    [
        ("", (), "x", True),
        ("In", ("a", "b"), "b", True),
        ("In", ("a", "b"), "c", False),
        ("NotIn", ("a", "b"), "c", True),
        ("NotIn", ("a", "b"), "a", False),
        ("InRegexp", ("^x", "b+$"), "abb", True),
        ("InRegexp", ("^b",), "abb", False),
        ("InRegexp", ("(?i)ABB", r"\Aq\z"), "abb", True),
        ("Exists", (), "", True),
        ("DoesNotExist", (), "", False),
        ("Gt", ("5",), "6", True),
        ("Gt", ("5",), "5", False),
        ("Ge", ("5",), "5", True),
        ("Lt", ("-1",), "-2", True),
        ("Lt", ("5",), "5", False),
        ("Le", ("5",), "5", True),
        ("GtLt", ("1", "3"), "2", True),
        ("GtLt", ("1", "3"), "3", False),
        ("GeLe", ("1", "3"), "3", True),
        ("GeLe", ("1", "3"), "0", False),
        ("IsTrue", (), "true", True),
        ("IsTrue", (), "True", False),
        ("IsFalse", (), "false", True),
        ("IsFalse", (), "", False),
    ],
)
def test_an_operator_holds_for_the_text_it_is_meant_for(
    op: str, values: tuple[str, ...], value: str, expected: bool
) -> None:
    assert holds(Expression(op, values), True, value) is expected


@pytest.mark.parametrize("op", ["In", "NotIn", "InRegexp", "Gt", "Ge", "Lt", "Le", "GtLt", "GeLe", "IsTrue", "IsFalse"])
@pytest.mark.parametrize("present", [True, False])
def test_operators_on_values_are_false_without_a_value_and_never_complain(op: str, present: bool) -> None:
    assert holds(Expression(op, ("a", "a", "(")), present, None) is False


@pytest.mark.parametrize(("op", "expected"), [("", True), ("Exists", False), ("DoesNotExist", True)])
def test_an_absent_element_satisfies_only_what_asks_for_nothing(op: str, expected: bool) -> None:
    assert holds(Expression(op), False, None) is expected


@pytest.mark.parametrize(
    ("expression", "value", "code"),
    [
        (Expression("", ("x",)), "a", "bad-values"),
        (Expression("Exists", ("x",)), "a", "bad-values"),
        (Expression("DoesNotExist", ("x",)), "a", "bad-values"),
        (Expression("In"), "a", "bad-values"),
        (Expression("NotIn"), "a", "bad-values"),
        (Expression("InRegexp"), "a", "bad-values"),
        (Expression("InRegexp", ("(",)), "a", "bad-pattern"),
        (Expression("InRegexp", ("(?=a)",)), "a", "bad-pattern"),
        (Expression("InRegexp", (r"(a)\1",)), "a", "bad-pattern"),
        (Expression("InRegexp", ("a" * 2000,)), "a", "pattern-too-long"),
        (Expression("Gt"), "1", "bad-values"),
        (Expression("Gt", ("1", "2")), "1", "bad-values"),
        (Expression("Le", ("x",)), "1", "not-a-number"),
        (Expression("Le", ("1",)), "1.5", "not-a-number"),
        (Expression("Le", ("1",)), str(2**63), "not-a-number"),
        (Expression("GtLt", ("1",)), "1", "bad-values"),
        (Expression("GtLt", ("3", "3")), "1", "bad-values"),
        (Expression("GeLe", ("3", "1")), "1", "bad-values"),
        (Expression("IsTrue", ("true",)), "true", "bad-values"),
        (Expression("IsFalse", ("x",)), "true", "bad-values"),
        (Expression("Gt", ("1",), "version"), "x", "not-a-version"),
        (Expression("Gt", ("1",), "weight"), "1", "unknown-type"),
        (Expression("Like", ("x",)), "x", "unknown-operator"),
    ],
)
def test_every_way_to_be_wrong_has_its_code_and_a_hint(expression: Expression, value: str, code: str) -> None:
    with pytest.raises(BadExpression) as caught:
        holds(expression, True, value)
    assert caught.value.code == code
    assert caught.value.hint


@pytest.mark.parametrize("op", ["", "Exists", "DoesNotExist"])
def test_needless_values_are_wrong_even_where_the_element_is_absent(op: str) -> None:
    with pytest.raises(BadExpression):
        holds(Expression(op, ("x",)), False, None)


@pytest.mark.parametrize(
    ("value", "bound", "expected"),
    [
        ("5.14.0-570.el9", "5.14", True),
        ("v6", "5.99.99", True),
        ("5.9", "5.10", False),
        ("1.2.3-rc1", "1.2.3", True),
        ("1.2.3+build", "1.2.4", False),
    ],
)
def test_versions_compare_part_by_part_without_their_flavour(value: str, bound: str, expected: bool) -> None:
    assert holds(Expression("Ge", (bound,), "version"), True, value) is expected


def test_a_rule_author_hears_what_is_wrong_before_any_node_is_asked() -> None:
    assert problem(Expression("In")) is not None
    assert problem(Expression("GtLt", ("2", "1"))) is not None
    assert problem(Expression("Gt", ("1",))) is None
    assert problem(Expression("InRegexp", ("a|b",))) is None


def test_a_pattern_that_makes_others_hang_is_answered_at_once() -> None:
    assert holds(Expression("InRegexp", ("^(a+)+$",)), True, "a" * 5000 + "!") is False
