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

NAME is the name of a Machine, of its node, its id, or a beginning of one of them that fits only one. A decision is one field,
`spec.approval`, so `kubectl` can do the same; the control plane puts it on the record before an approval counts. STATE is that
decision; ATTESTED is how the machine stands, in the words of every surface (`attestation.verdict.machine_standing`).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fastness.cli.errors import CliError, reported_errors
from fastness.cli.exits import Exit
from fastness.cli.images.machine_image import image
from fastness.cli.output import output_option, show_json, table, tell
from fastness.cli.trust.disputes import approve_chip, settle
from fastness.cli.trust.tickets import cluster_options

if TYPE_CHECKING:
    from fastness.attestation.machine.decisions import Decision, DecisionState
    from fastness.attestation.verdict.machine_standing import MachineStanding
    from fastness.kinds.kind import JsonObject
    from fastness.kinds.trusted_execution.machine import Machine
    from fastness.kube.port import Cluster

_STATES = ("Pending", "Approved", "Quarantined", "Revoked")
_REASON = click.option("--reason", default="", help="Why; kept on the Machine and in the record.")
_NAMES = click.argument("names", nargs=-1, required=True)


@click.group()
def machine() -> None:
    """Machines that enrolled: list, approve, quarantine; and the images that they boot."""


machine.add_command(approve_chip)
machine.add_command(image)
machine.add_command(settle)


@machine.command("list")
@click.option("--pool", default="", help="Only machines of this pool.")
@click.option("--state", type=click.Choice(_STATES), help="Only machines in this state.")
@cluster_options
@output_option
def list_machines(pool: str, state: str | None, kubeconfig: Path | None, context: str, output: str) -> None:
    """List machines, newest last."""
    with reported_errors():
        found = asyncio.run(_list(pool, state or "", kubeconfig, context))
    if output == "json":
        show_json(found)
        return
    if not found:
        tell("no machines")
        return
    rows = [["NAME", "POOL", "NODE", "TEE", "STATE", "ATTESTED", "REASON", "ENROLLED", "NOTES"]]
    rows += [
        [
            entry["name"], entry["pool"] or "-", entry["node"] or "-", entry["tee"] or "-", entry["state"],
            entry["attested"], entry["why"], entry["enrolled"], ", ".join(entry["notes"]) or "-",
        ]
        for entry in found
    ]  # fmt: skip
    click.echo(table(rows))


@machine.command()
@click.argument("name")
@cluster_options
@output_option
def show(name: str, kubeconfig: Path | None, context: str, output: str) -> None:
    """Say everything that is known about a machine."""
    with reported_errors():
        found = asyncio.run(_show(name, kubeconfig, context))
    if output == "json":
        show_json(found)
        return
    for key, value in found.items():
        if key != "conditions" and value not in ("", [], None):
            shown = ", ".join(value) if isinstance(value, list) else value
            click.echo(f"{key + ':':<14}{shown}")
    for entry in found["conditions"]:
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


async def patch_machine(cluster: Cluster, found: JsonObject, patch: JsonObject) -> None:
    """Write what a person decided on a Machine; raises ApiError."""
    from fastness.kinds.trusted_execution.machine import MACHINE
    from fastness.kube.port import PatchType, WriteOptions

    meta, options = found["metadata"], WriteOptions(manager="fastness-cli")
    await cluster.patch(MACHINE.resource, meta["name"], patch, PatchType.MERGE, meta["namespace"], options)


@machine.command()
@click.argument("names", nargs=-1)
@click.option("--all", "everybody", is_flag=True, help="Every machine whose status is not signed, as after an upgrade.")
@click.option("--reason", required=True, help="Why; kept in the record.")
@cluster_options
def vouch(names: tuple[str, ...], everybody: bool, reason: str, kubeconfig: Path | None, context: str) -> None:
    """Vouch for the statuses of machines as they stand, though the control plane did not write them."""
    from fastness.cli.trust.vouching import vouch_for

    if bool(names) == everybody:
        raise CliError("name machines, or say --all", "`fastness doctor` names those that need it.", Exit.USAGE)
    with reported_errors():
        done = asyncio.run(vouch_for(names, reason, kubeconfig, context))
    for line in done:
        click.echo(line)
    if not done:
        tell("the control plane wrote the status of every machine: nobody has to vouch for one")


async def _move(name: str, pool: str, reason: str, kubeconfig: Path | None, context: str) -> tuple[str, bool]:
    """The Machine's name, and whether it was in another pool."""
    from fastness.kinds.machineconfiguration.pool import MACHINE_CONFIG_POOL
    from fastness.kube.errors import NotFound

    async with connected(kubeconfig, context) as cluster:
        found = one_of(await all_machines(cluster), name)
        meta, status = found["metadata"], found.get("status") or {}
        if pool == (found["spec"].get("pool") or status.get("pool")):
            return meta["name"], False
        try:
            await cluster.get(MACHINE_CONFIG_POOL.resource, pool)
        except NotFound as error:
            raise CliError(f"there is no pool {pool}", "See `kubectl get machineconfigpools`.", Exit.NO) from error
        patch = {"metadata": {"resourceVersion": meta["resourceVersion"]}, "spec": {"pool": pool, "poolReason": reason}}
        await patch_machine(cluster, found, patch)
        return meta["name"], True


def _decide(verb: str, names: Sequence[str], reason: str, kubeconfig: Path | None, context: str) -> None:
    with reported_errors():
        done = asyncio.run(_write(verb, names, reason, kubeconfig, context))
    for name, state, changed in done:
        click.echo(f"{name}: {state}{'' if changed else ' already'}")


@asynccontextmanager
async def connected(kubeconfig: Path | None, context: str) -> AsyncIterator[Cluster]:
    """The cluster that kubectl would find."""
    from fastness.kube.client import Surroundings, connect, find

    around = Surroundings(os.environ, Path.home())
    async with connect(find(around, kubeconfig=kubeconfig, context=context)) as cluster:
        yield cluster


async def _list(pool: str, state: str, kubeconfig: Path | None, context: str) -> list[dict[str, Any]]:
    async with connected(kubeconfig, context) as cluster:
        standing = await _standings(cluster)
        rows = [_row(entry, standing) for entry in await all_machines(cluster)]
    rows.sort(key=lambda row: (row["enrolled"], row["name"]))
    return [row for row in rows if row["pool"] == (pool or row["pool"]) and row["state"] == (state or row["state"])]


async def _show(name: str, kubeconfig: Path | None, context: str) -> dict[str, Any]:
    async with connected(kubeconfig, context) as cluster:
        found, standing = one_of(await all_machines(cluster), name), await _standings(cluster)
    status = found.get("status") or {}
    return {
        **_row(found, standing), "reason": found["spec"].get("approvalReason", ""), "id": found["spec"]["id"],
        "uid": found["metadata"]["uid"], "thumbprint": status.get("keyThumbprint", ""),
        "ticket": status.get("ticket", ""), "endorsement": (status.get("endorsement") or {}).get("key", ""),
        "root": (status.get("endorsement") or {}).get("root", ""), "chip": status.get("chip", ""),
        "awaitedChip": status.get("awaitedChip", ""), "approvedChip": found["spec"].get("chip", ""),
        "disputes": [f"{entry['shows']} since {entry['since']}" for entry in status.get("disputes") or ()],
        "supersedes": status.get("supersedes", ""),
        "verdict": status.get("lastVerdict", ""), "lastAttested": status.get("lastAttested", ""),
        "conditions": status.get("conditions") or [],
    }  # fmt: skip


async def _write(
    verb: str, names: Sequence[str], reason: str, kubeconfig: Path | None, context: str
) -> list[tuple[str, str, bool]]:
    """Take a decision about all of these machines, or about none; says the state of each and whether it changed."""
    from fastness.attestation.machine.decisions import DECISIONS, DecisionState, decision_patch

    decision = DECISIONS[verb]
    async with connected(kubeconfig, context) as cluster:
        known = await all_machines(cluster)
        chosen = [one_of(known, name) for name in names]
        standings = [_standing(found, decision) for found in chosen]
        for found, standing in zip(chosen, standings, strict=True):
            if standing is DecisionState.OPEN:
                await patch_machine(cluster, found, decision_patch(found, decision, reason))
        return [
            (found["metadata"]["name"], decision.membership.lower(), standing is DecisionState.OPEN)
            for found, standing in zip(chosen, standings, strict=True)
        ]


def _standing(found: JsonObject, decision: Decision) -> DecisionState:
    """How a machine stands to a decision; raises CliError where it makes no sense."""
    from fastness.attestation.machine.decisions import DecisionState, standing, way_out
    from fastness.kinds.objects import view
    from fastness.kinds.trusted_execution.machine import Machine
    from fastness.kinds.trusted_execution.membership import membership_of

    seen = view(found, Machine)
    if standing(seen, decision) is DecisionState.CLOSED:
        raise CliError(f"{seen.metadata.name} is {membership_of(seen).lower()}", way_out(seen), Exit.NO)
    return standing(seen, decision)


async def all_machines(cluster: Cluster) -> list[JsonObject]:
    """Every Machine of the cluster; raises ApiError."""
    from fastness.kinds.fastness_dev import NAMESPACE
    from fastness.kinds.trusted_execution.machine import MACHINE
    from fastness.kube.port import Scope

    return (await cluster.list(MACHINE.resource, Scope(NAMESPACE))).items


async def one_machine(cluster: Cluster, name: str) -> JsonObject:
    """The Machine that a name means; raises CliError, ApiError."""
    return one_of(await all_machines(cluster), name)


def one_of(machines: Sequence[JsonObject], name: str) -> JsonObject:
    """The machine that a name means; raises CliError for none and for several."""

    def names(found: JsonObject) -> tuple[str, ...]:
        status = found.get("status") or {}
        key = status.get("keyThumbprint", "")
        return (
            found["metadata"]["name"],
            found["metadata"]["name"].removeprefix("machine-"),
            key,
            key.removeprefix("sha256:"),
            status.get("nodeName", ""),
            found["spec"]["id"],
            found["metadata"]["uid"],
        )

    exact = [found for found in machines if name in names(found)]
    near = exact or [found for found in machines if any(known.startswith(name) for known in names(found))]
    if len(near) == 1:
        return near[0]
    if not near:
        raise CliError(f"there is no machine {name}", "See `fastness machine list`.", Exit.NO)
    several = ", ".join(sorted(found["metadata"]["name"] for found in near)[:5])
    raise CliError(f"{name} means several machines: {several}", "Give more of the name.", Exit.USAGE)


async def _standings(cluster: Cluster) -> Callable[[Machine], MachineStanding]:
    from fastness.cli.trust.standings import standings

    return await standings(cluster)


def _row(found: JsonObject, standing: Callable[[Machine], MachineStanding]) -> dict[str, Any]:
    from fastness.attestation.verdict.dispute import HIDDEN, told_disputes
    from fastness.attestation.verdict.machine_standing import FIRST_USE, identity_notes
    from fastness.kinds.objects import condition, view
    from fastness.kinds.trusted_execution.machine import CHIP_BARRED, Machine
    from fastness.kinds.trusted_execution.membership import membership_of
    from fastness.kinds.trusted_execution.subject import Endorsement

    seen = view(found, Machine)
    stands = standing(seen)
    notes = [*stands.caveats]
    if seen.status.endorsed_by == Endorsement.FIRST_USE and FIRST_USE not in notes:
        notes.append(FIRST_USE)
    if seen.status.supersedes:
        notes.append("replaces another")
    if seen.status.chip == HIDDEN:
        notes.append("chip hidden by its provider")
    notes += [*identity_notes(seen), *told_disputes(seen)]
    if (waits := condition(found, "Approved") or {}).get("reason") == CHIP_BARRED:
        notes.append(str(waits.get("message", "")))
    elif seen.spec.approval == "Pending" and seen.spec.approval_reason:
        notes.append(seen.spec.approval_reason)
    return {
        "name": seen.metadata.name, "pool": seen.status.pool, "node": seen.status.node_name, "tee": seen.status.tee,
        "state": str(membership_of(seen)), "attested": str(stands.state), "why": stands.reason,
        "enrolled": seen.metadata.creation_timestamp or "", "notes": notes,
    }  # fmt: skip
