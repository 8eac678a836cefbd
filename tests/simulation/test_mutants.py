"""A check that somebody takes out of the product is found by the simulation; in a soak each of them, in 200 seeds at most."""

from __future__ import annotations

import os

import pytest

from tests.simulation.mutants import MUTANTS, SEEDS, Mutant, hunt

SOON = ("revocation", "record", "budget")
"""Those that nearly every seed finds."""
HUNTED = [mutant for mutant in MUTANTS if os.environ.get("FASTNESS_SOAK") or mutant.name in SOON]


@pytest.mark.parametrize("mutant", HUNTED, ids=lambda mutant: mutant.name)
def test_a_check_that_is_taken_out_is_found(mutant: Mutant) -> None:
    seeds = range(SEEDS if os.environ.get("FASTNESS_SOAK") else 10)
    assert hunt(mutant, seeds).seed is not None, f"nobody misses {mutant.name}: {mutant.check}"


def test_there_are_ten_checks() -> None:
    assert len({mutant.name for mutant in MUTANTS}) >= 10
