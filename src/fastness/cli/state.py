"""`fastness kubeconfig`, `backup` and `restore`: what concerns a state directory."""

from __future__ import annotations

from pathlib import Path

import click

from fastness.cli.errors import CliError, told
from fastness.cli.exits import Exit
from fastness.cli.output import output_option, show_json

DEFAULT_STATE = Path("state")
_state = click.option(
    "--state",
    type=click.Path(path_type=Path, file_okay=False),
    default=DEFAULT_STATE,
    show_default=True,
    help="State directory.",
)


@click.command()
@_state
def kubeconfig(state: Path) -> None:
    """Print the kubeconfig of a running control plane."""
    path = state / "kubeconfig"
    if not path.is_file():
        raise CliError(f"{path} does not exist", "Start a control plane there with `fastness up`.", Exit.MISSING)
    with told():
        click.echo(path.read_bytes().decode(), nl=False)


@click.command()
@_state
@click.argument("target", type=click.Path(path_type=Path))
@output_option
def backup(state: Path, target: Path, output: str) -> None:
    """Write a consistent copy of the state to TARGET, also while it is in use.

    Secrets stay sealed in it: keep STATE/vault.json too, in another place. STATE/pki holds the keys of the API.
    """
    from fastness.cluster.embedded.store.database import backup as copy

    database = state / "state.db"
    if not database.is_file():
        raise CliError(f"{database} does not exist", "Name the state directory with --state.", Exit.MISSING)
    if target.exists():
        raise CliError(f"{target} exists already", "Choose another name: a backup never overwrites one.", Exit.USAGE)
    with told():
        report = copy(database, target)
    if output == "json":
        show_json({"target": str(target), "revision": report.revision, "objects": report.objects, "bytes": report.size})
    else:
        click.echo(f"{target}: {report.objects} objects at revision {report.revision}, {report.size} bytes")


@click.command()
@_state
@click.option("--force", is_flag=True, help="Replace a store that is there; it is set aside, not deleted.")
@click.argument("source", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@output_option
def restore(state: Path, force: bool, source: Path, output: str) -> None:
    """Make a state directory from the backup SOURCE.

    Versions jump ahead, so that clients which saw later ones list again. Put STATE/vault.json of the same cluster beside it.
    """
    from fastness.cluster.embedded.store.restore import restore as put_back

    with told():
        state.mkdir(parents=True, exist_ok=True, mode=0o700)
        report = put_back(source, state, force=force)
    aside = str(report.set_aside) if report.set_aside else None
    if output == "json":
        show_json({"state": str(state), "revision": report.revision, "objects": report.objects, "setAside": aside})
        return
    click.echo(f"{state}: {report.objects} objects, revision {report.backup_revision} continues at {report.revision}")
    if aside:
        click.echo(f"the store that was there is now in {aside}")
    if not (state / "vault.json").is_file():
        click.echo(f"put the vault key of that cluster at {state / 'vault.json'} before `fastness up`", err=True)
