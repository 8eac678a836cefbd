"""`fastness crds`: the definitions that a Kubernetes cluster needs before Fastness can use it."""

from __future__ import annotations

from pathlib import Path

import click

from fastness.cli.errors import CliError
from fastness.cli.exits import Exit
from fastness.cli.output import output_option, show_json, tell


@click.command()
@click.option(
    "--write", "directory", type=click.Path(path_type=Path, file_okay=False), help="Write one file per kind here."
)
@click.option(
    "--check", "checked", type=click.Path(path_type=Path, file_okay=False), help="Fail when this directory is stale."
)
@output_option
def crds(directory: Path | None, checked: Path | None, output: str) -> None:
    """Print the CustomResourceDefinitions for a Kubernetes cluster.

    fastness crds | kubectl apply --server-side -f -
    """
    from fastness.model.crd import files, manifests

    if checked is not None:
        stale = files.stale(checked)
        if stale:
            raise CliError(f"not in step: {', '.join(stale)}", f"Run `fastness crds --write {checked}`.", Exit.NO)
        tell(f"{checked} is in step")
    elif directory is not None:
        written = files.write(directory)
        tell(f"wrote {len(written)} files to {directory}")
    elif output == "json":
        show_json({"apiVersion": "v1", "kind": "List", "items": list(manifests())})
    else:
        click.echo("---\n".join(files.rendered().values()), nl=False)
