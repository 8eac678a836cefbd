"""Every route, every verb on representative kinds, for every kind of credential."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from fastness.http import Request
from fastness.http.route import OPEN, NoRoute, Routes, RouteTable
from tests.component.apiserver.door.credentials import CUT, KNOWN, STRANGERS, Callers
from tests.component.apiserver.door.matrix import ROWS, Row
from tests.component.apiserver.door.objects import populate
from tests.embedded.fixtures import Embedded

OPEN_ROUTES = {"health", "health-check", "live", "live-check", "ready", "ready-check", "version"}
RESOURCES = {"resources", "core-resources"}
VERBS = {"GET", "POST", "PUT", "PATCH", "DELETE"}


@pytest.fixture
async def callers(embedded_server: Embedded, tmp_path: Path) -> AsyncIterator[Callers]:
    async with embedded_server.client() as admin:
        await populate(admin)
    async with Callers(embedded_server, tmp_path) as ready:
        yield ready


@pytest.fixture
def routes(embedded_server: Embedded) -> Routes:
    """The table that is served."""
    return embedded_server.server.app.routes


def test_every_route_has_a_row(routes: Routes) -> None:
    assert {route.name for route in routes} - {row.route for row in ROWS} == set()
    assert VERBS - {row.method for row in ROWS if row.route in RESOURCES} == set()


def test_every_row_says_what_every_known_caller_gets() -> None:
    assert [row for row in ROWS if len(row.codes) != len(KNOWN)] == []


def test_rows_lead_to_the_route_that_they_name(routes: Routes) -> None:
    table = RouteTable(routes)
    for row in ROWS:
        method = row.method if "405" not in row.codes else "GET"
        assert _route_of(table, method, row.path.partition("?")[0]) == row.route, row.path


def _route_of(table: RouteTable, method: str, path: str) -> str:
    scope = {"method": method, "raw_path": path.encode(), "query_string": b""}
    try:
        return table.find(Request(scope, _nothing)).name
    except NoRoute:
        return "unknown"


async def _nothing() -> Mapping[str, Any]:
    return {}


def test_only_health_and_version_are_open(routes: Routes) -> None:
    assert {route.name for route in routes if route.auth is OPEN} == OPEN_ROUTES


async def test_known_callers_get_what_the_table_says(callers: Callers) -> None:
    wrong = []
    for row in ROWS:
        answers = tuple([await _ask(callers, name, row) for name in KNOWN])
        if answers != row.codes:
            wrong.append(f"{row.method} {row.path}: {' '.join(answers)} instead of {' '.join(row.codes)}")
    assert not wrong, "\n".join(wrong)


async def test_strangers_are_refused_everywhere_but_at_open_doors(callers: Callers) -> None:
    for row in ROWS:
        expected = "200" if row.route in OPEN_ROUTES else "401"
        answers = {name: await _ask(callers, name, row) for name in STRANGERS}
        assert answers == dict.fromkeys(STRANGERS, expected), f"{row.method} {row.path}"


async def test_certificates_that_do_not_verify_do_not_get_past_tls(callers: Callers) -> None:
    for row in ROWS[:3]:
        assert [await _ask(callers, name, row) for name in CUT] == ["cut"] * len(CUT)


async def test_a_refusal_does_not_tell_strangers_why(callers: Callers) -> None:
    for name in STRANGERS:
        answer = await callers.client(name).get("/api/v1/secrets")
        assert answer.json()["message"] == "Unauthorized"
        assert answer.headers["www-authenticate"] == "Bearer"


async def _ask(callers: Callers, name: str, row: Row) -> str:
    return await callers.outcome(name, row.method, row.path, row.body, row.content_type)
