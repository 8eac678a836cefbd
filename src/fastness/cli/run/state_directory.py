"""The state directory of a control plane: the options that name it and open it, and `fastness kubeconfig`.

Nothing here opens the store, so that a shell that asks for the kubeconfig in every prompt does not wait for the rooms that do.
"""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from fastness.cli.errors import CliError, Exit

DEFAULT_STATE = Path("state")
state_option = click.option(
    "--state",
    type=click.Path(path_type=Path, file_okay=False),
    default=DEFAULT_STATE,
    show_default=True,
    help="State directory.",
)


def _arguments(_context: click.Context, _parameter: click.Parameter, line: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(line))
    except ValueError as error:
        raise click.BadParameter(f"not a command with its arguments: {error}") from error


kms_option = click.option(
    "--kms", default="", envvar="FASTNESS_KMS", callback=_arguments, metavar="COMMAND",
    help="Command that wraps the vault key: `COMMAND encrypt|decrypt`, from standard input to output; or FASTNESS_KMS.",
)  # fmt: skip


@click.command()
@state_option
def kubeconfig(state: Path) -> None:
    """Print the kubeconfig of a running control plane."""
    path = state / "kubeconfig"
    if not path.is_file():
        raise CliError(f"{path} does not exist", "Start a control plane there with `fastness up`.", Exit.MISSING)
    try:
        click.echo(path.read_bytes().decode(), nl=False)
    except OSError as error:
        raise CliError(f"{path}: {error.strerror}", code=Exit.MISSING) from error
