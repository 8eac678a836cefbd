"""Scopes of administrators: a method and a path, segment by segment."""

from __future__ import annotations

import pytest

from fastness.release.live.admins import ROLES, Admin, is_scope


@pytest.mark.parametrize(
    ("scope", "method", "path", "expected"),
    [
        ("* **", "DELETE", "resource/a/b/c", True),
        ("POST resource/default/*/*", "POST", "resource/default/x/y", True),
        ("POST resource/default/*/*", "DELETE", "resource/default/x/y", False),
        ("POST resource/default/*/*", "POST", "resource/other/x/y", False),
        ("POST resource/default/*/*", "POST", "resource/default/x", False),
        ("POST resource/default/*/*", "POST", "resource/default/x/y/z", False),
        ("POST resource/**", "POST", "resource/a/b/c", True),
        ("POST resource/**", "POST", "resource-policy", False),
        ("POST resource/a/**", "POST", "resource", False),
        ("GET resource", "GET", "resource", True),
        ("GET resource", "GET", "resource/a/b/c", False),
        ("* resource/*/*/x", "GET", "resource/a/b/x", True),
    ],
)
def test_a_scope_covers_what_it_says(scope: str, method: str, path: str, expected: bool) -> None:
    assert is_scope(scope)
    assert Admin("a", (scope,)).may(method, path.split("/")) is expected


NO_SCOPES = [
    "",
    "POST",
    "post resource",
    "POST /resource",
    "POST resource/",
    "POST a//b",
    "PUT x",
    "GET a/**/b",
    "* *?",
]


@pytest.mark.parametrize("text", NO_SCOPES)
def test_texts_that_are_no_scopes(text: str) -> None:
    assert not is_scope(text)


def test_roles_are_made_of_scopes() -> None:
    assert all(is_scope(scope) for scopes in ROLES.values() for scope in scopes)
    assert not Admin("a", ()).may("GET", ["resource"])
