"""`fastness state list` and `remove`: objects of a state directory that nobody can read.

A control plane sets such an object aside and goes on without it; through the API it can be neither read nor deleted. Here it is
named, also while the control plane runs, and taken away, while it does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from fastness.apiserver import Aside, Key, remove_unreadable, unreadable_objects
from fastness.cli.errors import CliError, Exit
from fastness.cli.output import output_option, show_json, table
from fastness.cli.room_errors import reported_errors
from fastness.cli.run.state import opened_vault, state
from fastness.cli.run.state_directory import kms_option, state_option


@state.command("list")
@state_option
@kms_option
@output_option
def list_(state: Path, kms: tuple[str, ...], output: str) -> None:
    """Name the objects that a control plane sets aside, also while it runs."""
    with reported_errors():
        aside = set_aside_in(state, kms)
    if output == "json":
        show_json(
            [
                {"resource": resource_of(key), "namespace": key.namespace, "name": key.name, "bytes": aside_record.size,
                 "revision": aside_record.record.revision, "reason": aside_record.reason}
                for key, aside_record in aside.items()
            ]
        )  # fmt: skip
    elif not aside:
        click.echo("Everything can be read.")
    else:
        rows = [["RESOURCE", "NAMESPACE", "NAME", "BYTES", "REASON"]]
        for key, aside_record in aside.items():
            rows.append([resource_of(key), key.namespace, key.name, str(aside_record.size), aside_record.reason])
        click.echo(table(rows))


@state.command()
@state_option
@click.option("--namespace", "-n", default="", help="The namespace of the object.")
@kms_option
@click.argument("resource")
@click.argument("name")
def remove(state: Path, namespace: str, kms: tuple[str, ...], resource: str, name: str) -> None:
    """Take the object NAME of RESOURCE (configmaps, machines.trusted-execution-clusters.io) out of a state that is not in use.

    Only what cannot be read goes this way: finalizers and admission are not asked, and whatever it owned is collected as after
    any deletion.
    """
    plural, _, group = resource.partition(".")
    _require(state)
    with reported_errors():
        key = Key(group, plural, namespace, name)
        aside = remove_unreadable(state, key, opened_vault(state, None, kms))
    click.echo(f"{resource_of(key)} {'/'.join(filter(None, (namespace, name)))}: {aside.size} bytes removed")


def set_aside_in(state: Path, kms: tuple[str, ...]) -> Mapping[Key, Aside]:
    """What the control plane of a state directory sets aside; raises StoreError, TrustError, CliError."""
    _require(state)
    return unreadable_objects(state, opened_vault(state, None, kms))


def resource_of(key: Key) -> str:
    """`configmaps`, or `machines.trusted-execution-clusters.io`."""
    return f"{key.plural}.{key.group}" if key.group else key.plural


def _require(state: Path) -> None:
    if not (state / "state.db").is_file():
        raise CliError(f"{state / 'state.db'} does not exist", "Name the state directory with --state.", Exit.MISSING)
