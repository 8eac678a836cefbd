"""`fastness keys`: the keys of a cluster, and new ones for all of them in an emergency.

fastness keys list                                     which keys there are, and what a rotation of each breaks
fastness keys rotate --all --reason "…" [--dry-run]    a new key for each, now
fastness keys rotate NAME… --reason "…"                the same for some
"""

from __future__ import annotations

import asyncio
import getpass
import socket
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fastness.cli.cluster import cluster_options, connected
from fastness.cli.errors import CliError, Exit
from fastness.cli.output import output_option, show_json
from fastness.cli.room_errors import reported_errors
from fastness.formats.words import counted

if TYPE_CHECKING:
    from fastness.app.keeping.key_rotation import Rotation


@click.group()
def keys() -> None:
    """Look after the keys of a running cluster."""


@keys.command("list")
@cluster_options
@output_option
def list_keys(kubeconfig: Path | None, context: str, output: str) -> None:
    """Print the keys, how each is rotated, and what that breaks for how long."""
    with reported_errors():
        rotations = asyncio.run(_found((), kubeconfig, context))
    if output == "json":
        show_json([_described(rotation) for rotation in rotations])
    else:
        _show(rotations)


@keys.command()
@click.argument("names", nargs=-1)
@click.option(
    "--all", "everything", is_flag=True, help="Every key that roles hold; not the vault key (`fastness vault rotate`)."
)
@click.option("--reason", required=True, help="Why; it stands at each Secret, with your name.")
@click.option("--dry-run", is_flag=True, help="Say what would happen, and change nothing.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@cluster_options
def rotate(
    names: tuple[str, ...],
    everything: bool,
    reason: str,
    dry_run: bool,
    yes: bool,
    kubeconfig: Path | None,
    context: str,
) -> None:
    """Make new keys while everything runs; what that breaks is printed before.

    Some keys are replaced at once. Those that others still need to believe stay until the next rotation: rotate again when every
    machine has attested, and nothing of before counts.
    """
    from fastness.app.keeping.key_rotation import BY_NAME  # it loads every room that has keys

    if bool(names) == everything:
        raise CliError("name keys, or say --all", "`fastness keys list` names them.", Exit.USAGE)
    unknown = sorted(set(names) - set(BY_NAME))
    if unknown:
        raise CliError(f"there is no key {unknown[0]!r}", f"There are: {', '.join(BY_NAME)}.", Exit.USAGE)
    with reported_errors():
        rotations = asyncio.run(_found(names, kubeconfig, context))
        _show(rotations)
        if dry_run:
            click.echo("nothing was changed")
            return
        if not yes and not click.confirm(f"Rotate {counted(len(rotations), 'key')} now?"):
            raise CliError("nothing was changed", "Say --yes where nobody can be asked.", Exit.NO)
        asyncio.run(_rotate(rotations, f"{getpass.getuser()}@{socket.gethostname()}: {reason}", kubeconfig, context))


async def _found(names: tuple[str, ...], kubeconfig: Path | None, context: str) -> list[Rotation]:
    from fastness.app.keeping.key_rotation import present_rotations

    async with connected(kubeconfig, context) as cluster:
        return await present_rotations(cluster, names)


async def _rotate(rotations: list[Rotation], why: str, kubeconfig: Path | None, context: str) -> None:
    from fastness.app.keeping.key_rotation import rotate_keys
    from fastness.runtime.clock import SystemClock, SystemEntropy

    async with connected(kubeconfig, context) as cluster:
        async for done in rotate_keys(cluster, rotations, why, SystemEntropy(), SystemClock().now()):
            click.echo(f"{done.name}: {done.manner}")


def _show(rotations: list[Rotation]) -> None:
    width = max((len(rotation.name) for rotation in rotations), default=0)
    for rotation in rotations:
        lasts = "" if rotation.lasts == "-" else f" ({rotation.lasts})"
        click.echo(f"{rotation.name:{width}}  {rotation.manner:9}  breaks {rotation.breaks}{lasts}")


def _described(rotation: Rotation) -> dict[str, str]:
    return {
        "name": rotation.name, "manner": str(rotation.manner), "breaks": rotation.breaks, "lasts": rotation.lasts,
    }  # fmt: skip
