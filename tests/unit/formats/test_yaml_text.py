"""YAML that is written reads back as the same, as Kubernetes reads it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.formats import yaml_text
from fastness.formats.yaml import load_documents

_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | _TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXTS, inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(_TEXTS, _VALUES, min_size=1, max_size=4))
def test_what_is_written_reads_back_as_the_same(value: dict[str, Any]) -> None:
    [document] = load_documents(yaml_text.encode(value).encode())
    assert document.value == value


@pytest.mark.parametrize(
    "text", ["1e3", "0o17", "0b1", "1_000", "on", "y", "~", "", "null", "0x1f", ".5", "2024-01-01", "a: b", "#"]
)
def test_a_text_that_looks_like_something_else_stays_a_text(text: str) -> None:
    [document] = load_documents(yaml_text.encode({"a": text}).encode())
    assert document.value == {"a": text}


def test_members_are_sorted_and_one_on_a_line() -> None:
    assert yaml_text.encode({"b": [1, "x"], "a": {"c": True}}) == "a:\n  c: true\nb:\n- 1\n- x\n"


def test_the_same_value_twice_is_written_twice() -> None:
    shared = ["a"]
    assert yaml_text.encode({"x": shared, "z": shared}) == "x:\n- a\nz:\n- a\n"
