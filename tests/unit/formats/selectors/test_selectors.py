"""Selectors: parsing, meaning, canonical text, limits."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.formats.errors import SelectorError
from fastness.formats.selectors import (
    EVERYTHING,
    NOTHING,
    FieldSelector,
    FieldTerm,
    LabelSelector,
    Operator,
    Requirement,
    label_selector_from_object,
    parse_field_selector,
    parse_label_selector,
    requirement,
)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("", ""),
        ("a=b", "a=b"),
        (" a == b ", "a=b"),
        ("a!=b", "a!=b"),
        ("a=", "a="),
        ("a=,b", "a=,b"),
        ("a in (c,b,c)", "a in (b,c)"),
        ("a in ()", "a in ()"),
        ("a in (,)", "a in ()"),
        ("a in (b,,)", "a in (,b)"),
        ("a notin (b)", "a notin (b)"),
        ("a", "a"),
        ("!a", "!a"),
        ("a>1", "a>1"),
        ("a<-5,b", None),
        ("z,a,!m", "a,!m,z"),
        ("in in (in,notin)", "in in (in,notin)"),
        ("notin=in", "notin=in"),
        ("example.com/a in (x)\t,\nb", "b,example.com/a in (x)"),
        ("in", "in"),
    ],
)
def test_text_parses_to_its_canonical_form(text: str, canonical: str | None) -> None:
    if canonical is None:
        with pytest.raises(SelectorError):
            parse_label_selector(text)
    else:
        assert str(parse_label_selector(text)) == canonical


@pytest.mark.parametrize(
    "text",
    [
        ",a",
        "a,",
        "a,,b",
        "a b",
        "a=b=c",
        "a===b",
        "=b",
        "!",
        "!!a",
        "!a=b",
        "!a in (b)",
        "a in",
        "a in b",
        "a in (b",
        "a in (b c)",
        "a in (=)",
        "(a)",
        "a>",
        "a>b",
        "a>99999999999999999999",
        "a/b/c=d",
        "-a=b",
        "a=-b",
        "a=" + "b" * 64,
        "a" * 64,
        "é=b",
        "a=b\0",
        "a in (b))",
    ],
)
def test_text_that_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(SelectorError) as caught:
        parse_label_selector(text)
    assert caught.value.code.startswith("selector-")
    assert caught.value.hint


@pytest.mark.parametrize(
    ("text", "labels", "selected"),
    [
        ("", {}, True),
        ("a=b", {"a": "b"}, True),
        ("a=b", {"a": "c"}, False),
        ("a=b", {}, False),
        ("a=", {"a": ""}, True),
        ("a=", {}, False),
        ("a!=b", {}, True),
        ("a!=b", {"a": "b"}, False),
        ("a in (b,c)", {"a": "c"}, True),
        ("a in (b,c)", {}, False),
        ("a notin (b,c)", {}, True),
        ("a notin (b,c)", {"a": "b"}, False),
        ("a", {"a": ""}, True),
        ("!a", {"a": ""}, False),
        ("!a", {}, True),
        ("a>5", {"a": "6"}, True),
        ("a>5", {"a": "5"}, False),
        ("a>5", {"a": "x"}, False),
        ("a>5", {"a": "99999999999999999999"}, False),
        ("a<5", {"a": "-1"}, True),
        ("a<5", {}, False),
        ("a,b=c", {"a": "1", "b": "d"}, False),
    ],
)
def test_requirements_select(text: str, labels: dict[str, str], selected: bool) -> None:
    assert parse_label_selector(text).matches(labels) is selected


def test_an_object_selects_by_labels_and_expressions() -> None:
    selector = label_selector_from_object(
        {
            "matchLabels": {"app": "x"},
            "matchExpressions": [
                {"key": "tier", "operator": "In", "values": ["b", "a"]},
                {"key": "old", "operator": "DoesNotExist"},
                {"key": "new", "operator": "Exists", "values": []},
                {"key": "zone", "operator": "NotIn", "values": ["q"]},
            ],
        }
    )
    assert str(selector) == "app=x,new,!old,tier in (a,b),zone notin (q)"
    assert selector.matches({"app": "x", "tier": "a", "new": ""})


def test_a_missing_object_selects_nothing_and_an_empty_one_everything() -> None:
    assert label_selector_from_object(None) == NOTHING
    assert not NOTHING.matches({})
    assert label_selector_from_object({}) == EVERYTHING == LabelSelector()
    assert EVERYTHING.everything
    assert not NOTHING.everything


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ([], "spec.selector"),
        ({"matchLabels": []}, "spec.selector.matchLabels"),
        ({"matchLabels": {"a": 1}}, "spec.selector.matchLabels"),
        ({"matchLabels": {"a b": "c"}}, "spec.selector.matchLabels.key"),
        ({"matchExpressions": [1]}, "spec.selector.matchExpressions[0]"),
        ({"matchExpressions": [{"key": "a", "operator": "Is"}]}, "spec.selector.matchExpressions[0].operator"),
        ({"matchExpressions": [{"key": "a"}]}, "spec.selector.matchExpressions[0].operator"),
        ({"matchExpressions": [{"key": "a", "operator": "In"}]}, "spec.selector.matchExpressions[0].values"),
        (
            {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["x"]}]},
            "spec.selector.matchExpressions[0].values",
        ),
        (
            {"matchExpressions": [{"key": "a", "operator": "In", "values": [1]}]},
            "spec.selector.matchExpressions[0].values",
        ),
        (
            {"matchExpressions": [{"key": "a", "operator": "In", "values": ["-"]}]},
            "spec.selector.matchExpressions[0].values[0]",
        ),
    ],
)
def test_a_wrong_object_is_refused_with_its_path(value: Any, path: str) -> None:
    with pytest.raises(SelectorError) as caught:
        label_selector_from_object(value, "spec.selector")
    assert caught.value.path == path


def test_selectors_are_bounded() -> None:
    for text in ("a" * 70_000, ",".join(f"a{n}" for n in range(1_001)), f"a in ({','.join(map(str, range(10_500)))})"):
        with pytest.raises(SelectorError) as caught:
            parse_label_selector(text)
        assert caught.value.code == "selector-too-large"
    for text in ("a" * 70_000, ",".join(f"a{n}=b" for n in range(1_001))):
        with pytest.raises(SelectorError) as caught:
            parse_field_selector(text)
        assert caught.value.code == "selector-too-large"
    with pytest.raises(SelectorError):
        label_selector_from_object({"matchLabels": {f"a{n}": "b" for n in range(1_001)}})


_keys = st.from_regex(r"([a-z]{1,3}\.[a-z]{1,3}/)?[a-zA-Z0-9]([a-z._-]{0,2}[a-z])?", fullmatch=True)
_values = st.from_regex(r"|[a-zA-Z0-9]([a-z._-]{0,3}[a-z])?", fullmatch=True)


@st.composite
def _requirements(draw: st.DrawFn) -> Requirement:
    operator = draw(st.sampled_from(Operator))
    if operator in (Operator.IN, Operator.NOT_IN):
        values = tuple(draw(st.lists(_values, min_size=1, max_size=3)))
    elif operator in (Operator.EXISTS, Operator.DOES_NOT_EXIST):
        values = ()
    elif operator in (Operator.GREATER_THAN, Operator.LESS_THAN):
        values = (str(draw(st.integers(0, 2**63 - 1))),)
    else:
        values = (draw(_values),)
    return requirement(draw(_keys), operator, values)


@given(st.lists(_requirements(), max_size=4))
def test_canonical_text_parses_to_the_same_selector(requirements: list[Requirement]) -> None:
    text = ",".join(map(str, requirements))
    selector = parse_label_selector(text)
    assert sorted(map(str, selector.requirements)) == sorted(map(str, requirements))
    assert parse_label_selector(str(selector)) == selector


def test_field_selectors_compare_fields() -> None:
    selector = parse_field_selector("metadata.name=x,spec.nodeName!=n,status==")
    assert selector.fields == ("metadata.name", "spec.nodeName", "status")
    assert selector.matches({"metadata.name": "x"})
    assert not selector.matches({"metadata.name": "x", "spec.nodeName": "n"})
    assert not selector.matches({"metadata.name": "x", "status": "s"})
    assert selector.exact("metadata.name") == "x"
    assert selector.exact("spec.nodeName") is None
    assert selector.exact("other") is None


@pytest.mark.parametrize("text", ["a", "a,b=c", r"a=b\x", "a=b=c", "a=b\\", r"a=\\\\\ "])
def test_field_selectors_that_make_no_sense_are_refused(text: str) -> None:
    with pytest.raises(SelectorError):
        parse_field_selector(text)


@pytest.mark.parametrize("text", ["", ",", "=", "!=,==", "a=b,", ",,a=b,,=", "a=b,!="])
def test_empty_terms_are_skipped(text: str) -> None:
    assert parse_field_selector(text).terms == (() if "a" not in text else (FieldTerm("a", "b"),))


@given(
    st.lists(
        st.builds(
            FieldTerm, st.from_regex(r"[a-z.]{1,6}", fullmatch=True), st.text("ab,=\\! \n", max_size=6), st.booleans()
        ),
        max_size=4,
    )
)
def test_escaped_values_survive(terms: list[FieldTerm]) -> None:
    parsed = parse_field_selector(str(FieldSelector(tuple(terms))))
    assert sorted(map(str, parsed.terms)) == sorted(map(str, terms))
    assert set(parsed.terms) == set(terms)
