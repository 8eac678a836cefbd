"""`fastness crds`: the definitions that a Kubernetes cluster needs before Fastness can use it."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

import click

from fastness.cli.errors import CliError, Exit
from fastness.cli.output import output_option, show_json, tell
from fastness.formats.names import dns1123_label
from fastness.formats.words import counted
from fastness.kinds.crd import files
from fastness.kinds.crd.files import as_yaml
from fastness.kinds.crd.roles import roles
from fastness.kinds.crd.sets import ALL, OTHERS, definitions
from fastness.kinds.kind import JsonObject


@click.command()
@click.option(
    "--write", "directory", type=click.Path(path_type=Path, file_okay=False), help="Write one file per kind here."
)
@click.option(
    "--check", "checked", type=click.Path(path_type=Path, file_okay=False), help="Fail when this directory is stale."
)
@click.option(
    "--with", "sets", metavar="SET,…", default="",
    help=f"Definitions of other projects too, where nobody else installs them: {', '.join(OTHERS)}; or {ALL}.",
)  # fmt: skip
@click.option("--roles", "people", is_flag=True, help="Print the ClusterRoles for people who look or decide instead.")
@click.option(
    "--accounts",
    is_flag=True,
    help="Print the accounts of doors and controllers, with their rights and Secrets, instead.",
)
@click.option(
    "--adopt",
    multiple=True,
    metavar="namespace/NAME",
    help="With --accounts: rights in a namespace whose objects speak for the cluster, as for `fastness serve`; may be repeated.",
)
@output_option
def crds(
    directory: Path | None, checked: Path | None, sets: str, people: bool, accounts: bool, adopt: tuple[str, ...], output: str,
) -> None:  # fmt: skip
    """Print the CustomResourceDefinitions for a Kubernetes cluster: our own kinds, and those of others on request.

    fastness crds | kubectl apply --server-side -f -

    A definition belongs to whoever installed it: ask for a set only where no other operator brings it; `fastness doctor`
    says which are there. --write and --check are about all of them.
    """
    chosen = _sets(sets)
    if chosen and (people or accounts or checked or directory):
        raise click.UsageError("--with goes with printing definitions alone.")
    if (people or accounts) and (checked or directory):
        raise click.UsageError("--roles and --accounts print; they go with neither --write nor --check.")
    if adopt and not accounts:
        raise click.UsageError("--adopt goes with --accounts.")
    if accounts:
        # Imported here: rights are read off all controllers, and whoever pipes the definitions into kubectl needs none of them.
        from fastness.app.accounts import everything

        _print(everything(_namespaces(adopt)), output)
    elif people:
        _print(roles(), output)
    elif checked is not None:
        stale = files.stale(checked)
        if stale:
            raise CliError(f"out of date: {', '.join(stale)}", f"Run `fastness crds --write {checked}`.", Exit.NO)
        tell(f"{checked} is up to date")
    elif directory is not None:
        written = files.write(directory)
        tell(f"wrote {counted(len(written), 'file')} to {directory}")
    else:
        _print(definitions(chosen), output)


def _sets(given: str) -> list[str]:
    """The sets that were named; raises UsageError for one that there is not."""
    names = [name for name in given.split(",") if name]
    for name in names:
        if name not in (*OTHERS, ALL):
            near = get_close_matches(name, OTHERS, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(OTHERS)}, and {ALL}."
            raise click.UsageError(f"--with {name}: {hint}")
    return names


def _namespaces(adopted: Sequence[str]) -> list[str]:
    """The namespaces that were named; raises UsageError for anything else."""
    names = [adoptable.removeprefix("namespace/") for adoptable in adopted]
    for given, name in zip(adopted, names, strict=True):
        if given == name or dns1123_label(name):
            raise click.UsageError(f"--adopt {given}: it is namespace/NAME.")
    return names


def _print(documents: Sequence[JsonObject], output: str) -> None:
    if output == "json":
        show_json({"apiVersion": "v1", "kind": "List", "items": list(documents)})
    else:
        click.echo("---\n".join(as_yaml(document) for document in documents), nl=False)
