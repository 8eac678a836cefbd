"""From any point of failure: whatever configs came and failed, taking them back leaves the machine as it was."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fastness.agent.apply import disk
from fastness.agent.apply.apply import Applier
from fastness.agent.apply.desired import Desired
from fastness.agent.apply.hosts import DirectoryMachine
from fastness.agent.apply.journal import Begin, Phase
from fastness.agent.apply.update import Goal, run_actions
from fastness.agent.errors import BadConfig
from fastness.agent.host.errors import DriverError, FileFailure
from fastness.agent.host.states import File
from fastness.kinds.kind import JsonObject
from tests.component.agent.directory_machine import (
    UNIT,
    apply,
    file,
    make_machine,
    plan,
    relevant,
    rendered,
    snapshot,
    unit,
)

# A cluster names the image of its machines; without a name there would be nothing to go back to.
BASE: JsonObject = {"osImageURL": "a.example/base@sha256:0"}
EMPTY = rendered("rendered-worker-0", **BASE)
STRIDE = 1 if os.environ.get("FASTNESS_SOAK") else 3
PATHS = (
    "/etc/motd",
    "/etc/a",
    "/etc/d/a",
    "/etc/d/e/b",
    "/opt/x",
    "/etc/systemd/system/u.service.d/9.conf",
    "/etc/passwd/x",
)
# Too large for the journal: kept as a copy.
LARGE = b"of the distribution, and long\n" * 1000
files = st.builds(file, st.sampled_from(PATHS), st.sampled_from(["1", "2"]), st.sampled_from([0o600, 0o644]))
units = st.builds(
    unit, st.sampled_from(["u.service", "v.service"]), st.sampled_from([UNIT, UNIT + "# other\n", None]),
    st.sampled_from([True, False, None]), mask=st.sampled_from([True, False, None]),
    dropins=st.sampled_from([[], [{"name": "1.conf", "contents": "[Service]\n"}]]),
)  # fmt: skip


def by_name(key: str) -> Any:
    return lambda entry: entry[key]


users = st.none() | st.fixed_dictionaries(
    {"name": st.just("core")},
    optional={
        "passwordHash": st.sampled_from(["$6$a", "$6$b"]),
        "sshAuthorizedKeys": st.sampled_from([["k1"], ["k1", "k2"]]),
    },
)
systems = st.fixed_dictionaries(
    {},
    optional={
        "osImageURL": st.sampled_from(["a.example/os@sha256:1", "a.example/os@sha256:2"]),
        "kernelArguments": st.sampled_from([["nosmt"], ["quiet", "nosmt"]]),
    },
)
REBOOT = ({"type": "Reboot"},)
ACTIONS = ({"type": "DaemonReload"}, {"type": "None"})


@st.composite
def configs(draw: st.DrawFn) -> JsonObject:
    """A config with some files and units, each once, perhaps a user, perhaps another operating system."""
    some = draw(st.lists(files, max_size=4, unique_by=by_name("path")))
    more = draw(st.lists(units, max_size=2, unique_by=by_name("name")))
    user = draw(users)
    name = f"rendered-worker-{draw(st.integers(1, 99))}"
    return rendered(name, files=some, units=more, users=[user] if user else None, **{**BASE, **draw(systems)})


class Killed(BaseException):
    """The process dies."""


class Chance:
    """Lets so many points pass and then fails or kills, once; keeps the names of all points."""

    def __init__(self, at: int | None, dies: bool = True) -> None:
        self.points: list[str] = []
        self._at = at
        self._dies = dies

    def __call__(self, point: str) -> None:
        self.points.append(point)
        if len(self.points) == self._at:
            raise Killed(point) if self._dies else FileFailure(f"injected at {point}")


def installed(directory: Path) -> tuple[DirectoryMachine, Goal]:
    """A machine with its first config; nobody has a password, because one that is taken away is locked."""
    machine = make_machine(directory)
    machine.host.root.put("/etc/shadow", File(b"root:*:1::::::\ncore:*:1::::::\n", 0o600))
    machine.host.root.put("/opt/x", File(LARGE, 0o640))
    current = apply(machine, Goal({}, Desired()), EMPTY)
    machine.reboot()
    return machine, current


def update(machine: DirectoryMachine, current: Goal, config: JsonObject, chance: Chance) -> Goal:
    """A whole update as the agent drives it: steps, then either actions or a reboot, then the end."""
    applier, goal = Applier(machine.host, chance), disk.goal(machine.host.root, config)
    actions = REBOOT if goal.desired.deployment != current.desired.deployment else ACTIONS
    applier.apply(Begin(current.name, goal.name, actions), plan(machine, current, config))
    finish(machine, applier)
    return goal


def finish(machine: DirectoryMachine, applier: Applier) -> None:
    """What follows a commit, also after a crash: the actions that remain, or the reboot if the machine did not go down yet."""
    journal = applier.journal
    if any(action["type"] == "Reboot" for action in journal.begin.actions):
        if journal.phase is not Phase.BOOTING:
            applier.booting()
        machine.reboot()
        applier.end()
    elif journal.begin.target:
        run_actions(applier, machine.host, list(journal.remaining))


def restart(machine: DirectoryMachine, chance: Chance | None = None) -> Goal:
    """A new process: recover, complete what was committed; where the machine is then."""
    applier = Applier(machine.host, chance or Chance(None))
    applier.recover()
    finish(machine, applier)
    return disk.goal(machine.host.root, disk.read_current(machine.host.root) or EMPTY)


@settings(max_examples=400 if os.environ.get("FASTNESS_SOAK") else 25, deadline=None,
          suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])  # fmt: skip
@given(
    st.lists(
        st.tuples(configs(), st.none() | st.integers(1, 40), st.booleans(), st.none() | st.integers(1, 12)),
        min_size=1,
        max_size=4,
    )
)
def test_taking_everything_back_recovers_whatever_failed_before(
    tmp_path_factory: pytest.TempPathFactory, history: list[tuple[JsonObject, int | None, bool, int | None]]
) -> None:
    directory = tmp_path_factory.mktemp("undo")
    machine, current = installed(directory)
    before, booted = relevant(snapshot(directory / "root")), machine.system.booted()
    for config, failing, dies, again in history:
        try:
            current = update(machine, current, config, Chance(failing, dies))
            continue
        except (Killed, DriverError, BadConfig):
            with suppress(Killed):
                restart(machine, Chance(again))
        current = restart(machine)
    update(machine, current, EMPTY, Chance(None))
    assert relevant(snapshot(directory / "root")) == before
    assert machine.system.booted() == booted
    assert machine.system.staged() is None
    assert not list(directory.glob("*orig/**/*.mcd*"))
    assert not (directory / "agent/journal").exists()
    assert not list(directory.glob("agent/kept/*"))
    assert not (directory / "agent/set-aside").exists()


RICH = rendered(
    "rendered-worker-1",
    files=[file("/etc/motd", "1"), file("/etc/d/e/b", "2", 0o600), file("/opt/x", "3")],
    units=[
        unit("u.service", dropins=[{"name": "1.conf", "contents": "[Service]\n"}]),
        unit("m.service", None, None, mask=True),
    ],
    users=[{"name": "core", "passwordHash": "$6$a", "sshAuthorizedKeys": ["k1"]}], **BASE,
)  # fmt: skip
WITH_SYSTEM = rendered("rendered-worker-2", files=[file("/opt/x", "1")], kernelArguments=["nosmt"], **BASE)


@pytest.mark.parametrize("config", [RICH, WITH_SYSTEM], ids=["actions", "reboot"])
def test_a_kill_at_every_point_and_at_every_point_of_its_recovery_is_taken_back(
    tmp_path_factory: pytest.TempPathFactory, config: JsonObject
) -> None:
    def fresh() -> tuple[DirectoryMachine, Goal, dict[str, object]]:
        directory = tmp_path_factory.mktemp("kill")
        machine, current = installed(directory)
        return machine, current, relevant(snapshot(directory / "root"))

    machine, current, _ = fresh()
    whole = Chance(None)
    update(machine, current, config, whole)
    reached = set(whole.points)
    for point in range(1, len(whole.points) + 1, STRIDE):
        again = 1
        while True:
            machine, current, before = fresh()
            with suppress(Killed):
                update(machine, current, config, Chance(point))
            second = Chance(again)
            with suppress(Killed):
                restart(machine, second)
            reached.update(second.points)
            update(machine, restart(machine), EMPTY, Chance(None))
            assert relevant(snapshot(machine.root)) == before, (whole.points[point - 1], second.points)
            if len(second.points) < again:
                break
            again += max(1, len(second.points) // 2)  # a few points of each recovery; the property test takes any
    expected = {"begin", "kept", "doing", "done", "commit", "ended", "undone"}
    assert reached >= expected | ({"booting"} if config is WITH_SYSTEM else {"acted"})
