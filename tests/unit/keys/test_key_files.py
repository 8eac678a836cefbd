"""Private files are read only when they are private, and written all or nothing."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from fastness.crypto.secret import SecretBytes
from fastness.keys.errors import DamagedKeyFile, UnsafeKeyFile
from fastness.keys.key_files import MAX_BYTES, read_private, write_private, write_public


def test_what_was_written_is_read_and_private(tmp_path: Path) -> None:
    file = tmp_path / "new" / "key"
    write_private(file, SecretBytes(b"secret"))
    assert read_private(file) == SecretBytes(b"secret")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_mode_does_not_depend_on_the_umask(tmp_path: Path) -> None:
    old = os.umask(0o277)
    try:
        write_private(tmp_path / "key", SecretBytes(b"x"))
        write_public(tmp_path / "ca.crt", b"x")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "ca.crt").stat().st_mode) == 0o644


def test_missing_file_is_none(tmp_path: Path) -> None:
    assert read_private(tmp_path / "none") is None


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o620, 0o660, 0o601, 0o777])
def test_file_that_others_may_access_is_refused_with_the_command_to_run(tmp_path: Path, mode: int) -> None:
    file = tmp_path / "key"
    write_private(file, SecretBytes(b"x"))
    file.chmod(mode)
    with pytest.raises(UnsafeKeyFile) as caught:
        read_private(file)
    assert f"{mode:04o}" in caught.value.message
    assert f"chmod 600 {file}" in caught.value.hint


@pytest.mark.parametrize("mode", [0o600, 0o400])
def test_file_of_the_owner_alone_is_read(tmp_path: Path, mode: int) -> None:
    file = tmp_path / "key"
    write_private(file, SecretBytes(b"x"))
    file.chmod(mode)
    assert read_private(file) == SecretBytes(b"x")


def test_a_file_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "key"
    write_private(file, SecretBytes(b"x"))
    if os.geteuid() == 0:
        os.chown(file, 4242, -1)  # what root owns is everybody's to trust
    monkeypatch.setattr(os, "geteuid", lambda: 4243)
    with pytest.raises(UnsafeKeyFile, match="another user"):
        read_private(file)


def test_links_directories_and_pipes_are_refused(tmp_path: Path) -> None:
    write_private(tmp_path / "key", SecretBytes(b"x"))
    (tmp_path / "link").symlink_to(tmp_path / "key")
    os.mkfifo(tmp_path / "pipe", 0o600)
    (tmp_path / "dir").mkdir(0o700)
    for name in ("link", "pipe", "dir"):
        with pytest.raises(UnsafeKeyFile):
            read_private(tmp_path / name)


def test_huge_file_is_refused(tmp_path: Path) -> None:
    write_private(tmp_path / "key", SecretBytes(bytes(MAX_BYTES + 1)))
    with pytest.raises(DamagedKeyFile):
        read_private(tmp_path / "key")


def test_write_replaces_a_link_instead_of_following_it(tmp_path: Path) -> None:
    target = tmp_path / "elsewhere"
    target.write_bytes(b"untouched")
    (tmp_path / "key").symlink_to(target)
    write_private(tmp_path / "key", SecretBytes(b"new"))
    assert target.read_bytes() == b"untouched"
    assert read_private(tmp_path / "key") == SecretBytes(b"new")


def test_failed_write_leaves_the_old_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_private(tmp_path / "key", SecretBytes(b"old"))

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space"):
            write_private(tmp_path / "key", SecretBytes(b"new"))
    assert read_private(tmp_path / "key") == SecretBytes(b"old")
    write_private(tmp_path / "key", SecretBytes(b"newer"))
    assert read_private(tmp_path / "key") == SecretBytes(b"newer")
    assert [entry.name for entry in tmp_path.iterdir()] == ["key"]
