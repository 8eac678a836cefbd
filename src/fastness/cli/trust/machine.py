"""`fastness machine`: the machines that enrolled, and what an administrator decides about them.

    fastness machine list [--pool P] [--state Pending]
    fastness machine show NAME
    fastness machine approve NAME… [--reason TEXT]
    fastness machine quarantine NAME… --reason TEXT
    fastness machine release NAME… [--reason TEXT]
    fastness machine approve-chip NAME CHIP --reason TEXT, settle NAME --reason TEXT        (`disputes.py`)
    fastness machine image ROOT --shape SHAPE        (`cli.images.machine_image`)
    fastness machine move NAME --pool P --reason TEXT
    fastness machine vouch NAME… --reason TEXT
    fastness machine disk list|rekey|accept|recover, delete NAME --reason TEXT        (`machine_disks.py`)

NAME is the name of a Machine, of its node, its id, or a beginning of one of them that fits only one. A decision is one field,
`spec.approval`, so `kubectl` can do the same; the control plane puts it on the record before an approval counts. STATE is that
decision; ATTESTED is how the machine stands, in the words of every surface (`attestation.verdict.machine_standing`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from fastness.attestation.machine.decisions import DECISIONS, Decision, DecisionState, decision_patch, standing, way_out
from fastness.attestation.verdict.dispute import HIDDEN, told_disputes
from fastness.attestation.verdict.machine_standing import FIRST_USE, MachineStanding, identity_notes
from fastness.cli.cluster import cluster_options, connected
from fastness.cli.errors import CliError, Exit
from fastness.cli.lazy import LazyGroup, Verb
from fastness.cli.output import output_option, show_json, table, tell
from fastness.cli.room_errors import reported_errors
from fastness.cli.trust.enrolled_machines import all_machines, named_among, patch_machine, standings
from fastness.disks.told import told_volumes
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration.pool import MACHINE_CONFIG_POOL
from fastness.kinds.objects import condition, view
from fastness.kinds.trusted_execution.machine import CHIP_BARRED, Machine
from fastness.kinds.trusted_execution.membership import membership_of
from fastness.kinds.trusted_execution.subject import Endorsement
from fastness.kube.errors import NotFound

_STATES = ("Pending", "Approved", "Quarantined", "Revoked")
_REASON = click.option("--reason", default="", help="Why; kept on the Machine and in the record.")
_NAMES = click.argument("names", nargs=-1, required=True)


VERBS: Mapping[str, Verb] = {
    "approve-chip": Verb("fastness.cli.trust.disputes:approve_chip", "Let a machine move to another chip."),
    "delete": Verb(
        "fastness.cli.trust.machine_disks:delete", "Forget a machine, and destroy the keys of its disks for good."
    ),
    "disk": Verb(
        "fastness.cli.trust.machine_disks:disk",
        "The encrypted disks of machines: list, give a new key, accept one that is in doubt, recover.",
    ),
    "image": Verb(
        "fastness.cli.images.machine_image:image",
        "Put the agent into an image, and close the ways by which its host could turn it.",
    ),
    "settle": Verb(
        "fastness.cli.trust.disputes:settle",
        "Say that you looked at evidence in a machine's name that was not its own.",
    ),
    "vouch": Verb("fastness.cli.trust.vouching:vouch", "Vouch for the statuses of machines as they stand."),
}


@click.group(cls=LazyGroup, verbs=VERBS)
def machine() -> None:
    """Machines that enrolled: list, approve, quarantine; and the images that they boot."""


@machine.command("list")
@click.option("--pool", default="", help="Only machines of this pool.")
@click.option("--state", type=click.Choice(_STATES), help="Only machines in this state.")
@cluster_options
@output_option
def list_machines(pool: str, state: str | None, kubeconfig: Path | None, context: str, output: str) -> None:
    """List machines, newest last."""
    with reported_errors():
        entries = asyncio.run(_list(pool, state or "", kubeconfig, context))
    if output == "json":
        show_json(entries)
        return
    if not entries:
        tell("no machines")
        return
    rows = [["NAME", "POOL", "NODE", "TEE", "STATE", "ATTESTED", "REASON", "ENROLLED", "NOTES"]]
    rows += [
        [
            entry["name"], entry["pool"] or "-", entry["node"] or "-", entry["tee"] or "-", entry["state"],
            entry["attested"], entry["why"], entry["enrolled"], ", ".join(entry["notes"]) or "-",
        ]
        for entry in entries
    ]  # fmt: skip
    click.echo(table(rows))


@machine.command()
@click.argument("name")
@cluster_options
@output_option
def show(name: str, kubeconfig: Path | None, context: str, output: str) -> None:
    """Say everything that is known about a machine."""
    with reported_errors():
        facts = asyncio.run(_show(name, kubeconfig, context))
    if output == "json":
        show_json(facts)
        return
    for key, value in facts.items():
        if key != "conditions" and value not in ("", [], None):
            text = ", ".join(value) if isinstance(value, list) else value
            click.echo(f"{key + ':':<14}{text}")
    for entry in facts["conditions"]:
        click.echo(f"  {entry['type']:<12}{entry['status']:<8}{entry.get('reason', ''):<16}{entry.get('message', '')}")


@machine.command()
@_NAMES
@_REASON
@cluster_options
def approve(names: tuple[str, ...], reason: str, kubeconfig: Path | None, context: str) -> None:
    """Let machines attest that wait for approval; where one waits because of its chip, on that chip."""
    _decide("approve", names, reason, kubeconfig, context)


@machine.command()
@_NAMES
@click.option("--reason", required=True, help="Why; kept on the Machine and in the record.")
@cluster_options
def quarantine(names: tuple[str, ...], reason: str, kubeconfig: Path | None, context: str) -> None:
    """Give machines nothing any more, from this moment on; new machines on their TPM or chip wait for approval."""
    _decide("quarantine", names, reason, kubeconfig, context)


@machine.command()
@_NAMES
@_REASON
@cluster_options
def release(names: tuple[str, ...], reason: str, kubeconfig: Path | None, context: str) -> None:
    """End the quarantine of machines: they may attest again."""
    _decide("release", names, reason, kubeconfig, context)


@machine.command()
@click.argument("name")
@click.option("--pool", required=True, help="The pool that it belongs to from now on.")
@click.option("--reason", required=True, help="Why; kept on the Machine and in the record.")
@cluster_options
def move(name: str, pool: str, reason: str, kubeconfig: Path | None, context: str) -> None:
    """Move a machine to another pool; it gets nothing there before it has proved itself anew."""
    with reported_errors():
        where, changed = asyncio.run(_move(name, pool, reason, kubeconfig, context))
    click.echo(f"{where}: {'moves to' if changed else 'is in'} pool {pool}{'' if changed else ' already'}")


async def _move(name: str, pool: str, reason: str, kubeconfig: Path | None, context: str) -> tuple[str, bool]:
    """The Machine's name, and whether it was in another pool."""
    async with connected(kubeconfig, context) as cluster:
        enrolled = named_among(await all_machines(cluster), name)
        meta, status = enrolled["metadata"], enrolled.get("status") or {}
        if pool == (enrolled["spec"].get("pool") or status.get("pool")):
            return meta["name"], False
        try:
            await cluster.get(MACHINE_CONFIG_POOL.resource, pool)
        except NotFound as error:
            raise CliError(f"there is no pool {pool}", "See `kubectl get machineconfigpools`.", Exit.NO) from error
        patch = {"metadata": {"resourceVersion": meta["resourceVersion"]}, "spec": {"pool": pool, "poolReason": reason}}
        await patch_machine(cluster, enrolled, patch)
        return meta["name"], True


def _decide(verb: str, names: Sequence[str], reason: str, kubeconfig: Path | None, context: str) -> None:
    with reported_errors():
        done = asyncio.run(_write(verb, names, reason, kubeconfig, context))
    for name, state, changed in done:
        click.echo(f"{name}: {state}{'' if changed else ' already'}")


async def _list(pool: str, state: str, kubeconfig: Path | None, context: str) -> list[dict[str, Any]]:
    async with connected(kubeconfig, context) as cluster:
        standing_of = await standings(cluster)
        rows = [_row(entry, standing_of) for entry in await all_machines(cluster)]
    rows.sort(key=lambda row: (row["enrolled"], row["name"]))
    return [row for row in rows if row["pool"] == (pool or row["pool"]) and row["state"] == (state or row["state"])]


async def _show(name: str, kubeconfig: Path | None, context: str) -> dict[str, Any]:
    async with connected(kubeconfig, context) as cluster:
        enrolled, standing_of = named_among(await all_machines(cluster), name), await standings(cluster)
    status = enrolled.get("status") or {}
    return {
        **_row(enrolled, standing_of), "reason": enrolled["spec"].get("approvalReason", ""), "id": enrolled["spec"]["id"],
        "uid": enrolled["metadata"]["uid"], "thumbprint": status.get("keyThumbprint", ""),
        "ticket": status.get("ticket", ""), "endorsement": (status.get("endorsement") or {}).get("key", ""),
        "root": (status.get("endorsement") or {}).get("root", ""), "chip": status.get("chip", ""),
        "awaitedChip": status.get("awaitedChip", ""), "approvedChip": enrolled["spec"].get("chip", ""),
        "disputes": [f"{entry['shows']} since {entry['since']}" for entry in status.get("disputes") or ()],
        "supersedes": status.get("supersedes", ""), "disks": list(told_volumes(view(enrolled, Machine))),
        "verdict": status.get("lastVerdict", ""), "lastAttested": status.get("lastAttested", ""),
        "conditions": status.get("conditions") or [],
    }  # fmt: skip


async def _write(
    verb: str, names: Sequence[str], reason: str, kubeconfig: Path | None, context: str
) -> list[tuple[str, str, bool]]:
    """Take a decision about all of these machines, or about none; says the state of each and whether it changed."""
    decision = DECISIONS[verb]
    async with connected(kubeconfig, context) as cluster:
        machines = await all_machines(cluster)
        chosen = [named_among(machines, name) for name in names]
        outcomes = [_standing(enrolled, decision) for enrolled in chosen]
        for enrolled, outcome in zip(chosen, outcomes, strict=True):
            if outcome is DecisionState.OPEN:
                await patch_machine(cluster, enrolled, decision_patch(enrolled, decision, reason))
        return [
            (enrolled["metadata"]["name"], decision.membership.lower(), outcome is DecisionState.OPEN)
            for enrolled, outcome in zip(chosen, outcomes, strict=True)
        ]


def _standing(enrolled: JsonObject, decision: Decision) -> DecisionState:
    """How a machine stands to a decision; raises CliError where it makes no sense."""
    typed = view(enrolled, Machine)
    if standing(typed, decision) is DecisionState.CLOSED:
        raise CliError(f"{typed.metadata.name} is {membership_of(typed).lower()}", way_out(typed), Exit.NO)
    return standing(typed, decision)


def _row(enrolled: JsonObject, standing_of: Callable[[Machine], MachineStanding]) -> dict[str, Any]:
    typed = view(enrolled, Machine)
    stands = standing_of(typed)
    notes = [*stands.caveats]
    if typed.status.endorsed_by == Endorsement.FIRST_USE and FIRST_USE not in notes:
        notes.append(FIRST_USE)
    if typed.status.supersedes:
        notes.append("replaces another")
    if typed.status.chip == HIDDEN:
        notes.append("chip hidden by its provider")
    notes += [*identity_notes(typed), *told_disputes(typed)]
    if (waits := condition(enrolled, "Approved") or {}).get("reason") == CHIP_BARRED:
        notes.append(str(waits.get("message", "")))
    elif typed.spec.approval == "Pending" and typed.spec.approval_reason:
        notes.append(typed.spec.approval_reason)
    return {
        "name": typed.metadata.name, "pool": typed.status.pool, "node": typed.status.node_name, "tee": typed.status.tee,
        "state": str(membership_of(typed)), "attested": str(stands.state), "why": stands.reason,
        "enrolled": typed.metadata.creation_timestamp or "", "notes": notes,
    }  # fmt: skip
