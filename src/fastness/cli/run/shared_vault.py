"""`fastness vault rotate` on a Kubernetes: the brokers are asked to turn the key that they share, and watched while they do.

Only annotations of the Secret are looked at and written here; its keys stay where they are.
"""

from __future__ import annotations

import asyncio
import getpass
import socket
from pathlib import Path
from typing import Final

import click

from fastness.cli.cluster import connected
from fastness.cli.errors import CliError, Exit
from fastness.cli.output import show_json
from fastness.cli.room_errors import reported_errors
from fastness.keys.authorities import ROTATE, SECRETS, found_secret
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.objects import annotations_of
from fastness.kube.port import Cluster, PatchType, WriteOptions
from fastness.release.live.vault_secret import NAME, RING
from fastness.release.live.vault_turning import LONGEST, ROTATED, ROTATING

LOOK_SECONDS: Final = 1.0
_AS: Final = WriteOptions(manager="rotation")


def ask_brokers(kubeconfig: Path | None, context: str, reason: str, wait: int, output: str) -> None:
    """Ask for a new key, and say what came of it; raises CliError."""
    why = f"{getpass.getuser()}@{socket.gethostname()}: {reason}"[:LONGEST]

    async def work() -> str:
        async with connected(kubeconfig, context) as cluster:
            before = await _asked(cluster, why)
            return await _followed(cluster, before, wait) if wait else ""

    with reported_errors():
        rotated = asyncio.run(work())
    if output == "json":
        show_json({"asked": why, "rotated": rotated})
    elif rotated:
        click.echo(f"rotated: {rotated}; backups from before need the Secret {NAMESPACE}/{NAME} as it is in them")
    else:
        click.echo("asked; the brokers do it while they serve")


async def _asked(cluster: Cluster, why: str) -> str:
    """Write the wish down; what was said of the last rotation before. Raises CliError, ApiError."""
    secret = await found_secret(cluster, NAME)
    if secret is None or RING not in (secret.get("data") or {}):
        raise CliError(
            f"the Secret {NAMESPACE}/{NAME} holds no key",
            "Where brokers keep it in a file (`serve --vault`), this verb is not for them; if it was lost, see "
            "docs/how-to/recover-the-vault-key.md.",
            Exit.MISSING,
        )
    patch = {"metadata": {"annotations": {ROTATE: why}}}
    await cluster.patch(SECRETS, NAME, patch, PatchType.MERGE, NAMESPACE, _AS)
    return annotations_of(secret).get(ROTATED, "")


async def _followed(cluster: Cluster, before: str, wait: int) -> str:
    """What the brokers say of it when they are done; raises CliError, ApiError."""
    sealing = False
    for _ in range(wait):
        notes = annotations_of(await found_secret(cluster, NAME) or {})
        if ROTATING in notes and not sealing:
            sealing = True
            click.echo("a new key seals; what the one before sealed is sealed anew", err=True)
        if ROTATE not in notes and ROTATING not in notes and notes.get(ROTATED, "") != before:
            return notes[ROTATED]
        await asyncio.sleep(LOOK_SECONDS)
    if not sealing:
        raise CliError(
            f"no broker has begun within {wait} seconds",
            "See that brokers run with --vault-secret, and read their log. The wish stays until one does.",
            Exit.NO,
        )
    raise CliError(
        f"the brokers are not done within {wait} seconds",
        "They go on by themselves; ask again with `kubectl get secret broker-vault -n fastness-system`, or read their log.",
        Exit.NO,
    )
