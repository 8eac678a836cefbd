"""The upper levels of texts that no decoder reads."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fastness.formats.json_cut import CUT, cut

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=30,
)


def cut_value(value: Any, levels: int) -> Any:
    """What `cut` promises, by recursion over the value."""
    if not isinstance(value, dict | list):
        return value
    if levels == 0:
        return json.loads(CUT)
    if isinstance(value, list):
        return [cut_value(child, levels - 1) for child in value]
    return {key: cut_value(child, levels - 1) for key, child in value.items()}


@given(VALUES, st.integers(1, 6), st.booleans())
def test_a_cut_text_is_the_text_of_the_cut_value(value: Any, levels: int, spaced: bool) -> None:
    text = json.dumps(value, ensure_ascii=spaced, indent=1 if spaced else None).encode("utf-8", "surrogatepass")
    assert json.loads(cut(text, levels)) == cut_value(value, levels)


def test_a_text_of_ten_thousand_levels_gives_its_name() -> None:
    deep = b'{"a":' * 10_000 + b"1" + b"}" * 10_000
    text = b'{"spec":' + deep + b',"metadata":{"managedFields":[' + deep + b'],"name":"whose"}}'
    assert json.loads(cut(text, 100))["metadata"]["name"] == "whose"


@given(st.binary(max_size=200), st.integers(1, 4))
def test_whatever_the_bytes_are_there_is_an_answer_that_is_not_longer_by_much(text: bytes, levels: int) -> None:
    assert len(cut(text, levels)) <= len(text) + len(CUT) * text.count(b"{") + len(CUT) * text.count(b"[")
