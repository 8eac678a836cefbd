"""`fastness demo`: the story of a confidential cluster in two minutes, on the terminal, with the commands that a user would type.

It starts a whole cluster in this process (`fastness up`), tells the story (`story.py`), and leaves everything running until
Ctrl-C, so that whoever has watched can go on by hand. Without a terminal nothing waits for a reader; with --end it is over when
the story is.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

import click
import uvloop

from fastness.app.embedded import PlaneOptions, running
from fastness.cli.output import tell
from fastness.cli.room_errors import reported_errors
from fastness.cli.run.state_directory import DEFAULT_STATE
from fastness.cli.run.story import Teller, left_running, story
from fastness.observe import logs

MACHINES = 5
QUICK_MACHINES = 3
READING_SECONDS = 4.0


@click.command()
@click.option(
    "--state", type=click.Path(path_type=Path), default=DEFAULT_STATE, show_default=True, help="State directory."
)
@click.option(
    "--machines", type=click.IntRange(3, 100), default=None, help="Virtual machines; default 5, with --quick 3."
)
@click.option("--quick", is_flag=True, help="Do not wait for a reader between the chapters.")
@click.option("--end", is_flag=True, help="End when the story is told, instead of leaving everything running.")
def demo(state: Path, machines: int | None, quick: bool, end: bool) -> None:
    """Tell the story of a confidential cluster in two minutes, and leave it running.

    Everything in it is simulated: the chips, their vendor and the machines. The protocol and the decisions are the real ones.
    """
    logs.configure(level="error")
    options = PlaneOptions(state=state, machines=machines or (QUICK_MACHINES if quick else MACHINES), tell=tell)
    pause = READING_SECONDS if sys.stdout.isatty() and not quick else 0.0
    with reported_errors():
        sys.exit(uvloop.run(_run(options, pause, end)))


async def _run(options: PlaneOptions, pause: float, end: bool) -> int:
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
    return 0
