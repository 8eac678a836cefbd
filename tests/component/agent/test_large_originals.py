"""A user's file of any size at a managed path: it is kept by reference, comes back, and never stops the node.

The attacker is an ordinary user of the machine who owns one directory, in which a config manages a path, and has nothing else.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from fastness.agent.apply import copies as kept
from fastness.kinds.machineconfiguration import names
from tests.component.agent.cluster import Play
from tests.component.agent.directory_machine import file, make_machine, rendered
from tests.embedded.fixtures import Embedded

pytestmark = pytest.mark.processes

USER = 54321
PLACE = "/home/user/app.conf"
OLD = rendered("rendered-worker-old", files=[file("/etc/base.conf", "base\n")])
NEW = rendered("rendered-worker-new", files=[file("/etc/base.conf", "base\n"), file(PLACE, "managed\n")])
BAD = rendered(
    "rendered-worker-bad",
    files=[file("/etc/base.conf", "base\n"), file(PLACE, "managed\n"), file("/home/user/late/x", "never\n")],
)
MIB = 1024 * 1024


def as_user(home: Path, *command: str) -> None:
    """Run a command in the user's directory, with the rights of that user alone."""
    user = {"user": USER, "group": USER, "extra_groups": []} if os.geteuid() == 0 else {}
    subprocess.run(command, cwd=home, check=True, **user)  # type: ignore[call-overload]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The user's directory on the machine."""
    directory = tmp_path / "w0/root/home/user"
    directory.mkdir(parents=True)
    if os.geteuid() == 0:
        os.chown(directory, USER, USER)
    return directory


@pytest.fixture
async def play(embedded_server: Embedded, tmp_path: Path, home: Path) -> Play:
    """A node with the old config."""
    machine = make_machine(tmp_path / "w0")
    (machine.root / "etc/base.conf").write_text("base\n")
    play = Play(embedded_server, machine)
    await play.prepare(OLD, NEW, BAD, current="rendered-worker-old")
    return play


def owner_of(path: Path) -> int:
    return path.stat().st_uid if os.geteuid() == 0 else USER


@pytest.mark.parametrize("size", [100 * MIB, 2048 * MIB], ids=["100 MiB", "2 GiB"])
async def test_a_users_sparse_file_neither_stops_an_update_nor_its_withdrawal(
    play: Play, home: Path, tmp_path: Path, size: int
) -> None:
    as_user(home, "truncate", "-s", str(size), "app.conf")
    async with play.alive():
        await play.settled()
        await play.want("rendered-worker-new")
        await play.done("rendered-worker-new")  # through a drain and a reboot
        assert (home / "app.conf").read_text() == "managed\n"
    original = tmp_path / "w0/orig/home/user/app.conf.mcdorig"
    assert original.stat().st_size == size
    assert original.stat().st_blocks * 512 < MIB
    async with play.alive():
        await play.want("rendered-worker-old")
        await play.done("rendered-worker-old")
    back = (home / "app.conf").stat()
    assert (back.st_size, owner_of(home / "app.conf")) == (size, USER)
    assert back.st_blocks * 512 < MIB
    assert not original.exists()
    assert not list((tmp_path / "w0/agent").rglob("kept/*"))


async def test_a_users_large_file_in_the_place_of_a_managed_one_is_told_and_repaired(play: Play, home: Path) -> None:
    async with play.alive():
        await play.want("rendered-worker-new")
        await play.done("rendered-worker-new")
        await play.settled()
        as_user(home, "rm", "-f", "app.conf")
        as_user(home, "truncate", "-s", "2G", "app.conf")
        notes = await play.state("Degraded")
        assert f"{PLACE}: is a file of 2147483648 bytes, expected 8" in notes[names.REASON]
        await play.annotate(**{"fastness.dev/drift-policy": "repair"})
        await play.state("Done")
    assert (home / "app.conf").read_text() == "managed\n"


async def test_what_is_too_much_to_keep_is_refused_before_anything_is_touched_and_withdrawing_helps(
    play: Play, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "MAX_KEPT", 2 * MIB)
    as_user(home, "dd", "if=/dev/urandom", "of=app.conf", "bs=1M", "count=3", "status=none")
    before = (home / "app.conf").read_bytes()
    async with play.alive():
        await play.settled()
        await play.want("rendered-worker-new")
        notes = await play.state("Degraded")
        assert f"the largest is {PLACE} with 3 MiB" in notes[names.REASON]
        assert play.requests == []  # no pod was moved away for it
        assert not (play.machine.root.parent / "agent/journal").exists()
        await play.want("rendered-worker-old")
        await play.done("rendered-worker-old")
        assert (home / "app.conf").read_bytes() == before
        await play.want("rendered-worker-new")
        await play.state("Degraded")
        as_user(home, "rm", "app.conf")
        await play.done("rendered-worker-new")


async def test_a_user_who_hinders_the_undo_is_left_with_it_and_the_node_goes_on(
    play: Play, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While an update runs that will fail, the user puts a directory where their file was."""
    as_user(home, "dd", "if=/dev/urandom", "of=app.conf", "bs=1M", "count=1", "status=none")
    original = (home / "app.conf").read_bytes()
    put = play.machine.host.root.writing

    def writing(path: str, *arguments: object, **options: object) -> object:
        if path == "/home/user/late/x" and (home / "app.conf").is_file():
            as_user(home, "rm", "-f", "app.conf")
            as_user(home, "mkdir", "app.conf")
            as_user(home, "ln", "-s", "/etc", "late")
        return put(path, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(play.machine.host.root, "writing", writing)
    async with play.alive():
        await play.settled()
        await play.want("rendered-worker-bad")
        await play.wait_for_event("JournalSetAside")
        await play.want("rendered-worker-old")
        await play.done("rendered-worker-old")
    aside = tmp_path / "w0/agent/set-aside/1"
    assert PLACE in (aside / "reason").read_text()
    assert [path.read_bytes() for path in (aside / "kept").iterdir()] == [original]
    assert (aside / "journal").stat().st_size < 64 * 1024
    assert not (tmp_path / "w0/agent/journal").exists()
