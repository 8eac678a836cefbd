"""`fastness backup`, `restore` and `state migrate`: the store of a state directory, as a whole.

With --kubeconfig or --context `backup` and `restore` are about a Kubernetes instead; the file is the same.
"""

from __future__ import annotations

from pathlib import Path

import click

from fastness.apiserver import authenticate_state
from fastness.app.backups import check_backup, make_backup, restore_backup
from fastness.cli.cluster import cluster_options
from fastness.cli.errors import CliError, Exit
from fastness.cli.output import output_option, show_json, tell
from fastness.cli.room_errors import reported_errors
from fastness.cli.run.state_directory import kms_option, state_option
from fastness.formats.words import counted
from fastness.keys.ring_files import ring_file
from fastness.keys.vault import Vault
from fastness.runtime.clock import SystemClock, SystemEntropy


class _BackupGroup(click.Group):
    """`fastness backup TARGET` makes one: what is not the name of another verb is a target."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the usual verb before a target."""
        if args and args[0] not in (*self.commands, *ctx.help_option_names):
            args = ["create", *args]
        return super().parse_args(ctx, args)


_vault = click.option(
    "--vault", type=click.Path(path_type=Path, dir_okay=False), help="The vault key; default STATE/vault.json."
)


@click.group(cls=_BackupGroup)
def backup() -> None:
    """Write a consistent copy of the state, also while it is in use: `fastness backup TARGET`."""


@backup.command()
@state_option
@_vault
@kms_option
@cluster_options
@click.argument("target", type=click.Path(path_type=Path))
@output_option
def create(
    state: Path,
    vault: Path | None,
    kms: tuple[str, ...],
    kubeconfig: Path | None,
    context: str,
    target: Path,
    output: str,
) -> None:
    """Write a consistent copy of objects and record to TARGET.

    Secrets stay sealed in it: keep STATE/vault.json too, in another place. STATE/pki holds the keys of the API. With --kubeconfig
    or --context it is the copy of a Kubernetes, sealed with the key that --vault names (`fastness vault create`).
    """
    of_cluster = _is_about_a_cluster(kubeconfig, context, vault)
    database = state / "state.db"
    if not of_cluster and not database.is_file():
        raise CliError(f"{database} does not exist", "Name the state directory with --state.", Exit.MISSING)
    if target.exists():
        raise CliError(f"{target} exists already", "Choose another name: a backup never overwrites one.", Exit.USAGE)
    with reported_errors():
        key = opened_vault(state, vault, kms)
        if of_cluster:
            # It loads the kinds of a whole cluster, and whoever copies a state directory needs none.
            from fastness.cli.run.kept_cluster import back_up_cluster

            report = back_up_cluster(kubeconfig, context, target, key)
        else:
            report = make_backup(state, target, key)
    if output == "json":
        show_json({"target": str(target), "revision": report.revision, "objects": report.objects, "bytes": report.size})
    else:
        click.echo(f"{target}: {counted(report.objects, 'object')} at revision {report.revision}, {report.size} bytes")


@backup.command()
@state_option
@_vault
@kms_option
@click.argument("source", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@output_option
def verify(state: Path, vault: Path | None, kms: tuple[str, ...], source: Path, output: str) -> None:
    """Say whether SOURCE is whole and written by a holder of the vault key, or else the first thing that is wrong (exit 3)."""
    with reported_errors():
        report = check_backup(source, opened_vault(state, vault, kms))
    if output == "json":
        show_json({"revision": report.revision, "objects": report.objects, "entries": report.entries})
    else:
        sizes = f"{counted(report.objects, 'object')} at revision {report.revision}"
        click.echo(f"{source}: good; {sizes}, {counted(report.entries, 'entry', 'entries')}")


@click.command()
@state_option
@_vault
@kms_option
@cluster_options
@click.option(
    "--broker-vault", type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="For a Kubernetes whose brokers keep their vault key in a file (`serve --vault`): that file.",
)  # fmt: skip
@click.option("--force", is_flag=True, help="Replace a store that is there; it is set aside, not deleted.")
@click.argument("source", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@output_option
def restore(
    state: Path, vault: Path | None, kms: tuple[str, ...], kubeconfig: Path | None, context: str, broker_vault: Path | None,
    force: bool, source: Path, output: str,
) -> None:  # fmt: skip
    """Make a state directory from the backup SOURCE, if it passes `fastness backup verify`.

    Versions jump ahead, so that clients which saw later ones list again. A key that is named with --vault is put into STATE. With
    --kubeconfig or --context it goes into a Kubernetes that has the definitions of Fastness and nothing else of it.
    """
    if _is_about_a_cluster(kubeconfig, context, vault):
        if force:
            raise CliError(
                "--force is for state directories", "A cluster that holds something is left alone.", Exit.USAGE
            )
        from fastness.cli.run.kept_cluster import restore_into_cluster  # as above

        with reported_errors():
            sealing = opened_vault(state, broker_vault, kms) if broker_vault is not None else None
            restore_into_cluster(kubeconfig, context, source, opened_vault(state, vault, kms), sealing, output)
        return
    with reported_errors():
        key = opened_vault(state, vault, kms)
        if vault is not None and (state / "vault.json").exists():
            _same_key(state, key, kms)
        state.mkdir(parents=True, exist_ok=True, mode=0o700)
        report = restore_backup(source, state, key, force=force)
        if not (state / "vault.json").exists():
            key.save_to(ring_file(state / "vault.json", kms))
    aside = str(report.set_aside) if report.set_aside else None
    if output == "json":
        show_json({"state": str(state), "revision": report.revision, "objects": report.objects, "setAside": aside})
        return
    click.echo(
        f"{state}: {counted(report.objects, 'object')}, revision {report.backup_revision} continues at {report.revision}"
    )
    if aside:
        click.echo(f"the store that was there is now in {aside}")
    if not key.macs.required:
        tell(
            "this state is from before rows were authenticated: nobody can say whether it was edited; see `fastness state`"
        )


def _is_about_a_cluster(kubeconfig: Path | None, context: str, vault: Path | None) -> bool:
    """Whether a Kubernetes is meant; raises CliError when its key is not named."""
    if kubeconfig is None and not context:
        return False
    if vault is None:
        hint = (
            "Make one with `fastness vault create FILE`, keep it apart from the backups, and name it with --vault FILE."
        )
        raise CliError("a backup of a Kubernetes is sealed with a key of yours, and none is named", hint, Exit.USAGE)
    return True


def _same_key(state: Path, vault: Vault, kms: tuple[str, ...]) -> None:
    """Refuse to leave a directory with two vault keys, of which one would be lost; raises CliError."""
    if opened_vault(state, None, kms).primary != vault.primary:
        hint = "Move it away if its secrets are not needed, or restore into an empty directory."
        raise CliError(f"{state / 'vault.json'} is another vault key", hint, Exit.USAGE)


@click.group()
def state() -> None:
    """Look after a state directory that no control plane uses."""


@state.command()
@state_option
@kms_option
def migrate(state: Path, kms: tuple[str, ...]) -> None:
    """Authenticate a state from before: from then on edits to the files are refused.

    Every row gets a tag under a key that is derived from the vault key, and what is confidential is sealed. It takes the state as
    it is for the truth: look at it first. There is no way back.
    """
    with reported_errors():
        report = authenticate_state(state, opened_vault(state, None, kms))
    if not report.rows:
        click.echo(f"{state}: already authenticated, every row is right")
        return
    click.echo(f"{state}: {counted(report.rows, 'row')} authenticated, {report.sealed} sealed")
    click.echo(
        f"the file as it was is kept as {report.before}, with its configs in clear: delete it when everything works"
    )


def opened_vault(state: Path, vault: Path | None, kms: tuple[str, ...] = ()) -> Vault:
    """The vault key of a state directory, or the one that is named; raises TrustError."""
    file = ring_file(vault or state / "vault.json", kms)
    return Vault.open_file(file, SystemClock().now(), SystemEntropy(), create=False)
