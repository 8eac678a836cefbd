"""`fastness machine vouch`: a person says that statuses are right which nobody of the control plane signed.

What is vouched for is the status as it was read here, by its digest: if somebody writes into it meanwhile, it counts for nothing.
The controllers sign it and take the digest away again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import click

from fastness.attestation.live.statuses import Statuses
from fastness.attestation.machine.signed_status import is_disbelieved, vouched_digest
from fastness.cli.cluster import cluster_options, connected
from fastness.cli.errors import CliError, Exit
from fastness.cli.output import tell
from fastness.cli.room_errors import reported_errors
from fastness.cli.trust.enrolled_machines import all_machines, named_among, patch_machine
from fastness.kinds.kind import JsonObject
from fastness.runtime.clock import SystemClock, SystemEntropy


@click.command()
@click.argument("names", nargs=-1)
@click.option("--all", "everybody", is_flag=True, help="Every machine whose status is not signed, as after an upgrade.")
@click.option("--reason", required=True, help="Why; kept in the record.")
@cluster_options
def vouch(names: tuple[str, ...], everybody: bool, reason: str, kubeconfig: Path | None, context: str) -> None:
    """Vouch for the statuses of machines as they stand, though the control plane did not write them."""
    if bool(names) == everybody:
        raise CliError("name machines, or say --all", "`fastness doctor` names those that need it.", Exit.USAGE)
    with reported_errors():
        lines = asyncio.run(_vouch_for(names, reason, kubeconfig, context))
    for line in lines:
        click.echo(line)
    if not lines:
        tell("the control plane wrote the status of every machine: nobody has to vouch for one")


async def _vouch_for(names: Sequence[str], reason: str, kubeconfig: Path | None, context: str) -> list[str]:
    """Vouch for these machines, or for all that need it; a line for each. Raises CliError, ApiError."""
    async with connected(kubeconfig, context) as cluster:
        machines = await all_machines(cluster)
        chosen = [named_among(machines, name) for name in names] if names else machines
        judge, lines = Statuses(None, cluster, SystemClock(), SystemEntropy()), []
        for machine in chosen:
            meta = machine["metadata"]
            if not is_disbelieved(await judge.judged(machine)):
                lines += [f"{meta['name']}: the control plane wrote its status"] if names else []
                continue
            spec = {"vouched": vouched_digest(machine), "vouchedReason": reason}
            # With its version: a status that somebody writes after it was read here is not what the person saw.
            patch = {"metadata": {"resourceVersion": meta["resourceVersion"]}, "spec": spec}
            await patch_machine(cluster, machine, patch)
            lines.append(f"{meta['name']}: vouched for{_summary(machine)}")
    return lines


def _summary(machine: JsonObject) -> str:
    """What the person vouches for, in short: the parts of a status that open something."""
    status = machine.get("status") or {}
    fields = {"pool": "pool", "node": "nodeName", "key": "keyThumbprint", "chip": "chip", "attested": "lastAttested"}
    facts = [f"{word} {status[field]}" for word, field in fields.items() if status.get(field)]
    return f" ({', '.join(facts)})" if facts else ""
