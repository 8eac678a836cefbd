"""`fastness demo`: the story of a confidential cluster in two minutes, on the terminal, with the commands that a user would type.

It starts a whole cluster in this process as `fastness up` does, tells the story (`story`), and leaves everything running until
Ctrl-C, so that whoever has watched can go on by hand. Without a terminal nothing waits for a reader; with --end it is over when
the story is.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from fastness.cli.output import tell
from fastness.cli.run.state_directory import DEFAULT_STATE
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
    pause = READING_SECONDS if sys.stdout.isatty() and not quick else 0.0
    # Imported here: it loads every room, and --help, completion and a wrong option must not wait for that.
    from fastness.app.embedded import PlaneOptions
    from fastness.cli.run.story import run_demo

    options = PlaneOptions(state=state, machines=machines or (QUICK_MACHINES if quick else MACHINES), tell=tell)
    run_demo(options, pause, end=end)
