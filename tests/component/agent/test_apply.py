"""Applying a config to a directory: what appears, what is kept, what comes back, and what a crash leaves behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from fastness.agent.apply import disk
from fastness.agent.apply.apply import Applier
from fastness.agent.apply.desired import Desired
from fastness.agent.apply.hosts import DirectoryMachine
from fastness.agent.apply.journal import PATH, Begin, Phase
from fastness.agent.apply.update import Goal
from fastness.agent.apply.validate import drifts
from fastness.agent.errors import BadConfig
from fastness.agent.host.errors import DriverError, FileFailure, UnsafePath
from fastness.agent.host.file_changes import PollingWatcher
from fastness.agent.host.states import Absent, File, Link
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.runtime.clock import SystemClock
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

NOTHING = Goal({}, Desired())
FIRST = rendered(
    "rendered-worker-1",
    files=[file("/etc/motd", "one\n"), file("/etc/new/deep/a.conf", "a\n", 0o600), file("/etc/new/deep/b.conf", "b\n")],
    units=[
        unit("a.service", dropins=[{"name": "10-x.conf", "contents": "[Service]\n"}]),
        unit("bad.service", mask=True),
    ],
    users=[{"name": "core", "passwordHash": "new", "sshAuthorizedKeys": ["ssh-ed25519 AAAA one"]}],
    kernelArguments=["quiet nosmt"],
)
SECOND = rendered(
    "rendered-worker-2",
    files=[file("/etc/motd", "two\n", 0o600)],
    units=[unit("a.service", contents=UNIT.replace("multi-user", "graphical")), unit("c.service", enabled=False)],
)
EMPTY = rendered("rendered-worker-0")


class Killed(BaseException):
    """The process dies here."""


def test_files_units_keys_and_password_are_written_as_the_config_says(tmp_path: Path) -> None:
    machine = make_machine(tmp_path)
    apply(machine, NOTHING, FIRST)
    root = machine.host.root
    assert root.look("/etc/motd") == File(b"one\n", 0o644, 0, 0)
    assert isinstance(secret := root.look("/etc/new/deep/a.conf"), File)
    assert secret.mode == 0o600
    assert root.look("/etc/systemd/system/bad.service") == Link("/dev/null")
    assert isinstance(root.look("/etc/systemd/system/a.service.d/10-x.conf"), File)
    assert machine.units.is_enabled("a.service") == "enabled"
    keys = root.look("/home/core/.ssh/authorized_keys.d/ignition")
    assert isinstance(keys, File)
    assert (keys.content, keys.mode) == (b"ssh-ed25519 AAAA one\n", 0o600)
    assert (tmp_path / "root/home/core/.ssh").stat().st_mode & 0o777 == 0o700
    assert b"core:new:1" in (tmp_path / "root/etc/shadow").read_bytes()
    assert machine.system.staged() is not None
    machine.reboot()
    assert machine.system.booted().arguments == ("quiet", "nosmt")
    assert drifts(disk.goal(root, FIRST).desired, machine.host) == []


def test_taking_a_config_back_leaves_the_machine_as_it_was(tmp_path: Path) -> None:
    machine = make_machine(tmp_path)
    old = apply(machine, NOTHING, EMPTY)
    before = snapshot(tmp_path / "root")
    current = apply(machine, old, rendered("x", files=FIRST["spec"]["config"]["storage"]["files"],
                                           units=FIRST["spec"]["config"]["systemd"]["units"]))  # fmt: skip
    assert (tmp_path / "orig/etc/motd.mcdorig").read_bytes() == b"of the distribution\n"
    assert (tmp_path / "noorig/etc/new/deep/a.conf.mcdnoorig").exists()
    assert snapshot(tmp_path / "root") != before
    apply(machine, current, EMPTY)
    assert snapshot(tmp_path / "root") == before
    assert not (tmp_path / "orig/etc").exists()
    assert not list((tmp_path / "noorig").rglob("*"))


def test_the_original_is_kept_once_and_not_replaced_by_a_later_version_of_ours(tmp_path: Path) -> None:
    machine = make_machine(tmp_path)
    old = apply(machine, NOTHING, EMPTY)
    first = apply(machine, old, rendered("one", files=[file("/etc/motd", "one")]))
    two = apply(machine, first, rendered("two", files=[file("/etc/motd", "two")]))
    apply(machine, two, EMPTY)
    assert machine.host.root.look("/etc/motd") == File(b"of the distribution\n", 0o640, 0, 0)


def test_a_path_that_the_first_boot_wrote_falls_back_to_the_image(tmp_path: Path) -> None:
    machine = make_machine(tmp_path)
    root = machine.host.root
    root.put("/usr/etc/chrony.conf", File(b"shipped\n"))
    first = rendered("first", files=[file("/etc/chrony.conf", "ours\n"), file("/etc/extra", "x")])
    root.put("/etc/chrony.conf", File(b"ours\n"))
    root.put("/etc/extra", File(b"x"))
    apply(machine, disk.goal(root, first), EMPTY)
    shipped = root.look("/etc/chrony.conf")
    assert isinstance(shipped, File)
    assert shipped.content == b"shipped\n"
    assert isinstance(root.look("/etc/extra"), Absent)


def test_certificates_that_others_renew_are_not_taken_away(tmp_path: Path) -> None:
    machine = make_machine(tmp_path)
    paths = [names.KUBELET_CA, "/etc/docker/certs.d/registry/ca.crt"]
    old = apply(machine, NOTHING, rendered("with", files=[file(path, "ca") for path in paths]))
    apply(machine, old, EMPTY)
    assert all(isinstance(machine.host.root.look(path), File) for path in paths)


def test_a_unit_follows_its_install_section_and_goes_without_dangling_links(tmp_path: Path) -> None:
    machine = make_machine(tmp_path)
    old = apply(machine, NOTHING, FIRST)
    second = apply(machine, old, SECOND)
    links = tmp_path / "root/etc/systemd/system"
    assert not (links / "multi-user.target.wants").exists()
    assert (links / "graphical.target.wants/a.service").is_symlink()
    assert machine.units.is_enabled("c.service") == "disabled"
    assert not (links / "a.service.d").exists()
    apply(machine, second, EMPTY)
    assert not list(links.rglob("*"))


def test_a_unit_of_the_distribution_gets_its_preset_back(tmp_path: Path) -> None:
    machine = make_machine(tmp_path)
    root = machine.host.root
    root.put("/usr/lib/systemd/system/ship.service", File(UNIT.encode()))
    root.put("/usr/lib/systemd/system-preset/90.preset", File(b"disable ship.service\n"))
    old = apply(machine, NOTHING, rendered("on", units=[unit("ship.service", contents=None)]))
    assert machine.units.is_enabled("ship.service") == "enabled"
    apply(machine, old, EMPTY)
    assert machine.units.is_enabled("ship.service") == "disabled"


def test_applying_the_same_config_twice_changes_nothing_but_the_record(tmp_path: Path) -> None:
    machine = make_machine(tmp_path)
    goal = apply(machine, NOTHING, FIRST)
    steps = plan(machine, goal, FIRST)
    assert [step.path for step in steps] == [names.CURRENT_CONFIG_FILE]


def _crash_at(tmp_path: Path, number: int, old: JsonObject, new: JsonObject) -> tuple[bool, Path, dict[str, object]]:
    """Kill the update at its nth point; whether it came that far, and what was there before."""
    directory = tmp_path / f"m{number}"
    machine = make_machine(directory)
    goal = apply(machine, NOTHING, old)
    before = snapshot(directory / "root")
    counted = 0

    def reached(point: str) -> None:
        nonlocal counted
        counted += 1
        if counted == number:
            raise Killed(point)

    applier = Applier(machine.host, reached)
    try:
        apply(machine, goal, new, applier)
    except Killed:
        return True, directory, before
    return False, directory, before


@pytest.mark.parametrize(("old", "new"), [(EMPTY, FIRST), (FIRST, SECOND), (SECOND, EMPTY)])
def test_a_kill_at_every_point_is_undone_or_completed_by_the_next_start(
    tmp_path: Path, old: JsonObject, new: JsonObject
) -> None:
    reference = make_machine(tmp_path / "reference")
    apply(reference, apply(reference, NOTHING, old), new)
    after = relevant(snapshot(tmp_path / "reference/root"))
    outcomes = set()
    for number in range(1, 200):
        killed, directory, before = _crash_at(tmp_path, number, old, new)
        if not killed:
            break
        machine = make_again(directory)
        journal = Applier(machine.host).recover()
        tree = snapshot(directory / "root")
        if journal.phase is Phase.COMMITTED:
            assert relevant(tree) == after
            outcomes.add("completed")
        else:
            expected = before if disk.read_current(machine.host.root) == old else None
            assert tree == expected or relevant(tree) == after
            outcomes.add("reverted")
            assert isinstance(machine.host.state.look(PATH), Absent)
    else:
        pytest.fail("the update never ended")
    assert number > 5
    assert outcomes == {"completed", "reverted"}


def make_again(directory: Path) -> DirectoryMachine:
    """The machine after a restart: nothing but its directory is left."""

    return DirectoryMachine(directory, PollingWatcher(directory / "root", SystemClock()), lambda: "again")


def test_a_second_kill_while_undoing_is_undone_too(tmp_path: Path) -> None:
    for second in range(1, 12):
        killed, directory, before = _crash_at(tmp_path / str(second), 14, EMPTY, FIRST)
        assert killed
        machine = make_again(directory)
        left = [second]

        def reached(point: str, left: list[int] = left) -> None:
            left[0] -= 1
            if left[0] == 0:
                raise Killed(point)

        try:
            Applier(machine.host, reached).recover()
        except Killed:
            Applier(machine.host).recover()
        assert snapshot(directory / "root") == before


def test_a_failing_step_takes_back_those_before_it(tmp_path: Path) -> None:
    machine = make_machine(tmp_path)
    old = apply(machine, NOTHING, EMPTY)
    before = snapshot(tmp_path / "root")
    (tmp_path / "root/etc/blocked").write_text("a file where a directory should be")
    before = snapshot(tmp_path / "root")
    bad = rendered("bad", files=[file("/etc/motd", "x"), file("/etc/blocked-not/y", "x")])
    steps = plan(machine, old, bad)
    (tmp_path / "root/etc/blocked-not").write_text("in the way")
    before = snapshot(tmp_path / "root")
    with pytest.raises(FileFailure, match="not a directory"):
        Applier(machine.host).apply(Begin("", "bad"), steps)
    assert snapshot(tmp_path / "root") == before
    assert isinstance(machine.host.state.look(PATH), Absent)


def test_a_full_disk_during_the_journal_takes_everything_back(tmp_path: Path) -> None:
    machine = make_machine(tmp_path)
    old = apply(machine, NOTHING, EMPTY)
    before = snapshot(tmp_path / "root")
    state, written = machine.host.state, [0]
    real = state.append

    def append(path: str, data: bytes, *, mode: int = 0o600) -> None:
        written[0] += 1
        if written[0] == 6:
            real(path, data[: len(data) // 2])
            raise FileFailure("/journal: No space left on device")
        real(path, data, mode=mode)

    state.append = append  # type: ignore[method-assign]
    with pytest.raises(DriverError, match="No space"):
        apply(machine, old, FIRST)
    assert snapshot(tmp_path / "root") == before
    state.append = real  # type: ignore[method-assign]
    apply(machine, old, FIRST)


@pytest.mark.parametrize(
    ("path", "error"),
    [("/etc/../../outside", UnsafePath), ("relative", UnsafePath), ("/link/x", UnsafePath), ("/up/x", UnsafePath)],
)
def test_a_config_cannot_write_outside_of_the_root(tmp_path: Path, path: str, error: type[Exception]) -> None:
    machine = make_machine(tmp_path / "m")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "m/root/link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "m/root/up").symlink_to("../../elsewhere")
    before = snapshot(tmp_path / "m/root")
    with pytest.raises(error):
        apply(machine, NOTHING, rendered("evil", files=[file("/etc/ok", "1"), file(path, "x")]))
    assert not list((tmp_path / "elsewhere").iterdir())
    assert snapshot(tmp_path / "m/root") == before


def test_a_link_as_last_component_is_replaced_not_followed(tmp_path: Path) -> None:
    machine = make_machine(tmp_path / "m")
    target = tmp_path / "victim"
    target.write_text("precious")
    (tmp_path / "m/root/etc/cfg").symlink_to(target)
    old = apply(machine, NOTHING, EMPTY)
    now = apply(machine, old, rendered("x", files=[file("/etc/cfg", "ours")]))
    assert target.read_text() == "precious"
    assert (tmp_path / "m/root/etc/cfg").read_text() == "ours"
    apply(machine, now, EMPTY)
    assert (tmp_path / "m/root/etc/cfg").readlink() == target


def test_a_directory_in_the_place_of_a_file_is_refused_before_anything_changes(tmp_path: Path) -> None:
    machine = make_machine(tmp_path)
    (tmp_path / "root/etc/dir").mkdir()
    with pytest.raises(BadConfig, match="/etc/dir is a directory"):
        apply(machine, NOTHING, rendered("x", files=[file("/etc/dir", "x")]))


def test_a_large_file_comes_back_after_a_kill(tmp_path: Path) -> None:
    machine = make_machine(tmp_path)
    large = bytes(range(256)) * 20_000
    machine.host.root.put("/etc/large", File(large))
    old = apply(machine, NOTHING, EMPTY)

    def reached(point: str) -> None:
        if point == "commit":
            raise Killed(point)

    applier = Applier(machine.host, reached)
    steps = plan(machine, old, rendered("x", files=[file("/etc/large", "small")]))
    with pytest.raises(Killed):
        applier.apply(Begin("", "x"), steps)
    again = Applier(make_again(tmp_path).host)
    assert again.recover().phase is Phase.COMMITTED
    again.revert()
    assert (tmp_path / "root/etc/large").read_bytes() == large


def test_a_unit_that_was_masked_and_unmasked_is_as_it_was_when_nobody_speaks_of_it_any_more(tmp_path: Path) -> None:
    machine = make_machine(tmp_path)
    machine.host.root.put("/etc/systemd/system/own.service", File(UNIT.encode()))
    old = apply(machine, NOTHING, EMPTY)
    before = snapshot(tmp_path / "root")
    names_of = ("own.service", "new.service")
    masked = apply(machine, old, rendered("masked", units=[unit(name, None, None, mask=True) for name in names_of]))
    plain = apply(machine, masked, rendered("plain", units=[unit(name, None, None, mask=False) for name in names_of]))
    apply(machine, plain, EMPTY)
    assert relevant(snapshot(tmp_path / "root")) == relevant(before)
    assert not list(tmp_path.glob("*orig/**/*.mcd*"))


def test_a_unit_that_loses_its_contents_leaves_no_link_behind(tmp_path: Path) -> None:
    machine = make_machine(tmp_path)
    old = apply(machine, NOTHING, EMPTY)
    before = snapshot(tmp_path / "root")
    full = apply(machine, old, rendered("full", units=[unit("v.service")]))
    bare = apply(machine, full, rendered("bare", units=[unit("v.service", None)]))
    assert not list((tmp_path / "root/etc/systemd").rglob("v.service"))
    apply(machine, bare, EMPTY)
    assert relevant(snapshot(tmp_path / "root")) == relevant(before)
