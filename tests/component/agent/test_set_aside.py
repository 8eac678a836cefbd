"""Journals that cannot be used: of an earlier version, damaged, or with an undo that cannot succeed."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from fastness.agent.apply.apply import MAX_TRIES, Applier
from fastness.agent.apply.copies import MAX_SET_ASIDE
from fastness.agent.apply.desired import Desired
from fastness.agent.apply.hosts import DirectoryMachine
from fastness.agent.apply.journal import LONG_LINE, Begin, Commit, Doing, Phase, encode
from fastness.agent.apply.steps import Put
from fastness.agent.apply.update import Goal
from fastness.agent.errors import DamagedJournal, IncompleteUndo
from fastness.agent.host.errors import FileFailure, UnitFailure
from fastness.agent.host.states import File
from tests.component.agent.directory_machine import UNIT, apply, file, make_machine, plan, rendered, unit

NOTHING = Goal({}, Desired())
EMPTY = rendered("rendered-worker-0")
LARGE = bytes(range(256)) * 1000
NEW = rendered("rendered-worker-1", files=[file("/etc/motd", "new\n"), file("/etc/large", "small\n")])
MIB = 1024 * 1024


class Killed(BaseException):
    """The process dies here."""


@pytest.fixture
def machine(tmp_path: Path) -> DirectoryMachine:
    """A machine with a config, and a file that is too large for a journal."""
    machine = make_machine(tmp_path)
    machine.host.root.put("/etc/large", File(LARGE, 0o640))
    apply(machine, NOTHING, EMPTY)
    return machine


def interrupted(machine: DirectoryMachine) -> None:
    """An update is cut off before its commit."""

    def reached(point: str) -> None:
        if point == "commit":
            raise Killed

    old = Goal({}, Desired(name="rendered-worker-0"))
    with pytest.raises(Killed):
        Applier(machine.host, reached).apply(Begin("rendered-worker-0", "rendered-worker-1"), plan(machine, old, NEW))
    journal = machine.root.parent / "agent/journal"
    journal.write_bytes(
        b"".join(line for line in journal.read_bytes().splitlines(keepends=True) if b'"commit"' not in line)
    )


def agent_directory(machine: DirectoryMachine) -> Path:
    return machine.root.parent / "agent"


@pytest.mark.parametrize("size", [LONG_LINE, 8 * MIB], ids=["just too long", "8 MiB"])
def test_a_journal_of_an_earlier_version_with_whole_files_is_undone(machine: DirectoryMachine, size: int) -> None:
    lines = encode(Begin("rendered-worker-0", "x")), encode(Doing(Put("/etc/large", File(bytes(size), 0o604))))
    (agent_directory(machine) / "journal").write_bytes(b"".join(lines))
    (machine.root / "etc/large").write_text("half applied")
    assert Applier(machine.host).recover().phase is Phase.IDLE
    assert (machine.root / "etc/large").stat().st_size == size
    assert (machine.root / "etc/large").stat().st_mode & 0o777 == 0o604
    assert not (agent_directory(machine) / "journal").exists()


def test_an_unfinished_last_line_is_cut_off_where_the_update_goes_on(machine: DirectoryMachine) -> None:
    whole = encode(Begin("a", "b", ({"type": "DaemonReload"},))) + encode(Commit())
    (agent_directory(machine) / "journal").write_bytes(whole + b'{"is":"ac')
    assert Applier(machine.host).recover().phase is Phase.COMMITTED
    assert (agent_directory(machine) / "journal").read_bytes() == whole


def test_a_damaged_journal_is_set_aside_with_its_reason_and_the_next_start_is_clean(machine: DirectoryMachine) -> None:
    interrupted(machine)
    journal = agent_directory(machine) / "journal"
    journal.write_bytes(journal.read_bytes().replace(b'"undo"', b'"oops"', 1))
    damaged = journal.read_bytes()
    with pytest.raises(DamagedJournal, match=r"line 2 .* set-aside/1 of the agent's state directory"):
        Applier(machine.host).recover()
    aside = agent_directory(machine) / "set-aside/1"
    assert (aside / "journal").read_bytes() == damaged
    assert "line 2" in (aside / "reason").read_text()
    assert [copy.read_bytes() for copy in (aside / "kept").iterdir()] == [LARGE]
    assert aside.stat().st_mode & 0o077 == 0
    assert Applier(machine.host).recover().phase is Phase.IDLE


@pytest.mark.parametrize("damage", ["gone", "changed", "shorter"])
def test_a_copy_that_was_damaged_is_not_brought_back_and_everything_else_is(
    machine: DirectoryMachine, damage: str
) -> None:
    interrupted(machine)
    (copy,) = (path for path in (agent_directory(machine) / "kept").iterdir() if path.read_bytes() == LARGE)
    if damage == "gone":
        copy.unlink()
    else:
        copy.write_bytes(LARGE[:-1] + b"?" if damage == "changed" else LARGE[:-1])
    with pytest.raises(IncompleteUndo, match="/etc/large"):
        Applier(machine.host).recover()
    assert (machine.root / "etc/motd").read_text() == "of the distribution\n"
    assert (machine.root / "etc/large").read_text() == "small\n"
    assert Applier(machine.host).recover().phase is Phase.IDLE


def test_what_may_pass_is_tried_again_before_anything_is_set_aside(
    machine: DirectoryMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted(machine)
    real = machine.host.root.writing

    def full(path: str, *arguments: object, **options: object) -> object:
        raise FileFailure(f"{path}: No space left on device")

    applier = Applier(machine.host)
    monkeypatch.setattr(machine.host.root, "writing", full)
    for _ in range(MAX_TRIES - 1):
        with pytest.raises(FileFailure, match="No space"):
            applier.recover()
    monkeypatch.setattr(machine.host.root, "writing", real)
    assert applier.recover().phase is Phase.IDLE
    assert (machine.root / "etc/large").read_bytes() == LARGE
    assert not (agent_directory(machine) / "set-aside").exists()


def test_a_unit_that_can_never_be_enabled_again_is_set_aside_in_the_end(
    machine: DirectoryMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.host.root.put("/etc/systemd/system/own.service", File(UNIT.encode()))
    machine.units.enable(["own.service"])
    old = Goal({}, Desired(name="rendered-worker-0"))
    steps = plan(machine, old, rendered("x", units=[unit("own.service", UNIT + "# ours\n"), unit("b.service")]))

    def refused(units: object) -> None:
        raise UnitFailure("the unit is wedged")

    monkeypatch.setattr(machine.units, "enable", refused)
    applier = Applier(machine.host)
    for _ in range(MAX_TRIES - 1):
        with pytest.raises(UnitFailure):
            applier.recover() if applier.journal.must_revert else applier.apply(Begin("a", "b"), steps)
    with pytest.raises(IncompleteUndo, match="the unit is wedged"):
        applier.recover()
    assert applier.journal.phase is Phase.IDLE


def test_a_crash_while_a_journal_is_put_away_is_finished_by_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kill before each rename and each removal that setting aside makes."""
    at = 0
    while True:
        at += 1
        machine = make_machine(tmp_path / str(at))
        machine.host.root.put("/etc/large", File(LARGE, 0o640))
        apply(machine, NOTHING, EMPTY)
        interrupted(machine)
        (machine.root / "etc/large").unlink()
        (machine.root / "etc/large").mkdir()
        left = [at]

        def counted(*arguments: object, real: object = os.rename, left: list[int] = left, **options: object) -> None:
            left[0] -= 1
            if left[0] == 0:
                raise Killed
            real(*arguments, **options)  # type: ignore[operator]

        with monkeypatch.context() as patched:
            patched.setattr(os, "rename", counted)
            ends: list[type[BaseException]] = []
            for _ in range(3):
                try:
                    Applier(machine.host).recover()
                except (Killed, IncompleteUndo) as error:
                    ends.append(type(error))
        aside = agent_directory(machine) / "set-aside"
        assert ends in ([Killed, IncompleteUndo], [IncompleteUndo]), at
        assert os.listdir(aside) == ["1"], at
        assert "/etc/large is a directory" in (aside / "1/reason").read_text()
        assert (aside / "1/journal").exists()
        assert LARGE in [copy.read_bytes() for copy in (aside / "1/kept").iterdir()]
        if left[0] > 0:
            break
    assert at > 3


def test_of_many_that_were_set_aside_the_oldest_go(machine: DirectoryMachine) -> None:
    for number in range(MAX_SET_ASIDE + 3):
        (agent_directory(machine) / "journal").write_text(json.dumps({"is": number}) + "\n")
        with pytest.raises(DamagedJournal):
            Applier(machine.host).recover()
    names = sorted(int(path.name) for path in (agent_directory(machine) / "set-aside").iterdir())
    assert names == list(range(4, MAX_SET_ASIDE + 4))


def test_a_copy_is_on_disk_before_the_journal_speaks_of_it(
    machine: DirectoryMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A power cut leaves what was waited for: the content, then its name, then the line."""
    waited: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: waited.append(os.readlink(f"/proc/self/fd/{descriptor}")))
    old = Goal({}, Desired(name="rendered-worker-0"))
    steps = plan(machine, old, rendered("x", files=[file("/etc/large", "small\n")]))
    Applier(machine.host).apply(Begin("a", "x"), steps)
    directory = str(agent_directory(machine))
    content = waited.index(f"{directory}/kept/.fastness-new.0")
    name = waited.index(f"{directory}/kept", content)
    line = waited.index(f"{directory}/journal", name)
    assert content < name < line < waited.index(f"{machine.root}/etc/.fastness-new.large")
