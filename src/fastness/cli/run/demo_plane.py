"""What `fastness demo` does once its options are read: a plane that runs while its story is told, and after it.

Apart from the command, because it stands on every room: help, completion and a wrong option answer without loading them.
"""

from __future__ import annotations

import asyncio
import signal

import uvloop

from fastness.app.embedded import PlaneOptions, running
from fastness.cli.output import tell
from fastness.cli.room_errors import reported_errors
from fastness.cli.run.story import Teller, left_running, story


def run_demo(options: PlaneOptions, pause: float, *, end: bool) -> None:
    """Run a control plane and tell its story, with a pause before each chapter; raises CliError."""
    with reported_errors():
        uvloop.run(_run(options, pause, end))


async def _run(options: PlaneOptions, pause: float, end: bool) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with running(options) as plane:
        teller = Teller(options.state, pause)
        telling = asyncio.ensure_future(story(plane, teller))
        stopping = asyncio.ensure_future(stop.wait())
        try:
            await asyncio.wait((telling, stopping), return_when=asyncio.FIRST_COMPLETED)
            if telling.done():
                telling.result()
                if not end:
                    left_running(plane, teller)
                    await stopping
            if stop.is_set():
                tell("stopping")
        finally:
            for task in (telling, stopping):
                task.cancel()
            await asyncio.wait((telling, stopping))
