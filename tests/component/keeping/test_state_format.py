"""An older version does not start on what a newer one wrote, and says so in one sentence; embedded, and as a role."""

from __future__ import annotations

from pathlib import Path

import pytest

from fastness.app.embedded import PlaneOptions, running
from fastness.app.state_format import FORMAT, NAME, NewerState, claim_format, require_known_format
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.kubernetes.core import CONFIG_MAP
from fastness.kube.port import Cluster, PatchType
from tests.embedded.fixtures import Embedded

MAPS = CONFIG_MAP.resource


async def state(cluster: Cluster, **data: str) -> None:
    await cluster.patch(MAPS, NAME, {"data": data}, PatchType.MERGE, NAMESPACE)


async def test_the_first_controllers_say_which_format_they_write(embedded_server: Embedded) -> None:
    cluster = embedded_server.cluster
    await require_known_format(cluster)  # from before there was one
    await claim_format(cluster)
    assert (await cluster.get(MAPS, NAME, NAMESPACE))["data"]["format"] == str(FORMAT)
    version = (await cluster.get(MAPS, NAME, NAMESPACE))["metadata"]["resourceVersion"]
    await claim_format(cluster)
    assert (await cluster.get(MAPS, NAME, NAMESPACE))["metadata"]["resourceVersion"] == version
    await state(cluster, format="0")
    await claim_format(cluster)
    assert (await cluster.get(MAPS, NAME, NAMESPACE))["data"]["format"] == str(FORMAT)


@pytest.mark.parametrize("number", [str(FORMAT + 1), "99", "two", "-1", "1 or 2", "²", "9" * 40])
async def test_what_a_newer_version_wrote_is_refused(embedded_server: Embedded, number: str) -> None:
    cluster = embedded_server.cluster
    await claim_format(cluster)
    await state(cluster, format=number, fastness="9.9.0")
    for start in (require_known_format, claim_format):
        with pytest.raises(NewerState) as refused:
            await start(cluster)
        assert "\n" not in str(refused.value)
        assert "backup" in refused.value.hint
    assert (await cluster.get(MAPS, NAME, NAMESPACE))["data"]["format"] == number


@pytest.mark.row("000-90")
async def test_an_embedded_control_plane_of_before_does_not_start(tmp_path: Path) -> None:
    options = PlaneOptions(state=tmp_path / "state")
    async with running(options) as plane:
        await state(plane.server.cluster, format=str(FORMAT + 1), fastness="9.9.0")
    with pytest.raises(NewerState, match=r"Fastness 9\.9\.0 wrote this cluster in format 2"):
        async with running(options):
            pytest.fail("it started")
