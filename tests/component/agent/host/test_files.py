"""Files below a root: atomic, with their modes, and no way out."""

from __future__ import annotations

import os
import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.agent.host.errors import FileFailure, UnsafePath
from fastness.agent.host.files import MAX_FILE, RootedFiles, _open
from fastness.agent.host.states import ABSENT, File, Link, Other


@pytest.fixture
def files(tmp_path: Path) -> RootedFiles:
    """An empty root beside a directory that is none of its business."""
    (tmp_path / "root").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret").write_text("secret")
    return RootedFiles(tmp_path / "root")


@pytest.mark.parametrize(
    "state", [File(b"x", 0o640, 0, 0), File(b"", 0o600, 0, 0), Link("../b"), Link("/dev/null"), ABSENT]
)
def test_what_is_put_is_seen(files: RootedFiles, state: File | Link) -> None:
    files.put("/a/b", File(b"before"))
    files.put("/a/b", state)
    entry = files.look("/a/b")
    assert entry == state or (isinstance(entry, File) and isinstance(state, File) and entry.content == state.content)


@pytest.mark.parametrize("mode", [0o644, 0o600, 0o755, 0o000, 0o777])
def test_modes_do_not_depend_on_the_umask(files: RootedFiles, mode: int) -> None:
    before = os.umask(0o077)
    try:
        files.put("/d/f", File(b"x", mode))
    finally:
        os.umask(before)
    assert (files.root / "d/f").stat().st_mode & 0o7777 == mode
    assert (files.root / "d").stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize(
    "path", ["", "a", "../a", "/../a", "/a/../../b", "/./a", "/a/..", "/", "//", "/a\0b", "./a", "a/../../b"]
)
def test_a_path_that_is_none_is_refused(files: RootedFiles, path: str) -> None:
    for act in (lambda: files.look(path), lambda: files.put(path, File(b"x")), lambda: files.put(path, ABSENT)):
        with pytest.raises(UnsafePath):
            act()


@pytest.mark.parametrize("target", ["../outside", "/tmp", "../../../../../../../../etc", "a/../../outside"])
def test_a_directory_link_that_leads_out_is_refused(files: RootedFiles, target: str) -> None:
    (files.root / "a").mkdir()
    (files.root / "link").symlink_to(target)
    for act in (
        lambda: files.look("/link/secret"), lambda: files.put("/link/x", File(b"x")),
        lambda: files.put("/link/secret", ABSENT), lambda: files.append("/link/x", b"x"), lambda: files.names("/link"),
        lambda: files.remove_empty("/link/x"),
    ):  # fmt: skip
        with pytest.raises(UnsafePath):
            act()
    assert [path.name for path in (files.root.parent / "outside").iterdir()] == ["secret"]


def test_a_link_inside_of_the_root_is_followed(files: RootedFiles) -> None:
    (files.root / "var/home").mkdir(parents=True)
    (files.root / "home").symlink_to("var/home")
    (files.root / "var/back").symlink_to("../var/home")
    files.put("/home/core/x", File(b"x"))
    assert (files.root / "var/home/core/x").read_bytes() == b"x"
    assert isinstance(files.look("/var/back/core/x"), File)


def test_a_loop_of_links_ends(files: RootedFiles) -> None:
    (files.root / "a").symlink_to("b")
    (files.root / "b").symlink_to("a")
    with pytest.raises(UnsafePath, match="too many"):
        files.look("/a/x")


def test_the_last_component_is_never_followed(files: RootedFiles) -> None:
    secret = files.root.parent / "outside/secret"
    (files.root / "f").symlink_to(secret)
    assert files.look("/f") == Link(str(secret))
    files.put("/f", File(b"ours"))
    assert secret.read_text() == "secret"
    assert not (files.root / "f").is_symlink()


def test_a_directory_is_neither_replaced_nor_removed(files: RootedFiles) -> None:
    (files.root / "d").mkdir()
    assert files.look("/d") == Other("a directory")
    for state in (File(b"x"), ABSENT, Link("x")):
        with pytest.raises(FileFailure, match="a directory"):
            files.put("/d", state)


def test_a_file_on_the_way_is_said(files: RootedFiles) -> None:
    files.put("/f", File(b"x"))
    with pytest.raises(FileFailure, match="not a directory"):
        files.put("/f/x", File(b"x"))


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    files: RootedFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.put("/f", File(b"old"))

    def full(descriptor: int, data: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(FileFailure, match="No space left"):
        files.put("/f", File(b"new"))
    monkeypatch.undo()
    assert [path.name for path in files.root.iterdir()] == ["f"]
    assert (files.root / "f").read_bytes() == b"old"


def test_a_temporary_file_of_a_killed_writer_is_in_nobodys_way(files: RootedFiles) -> None:
    (files.root / ".fastness-new.f").write_text("half")
    files.put("/f", File(b"new"))
    assert [path.name for path in files.root.iterdir()] == ["f"]


def test_what_a_killed_writer_left_goes_with_the_path_that_it_was_for(files: RootedFiles) -> None:
    """Else the directory that was made for it would never be empty, and stay when its configuration has gone."""
    (files.root / "made").mkdir()
    (files.root / "made/.fastness-new.f").write_text("half")
    files.put("/made/f", ABSENT)
    files.remove_empty("/made")
    assert not (files.root / "made").exists()


def test_missing_directories_are_named_outermost_first_and_removed_when_empty(files: RootedFiles) -> None:
    (files.root / "a").mkdir()
    assert files.missing_directories("/a/b/c/f") == ["/a/b", "/a/b/c"]
    files.put("/a/b/c/f", File(b"x"))
    assert files.missing_directories("/a/b/c/f") == []
    files.remove_empty("/a/b/c")
    assert (files.root / "a/b/c").is_dir()
    files.put("/a/b/c/f", ABSENT)
    for directory in ("/a/b/c", "/a/b", "/nowhere/x"):
        files.remove_empty(directory)
    assert not (files.root / "a/b").exists()


def test_what_could_not_be_kept_is_not_read(files: RootedFiles) -> None:
    with (files.root / "huge").open("wb") as handle:
        handle.truncate(MAX_FILE + 1)
    with pytest.raises(FileFailure, match="huge has"):
        files.look("/huge")
    os.symlink(b"bad-\xff", files.root / "odd")
    assert files.look("/odd") == Other("a link whose target is no text")


def test_appending_keeps_what_was_there(files: RootedFiles) -> None:
    files.append("/log", b"one\n")
    files.append("/log", b"two\n")
    assert (files.root / "log").read_bytes() == b"one\ntwo\n"
    assert (files.root / "log").stat().st_mode & 0o777 == 0o600


def test_a_new_file_that_is_appended_to_has_a_durable_name_before_its_first_byte(
    files: RootedFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    durable: list[str] = []

    def fsync(descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        size = (files.root / "log").stat().st_size
        durable.append(f"/{path.relative_to(files.root)} {size}")

    (files.root / "log").touch()  # as an agent leaves it that is killed before its directory is on disk
    monkeypatch.setattr(os, "fsync", fsync)
    files.append("/log", b"one\n")
    assert durable == ["/. 0", "/log 4"]
    files.append("/log", b"two\n")
    assert durable[2:] == ["/log 8"]
    (files.root / "log").unlink()
    files.append("/log", b"three\n")
    assert durable[3:] == ["/. 0", "/log 6"]


SEGMENT = st.sampled_from(["a", "b", "link", "up", "..", ".", "", "out"])


@given(st.lists(SEGMENT, min_size=1, max_size=6), st.booleans())
def test_no_path_whatever_writes_outside(
    tmp_path_factory: pytest.TempPathFactory, parts: list[str], slash: bool
) -> None:
    base = tmp_path_factory.mktemp("any")
    (base / "root/a").mkdir(parents=True)
    (base / "outside").mkdir()
    (base / "root/out").symlink_to(base / "outside")
    (base / "root/a/up").symlink_to("../../outside")
    (base / "root/link").symlink_to("a")
    files = RootedFiles(base / "root")
    path = ("/" if slash else "") + "/".join(parts)
    try:
        files.put(path, File(b"x"))
    except (UnsafePath, FileFailure):
        assert set(string.printable)  # refused is fine, the question is what happened outside
    assert not list((base / "outside").iterdir())
    assert {entry.name for entry in base.iterdir()} == {"root", "outside"}


AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root makes files of other users")
USER = 12345


@pytest.fixture
def users_directory(files: RootedFiles) -> Path:
    """/home/user, whose owner is not to be trusted with where root writes."""
    home = files.root / "home/user"
    home.mkdir(parents=True)
    (files.root / "usr/lib/systemd/system-generators").mkdir(parents=True)
    (files.root / "usr/lib/systemd/system-generators/passwords").write_text("root:secret")
    os.chown(home, USER, USER)
    return home


def _link(at: Path, target: str, owner: int) -> None:
    at.symlink_to(target)
    os.lchown(at, owner, owner)


@AS_ROOT
def test_a_users_link_does_not_choose_where_root_reads_and_writes(files: RootedFiles, users_directory: Path) -> None:
    _link(users_directory / "config", "../../usr/lib/systemd/system-generators", USER)
    with pytest.raises(UnsafePath, match="belongs to user 12345"):
        files.put("/home/user/config/run-me", File(b"#!/bin/sh\n", 0o755))
    with pytest.raises(UnsafePath):
        files.look("/home/user/config/passwords")
    assert sorted(os.listdir(files.root / "usr/lib/systemd/system-generators")) == ["passwords"]


@AS_ROOT
def test_a_link_that_leads_through_another_is_judged_at_each(files: RootedFiles, users_directory: Path) -> None:
    _link(users_directory / "second", "../../usr/lib/systemd", USER)
    _link(users_directory / "first", "second/system-generators", USER)
    with pytest.raises(UnsafePath):
        files.put("/home/user/first/run-me", File(b"x"))


@AS_ROOT
def test_links_within_what_is_theirs_and_links_of_root_are_followed(files: RootedFiles, users_directory: Path) -> None:
    (users_directory / "real").mkdir()
    os.chown(users_directory / "real", USER, USER)
    _link(users_directory / "own", "real", USER)
    _link(files.root / "lib", "usr/lib", 0)
    files.put("/home/user/own/f", File(b"x"))
    files.put("/lib/g", File(b"y"))
    assert (users_directory / "real/f").read_bytes() == b"x"
    assert (files.root / "usr/lib/g").read_bytes() == b"y"


def test_what_turned_into_a_pipe_is_not_waited_for(files: RootedFiles) -> None:
    """Between the look at its name and its opening: the same call that the look makes then."""
    os.mkfifo(files.root / "pipe")
    parent = os.open(files.root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        assert _open(parent, "pipe") is None
    finally:
        os.close(parent)


def test_where_owners_cannot_be_set_none_are_told(tmp_path: Path) -> None:
    files = RootedFiles(tmp_path, owners=False)
    files.put("/f", File(b"x", 0o644, 0, 0))
    assert files.look("/f") == File(b"x", 0o644)
