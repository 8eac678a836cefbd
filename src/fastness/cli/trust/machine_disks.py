"""`fastness machine disk list|rekey|accept|recover` and `fastness machine delete`: the encrypted disks of machines, their end.

Each is a field or an annotation of the Machine, so that `kubectl` can do the same, and each goes on the record with the person:

    rekey    annotation fastness.dev/rekey-disk: <volume>          the next boot gets both keys and keeps the new one
    accept   spec.disks[]{volume, accepted, reason}                up to the copy that is in doubt now, and no later one
    recover  annotation fastness.dev/recover-disk, signed by two   (`disk_recovery.py`)
    delete   the Machine                                           its keys are destroyed; what is on its disks is lost
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import click

from fastness.attestation.admission.disk_keys import lost_disks
from fastness.cli.cluster import cluster_options, connected
from fastness.cli.errors import CliError, Exit
from fastness.cli.output import output_option, show_json, table, tell
from fastness.cli.room_errors import reported_errors
from fastness.cli.trust.disk_recovery import recover
from fastness.cli.trust.enrolled_machines import all_machines, machine_named, patch_machine
from fastness.disks.told import told_recovery, told_volumes
from fastness.disks.volumes import RECOVERABLE, WEAKER, is_pinned, volume_of
from fastness.kinds.fastness_dev.cluster import REASON
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import view
from fastness.kinds.trusted_execution.disks import VolumeStatus
from fastness.kinds.trusted_execution.machine import MACHINE, REKEY, Machine
from fastness.kube.port import DeleteOptions

_WHY = click.option("--reason", required=True, help="Why; kept on the Machine and in the record.")


@click.group()
def disk() -> None:
    """The encrypted disks of machines: list, give a new key, accept one that is in doubt, recover."""


disk.add_command(recover)


@disk.command("list")
@click.option("--pool", default="", help="Only machines of this pool.")
@cluster_options
@output_option
def list_disks(pool: str, kubeconfig: Path | None, context: str, output: str) -> None:
    """List the encrypted volumes of machines, and the machines that have none although their pool asks for one."""
    with reported_errors():
        rows = asyncio.run(_list(pool, kubeconfig, context))
    if output == "json":
        show_json(rows)
        return
    if not rows:
        tell("no encrypted disks")
        return
    heads = ("machine", "volume", "state", "key", "made", "generation", "unlocked", "verdict", "recovery", "message")
    click.echo(table([[head.upper() for head in heads], *([str(row[head]) or "-" for head in heads] for row in rows)]))


@disk.command()
@click.argument("name")
@click.argument("volume")
@cluster_options
def rekey(name: str, volume: str, kubeconfig: Path | None, context: str) -> None:
    """Give a volume a new key at the machine's next boot; the old one is destroyed when the disk has the new one."""
    with reported_errors():
        machine = asyncio.run(_rekey(name, volume, kubeconfig, context))
    click.echo(f"{machine}: {volume} gets a new key at the next boot")


@disk.command()
@click.argument("name")
@click.argument("volume")
@_WHY
@cluster_options
def accept(name: str, volume: str, reason: str, kubeconfig: Path | None, context: str) -> None:
    """Take a volume as it is although an old copy of it, or another disk, was opened."""
    with reported_errors():
        machine = asyncio.run(_accept(name, volume, reason, kubeconfig, context))
    click.echo(f"{machine}: {volume} is taken as it is when the machine proves itself again")


@click.command()
@click.argument("name")
@_WHY
@click.option("--yes", is_flag=True, help="Do not ask: the keys of its disks are destroyed.")
@cluster_options
def delete(name: str, reason: str, yes: bool, kubeconfig: Path | None, context: str) -> None:
    """Forget a machine, and destroy the keys of its disks for good: nobody reads what is on them again."""
    with reported_errors():
        machine, lost = asyncio.run(_look(name, kubeconfig, context))
    if lost and not yes:
        click.confirm(f"{machine['metadata']['name']}: {lost}. Delete it?", abort=True)
    with reported_errors():
        asyncio.run(_delete(machine, reason, kubeconfig, context))
    click.echo(f"{machine['metadata']['name']}: deleted{f'; {lost}' if lost else ''}")


async def _list(pool: str, kubeconfig: Path | None, context: str) -> list[dict[str, Any]]:
    async with connected(kubeconfig, context) as cluster:
        machines = [view(entry, Machine) for entry in await all_machines(cluster)]
    return [row for machine in machines if pool in ("", machine.status.pool) for row in _rows(machine)]


def _rows(machine: Machine) -> list[dict[str, Any]]:
    name = machine.metadata.name
    blank = dict.fromkeys(("volume", "state", "key", "made", "generation", "unlocked", "verdict", "recovery"), "")
    if not machine.status.disks:
        return [{"machine": name, **blank, "state": "Open disk", "message": line} for line in told_volumes(machine)]
    recoverable = any(entry.type == RECOVERABLE for entry in machine.status.conditions)
    weaker = WEAKER if is_pinned(machine) else ""
    return [{"machine": name, **_row(entry, weaker, recoverable=recoverable)} for entry in machine.status.disks]


def _row(volume: VolumeStatus, note: str, *, recoverable: bool) -> dict[str, Any]:
    following = f" (then {volume.next_key_id})" if volume.next_key_id else ""
    return {
        "volume": volume.volume, "state": volume.state, "key": f"{volume.key_id}{following}", "made": volume.key_made or "",
        "generation": volume.generation, "unlocked": volume.unlocked_at or "", "verdict": volume.unlocked_by,
        "recovery": told_recovery(volume) or ("by two approvers, never used" if recoverable else ""),
        "message": volume.message or note,
    }  # fmt: skip


async def _rekey(name: str, volume: str, kubeconfig: Path | None, context: str) -> str:
    async with connected(kubeconfig, context) as cluster:
        enrolled = await machine_named(cluster, name)
        _volume(enrolled, volume)
        if is_pinned(view(enrolled, Machine)):
            why = "the Clevis pin cannot change the key of a disk"
            raise CliError(f"{volume} is opened by the Clevis pin", f"Replace the node: {why}.", Exit.NO)
        await patch_machine(cluster, enrolled, {"metadata": {**_version(enrolled), "annotations": {REKEY: volume}}})
        return str(enrolled["metadata"]["name"])


async def _accept(name: str, volume: str, reason: str, kubeconfig: Path | None, context: str) -> str:
    async with connected(kubeconfig, context) as cluster:
        enrolled = await machine_named(cluster, name)
        doubtful = _volume(enrolled, volume).doubtful
        if doubtful is None:
            raise CliError(f"nothing speaks against {volume}", "See `fastness machine disk list`.", Exit.NO)
        others = [entry for entry in enrolled["spec"].get("disks") or () if entry["volume"] != volume]
        # Up to the copy that the person saw: one that is put back after this moment is a question of its own.
        disks = [*others, {"volume": volume, "accepted": doubtful.since, "reason": reason}]
        await patch_machine(cluster, enrolled, {"metadata": _version(enrolled), "spec": {"disks": disks}})
        return str(enrolled["metadata"]["name"])


def _volume(enrolled: JsonObject, volume: str) -> VolumeStatus:
    """What is recorded of a volume; raises CliError."""
    typed = view(enrolled, Machine)
    recorded = volume_of(typed, volume)
    if recorded is None:
        volumes = ", ".join(entry.volume for entry in typed.status.disks) or "none"
        raise CliError(f"{typed.metadata.name} has no volume {volume}", f"It has {volumes}.", Exit.NO)
    return recorded


async def _look(name: str, kubeconfig: Path | None, context: str) -> tuple[JsonObject, str]:
    async with connected(kubeconfig, context) as cluster:
        enrolled = await machine_named(cluster, name)
    return enrolled, lost_disks(view(enrolled, Machine))


async def _delete(enrolled: JsonObject, reason: str, kubeconfig: Path | None, context: str) -> None:
    meta = enrolled["metadata"]
    async with connected(kubeconfig, context) as cluster:
        # The reason of a deletion is read from the object that goes: there is no other place for it.
        await patch_machine(cluster, enrolled, {"metadata": {"annotations": {REASON: reason}}})
        await cluster.delete(MACHINE.resource, meta["name"], meta["namespace"], DeleteOptions(uid=meta["uid"]))


def _version(enrolled: JsonObject) -> JsonObject:
    return {"resourceVersion": enrolled["metadata"]["resourceVersion"]}
