"""Where a login may lead."""

from __future__ import annotations

import pytest

from fastness.page.routes import after_login


@pytest.mark.parametrize("path", ["/", "/machines/machine-1", "/?state=inbox&q=a%20b", "/trust", "/pools"])
def test_a_login_leads_back_to_a_view(path: str) -> None:
    assert after_login(path) == path


@pytest.mark.parametrize(
    "path",
    ["https://evil.example", "//evil.example", "/\\evil.example", "\\\\evil", "/login", "/logout", "/events", "/nothing",
     "", "javascript:alert(1)", "/\r\nset-cookie: a=b", "/trust\n", "/ü", "/assets/page.css", "/machines/",
     "/machines/a%2F..%2Fb", "/machines/x/decision"],
)  # fmt: skip
def test_a_login_leads_nowhere_else(path: str) -> None:
    assert after_login(path) == "/"
