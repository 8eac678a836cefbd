"""Which scopes lie inside which."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.machineconfig.render.registries.scopes import (
    around,
    below,
    host,
    inside,
    is_scope,
    nested,
    repository,
)

NESTED = [
    ("quay.io", "quay.io"),
    ("quay.io/ns", "quay.io"),
    ("quay.io/ns/app", "quay.io/ns"),
    ("quay.io:5000/ns", "quay.io:5000"),
    ("a.example.com", "*.example.com"),
    ("a.b.example.com/ns", "*.example.com"),
    ("a.example.com:5000", "*.example.com"),
    ("a.example.com:5000/ns", "*.example.com"),
    ("a.example.com/ns:tag", "*.example.com"),
    ("*.a.example.com", "*.example.com"),
    ("*.example.com", "*.example.com"),
]
APART = [
    ("quay.io", "quay.io/ns"),
    ("quay.iox", "quay.io"),
    ("quay.io/nsx", "quay.io/ns"),
    ("quay.io:5000", "quay.io"),
    ("quay.io:tag", "quay.io"),
    ("example.com", "*.example.com"),
    ("aexample.com", "*.example.com"),
    ("quay/bar.example.com", "*.example.com"),
    ("quay/bar.example.com:400", "*.example.com"),
    ("*.com", "*.example.com"),
    ("other.org", "*.example.com"),
]


@pytest.mark.parametrize(("scope", "outer"), NESTED)
def test_a_scope_lies_in_another(scope: str, outer: str) -> None:
    assert nested(scope, outer)


@pytest.mark.parametrize(("scope", "outer"), APART)
def test_a_scope_does_not_lie_in_another(scope: str, outer: str) -> None:
    assert not nested(scope, outer)


names = st.lists(st.sampled_from(["a", "bb", "example", "com", "org"]), min_size=1, max_size=4).map(".".join)
paths = st.lists(st.sampled_from(["ns", "app", "a.b"]), max_size=3).map(
    lambda parts: "".join(f"/{part}" for part in parts)
)
scopes = st.one_of(
    st.builds(lambda name, port, path: f"{name}{port}{path}", names, st.sampled_from(["", ":5000"]), paths),
    names.map(lambda name: f"*.{name}"),
)


@given(scopes, scopes)
def test_all_scopes_around_one_are_those_that_it_is_nested_in(scope: str, outer: str) -> None:
    assert (outer in set(around(scope))) == nested(scope, outer)
    assert inside(scope, {outer}) == nested(scope, outer)


@given(scopes, scopes, scopes)
def test_nesting_is_transitive(inner: str, middle: str, outer: str) -> None:
    if nested(inner, middle) and nested(middle, outer):
        assert nested(inner, outer)


def test_the_narrowest_scope_comes_first() -> None:
    assert list(around("a.b.com:5000/ns/app")) == [
        "a.b.com:5000/ns/app", "a.b.com:5000/ns", "a.b.com:5000", "*.b.com", "*.com",
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["quay.io", "quay.io:5000/ns/App", "*.example.com", "*.x", "localhost"])
def test_valid_scopes(text: str) -> None:
    assert is_scope(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "*",
        "*.",
        "*.a/b",
        "*.a:5000",
        "*.a@b",
        "*.*.a",
        "a.*.com",
        "*a.com",
        "http://a",
        "a b",
        "a/",
        "a\n",
        "a\x00b",
    ],
)
def test_what_is_no_scope(text: str) -> None:
    assert not is_scope(text)


@pytest.mark.parametrize(
    ("scope", "outer", "rest"),
    [
        ("q/ns/app", "q/ns", "/app"),
        ("q", "q", ""),
        ("a.x.com/ns", "*.x.com", "/ns"),
        ("a.x.com:5000", "*.x.com", ""),
        ("*.a.x.com", "*.x.com", ""),
    ],
)
def test_the_rest_of_a_path(scope: str, outer: str, rest: str) -> None:
    assert below(scope, outer) == rest


@pytest.mark.parametrize(
    ("image", "name"),
    [
        ("q.io/ns/app@sha256:00", "q.io/ns/app"),
        ("q.io/ns/app:1", "q.io/ns/app"),
        ("q.io/ns/app:1@sha256:00", "q.io/ns/app"),
        ("q.io:5000/ns/app", "q.io:5000/ns/app"),
        ("q.io:5000", "q.io:5000"),
        ("*.q.io", "*.q.io"),
    ],
)
def test_the_repository_of_an_image(image: str, name: str) -> None:
    assert repository(image) == name


def test_the_host_of_a_scope() -> None:
    assert [host(scope) for scope in ("a:1/b", "a/b:1", "*.a", "")] == ["a", "a", "*.a", ""]
