"""`fastness vault`: the key that seals what is secret at rest.

fastness vault rotate --reason "…" [--state DIR]     a new key; everything is sealed and tagged anew, then the old one goes
fastness vault show [--state DIR]                    the ids of the keys, and whether a rotation is to be ended
"""

from __future__ import annotations

import asyncio
import getpass
import socket
from pathlib import Path

import click

from fastness.cli.errors import CliError, reported_errors
from fastness.cli.exits import Exit
from fastness.cli.output import output_option, show_json
from fastness.cli.run.state import opened_vault, state_option


@click.group()
def vault() -> None:
    """Look after the vault key of a state directory."""


@vault.command()
@state_option
@output_option
def show(state: Path, output: str) -> None:
    """Print the ids of the keys, the one that seals first."""
    with reported_errors():
        present, *old = opened_vault(state, None).key_ids
    if output == "json":
        show_json({"key": present, "old": old})
        return
    click.echo(f"{present} seals")
    for key in old:
        click.echo(f"{key} is old: a rotation did not end; run `fastness vault rotate` again")


@vault.command()
@state_option
@click.option("--reason", required=True, help="Why; it goes on the record with your name.")
@output_option
def rotate(state: Path, reason: str, output: str) -> None:
    """Begin a new vault key while no control plane runs on the directory.

    Everything is sealed and tagged anew; the old key goes when all of it was read with the new one. An attempt that was cut short
    goes on where it was. Backups from before open with the old vault.json alone: keep it with them.
    """
    from fastness.app.vault_rotation import rotate_vault
    from fastness.runtime.clock import SystemClock, SystemEntropy

    if not (state / "state.db").is_file():
        raise CliError(f"{state / 'state.db'} does not exist", "Name the state directory with --state.", Exit.MISSING)
    who = f"{getpass.getuser()}@{socket.gethostname()}"
    with reported_errors():
        done = asyncio.run(rotate_vault(state, who, reason, SystemClock(), SystemEntropy()))
    if output == "json":
        show_json({
            "key": done.key, "retired": list(done.retired), "resources": done.resources, "rows": done.rows,
            "resumed": done.resumed,
        })  # fmt: skip
        return
    click.echo(f"{done.key} seals; {done.rows} rows and {done.resources} resources were sealed anew")
    click.echo(f"{', '.join(done.retired)} is gone from {state / 'vault.json'}; backups from before need it")
