"""JSON patch: the six operations, pointers, failures, limits, and no mutation."""

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.formats.errors import MalformedPatch, PatchError, PatchFailed, PatchTooLarge
from fastness.formats.patch import PatchLimits, apply_json_patch


def _op(name: str, path: str, **members: Any) -> dict[str, Any]:
    return {"op": name, "path": path, **members}


@pytest.mark.parametrize(
    ("document", "patch", "result"),
    [
        ({"a": 1}, [_op("add", "/b", value=2)], {"a": 1, "b": 2}),
        ({"a": 1}, [_op("add", "/a", value=2)], {"a": 2}),
        ({"a": [1, 3]}, [_op("add", "/a/1", value=2)], {"a": [1, 2, 3]}),
        ({"a": [1]}, [_op("add", "/a/1", value=2)], {"a": [1, 2]}),
        ({"a": [1]}, [_op("add", "/a/-", value=[2])], {"a": [1, [2]]}),
        ({"a": 1}, [_op("add", "", value=[])], []),
        ({"a": 1}, [_op("add", "/b", value=None)], {"a": 1, "b": None}),
        ({"a": 1, "b": 2}, [_op("remove", "/a")], {"b": 2}),
        ({"a": [1, 2, 3]}, [_op("remove", "/a/1")], {"a": [1, 3]}),
        ({"a": {"b": 1}}, [_op("replace", "/a/b", value=2)], {"a": {"b": 2}}),
        ({"a": [1, 2]}, [_op("replace", "/a/0", value=9)], {"a": [9, 2]}),
        ({"a": 1}, [_op("replace", "", value={"z": 1})], {"z": 1}),
        ({"a": {"b": 1}, "c": {}}, [_op("move", "/c/d", **{"from": "/a/b"})], {"a": {}, "c": {"d": 1}}),
        ({"a": [1, 2, 3]}, [_op("move", "/a/0", **{"from": "/a/2"})], {"a": [3, 1, 2]}),
        ({"a": 1}, [_op("move", "/a", **{"from": "/a"})], {"a": 1}),
        ({"a": {"b": 1}}, [_op("copy", "/c", **{"from": "/a"})], {"a": {"b": 1}, "c": {"b": 1}}),
        ({"a": {}}, [_op("copy", "/a/b", **{"from": ""})], {"a": {"b": {"a": {}}}}),
        ({"a/b": 1, "m~n": 2, "": 3}, [_op("remove", "/a~1b"), _op("remove", "/m~0n"), _op("remove", "/")], {}),
        ({"~1": 1}, [_op("test", "/~01", value=1)], {"~1": 1}),
        ({"a": [1, 1.0, {"x": None}]}, [_op("test", "/a", value=[1.0, 1, {"x": None}])], {"a": [1, 1.0, {"x": None}]}),
        ({"0": {"1": 2}}, [_op("replace", "/0/1", value=3)], {"0": {"1": 3}}),
        ({}, [], {}),
    ],
)
def test_operations(document: Any, patch: list[Any], result: Any) -> None:
    before = deepcopy((document, patch))
    assert apply_json_patch(document, patch) == result
    assert (document, patch) == before


@pytest.mark.parametrize(
    ("document", "operation", "code"),
    [
        ({}, _op("remove", "/a"), "patch-path-not-found"),
        ({}, _op("remove", ""), "patch-root"),
        ({}, _op("replace", "/a", value=1), "patch-path-not-found"),
        ({}, _op("add", "/a/b", value=1), "patch-path-not-found"),
        ({"a": 1}, _op("add", "/a/b", value=1), "patch-path-not-found"),
        ({"a": 1}, _op("add", "/a/b/c", value=1), "patch-path-not-found"),
        ({"a": [1]}, _op("add", "/a/2", value=1), "patch-index"),
        ({"a": [1]}, _op("add", "/a/-1", value=1), "patch-index"),
        ({"a": [1]}, _op("add", "/a/01", value=1), "patch-index"),
        ({"a": [1]}, _op("add", "/a/x", value=1), "patch-index"),
        ({"a": [1]}, _op("add", "/a/٠", value=1), "patch-index"),
        ({"a": [1]}, _op("remove", "/a/-"), "patch-index"),
        ({"a": [1]}, _op("replace", "/a/1", value=1), "patch-index"),
        ({"a": [1]}, _op("remove", "/a/99999999999999999999"), "patch-index"),
        ({"a": 1}, _op("test", "/a", value=2), "patch-test-failed"),
        ({"a": 1}, _op("test", "/a", value=True), "patch-test-failed"),
        ({"a": [{"b": False}]}, _op("test", "/a", value=[{"b": 0}]), "patch-test-failed"),
        ({"a": 1}, _op("test", "/b", value=None), "patch-path-not-found"),
        ({"a": {}}, _op("move", "/a/b", **{"from": "/a"}), "patch-move"),
        ({"a": {}}, _op("move", "/b", **{"from": "/x"}), "patch-path-not-found"),
        ({"a": {}}, _op("copy", "/b"), "patch-pointer"),
        ({}, _op("add", "a", value=1), "patch-pointer"),
        ({}, _op("add", "/~2", value=1), "patch-pointer"),
        ({}, _op("add", "/a~", value=1), "patch-pointer"),
        ({}, {"op": "add", "value": 1}, "patch-pointer"),
        ({}, {"op": "add", "path": 5, "value": 1}, "patch-pointer"),
        ({}, _op("add", "/a"), "patch-value"),
        ({}, _op("frob", "/a", value=1), "patch-operation"),
        ({}, {"path": "/a"}, "patch-operation"),
    ],
)
def test_an_operation_that_does_not_fit_fails_with_422(document: Any, operation: dict[str, Any], code: str) -> None:
    before = deepcopy(document)
    with pytest.raises(PatchFailed) as caught:
        apply_json_patch(document, [_op("test", "", value=before), operation])
    assert caught.value.code == code
    assert caught.value.status == 422
    assert caught.value.path.startswith("[1]") or code == "patch-test-failed"
    assert document == before


@pytest.mark.parametrize("patch", [{}, None, "x", [1], [[]], [None]])
def test_a_patch_that_is_no_list_of_objects_is_malformed(patch: Any) -> None:
    with pytest.raises(MalformedPatch) as caught:
        apply_json_patch({}, patch)
    assert caught.value.status == 400


def test_a_failed_patch_leaves_nothing_behind() -> None:
    document = {"a": [1, 2]}
    with pytest.raises(PatchFailed):
        apply_json_patch(document, [_op("remove", "/a/0"), _op("test", "/a/0", value=1)])
    assert document == {"a": [1, 2]}


def test_untouched_parts_are_shared() -> None:
    document = {"a": {"x": 1}, "b": {"y": [1]}}
    result = apply_json_patch(document, [_op("replace", "/a/x", value=2)])
    assert result["b"] is document["b"]
    assert result["a"] is not document["a"]


def test_copies_do_not_change_together() -> None:
    patch = [
        _op("add", "/a/n", value=1),
        _op("copy", "/b", **{"from": "/a"}),
        _op("add", "/b/only", value="b"),
        _op("add", "/a/only", value="a"),
    ]
    assert apply_json_patch({"a": {}}, patch) == {"a": {"n": 1, "only": "a"}, "b": {"n": 1, "only": "b"}}


def test_a_value_of_the_patch_is_not_changed_by_later_operations() -> None:
    patch = [_op("add", "/a", value={"x": []}), _op("add", "/b", value=1), _op("add", "/a/x/-", value=1)]
    assert apply_json_patch({}, patch) == {"a": {"x": [1]}, "b": 1}
    assert patch[0]["value"] == {"x": []}


def test_ten_thousand_operations_are_the_limit() -> None:
    operation = _op("add", "/a", value=1)
    assert apply_json_patch({}, [operation] * 10_000) == {"a": 1}
    with pytest.raises(PatchTooLarge) as caught:
        apply_json_patch({}, [operation] * 10_001)
    assert caught.value.status == 413


def test_copying_cannot_double_an_object_without_end() -> None:
    patch = [_op("copy", f"/k{n}", **{"from": ""}) for n in range(100)]
    with pytest.raises(PatchError) as caught:
        apply_json_patch({"a": "x" * 1000}, patch)
    assert caught.value.code in ("patch-copies-too-much", "patch-result-too-deep")
    with pytest.raises(PatchTooLarge):
        apply_json_patch({"a": "x" * 1000}, [_op("copy", f"/k{n}", **{"from": "/a"}) for n in range(9_000)])


def test_moving_cannot_nest_an_object_without_end() -> None:
    step = [_op("add", "/x", value={}), _op("move", "/x/a", **{"from": "/a"}), _op("move", "/a", **{"from": "/x"})]
    for rounds in (101, 3_000):
        with pytest.raises(PatchFailed) as caught:
            apply_json_patch({"a": {}}, step * rounds)
        assert caught.value.code == "patch-result-too-deep"
    deep = [*step * 3_000, _op("copy", "/b", **{"from": "/a"})]
    with pytest.raises(PatchFailed):
        apply_json_patch({"a": {}}, deep)


def test_shifting_long_lists_is_bounded() -> None:
    with pytest.raises(PatchTooLarge) as caught:
        apply_json_patch(
            {"a": [0] * 100_000}, [_op("add", "/a/0", value=1)] * 20, PatchLimits(max_shifted_elements=10**6)
        )
    assert caught.value.code == "patch-too-much-work"


_pointers = st.sampled_from(["", "/a", "/b", "/a/b", "/a/0", "/a/-", "/b/1", "/a/b/c", "/b/0/a"])
_values = st.sampled_from([None, 1, "x", [], {}, [1, [2]], {"b": {"c": 1}}, {"a": [1, 2]}])
_operations = st.builds(
    lambda name, path, value, source: {"op": name, "path": path, "value": value, "from": source},
    st.sampled_from(["add", "remove", "replace", "move", "copy"]),
    _pointers,
    _values,
    _pointers,
)


def _naive(document: Any, patch: list[dict[str, Any]]) -> Any:
    """Deep copies and plain loops: slow, obvious, and independent of the code under test."""
    document = {"root": deepcopy(document)}

    def locate(pointer: str) -> tuple[Any, Any]:
        parent: Any = document
        key: Any = "root"
        for token in pointer.split("/")[1:]:
            parent = parent[key]
            key = len(parent) if token == "-" else int(token) if isinstance(parent, list) else token
            if not isinstance(parent, dict | list):
                raise KeyError(token)
        return parent, key

    def take(pointer: str) -> Any:
        parent, key = locate(pointer)
        return parent[key]

    def add(pointer: str, value: Any) -> None:
        parent, key = locate(pointer)
        if isinstance(parent, list):
            if key > len(parent):
                raise IndexError
            parent.insert(key, deepcopy(value))
        else:
            parent[key] = deepcopy(value)

    def remove(pointer: str) -> None:
        if not pointer:
            raise KeyError
        parent, key = locate(pointer)
        del parent[key]

    for step in patch:
        path, source = step["path"], step["from"]
        if step["op"] == "add":
            add(path, step["value"])
        elif step["op"] == "remove":
            remove(path)
        elif step["op"] == "replace":
            parent, key = locate(path)
            parent[key]
            parent[key] = deepcopy(step["value"])
        elif step["op"] == "copy":
            add(path, take(source))
        elif path != source:
            if path.startswith(source + "/") or not source:
                raise KeyError
            value = take(source)
            remove(source)
            add(path, value)
        else:
            take(source)
    return document["root"]


@given(_values, st.lists(_operations, max_size=6))
def test_it_agrees_with_a_naive_implementation(document: Any, patch: list[dict[str, Any]]) -> None:
    before = deepcopy((document, patch))
    try:
        expected: Any = _naive(document, patch)
    except (KeyError, IndexError, ValueError, TypeError):
        with pytest.raises(PatchFailed):
            apply_json_patch(document, patch)
    else:
        assert apply_json_patch(document, patch) == expected
    assert (document, patch) == before
