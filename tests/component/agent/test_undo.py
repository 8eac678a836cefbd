"""From any point of failure: whatever configs came and failed, taking them back leaves the machine as it was."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fastness.agent import disk
from fastness.agent.apply import Applier
from fastness.agent.desired import Desired
from fastness.agent.errors import BadConfig
from fastness.agent.update import Goal
from fastness.drivers.errors import DriverError, FileFailure
from fastness.model.kind import JsonObject
from tests.component.agent.world import UNIT, apply, file, make_machine, relevant, rendered, snapshot, unit

EMPTY = rendered("rendered-worker-0")
PATHS = (
    "/etc/motd",
    "/etc/a",
    "/etc/d/a",
    "/etc/d/e/b",
    "/opt/x",
    "/etc/systemd/system/u.service.d/9.conf",
    "/etc/passwd/x",
)
files = st.builds(file, st.sampled_from(PATHS), st.sampled_from(["1", "2"]), st.sampled_from([0o600, 0o644]))
units = st.builds(
    unit, st.sampled_from(["u.service", "v.service"]), st.sampled_from([UNIT, UNIT + "# other\n", None]),
    st.sampled_from([True, False, None]), mask=st.sampled_from([True, False, None]),
    dropins=st.sampled_from([[], [{"name": "1.conf", "contents": "[Service]\n"}]]),
)  # fmt: skip


def by_name(key: str) -> Any:
    return lambda entry: entry[key]


@st.composite
def configs(draw: st.DrawFn) -> JsonObject:
    """A config with some files and units, each once."""
    some = draw(st.lists(files, max_size=4, unique_by=by_name("path")))
    more = draw(st.lists(units, max_size=2, unique_by=by_name("name")))
    return rendered(f"rendered-worker-{draw(st.integers(1, 99))}", files=some, units=more)


class Killed(BaseException):
    """The process dies."""


@settings(max_examples=400 if os.environ.get("FASTNESS_SOAK") else 25, deadline=None,
          suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])  # fmt: skip
@given(st.lists(st.tuples(configs(), st.none() | st.integers(1, 30), st.booleans()), min_size=1, max_size=4))
def test_taking_everything_back_recovers_whatever_failed_before(
    tmp_path_factory: pytest.TempPathFactory, history: list[tuple[JsonObject, int | None, bool]]
) -> None:
    directory = tmp_path_factory.mktemp("undo")
    machine = make_machine(directory)
    current = apply(machine, Goal({}, Desired()), EMPTY)
    before = relevant(snapshot(directory / "root"))
    for config, failing, dies in history:
        count = 0

        def reached(point: str, failing: int | None = failing, dies: bool = dies) -> None:
            nonlocal count
            count += 1
            if count == failing:
                raise Killed(point) if dies else FileFailure(f"injected at {point}")

        applier = Applier(machine.host, reached)
        with suppress(Killed, DriverError, BadConfig):
            current = apply(machine, current, config, applier)
            continue
        recovered = Applier(machine.host)
        if not recovered.recover().must_revert and recovered.journal.begin.target:
            recovered.revert()
        # The end of an update may be what was killed: then the new config holds.
        current = disk.goal(machine.host.root, disk.read_current(machine.host.root) or EMPTY)
    apply(machine, current, EMPTY)
    assert relevant(snapshot(directory / "root")) == before
    assert not list(directory.glob("*orig/**/*.mcd*"))
