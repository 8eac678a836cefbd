"""Merge patch: the examples of RFC 7396 for objects, sharing, and no mutation."""

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.formats.errors import MalformedPatch
from fastness.formats.patch import apply_merge_patch


@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
        ({"a": "x"}, {"a": {"b": 1}}, {"a": {"b": 1}}),
        ({}, {"a": [None]}, {"a": [None]}),
        ({"a": True}, {"a": 1}, {"a": 1}),
        ({"a": [True]}, {"a": [1]}, {"a": [1]}),
        ({}, {"a": {}}, {"a": {}}),
    ],
)
def test_examples(target: dict[str, Any], patch: dict[str, Any], result: dict[str, Any]) -> None:
    before = deepcopy((target, patch))
    got = apply_merge_patch(target, patch)
    assert repr(got) == repr(result)
    assert (target, patch) == before


@pytest.mark.parametrize("patch", [None, 1, "x", [], [{}]])
def test_a_patch_that_is_no_object_is_malformed(patch: Any) -> None:
    with pytest.raises(MalformedPatch) as caught:
        apply_merge_patch({}, patch)
    assert caught.value.status == 400


def test_untouched_parts_are_shared_and_no_change_gives_the_same_object() -> None:
    target = {"spec": {"big": [1, 2]}, "metadata": {"labels": {"a": "b"}}}
    changed = apply_merge_patch(target, {"metadata": {"labels": {"c": "d"}}})
    assert changed["spec"] is target["spec"]
    assert apply_merge_patch(target, {"metadata": {"labels": {"a": "b"}}, "x": None}) is target


_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(0, 2)),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(st.sampled_from("abc"), inner, max_size=3)),
    max_leaves=8,
)
_objects = st.dictionaries(st.sampled_from("abc"), _values, max_size=3)


def _reference(target: Any, patch: Any) -> Any:
    """RFC 7396 section 2, transcribed."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = _reference(result.get(name), value)
    return result


@given(_objects, _objects)
def test_it_agrees_with_the_pseudo_code_of_the_rfc_and_is_idempotent(
    target: dict[str, Any], patch: dict[str, Any]
) -> None:
    before = deepcopy((target, patch))
    result = apply_merge_patch(target, patch)
    assert repr(result) == repr(_reference(target, patch)) or result == _reference(target, patch)
    assert apply_merge_patch(result, patch) == result
    assert (target, patch) == before
