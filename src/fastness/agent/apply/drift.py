"""Notices at once when a managed file changes.

The monitor is told which config holds and watches its paths. A change that we did not make wakes the agent, which compares the
paths with the config and reports or repairs. Changes come in bursts (an editor writes, renames, sets the mode), so the monitor
waits a moment for the burst to end. Where nothing can be watched, the agent's regular look at the whole disk remains.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection

from fastness.agent.apply.ports import Watcher
from fastness.agent.host.errors import DriverError
from fastness.observe.logs import logger
from fastness.runtime.clock import Clock

_log = logger("agent")


class DriftMonitor:
    """Watches the paths of the config that holds."""

    def __init__(self, watcher: Watcher, clock: Clock, settle: float, wake: Callable[[], None]) -> None:
        self._watcher = watcher
        self._clock = clock
        self._settle = settle
        self._wake = wake
        self._paths: Collection[str] = ()
        self._restart = asyncio.Event()
        self._suspects: set[str] = set()

    def watch(self, paths: Collection[str]) -> None:
        """From now on, these paths; none while an update is on its way."""
        self._paths = tuple(paths)
        self._suspects.clear()
        self._restart.set()

    def suspects(self) -> list[str]:
        """The paths that changed since this was asked last."""
        paths = sorted(self._suspects)
        self._suspects.clear()
        return paths

    async def run(self) -> None:
        """Watch until cancelled."""
        while True:
            self._restart.clear()
            following = asyncio.ensure_future(self._follow(self._paths))
            restart = asyncio.ensure_future(self._restart.wait())
            try:
                await asyncio.wait((following, restart), return_when=asyncio.FIRST_COMPLETED)
                if following.done():
                    following.result()
                    await restart
            finally:
                for task in (following, restart):
                    task.cancel()
                await asyncio.gather(following, restart, return_exceptions=True)

    async def _follow(self, paths: Collection[str]) -> None:
        if not paths:
            return
        try:
            async with self._watcher.watch(paths) as changes:
                async for path in changes:
                    fresh = not self._suspects
                    self._suspects.add(path)
                    # Once for each burst: waiting anew at every event would let a program that writes all the time hide a change
                    # for ever.
                    if fresh:
                        await self._clock.sleep(self._settle)
                    self._wake()
        except DriverError as error:
            _log.warning("agent.unwatched", code=error.code, error=error.message)
