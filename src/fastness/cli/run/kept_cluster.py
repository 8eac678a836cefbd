"""`fastness backup` and `restore` for a Kubernetes."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from fastness.apiserver import BackupReport
from fastness.app.keeping.cluster_backup import make_cluster_backup
from fastness.app.keeping.cluster_restore import Kept, RestoredCluster, read_backup, restore_cluster
from fastness.cli.cluster import connected
from fastness.cli.output import show_json
from fastness.formats.words import counted
from fastness.keys.vault import Vault
from fastness.runtime.clock import SystemClock, SystemEntropy

SHOWN = 5


def back_up_cluster(kubeconfig: Path | None, context: str, target: Path, vault: Vault) -> BackupReport:
    """Write a copy of what a cluster holds of ours; raises ApiError, StoreError, DamagedRecord."""

    async def work() -> BackupReport:
        async with connected(kubeconfig, context) as cluster:
            return await make_cluster_backup(cluster, target, vault, SystemClock().now())

    return asyncio.run(work())


def restore_into_cluster(
    kubeconfig: Path | None, context: str, source: Path, vault: Vault, broker_vault: Vault | None, output: str
) -> None:
    """Put a copy into a cluster and say what came of it; raises OtherBackup, ApiError, StoreError, DamagedRecord."""
    backup = read_backup(source, vault)

    async def work(backup: Kept) -> RestoredCluster:
        async with connected(kubeconfig, context) as cluster:
            return await restore_cluster(backup, cluster, SystemClock().now(), SystemEntropy(), broker_vault)

    done = asyncio.run(work(backup))
    if output == "json":
        show_json({
            "objects": done.objects, "machines": done.machines, "entries": done.entries, "present": done.present,
            "leftOut": done.left_out,
        })  # fmt: skip
        return
    machines, entries = counted(done.machines, "machine"), counted(done.entries, "entry", "entries")
    click.echo(
        f"{counted(done.objects, 'object')} of {backup.facts['made']}, {machines} and {entries} of the record among them"
    )
    if done.present:
        click.echo(f"{counted(done.present, 'object')} of kinds of others were there already and stay as they are")
    if done.left_out:
        click.echo(
            f"left out, because their kind or owner is not there: {', '.join(done.left_out[:SHOWN])}"
            + (f" and {len(done.left_out) - SHOWN} more" if len(done.left_out) > SHOWN else "")
        )
    click.echo("Install accounts and roles now, as you did before: they find their keys and go on.")
