"""One contract for watchers: the kernel's notice, and looking again and again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from fastness.agent.apply.ports import Watcher
from fastness.agent.host.file_changes import Inotify, InotifyWatcher, PollingWatcher
from fastness.runtime.clock import SystemClock
from tests.patience import PATIENCE


@asynccontextmanager
async def _inotify(root: Path) -> AsyncIterator[Watcher]:
    inotify = Inotify()
    try:
        yield InotifyWatcher(inotify, root)
    finally:
        inotify.close()


@asynccontextmanager
async def _polling(root: Path) -> AsyncIterator[Watcher]:
    yield PollingWatcher(root, SystemClock(), 0.01)


@pytest.fixture(params=[_inotify, _polling], ids=["inotify", "polling"])
async def watcher(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Watcher]:
    """One of the two, on a root with a file."""
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/a").write_text("a")
    (tmp_path / "etc/b").write_text("b")
    async with request.param(tmp_path) as opened:
        yield opened


def _replace(path: Path) -> None:
    (path.parent / ".new").write_text("x")
    (path.parent / ".new").rename(path)


CHANGES: dict[str, Callable[[Path], object]] = {
    "content": lambda path: path.write_text("other"),
    "mode": lambda path: path.chmod(0o600),
    "removal": lambda path: path.unlink(),
    "replacement": _replace,
}


@pytest.mark.parametrize("how", CHANGES)
async def test_a_change_of_a_watched_path_is_told(watcher: Watcher, tmp_path: Path, how: str) -> None:
    async with watcher.watch(["/etc/a", "/etc/b", "/nowhere/x"]) as changes:
        CHANGES[how](tmp_path / "etc/a")
        async with asyncio.timeout(PATIENCE):
            assert await anext(aiter(changes)) == "/etc/a"


async def test_a_path_that_comes_into_being_is_told(watcher: Watcher, tmp_path: Path) -> None:
    async with watcher.watch(["/etc/c"]) as changes:
        (tmp_path / "etc/c").write_text("c")
        async with asyncio.timeout(PATIENCE):
            assert await anext(aiter(changes)) == "/etc/c"


async def test_other_files_of_the_directory_are_nobodys_business(watcher: Watcher, tmp_path: Path) -> None:
    async with watcher.watch(["/etc/a"]) as changes:
        (tmp_path / "etc/b").write_text("changed")
        (tmp_path / "etc/a").write_text("changed")
        async with asyncio.timeout(PATIENCE):
            assert await anext(aiter(changes)) == "/etc/a"


async def test_machines_of_one_process_share_an_instance_and_hear_only_of_their_own(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "f").write_text(name)
    inotify = Inotify()
    watcher_one, watcher_two = InotifyWatcher(inotify, tmp_path / "one"), InotifyWatcher(inotify, tmp_path / "two")
    async with watcher_one.watch(["/f"]) as first, watcher_two.watch(["/f"]) as second:
        (tmp_path / "two/f").write_text("changed")
        async with asyncio.timeout(PATIENCE):
            assert await anext(aiter(second)) == "/f"
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await anext(aiter(first))
    inotify.close()


async def test_a_directory_that_is_exchanged_for_another_is_told_and_watched(watcher: Watcher, tmp_path: Path) -> None:
    """Whoever owns the directory above moves it away and puts one of theirs in its place."""
    async with watcher.watch(["/etc/a", "/etc/b"]) as changes:
        stream = aiter(changes)
        (tmp_path / "other").mkdir()
        (tmp_path / "other/a").write_text("of somebody else")
        (tmp_path / "etc").rename(tmp_path / "away")
        (tmp_path / "other").rename(tmp_path / "etc")
        async with asyncio.timeout(PATIENCE):
            assert {await anext(stream), await anext(stream)} == {"/etc/a", "/etc/b"}
            await asyncio.sleep(0.05)
            (tmp_path / "etc/a").write_text("changed once more")
            assert await anext(stream) == "/etc/a"
