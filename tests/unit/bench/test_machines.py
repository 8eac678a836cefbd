"""What the figures about machine configuration are made of: the right amount of everything, and machines that do their part."""

from __future__ import annotations

import asyncio

from bench import configs
from bench.figures import RENDER
from bench.rendering import COLD, LARGE, PLAN, RERENDER, measured
from bench.rollouts import Calendar, _next
from fastness.kinds.machineconfiguration import names
from fastness.machineconfig.render.render import Rendered, render


def test_the_configs_have_as_many_files_and_units_as_the_page_says() -> None:
    result = render(configs.pool(), configs.machine_configs(20, 300, 60))
    assert isinstance(result, Rendered)
    assert len(result.spec["config"]["storage"]["files"]) == 300
    assert len(result.spec["config"]["systemd"]["units"]) == 60
    assert len(result.source) == 20
    assert result.size > 150_000


def test_every_figure_is_measured_as_often_as_asked_and_is_above_nothing() -> None:
    figures = measured(2)
    assert set(figures) == {RENDER, LARGE, RERENDER, COLD, PLAN}
    assert len(figures[RENDER]) == 2
    assert all(value > 0 for values in figures.values() for value in values)


def test_a_machine_asks_for_a_drain_waits_reports_and_asks_to_be_put_back() -> None:
    notes = {names.CURRENT_CONFIG: "old", names.DESIRED_CONFIG: "new", names.STATE: "Done"}
    notes |= _next(notes)
    assert notes[names.DESIRED_DRAIN] == "drain-new"
    assert notes[names.STATE] == "Working"
    assert _next(notes) == {}
    notes[names.LAST_APPLIED_DRAIN] = "drain-new"
    notes |= _next(notes)
    assert notes[names.CURRENT_CONFIG] == "new"
    assert notes[names.DESIRED_DRAIN] == "uncordon-new"
    assert _next(notes) == {}
    notes[names.LAST_APPLIED_DRAIN] = "uncordon-new"
    notes |= _next(notes)
    assert notes[names.STATE] == "Done"
    assert _next(notes) == {}


async def test_the_calendar_moves_to_whoever_wakes_next_and_no_further() -> None:
    calendar, woken = Calendar(), list[str]()

    async def sleeper(name: str, seconds: float) -> None:
        await calendar.sleep(seconds)
        woken.append(name)

    tasks = [asyncio.create_task(sleeper(name, seconds)) for name, seconds in (("late", 60), ("soon", 5), ("gone", 1))]
    await asyncio.sleep(0)
    tasks[2].cancel()
    await asyncio.sleep(0)
    calendar.move()
    await asyncio.sleep(0)
    assert woken == ["soon"]
    assert calendar.monotonic() < 60
    calendar.move()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert woken == ["soon", "late"]
    calendar.move()  # nobody sleeps: the time stands
    assert 60 <= calendar.monotonic() < 61
