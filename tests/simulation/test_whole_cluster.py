"""The whole cluster in virtual time, with faults that a seed chooses: what must hold, holds after every step.

FASTNESS_SEED=7 replays one run; FASTNESS_SOAK=1 makes thousands. The few of the short form take every step at least once: they
were chosen among the first ones for that.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence

import pytest

from tests.simulation.invariants import Broken, Watch
from tests.simulation.loop import START, LoopClock, Stuck, run
from tests.simulation.story import tell
from tests.soaking import SOAK

ONE = os.environ.get("FASTNESS_SEED", "")
SEEDS: Sequence[int] = [int(ONE)] if ONE else range(3000) if SOAK else (0, 1, 2, 3, 6, 8, 9, 11, 12, 17)
RUNS: dict[int, Counter[str]] = {}
"""How often each seed that has run took each step."""


@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_happens_nothing_leaves_without_a_grant_and_everything_heals(seed: int) -> None:
    run(tell(seed, RUNS.setdefault(seed, Counter())))


def test_the_seeds_take_every_step() -> None:
    if len(RUNS) < len(SEEDS) or ONE:
        pytest.skip("only some of the seeds were run")
    steps = {step for taken in RUNS.values() for step in taken}
    untaken = [step for step in steps if not any(taken[step] for taken in RUNS.values())]
    assert untaken == [], "the short form needs other seeds, or more of them"


def test_a_seed_replays_its_run_in_another_process() -> None:
    """There, objects are elsewhere in memory and words hash to other numbers."""
    code = "from tests.simulation import loop, story; print(*loop.run(story.tell(2)), sep='\\n')"
    around = {**os.environ, "PYTHONHASHSEED": "7"}
    there = subprocess.run([sys.executable, "-c", code], env=around, capture_output=True, text=True, check=True)
    assert there.stdout.splitlines() == run(tell(2))


def test_a_failure_says_how_it_is_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(_: object) -> None:
        raise Broken("on purpose")

    monkeypatch.setattr(Watch, "step", fail)
    with pytest.raises(Broken) as caught:
        run(tell(5))
    assert "replay with FASTNESS_SEED=5" in caught.value.__notes__[0]


def test_time_leaps_to_whoever_waits_and_never_passes_otherwise() -> None:
    async def wait() -> float:
        await asyncio.sleep(3600)
        return (LoopClock().now() - START).total_seconds()

    assert run(wait()) == pytest.approx(3600)


def test_a_run_in_which_everybody_waits_for_nobody_ends_with_an_error() -> None:
    async def wait() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(Stuck):
        run(wait())
