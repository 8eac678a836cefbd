"""Paths: what is found, and where a login may lead."""

from __future__ import annotations

import pytest

from fastness.page.routes import ROUTES, Auth, after_login, find


@pytest.mark.parametrize(
    ("method", "path", "name", "part"),
    [
        ("GET", "/", "fleet", ""),
        ("HEAD", "/pools", "pools", ""),
        ("GET", "/machines/machine-1", "machine", "machine-1"),
        ("GET", "/machines/a%2Fb", "machine", "a/b"),
        ("POST", "/machines/machine-1/decision", "decision", "machine-1"),
        ("POST", "/login", "login", ""),
        ("GET", "/assets/page.css", "asset", "page.css"),
    ],
)
def test_paths_lead_to_their_route(method: str, path: str, name: str, part: str) -> None:
    found = find(method, path)
    assert found is not None
    assert (found[0].name, found[1]) == (name, part)


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/nothing"), ("GET", "/machines/"), ("GET", "/machines/" + "a" * 254), ("PUT", "/"), ("GET", "//"),
     ("GET", "/machines/x/decision"), ("POST", "/"), ("DELETE", "/machines/x"), ("GET", "/assets/../app.py")],
)  # fmt: skip
def test_nothing_else_is_there(method: str, path: str) -> None:
    assert find(method, path) is None


@pytest.mark.parametrize("path", ["/", "/machines/machine-1", "/?state=inbox&q=a%20b", "/trust", "/pools"])
def test_a_login_leads_back_to_a_view(path: str) -> None:
    assert after_login(path) == path


@pytest.mark.parametrize(
    "path",
    ["https://evil.example", "//evil.example", "/\\evil.example", "\\\\evil", "/login", "/logout", "/events", "/nothing",
     "", "javascript:alert(1)", "/\r\nset-cookie: a=b", "/trust\n", "/ü", "/assets/page.css"],
)  # fmt: skip
def test_a_login_leads_nowhere_else(path: str) -> None:
    assert after_login(path) == "/"


def test_only_the_login_and_files_are_open() -> None:
    assert {route.name for route in ROUTES if route.auth is Auth.OPEN} == {"login", "login-form", "asset"}
