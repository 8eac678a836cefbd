"""`fastness machine approve-chip|settle`: what a person decides about evidence in a machine's name that is not its own.

The first moves a machine to the chip that is named, the second says that somebody looked. Both are fields of the spec, so that
`kubectl` can do the same, and both go on the record with the person and the reason (`attestation.verdict.dispute`).
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from fastness.attestation.machine.decisions import ChipUnclear, chip_patch, named_chip, settle_patch
from fastness.cli.cluster import cluster_options, connected
from fastness.cli.errors import CliError, Exit
from fastness.cli.room_errors import reported_errors
from fastness.cli.trust.enrolled_machines import machine_named, patch_machine
from fastness.kinds.objects import view
from fastness.kinds.trusted_execution.machine import Machine


@click.command("approve-chip")
@click.argument("name")
@click.argument("chip")
@click.option("--reason", required=True, help="Why; kept on the Machine and in the record.")
@cluster_options
def approve_chip(name: str, chip: str, reason: str, kubeconfig: Path | None, context: str) -> None:
    """Let a machine move to another chip: snp:… or tdx:…, whole, or the beginning of one that its evidence showed."""
    with reported_errors():
        where, approved = asyncio.run(_approve_chip(name, chip, reason, kubeconfig, context))
    click.echo(f"{where}: may prove itself on {approved}")


@click.command()
@click.argument("name")
@click.option("--reason", required=True, help="What came of it; kept on the Machine and in the record.")
@cluster_options
def settle(name: str, reason: str, kubeconfig: Path | None, context: str) -> None:
    """Say that you looked at evidence in a machine's name that was not its own; nothing else changes."""
    with reported_errors():
        where, changed = asyncio.run(_settle(name, reason, kubeconfig, context))
    click.echo(f"{where}: {'settled' if changed else 'nothing is disputed'}")


async def _approve_chip(name: str, chip: str, reason: str, kubeconfig: Path | None, context: str) -> tuple[str, str]:
    """The Machine's name, and the chip that it may be on from now on."""
    async with connected(kubeconfig, context) as cluster:
        enrolled = await machine_named(cluster, name)
        try:
            approved = named_chip(view(enrolled, Machine), chip)
        except ChipUnclear as error:
            raise CliError(str(error), "Give more of it, as `fastness machine show` has it.", Exit.USAGE) from error
        await patch_machine(cluster, enrolled, chip_patch(enrolled, approved, reason))
        return enrolled["metadata"]["name"], approved


async def _settle(name: str, reason: str, kubeconfig: Path | None, context: str) -> tuple[str, bool]:
    """The Machine's name, and whether anything was disputed."""
    async with connected(kubeconfig, context) as cluster:
        enrolled = await machine_named(cluster, name)
        patch = settle_patch(enrolled, reason)
        if patch is not None:
            await patch_machine(cluster, enrolled, patch)
        return enrolled["metadata"]["name"], patch is not None
