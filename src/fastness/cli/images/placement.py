"""`fastness image what-goes-where POOL`: image or disk, for every path of a pool's configuration, and why."""

from __future__ import annotations

from pathlib import Path

import click

from fastness.builds.placement import Where, placed
from fastness.builds.plan import setting_of
from fastness.cli.config.offline import near
from fastness.cli.config.state_options import state_of, state_options
from fastness.cli.errors import CliError
from fastness.cli.output import output_option, show_json, table
from fastness.formats.words import counted
from fastness.kinds.objects import object_name
from fastness.machineconfig.render.render import sources_of


@click.command("what-goes-where")
@state_options
@output_option
@click.argument("pool")
def what_goes_where(pool: str, output: str, files: tuple[str, ...], kubeconfig: Path | None, context: str) -> None:
    """Say for every part of a pool's configuration whether it is in the pool's image or on the disk, and why.

    What is in the image can be read by whoever may pull it. The rest is written by the agent, after every boot.
    """
    state = state_of(files, kubeconfig, context)
    target = next((each for each in state.pools if object_name(each).name == pool), None)
    if target is None:
        raise CliError(f"there is no pool {pool!r}", near(pool, [object_name(each).name for each in state.pools]))
    parts = placed(sources_of(target, state.configs), setting_of(state, pool, state.configs))
    if output == "json":
        show_json([part.to_json() for part in parts])
        return
    rows = [("PATH", "WHERE", "OWNER", "WHY"), *((part.path, part.where, part.owner, part.why) for part in parts)]
    click.echo(table(rows))
    inside = sum(part.where is Where.IMAGE for part in parts)
    click.echo(f"{counted(inside, 'part is', 'parts are')} in the image, {len(parts) - inside} on the disk.")
