"""The rollout that is measured is a whole one: every machine ends on the new config, drained and put back."""

from __future__ import annotations

from bench.rollouts import roll_out


async def test_a_small_rollout_comes_to_its_end_in_virtual_time() -> None:
    figures = await roll_out(6)
    assert figures["ms_per_node"] > 0
    assert figures["virtual_minutes"] > 0.5  # the waiting times of the field have passed
