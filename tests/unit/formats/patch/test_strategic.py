"""Strategic merge patch: merge keys, directives, order, and which side an error blames."""

import contextlib
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.formats.errors import MalformedPatch, PatchError, PatchFailed
from fastness.formats.patch import MergeRule, apply_strategic_patch

_RULES = {
    ("spec", "containers"): MergeRule("merge", "name"),
    ("spec", "containers", "ports"): MergeRule("merge", "containerPort"),
    ("spec", "finalizers"): MergeRule("merge"),
    ("metadata", "finalizers"): MergeRule("merge"),
    ("spec", "selector"): MergeRule("replace"),
    ("spec", "matrix"): MergeRule("merge"),
    ("spec", "keyless"): MergeRule("merge"),
}


class Rules:
    def rule(self, path: tuple[str, ...]) -> MergeRule:
        return _RULES.get(path, MergeRule())


def _apply(target: dict[str, Any], patch: Any) -> dict[str, Any]:
    before = deepcopy((target, patch))
    try:
        return apply_strategic_patch(target, patch, Rules())
    finally:
        assert (target, patch) == before


def _spec(target: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = _apply({"spec": target}, {"spec": patch})["spec"]
    return result


def _names(items: list[dict[str, Any]]) -> list[str]:
    return [item["name"] for item in items]


def _containers(*names: str) -> dict[str, Any]:
    return {"containers": [{"name": name, "image": f"{name}:1"} for name in names]}


def test_objects_merge_and_null_removes() -> None:
    assert _spec({"a": 1, "b": {"c": 2, "d": 3}}, {"a": None, "b": {"c": 4}, "e": {"f": None, "g": 1}}) == {
        "b": {"c": 4, "d": 3},
        "e": {"g": 1},
    }


def test_a_list_without_a_rule_is_replaced() -> None:
    assert _spec({"args": [1, 2]}, {"args": [3]}) == {"args": [3]}


def test_elements_merge_by_their_key() -> None:
    result = _spec(_containers("a", "b"), {"containers": [{"name": "b", "image": "b:2", "tty": True}]})
    assert result["containers"] == [{"name": "a", "image": "a:1"}, {"name": "b", "image": "b:2", "tty": True}]


def test_nested_lists_merge_by_their_own_key() -> None:
    target = {"containers": [{"name": "a", "ports": [{"containerPort": 80, "protocol": "TCP"}]}]}
    patch = {"containers": [{"name": "a", "ports": [{"containerPort": 80, "name": "web"}, {"containerPort": 81}]}]}
    ports = _spec(target, patch)["containers"][0]["ports"]
    assert ports == [{"containerPort": 80, "protocol": "TCP", "name": "web"}, {"containerPort": 81}]


def test_a_new_element_stands_before_those_that_only_the_server_knows() -> None:
    assert _names(_spec(_containers("a", "b"), {"containers": [{"name": "c"}]})["containers"]) == ["c", "a", "b"]


def test_the_element_order_of_the_patch_is_kept() -> None:
    patch = {
        "$setElementOrder/containers": [{"name": "c"}, {"name": "a"}],
        "containers": [{"name": "c", "image": "c:1"}],
    }
    assert _names(_spec(_containers("a", "b"), patch)["containers"]) == ["c", "a", "b"]
    only_order = {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]}
    assert _names(_spec(_containers("a", "b"), only_order)["containers"]) == ["b", "a"]
    assert _spec({}, only_order) == {}


def test_an_element_is_deleted_by_directive() -> None:
    patch = {"containers": [{"name": "a", "$patch": "delete"}, {"name": "b", "image": "b:2"}]}
    assert _spec(_containers("a", "b"), patch)["containers"] == [{"name": "b", "image": "b:2"}]
    assert _spec(_containers("a"), {"containers": [{"name": "x", "$patch": "delete"}]}) == _containers("a")


def test_delete_with_an_element_order_as_kubectl_apply_sends_it() -> None:
    patch = {
        "$setElementOrder/containers": [{"name": "b"}],
        "containers": [{"$patch": "delete", "name": "a"}],
    }
    assert _names(_spec(_containers("a", "b"), patch)["containers"]) == ["b"]


def test_a_list_is_replaced_by_directive() -> None:
    patch = {"containers": [{"name": "z", "image": "z:1"}, {"$patch": "replace"}]}
    assert _spec(_containers("a", "b"), patch) == {"containers": [{"name": "z", "image": "z:1"}]}


def test_an_object_is_replaced_or_emptied_by_directive() -> None:
    assert _spec({"m": {"a": 1}}, {"m": {"$patch": "replace", "b": 2}}) == {"m": {"b": 2}}
    assert _spec({"m": {"a": 1}}, {"m": {"$patch": "delete"}}) == {"m": {}}
    assert _spec({}, {"m": {"$patch": "delete"}}) == {}


def test_an_object_whose_rule_is_replace_is_replaced() -> None:
    assert _spec({"selector": {"a": 1}}, {"selector": {"b": 2}}) == {"selector": {"b": 2}}


def test_retained_keys_drop_the_others() -> None:
    target = {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}
    patch = {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}
    assert _spec(target, patch) == {"strategy": {"type": "Recreate"}}


def test_sets_of_plain_values_merge_and_shrink() -> None:
    assert sorted(_spec({"finalizers": ["a", "b"]}, {"finalizers": ["b", "c"]})["finalizers"]) == ["a", "b", "c"]
    assert _spec({"finalizers": ["a", "b"]}, {"$deleteFromPrimitiveList/finalizers": ["a"]}) == {"finalizers": ["b"]}
    assert _spec({}, {"$deleteFromPrimitiveList/finalizers": ["a"]}) == {}
    patch = {
        "$deleteFromPrimitiveList/finalizers": ["a"],
        "$setElementOrder/finalizers": ["c", "b"],
        "finalizers": ["c"],
    }
    assert _spec({"finalizers": ["a", "b"]}, patch) == {"finalizers": ["c", "b"]}


def test_a_value_that_is_both_added_and_removed_goes_whatever_the_order_of_members() -> None:
    remove, add = {"$deleteFromPrimitiveList/finalizers": ["a"]}, {"finalizers": ["a"]}
    for patch in ({**remove, **add}, {**add, **remove}):
        assert _spec({"finalizers": ["a", "b"]}, patch) == {"finalizers": ["b"]}


def test_a_change_of_type_takes_the_patch() -> None:
    assert _spec({"a": [1]}, {"a": {"b": 1}}) == {"a": {"b": 1}}
    assert _spec({"a": {"b": 1}}, {"a": 5}) == {"a": 5}


def test_directives_never_reach_the_object() -> None:
    patch = {"new": {"$retainKeys": ["x"], "x": 1, "l": [{"$patch": "delete"}, {"y": 1}], "$setElementOrder/l": []}}
    assert _spec({}, patch) == {"new": {"x": 1, "l": [{"y": 1}]}}


@pytest.mark.parametrize(
    ("target", "patch", "code"),
    [
        ({}, {"m": {"a": {"$patch": "frob"}}}, None),
        ({"m": {}}, {"m": {"$patch": "frob"}}, "patch-directive"),
        ({"m": {}}, {"m": {"$patch": "merge", "b": 2}}, "patch-directive"),
        (_containers("a"), {"containers": [{"name": "a", "$patch": "frob"}]}, "patch-directive"),
        ({"s": {}}, {"s": {"$retainKeys": "x"}}, "patch-retain-keys"),
        ({"s": {}}, {"s": {"$retainKeys": ["a"], "b": 1}}, "patch-retain-keys"),
        ({"finalizers": ["a"]}, {"$deleteFromPrimitiveList/finalizers": "a"}, "patch-primitive-list"),
        ({}, {"$deleteFromPrimitiveList/finalizers": "a"}, "patch-primitive-list"),
        (_containers("a"), {"$setElementOrder/containers": {"name": "a"}}, "patch-element-order"),
        (_containers("a"), {"$setElementOrder/containers": [], "containers": [{"name": "a"}]}, "patch-element-order"),
        (
            _containers("a"),
            {
                "$setElementOrder/containers": [{"name": "a"}, {"name": "b"}],
                "containers": [{"name": "b"}, {"name": "a"}],
            },
            "patch-element-order",
        ),
    ],
)
def test_a_wrong_patch_is_malformed(target: dict[str, Any], patch: dict[str, Any], code: str | None) -> None:
    if code is None:
        assert _spec(target, patch) == {"m": {}}
        return
    with pytest.raises(MalformedPatch) as caught:
        _spec(target, patch)
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("target", "patch", "code"),
    [
        (_containers("a"), {"containers": [{"image": "x"}]}, "patch-no-merge-key"),
        ({"keyless": [{"a": 1}]}, {"keyless": [{"a": 2}]}, "patch-no-merge-key"),
        ({"matrix": [[1]]}, {"matrix": [[2]]}, "patch-list-of-lists"),
        (_containers("a"), {"containers": ["a"]}, "patch-mixed-list"),
        (_containers("a"), {"containers": [{"name": {"x": 1}}]}, "patch-element"),
    ],
)
def test_a_patch_that_does_not_fit_the_object_fails(target: dict[str, Any], patch: dict[str, Any], code: str) -> None:
    with pytest.raises(PatchFailed) as caught:
        _spec(target, patch)
    assert caught.value.code == code


@pytest.mark.parametrize("patch", [None, [], "x", 1])
def test_a_patch_that_is_no_object_is_malformed(patch: Any) -> None:
    with pytest.raises(MalformedPatch):
        _apply({}, patch)


_items = st.lists(
    st.fixed_dictionaries({"name": st.sampled_from("abcd")}, optional={"image": st.integers(0, 2)}),
    max_size=4,
    unique_by=lambda item: item["name"],
)


@given(_items, _items)
def test_merging_by_key_keeps_every_name_once_and_is_idempotent(old: list[Any], new: list[Any]) -> None:
    once = _spec({"containers": old}, {"containers": new})
    names = _names(once["containers"])
    assert sorted(names) == sorted({*_names(old), *_names(new)})
    assert [name for name in names if name in _names(new)] == _names(new)
    untouched = [name for name in _names(old) if name not in _names(new)]
    assert [name for name in names if name in untouched] == untouched
    assert _spec(once, {"containers": new}) == once


_keys = st.sampled_from(
    [
        "a",
        "containers",
        "finalizers",
        "name",
        "$patch",
        "$retainKeys",
        "$setElementOrder/containers",
        "$deleteFromPrimitiveList/finalizers",
    ]
)
_anything = st.recursive(
    st.sampled_from([None, 1, True, "a", "delete", "replace"]),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_keys, inner, max_size=4)),
    max_leaves=12,
)


@given(st.dictionaries(_keys, _anything, max_size=4), st.dictionaries(_keys, _anything, max_size=4))
def test_any_patch_gives_an_object_or_a_patch_error(target: dict[str, Any], patch: dict[str, Any]) -> None:
    with contextlib.suppress(PatchError):
        result = _apply({"spec": target}, {"spec": patch})
        assert isinstance(result["spec"], dict)
