"""The installation that is measured is a whole one: every machine has the runtime, and the config says so."""

from __future__ import annotations

from bench.kata import install
from bench.rollouts import in_world


async def test_a_small_installation_comes_to_its_end_in_virtual_time() -> None:
    figures = await in_world(lambda world, machines: install(world, machines, 4, lambda: None))
    assert figures["ms_per_node"] > 0
    assert figures["virtual_minutes"] > 0.5  # the waiting times of the field have passed
