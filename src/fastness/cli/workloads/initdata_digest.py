"""`fastness initdata digest`: what evidence shows for init data, and as reference values in a cluster."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Final

import click

from fastness.cli.cluster import cluster_options, connected
from fastness.cli.errors import CliError
from fastness.cli.output import output_option, show_json, table, tell
from fastness.cli.room_errors import reported_errors
from fastness.cli.workloads.initdata_file import load, parsed
from fastness.kinds.registry import find as find_kind
from fastness.kube.errors import AlreadyExists
from fastness.kube.port import PatchType
from fastness.workloads.initdata.registers import Registers, reference_value_set, registers

REGISTERS: Final = ("digest", "hostdata", "mrconfigid", "pcr8")


@click.command("digest")
@click.argument("file")
@click.option("--register", type=click.Choice(REGISTERS), help="Print this one alone.")
@click.option("--publish", metavar="NAME", help="Write the values to the cluster, as a ReferenceValueSet of this name.")
@cluster_options
@output_option
def digest(
    file: str, register: str | None, publish: str | None, kubeconfig: Path | None, context: str, output: str
) -> None:
    """Print what evidence shows for init data: HOSTDATA, MRCONFIGID and PCR 8."""
    found = registers(parsed(load(file), file))
    if register is not None:
        value = getattr(found, register)
        if value is None:
            raise CliError(f"there is no PCR 8: {found.pcr8_refusal}", "Use sha256 for guests with a vTPM.")
        click.echo(value)
    elif output == "json":
        values = {name: getattr(found, name) for name in REGISTERS}
        show_json({**values, "algorithm": found.algorithm, "pcr8Refused": found.pcr8_refusal})
    else:
        click.echo(table(_rows(found)))
    if publish:
        with reported_errors():
            asyncio.run(_publish(found, publish, kubeconfig, context))
        tell(f"{publish}: published")


def _rows(found: Registers) -> list[tuple[str, str]]:
    return [
        ("digest", f"{found.algorithm}:{found.digest}"),
        ("HOSTDATA", found.hostdata),
        ("MRCONFIGID", found.mrconfigid),
        ("PCR 8", found.pcr8 or f"refused: {found.pcr8_refusal}"),
    ]


async def _publish(found: Registers, name: str, kubeconfig: Path | None, context: str) -> None:
    kind = find_kind("fastness.dev", "v1alpha1", "referencevaluesets").resource
    wanted: Any = reference_value_set(found, name)
    async with connected(kubeconfig, context) as cluster:
        try:
            await cluster.create(kind, wanted)
        except AlreadyExists:
            known = await cluster.get(kind, name)
            if "fastness.dev/init-data" not in (known["metadata"].get("labels") or {}):
                raise CliError(f"{name} holds other values", "Choose another name.") from None
            patch = {"metadata": {"labels": wanted["metadata"]["labels"]}, "spec": {"values": wanted["spec"]["values"]}}
            await cluster.patch(kind, name, patch, PatchType.MERGE)
