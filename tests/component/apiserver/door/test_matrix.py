"""Every route, every verb on representative kinds, for every kind of credential."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fastness.apiserver.door import routes
from tests.component.apiserver.door.credentials import CUT, KNOWN, STRANGERS, Callers
from tests.component.apiserver.door.matrix import ROWS, Row
from tests.component.apiserver.door.objects import populate
from tests.embedded.fixtures import Embedded

OPEN = frozenset(route.name for route in routes.ROUTES if route.auth is routes.Auth.OPEN)
VERBS = {"GET", "POST", "PUT", "PATCH", "DELETE"}


@pytest.fixture
async def callers(embedded_server: Embedded, tmp_path: Path) -> AsyncIterator[Callers]:
    async with embedded_server.client() as admin:
        await populate(admin)
    async with Callers(embedded_server, tmp_path) as ready:
        yield ready


def test_every_route_has_a_row() -> None:
    assert {route.name for route in routes.ROUTES} - {row.route for row in ROWS} == set()
    assert VERBS - {row.method for row in ROWS if row.route == "resources"} == set()


def test_every_row_says_what_every_known_caller_gets() -> None:
    assert [row for row in ROWS if len(row.codes) != len(KNOWN)] == []


def test_rows_lead_to_the_route_that_they_name() -> None:
    for row in ROWS:
        found = routes.find(row.path.partition("?")[0])
        assert (found[0].name if found else "unknown") == row.route, row.path


def test_only_health_and_version_are_open() -> None:
    assert {"health", "live", "ready", "version"} == OPEN


async def test_known_callers_get_what_the_table_says(callers: Callers) -> None:
    wrong = []
    for row in ROWS:
        found = tuple([await _ask(callers, name, row) for name in KNOWN])
        if found != row.codes:
            wrong.append(f"{row.method} {row.path}: {' '.join(found)} instead of {' '.join(row.codes)}")
    assert not wrong, "\n".join(wrong)


async def test_strangers_are_refused_everywhere_but_at_open_doors(callers: Callers) -> None:
    for row in ROWS:
        wanted = "200" if row.route in OPEN else "401"
        found = {name: await _ask(callers, name, row) for name in STRANGERS}
        assert found == dict.fromkeys(STRANGERS, wanted), f"{row.method} {row.path}"


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
