"""The agent's own files move once, whole, and at whatever moment the power goes."""

from __future__ import annotations

import errno
from contextlib import suppress
from pathlib import Path

import pytest

from fastness.agent.apply import moved_state
from fastness.agent.apply.moved_state import move_state
from fastness.agent.host.errors import FileFailure

OLD, NEW = "etc/machine-config-daemon", "var/lib/fastness"


class PowerCut(Exception):
    """The machine is off."""


@pytest.fixture(params=["one file system", "two file systems"])
def root(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The root of a machine with an older agent's files."""
    for path, content in {
        f"{OLD}/orig/etc/passwd.mcdorig": "root", f"{OLD}/noorig/etc/new.mcdnoorig": "", f"{OLD}/currentconfig": "{}",
        f"{OLD}/node-annotations.json": "{}", "var/lib/fastness-agent/journal": "begun", f"{NEW}/identity/broker": "b",
    }.items():  # fmt: skip
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(content)
    (tmp_path / f"{OLD}/orig/etc/passwd.mcdorig").chmod(0o640)
    (tmp_path / f"{OLD}/orig/etc/link.mcdorig").symlink_to("/etc/shadow")
    if request.param == "two file systems":
        renamed = Path.rename

        def apart(self: Path, target: Path) -> Path:
            if self.name in ("orig", "noorig", "fastness-agent"):
                raise OSError(errno.EXDEV, "Invalid cross-device link")
            return renamed(self, target)

        monkeypatch.setattr(Path, "rename", apart)
    return tmp_path


def is_moved(root: Path) -> bool:
    copy = root / f"{NEW}/originals/orig/etc/passwd.mcdorig"
    return (
        copy.read_text() == "root"
        and copy.stat().st_mode & 0o777 == 0o640
        and (root / f"{NEW}/originals/orig/etc/link.mcdorig").readlink() == Path("/etc/shadow")
        and (root / f"{NEW}/originals/noorig/etc/new.mcdnoorig").exists()
        and (root / f"{NEW}/agent/journal").read_text() == "begun"
        and not any((root / path).exists() for path in (f"{OLD}/orig", f"{OLD}/noorig", "var/lib/fastness-agent"))
    )


def test_originals_and_journal_move_and_what_other_tools_read_stays(root: Path) -> None:
    assert len(move_state(root)) == 3
    assert is_moved(root)
    assert {path.name for path in (root / OLD).iterdir()} == {"currentconfig", "node-annotations.json"}
    assert (root / f"{NEW}/identity/broker").read_text() == "b"
    assert move_state(root) == ()
    assert is_moved(root)


@pytest.mark.parametrize("step", ["_copied", "_like", "_synced"])
@pytest.mark.parametrize("number", range(8))
def test_a_power_cut_at_any_step_loses_nothing(
    root: Path, monkeypatch: pytest.MonkeyPatch, step: str, number: int
) -> None:
    calls, real = iter(range(100)), getattr(moved_state, step)

    def cut(*words: object) -> object:
        if next(calls) == number:
            raise PowerCut
        return real(*words)

    with monkeypatch.context() as patched:
        patched.setattr(moved_state, step, cut)
        with suppress(PowerCut):
            move_state(root)
    move_state(root)
    assert is_moved(root)


def test_a_link_in_place_of_a_directory_is_left_alone(root: Path, tmp_path: Path) -> None:
    move_state(root)
    (root / f"{OLD}/orig").symlink_to(tmp_path)
    assert move_state(root) == ()


def test_a_place_that_cannot_be_written_is_named(root: Path) -> None:
    (root / f"{NEW}/originals").write_text("a file")
    with pytest.raises(FileFailure, match="originals"):
        move_state(root)
    assert (root / f"{OLD}/orig/etc/passwd.mcdorig").exists()
