"""Real processes, real limits: a full disk, a directory that cannot be written, two processes in one directory."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from fastness.apiserver.store import Store, StoreInUse, restore
from tests.e2e.store.test_death import command, environment
from tests.patience import PATIENCE

NOBODY = 65534


def run(*words: object) -> list[str]:
    done = subprocess.run(command(*words), env=environment(), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture
def reachable() -> Iterator[Path]:
    """A directory that another user may enter: pytest's own are private to this one."""
    directory = Path(tempfile.mkdtemp(prefix="fastness-store-"))
    directory.chmod(0o755)
    yield directory
    for path in directory.iterdir():
        path.chmod(0o700)
    shutil.rmtree(directory)


def test_a_full_disk_refuses_writes_keeps_everything_and_recovers(tmp_path: Path) -> None:
    lines = run("full", tmp_path, 400_000)
    [refusal] = [line.split() for line in lines if line.startswith("REFUSED")]
    acknowledged = [line.split()[1] for line in lines if line.startswith("A ")]
    assert refusal[1] in ("disk-full", "store-unavailable")
    assert int(refusal[2]) == len(acknowledged) - 1
    assert acknowledged[-1] == "after"
    assert lines[-1] == "CLOSED"
    assert asyncio.run(names(tmp_path / "state")) == set(acknowledged)


async def names(directory: Path) -> set[str]:
    store = await Store.open(directory)
    stored = {record.key.name for record in store.range("example.dev", "things").records}
    await store.close()
    return stored


@pytest.mark.parametrize("mode", [0o555, 0o500])
def test_an_empty_directory_that_cannot_be_written_is_a_clear_error(reachable: Path, mode: int) -> None:
    (reachable / "state").mkdir(mode=0o700)
    (reachable / "state").chmod(mode)
    assert run("open-as", reachable, NOBODY) == ["REFUSED store-read-only"]
    assert list(os.scandir(reachable / "state")) == []


def test_a_store_of_another_user_is_a_clear_error_and_stays_as_it_is(reachable: Path) -> None:
    asyncio.run(names(reachable / "state"))
    before = (reachable / "state" / "state.db").read_bytes()
    (reachable / "state").chmod(0o555)
    for path in (reachable / "state").iterdir():
        path.chmod(0o444)
    assert run("open-as", reachable, NOBODY) == ["REFUSED store-read-only"]
    assert (reachable / "state" / "state.db").read_bytes() == before


def test_a_second_process_is_told_the_pid_of_the_first(tmp_path: Path) -> None:
    child = subprocess.Popen(
        command("hold", tmp_path), env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "OPEN\n"
    with pytest.raises(StoreInUse, match=f"process {child.pid}"):
        asyncio.run(names(tmp_path / "state"))
    with pytest.raises(StoreInUse, match=f"process {child.pid}"):
        restore(_any_backup(tmp_path), tmp_path / "state", force=True)
    child.communicate(timeout=PATIENCE)
    assert child.returncode == 0
    assert asyncio.run(names(tmp_path / "state")) == set()


def _any_backup(directory: Path) -> Path:
    asyncio.run(names(directory / "other"))
    return directory / "other" / "state.db"


def test_the_lock_of_a_killed_process_does_not_stay(tmp_path: Path) -> None:
    child = subprocess.Popen(
        command("hold", tmp_path), env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "OPEN\n"
    child.kill()
    child.communicate(timeout=PATIENCE)
    assert asyncio.run(names(tmp_path / "state")) == set()
