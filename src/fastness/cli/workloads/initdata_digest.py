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
from fastness.kinds.fastness_dev.reference_values import REFERENCE_VALUE_SET
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
    measured = registers(parsed(load(file), file))
    if register is not None:
        value = getattr(measured, register)
        if value is None:
            raise CliError(f"there is no PCR 8: {measured.pcr8_refusal}", "Use sha256 for guests with a vTPM.")
        click.echo(value)
    elif output == "json":
        values = {name: getattr(measured, name) for name in REGISTERS}
        show_json({**values, "algorithm": measured.algorithm, "pcr8Refused": measured.pcr8_refusal or ""})
    else:
        click.echo(table(_rows(measured)))
    if publish:
        with reported_errors():
            asyncio.run(_publish(measured, publish, kubeconfig, context))
        tell(f"{publish}: published")


def _rows(measured: Registers) -> list[tuple[str, str]]:
    return [
        ("digest", f"{measured.algorithm}:{measured.digest}"),
        ("HOSTDATA", measured.hostdata),
        ("MRCONFIGID", measured.mrconfigid),
        ("PCR 8", measured.pcr8 or f"refused: {measured.pcr8_refusal}"),
    ]


async def _publish(measured: Registers, name: str, kubeconfig: Path | None, context: str) -> None:
    kind = REFERENCE_VALUE_SET.resource
    value_set: Any = reference_value_set(measured, name)
    async with connected(kubeconfig, context) as cluster:
        try:
            await cluster.create(kind, value_set)
        except AlreadyExists:
            existing = await cluster.get(kind, name)
            if "fastness.dev/init-data" not in (existing["metadata"].get("labels") or {}):
                raise CliError(f"{name} holds other values", "Choose another name.") from None
            patch = {
                "metadata": {"labels": value_set["metadata"]["labels"]},
                "spec": {"values": value_set["spec"]["values"]},
            }
            await cluster.patch(kind, name, patch, PatchType.MERGE)
