"""The whole cluster in virtual time, with faults that a seed chooses: what must hold, holds after every step.

FASTNESS_SEED=7 replays one run; FASTNESS_SOAK=1 makes thousands.
"""

from __future__ import annotations

import asyncio
import os

import pytest

from tests.simulation.invariants import Broken, Watch
from tests.simulation.loop import START, LoopClock, Stuck, run
from tests.simulation.network import Exchange
from tests.simulation.story import tell
from tests.simulation.world import MemoryTiles, World, world

ONE = os.environ.get("FASTNESS_SEED", "")
SEEDS = [int(ONE)] if ONE else range(3000 if os.environ.get("FASTNESS_SOAK") else 50)


@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_happens_nothing_leaves_without_a_grant_and_everything_heals(seed: int) -> None:
    run(tell(seed))


def test_a_seed_replays_its_run() -> None:
    assert run(tell(4)) == run(tell(4))


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


def watch(why: str = "") -> Watch:
    """A watch over nothing, to be shown what must not happen."""
    tiles = MemoryTiles()
    return Watch(None, tiles, lambda _: why, lambda caller: caller, simulated=True)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("why", "recorded", "expected"),
    [("it was revoked", 1, "it was revoked"), ("", 0, "not on the record"), ("", 1, "")],
)
def test_the_watch_sees_a_release_that_must_not_be(why: str, recorded: int, expected: str) -> None:
    made = watch(why)
    made.recorded["1"] = recorded
    made.exchange(Exchange("1", "gate-a", "/config/worker", 200, b"{}", True))
    assert expected in "".join(made.broken) if expected else not made.broken


def test_the_watch_sees_a_secret_in_an_answer_and_in_the_log() -> None:
    made = watch()
    made.exchange(Exchange("1", "gate-a", "/config/worker", 401, b"canary-5f0c1d", True))
    made.line("gate.refused {'detail': 'canary-5f0c1d'}")
    assert len(made.broken) == 2


def test_a_door_that_forgets_the_record_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing(*_: object) -> None:
        """Forget."""

    monkeypatch.setattr("tests.simulation.world.ClusterRecord.append", nothing)
    with pytest.raises(Broken, match="not on the record"):
        run(tell(3))


def test_a_release_to_a_machine_that_should_be_revoked_is_found() -> None:
    async def story() -> None:
        async with world(1) as here:
            await _revoke_and_reboot(here)

    with pytest.raises(Broken, match="it was revoked"):
        run(story())


async def _revoke_and_reboot(here: World) -> None:
    """The world knows that the machine is revoked, and nobody told the doors."""
    machine = here.add("tpm", await here.ticket())
    await here.pass_time(30)
    here.revoked[here.identity("0")] = here.now
    await machine.switch_off()
    await here.pass_time(5)
    here.switch_on(machine)
    await here.pass_time(30)
    await here.watch.step()
