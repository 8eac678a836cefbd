"""Every row of the table of rules is judged alike by the embedded API and by a real API server.

The embedded API stands here without the product's admission, which refuses some of the same things for reasons of its own. The
real one has the definitions in `deploy/crds`: that it takes them shows that their rules stay within its budget of costs.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from fastness.apiserver import ServerOptions, open_apiserver
from fastness.app.product import PRODUCT
from tests.component.kinds.judging import disagreements
from tests.embedded.fixtures import Embedded
from tests.realkube import RealKube
from tests.unit.kinds.rules.table import COUNTS


@pytest.fixture
async def embedded(tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    """The administrator of an embedded API with its own rules alone."""
    directory = tmp_path / "state"
    async with (
        open_apiserver(ServerOptions(directory), replace(PRODUCT, rules=())) as server,
        Embedded(server, directory).client() as client,
    ):
        yield client


@pytest.mark.row("003-64")
@pytest.mark.parametrize("crd", COUNTS)
async def test_the_embedded_api_judges_by_every_rule(embedded: httpx.AsyncClient, crd: str) -> None:
    assert await disagreements(embedded, crd) == []


@pytest.mark.row("003-64")
@pytest.mark.parametrize("crd", COUNTS)
async def test_a_real_server_judges_by_every_rule(api: httpx.Client, real_kube: RealKube, crd: str) -> None:
    token = {"Authorization": f"Bearer {real_kube.users['admin'].token}"}
    async with httpx.AsyncClient(
        base_url=real_kube.url, verify=real_kube.trust(), headers=token, timeout=30.0, trust_env=False
    ) as client:
        assert await disagreements(client, crd) == []
