"""No source gives anything for leave to have something else."""

from __future__ import annotations

from typing import Any, cast

import pytest

from fastness.protocol.kbs_path import ResourcePath, pool_config
from fastness.release.live.configs import GateConfigs
from fastness.release.live.replies import RenderedConfigs
from fastness.release.source import read_resource
from tests.granting import grant_of

OTHERS, OWN = pool_config("infra"), pool_config("worker")


async def test_a_grant_opens_the_resource_that_it_names_and_nothing_else() -> None:
    nothing = cast("Any", None)
    with pytest.raises(ValueError, match="opens nothing else"):
        await GateConfigs(nothing, nothing).read(grant_of(OWN), OTHERS, {})
    with pytest.raises(ValueError, match="opens nothing else"):
        await RenderedConfigs(nothing).read(grant_of(OWN), OTHERS, {})
    with pytest.raises(ValueError, match="opens nothing else"):
        await read_resource([], grant_of(OWN), OTHERS, {})
    assert await read_resource([], grant_of(OWN), OWN, {}) is None


def test_configurations_are_below_pool_and_nowhere_else() -> None:
    configs = GateConfigs(cast("Any", None), cast("Any", None))
    assert configs.serves(OWN)
    assert not configs.serves(ResourcePath("pool", "worker", "key"))
    assert not configs.serves(ResourcePath("machine", "uid", "config"))
