"""JSONPath: what a printer column finds, and that nothing but JsonPathError ever comes out."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fastness.formats.jsonpath import JsonPathError, compile_path
from fastness.formats.jsonpath.parser import MAX_LENGTH
from fastness.formats.jsonpath.steps import MAX_VISITS

MACHINE: dict[str, Any] = {
    "metadata": {"name": "m", "labels": {"app.io/name": "web", "a b": "spaced"}},
    "spec": {"replicas": 3, "ratio": 0.5, "paused": False, "none": None},
    "status": {
        "conditions": [
            {"type": "Ready", "status": "True", "weight": 2},
            {"type": "Degraded", "status": "False", "weight": 1, "reason": "why"},
        ],
        "addresses": ["a", "b", "c", "d"],
        "pools": {"x": {"n": 1}, "y": {"n": 2}},
    },
}


@pytest.mark.parametrize(
    ("path", "matches"),
    [
        (".metadata.name", ["m"]),
        ("{.metadata.name}", ["m"]),
        ("$.metadata.name", ["m"]),
        (".", [MACHINE]),
        (".spec.none", [None]),
        (".spec.missing", []),
        (".metadata.name.deeper", []),
        (r".metadata.labels.app\.io/name", ["web"]),
        (r".metadata.labels['app\.io/name']", ["web"]),
        (".metadata.labels['app.io/name']", []),
        (".status['pools.x'].n", [1]),
        (".metadata.labels['a b']", ["spaced"]),
        (".status.addresses[0]", ["a"]),
        (".status.addresses[-1]", ["d"]),
        (".status.addresses[1:3]", ["b", "c"]),
        (".status.addresses[2:]", ["c", "d"]),
        (".status.addresses[-2:]", ["c", "d"]),
        (".status.addresses[::2]", ["a", "c"]),
        (".status.addresses[*]", ["a", "b", "c", "d"]),
        (".status.addresses[0,2]", ["a", "c"]),
        (".status.addresses[9]", []),
        (".status.addresses[2:2]", []),
        (".metadata.name[0]", []),
        (".metadata['name','missing']", ["m"]),
        (".status.pools.*.n", [1, 2]),
        (".status.conditions[*].type", ["Ready", "Degraded"]),
        ('.status.conditions[?(@.type=="Ready")].status', ["True"]),
        (".status.conditions[?(@.type=='Degraded')].reason", ["why"]),
        ('.status.conditions[?( @.type == "Ready" )].status', ["True"]),
        ('.status.conditions[?(@.type!="Ready")].type', ["Degraded"]),
        (".status.conditions[?(@.weight>1)].type", ["Ready"]),
        (".status.conditions[?(@.weight<=1)].type", ["Degraded"]),
        (".status.conditions[?(@.reason)].type", ["Degraded"]),
        ('.status.conditions[?(@.reason=="why")].type', ["Degraded"]),
        ('.status.conditions[?(@.weight=="2")].type', []),
        ('.metadata[?(@.x=="y")]', []),
        ("..reason", ["why"]),
        ("..conditions[0].type", ["Ready"]),
    ],
)
def test_path_finds(path: str, matches: list[Any]) -> None:
    compiled = compile_path(path)
    assert compiled.find(MACHINE) == matches
    assert compiled.first(MACHINE, "nothing") == (matches[0] if matches else "nothing")


@pytest.mark.parametrize(
    "path",
    [
        "metadata.name",
        ".a[",
        ".a['b",
        '.a["b"]',
        ".a[b]",
        ".a[]",
        ".a[0:1:0]",
        ".a[0:1:-1]",
        '.a[?(@.b=="c)]',
        ".a[?(@.b=~1)]",
        "....a",
        ".a]",
        ".a{.b}",
        "." + "a" * MAX_LENGTH,
        ".a" * 200,
        ".a[" + ",".join("0" for _ in range(100)) + "]",
    ],
)
def test_text_that_is_no_path_is_refused(path: str) -> None:
    with pytest.raises(JsonPathError) as refused:
        compile_path(path)
    assert refused.value.code.startswith("jsonpath-")
    assert refused.value.hint


def test_filters_nested_too_deep_are_refused() -> None:
    path = ".a"
    for _ in range(20):
        path = f".a[?(@{path})]"
    with pytest.raises(JsonPathError, match="nested"):
        compile_path(path)


def test_explosive_paths_stop_early() -> None:
    wide = {"a": [list(range(100)) for _ in range(MAX_VISITS // 50)]}
    assert compile_path("..*..*..*").find(wide) == []
    assert compile_path(".a[*][*]").find(wide) == []
    doubling = compile_path("['a','a']" * 60)
    assert doubling.find(_loop(60)) == []
    assert compile_path("[?(@" + "['a','a']" * 60 + ")]").find([_loop(60)]) == []


def _loop(depth: int) -> dict[str, Any]:
    nested: dict[str, Any] = {"a": 1}
    for _ in range(depth):
        nested = {"a": nested}
    return nested


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["a", "b", "type"]), inner, max_size=3),
    max_leaves=20,
)
PIECES = st.lists(
    st.sampled_from(
        [".a", ".b", "..", "[*]", ".*", "[0]", "[-1]", "[1:]", "[::2]", "['a']", "['a','b']", '[?(@.type=="x")]', "[?(@.a)]",
         "[?(@.a>1)]", "[?(@.a==@.b)]", "@", "$", " ", "\\", "[", "]", "(", ")", "'", '"', ",", "x", "0", ".5", "{", "}"]
    ),
    max_size=12,
).map("".join)  # fmt: skip


@given(path=PIECES | st.text(max_size=40), value=JSON)
@example(path=".a[?(@.b==)]", value={})
@example(path="\\", value={})
def test_any_text_on_any_value_finds_or_is_refused(path: str, value: Any) -> None:
    try:
        compiled = compile_path(path)
    except JsonPathError:
        return
    matches = compiled.find(value)
    assert compiled.first(value, None) == (matches[0] if matches else None)
