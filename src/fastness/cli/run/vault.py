"""`fastness vault`: the key that seals what is secret at rest.

fastness vault rotate --reason "…" [--state DIR]     a new key; everything is sealed and tagged anew, then the old one goes
fastness vault rotate --reason "…" --context NAME    the same on a Kubernetes, by its brokers, while they serve
fastness vault create FILE                           a key of its own, for backups of a Kubernetes
fastness vault show [--state DIR]                    the ids of the keys, and whether a rotation is to be ended
fastness vault wrap --kms COMMAND [--state DIR]      from now on the command of a key management service wraps the keys
fastness vault unwrap --kms COMMAND [--state DIR]    they stand in the file again, for its owner alone
"""

from __future__ import annotations

import asyncio
import getpass
import socket
from pathlib import Path

import click

from fastness.cli.cluster import cluster_options
from fastness.cli.errors import CliError, Exit
from fastness.cli.output import output_option, show_json
from fastness.cli.room_errors import reported_errors
from fastness.cli.run.state import opened_vault
from fastness.cli.run.state_directory import kms_option, state_option
from fastness.formats.words import counted
from fastness.keys.ring_files import PlainRingFile, WrappedRingFile, ring_file
from fastness.keys.vault import Vault
from fastness.runtime.clock import SystemClock, SystemEntropy


@click.group()
def vault() -> None:
    """Look after the vault key of a state directory."""


@vault.command()
@kms_option
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
def create(kms: tuple[str, ...], file: Path) -> None:
    """Make a new key in FILE, for backups of a Kubernetes: keep it apart from them, or nobody opens them again."""
    if file.exists():
        raise CliError(
            f"{file} exists already", "Choose another name: what it seals would be lost with it.", Exit.USAGE
        )
    with reported_errors():
        made = Vault.open_file(ring_file(file, kms), SystemClock().now(), SystemEntropy(), create=True)
    click.echo(f"{file}: {made.primary} seals")


@vault.command()
@state_option
@kms_option
@output_option
def show(state: Path, kms: tuple[str, ...], output: str) -> None:
    """Print the ids of the keys, the one that seals first."""
    with reported_errors():
        present, *old = opened_vault(state, None, kms).key_ids
    if output == "json":
        show_json({"key": present, "old": old})
        return
    click.echo(f"{present} seals what is written")
    for key in old:
        click.echo(f"{key} is old: a rotation did not end; run `fastness vault rotate` again")


@vault.command()
@state_option
@click.option("--reason", required=True, help="Why; it goes on the record with your name.")
@kms_option
@cluster_options
@click.option(
    "--wait", type=click.IntRange(0, 86_400), default=600, show_default=True,
    help="On a Kubernetes: seconds to wait until the brokers are done; 0: ask, and do not wait.",
)  # fmt: skip
@output_option
def rotate(
    state: Path, reason: str, kms: tuple[str, ...], kubeconfig: Path | None, context: str, wait: int, output: str
) -> None:
    """Begin a new vault key while no control plane runs on the directory.

    Everything is sealed and tagged anew; the old key goes when all of it was read with the new one. An attempt that was cut short
    goes on where it was. Backups from before open with the old vault.json alone: keep it with them.

    With --kubeconfig or --context the brokers of a Kubernetes are asked, which share theirs in a Secret (`serve --vault-secret`):
    they go on serving meanwhile.
    """
    if kubeconfig is not None or context:
        # It connects to a cluster, and whoever turns the key of a directory needs none.
        from fastness.cli.run.shared_vault import ask_brokers

        ask_brokers(kubeconfig, context, reason, wait, output)
        return
    if not (state / "state.db").is_file():
        raise CliError(f"{state / 'state.db'} does not exist", "Name the state directory with --state.", Exit.MISSING)
    # Imported here: a rotation opens a whole API server, and the verbs beside it read one file.
    from fastness.app.vault_rotation import rotate_vault

    who = f"{getpass.getuser()}@{socket.gethostname()}"
    with reported_errors():
        done = asyncio.run(rotate_vault(state, who, reason, SystemClock(), SystemEntropy(), kms=kms))
    if output == "json":
        show_json({
            "key": done.key, "retired": list(done.retired), "resources": done.resources, "rows": done.rows,
            "resumed": done.resumed,
        })  # fmt: skip
        return
    click.echo(
        f"{done.key} seals; {counted(done.rows, 'row')} and {counted(done.resources, 'resource')} were sealed anew"
    )
    click.echo(f"{', '.join(done.retired)} is gone from {state / 'vault.json'}; backups from before need it")


@vault.command()
@state_option
@kms_option
def wrap(state: Path, kms: tuple[str, ...]) -> None:
    """Let a command wrap the keys, while no control plane runs on the directory.

    They were on this disk in clear until now: rotate afterwards, and the ones that were there open nothing new.
    """
    wrapped = WrappedRingFile(state / "vault.json", _required(kms))
    with reported_errors():
        opened_vault(state, None).save_to(wrapped)
    click.echo(f"{state / 'vault.json'} is wrapped; `fastness up` needs the same --kms from now on")


@vault.command()
@state_option
@kms_option
def unwrap(state: Path, kms: tuple[str, ...]) -> None:
    """Put the keys into the file again, in clear, while no control plane runs on the directory."""
    command = _required(kms)
    with reported_errors():
        opened_vault(state, None, command).save_to(PlainRingFile(state / "vault.json"))
    click.echo(f"{state / 'vault.json'} holds the keys in clear, for its owner alone")


def _required(kms: tuple[str, ...]) -> tuple[str, ...]:
    if not kms:
        raise CliError("no command was given", "Name it with --kms, or in FASTNESS_KMS.", Exit.USAGE)
    return kms
