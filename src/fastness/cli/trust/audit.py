"""`fastness audit`: read the record of what was decided, and prove it to somebody who trusts none of us.

    fastness audit show --last 20                   what happened, newest last
    fastness audit export DIR                       everything, in the layout of C2SP tlog-tiles
    fastness audit prove 17 > proof.json            one entry with its proof and the signed checkpoint
    fastness audit verify DIR|proof.json --key K    offline, by a verifier of its own; --against an older checkpoint,
                                                    --witness the key of somebody who watched it grow
    fastness audit restart --reason TEXT            go on under a new name, after an older backup was restored

The record lies in ConfigMaps of the cluster, or beside the kubeconfig of an embedded one (`--tiles` names another place). Doors
write what they decide before they act on it, and the record takes it in up to a second later; whoever reads waits for that.
"""

from __future__ import annotations

import asyncio
import base64
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import click

from fastness.cli.cluster import cluster_options, connected, named_kubeconfig
from fastness.cli.errors import CliError, Exit
from fastness.cli.output import output_option, show_json, table, tell
from fastness.cli.room_errors import reported_errors
from fastness.cli.trust.audit_verify import Quorum, Verified, verify_directory, verify_proof
from fastness.formats import json
from fastness.formats.tlog import TlogError
from fastness.formats.words import counted
from fastness.kinds.fastness_dev.audit import AUDIT_BATCH, AUDIT_CHECKPOINT
from fastness.kube.errors import Forbidden
from fastness.kube.port import Cluster
from fastness.record.entry import because
from fastness.record.live.epoch import restart as next_epoch
from fastness.record.live.log_key import known_keys
from fastness.record.live.reader import OpenRecord, open_record
from fastness.record.live.tiles import ConfigMapTiles, FileTiles, TileStore
from fastness.runtime.clock import SystemClock

LATELY = 500
TAKEN_IN_TRIES = 30
TAKEN_IN_PAUSE = 0.1
_TILES = click.option(
    "--tiles",
    type=click.Path(path_type=Path, file_okay=False),
    help="Directory of tiles; default as the cluster keeps them.",
)


@click.group()
def audit() -> None:
    """The record of what was decided, and proofs of it."""


@audit.command()
@click.option("--what", default="", help="Only entries of this kind, such as release or refusal.")
@click.option("--who", default="", help="Only entries about this key or user; a beginning is enough.")
@click.option("--last", type=click.IntRange(1, 100_000), default=50, show_default=True, help="How many at most.")
@_TILES
@cluster_options
@output_option
def show(
    what: str, who: str, last: int, tiles: Path | None, kubeconfig: Path | None, context: str, output: str
) -> None:
    """Print the newest entries, oldest of them first."""
    with reported_errors():
        entries = asyncio.run(_show(what, who, last, tiles, kubeconfig, context))
    if output == "json":
        show_json(entries)
        return
    rows = [["INDEX", "TIME", "WHAT", "WHO", "RESOURCE", "BECAUSE"]]
    for entry in entries:
        ground = because(entry)
        rows.append(
            [str(entry["index"]), entry["time"], entry["what"], _short(entry["who"]), entry.get("resource", ""), ground]
        )
    click.echo(table(rows))


@audit.command()
@cluster_options
def key(kubeconfig: Path | None, context: str) -> None:
    """Print the keys that have signed checkpoints; keep them where the cluster cannot change them."""
    with reported_errors():
        for line in asyncio.run(_keys(kubeconfig, context)):
            click.echo(line)


@audit.command()
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False))
@_TILES
@cluster_options
def export(directory: Path, tiles: Path | None, kubeconfig: Path | None, context: str) -> None:
    """Write the whole record with its newest checkpoint to DIRECTORY."""
    if directory.exists() and any(directory.iterdir()):
        raise CliError(f"{directory} is not empty", "Name a directory that does not exist yet.", Exit.USAGE)
    with reported_errors():
        size = asyncio.run(_export(directory, tiles, kubeconfig, context))
    tell(
        f'{counted(size, "entry", "entries")}; verify with: fastness audit verify {directory} --key "$(fastness audit key)"'
    )


@audit.command()
@click.argument("index", type=click.IntRange(0))
@click.option("--since", type=click.IntRange(1), help="Also prove that the record of this size is the beginning.")
@_TILES
@cluster_options
def prove(index: int, since: int | None, tiles: Path | None, kubeconfig: Path | None, context: str) -> None:
    """Print entry INDEX with the proof that it is in the record."""
    with reported_errors():
        show_json(asyncio.run(_prove(index, since, tiles, kubeconfig, context)))


@audit.command()
@click.option("--reason", required=True, help="Why the record goes on under a new name; it is the first entry of it.")
@cluster_options
def restart(reason: str, kubeconfig: Path | None, context: str) -> None:
    """Let a record that was cut or rolled back go on under a new name; witnesses must be told the new key."""
    if not reason.strip():
        raise CliError("--reason is empty", "Say why, such as: restored the backup of Monday.", Exit.USAGE)
    with reported_errors():
        number = asyncio.run(_restart(reason.strip(), kubeconfig, context))
    tell(
        f"the record goes on as its epoch {number}; give its new key (`fastness audit key`) to witnesses and verifiers"
    )


@audit.command()
@click.argument("exported", type=click.Path(exists=True, path_type=Path))
@click.option("--key", "keys", multiple=True, help="A key as `fastness audit key` prints it; repeatable.")
@click.option(
    "--against", "older", multiple=True, type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="An older checkpoint that must be a beginning of this record; repeatable.",
)  # fmt: skip
@click.option("--witness", "witnesses", multiple=True, help="A key as `fastness witness key` prints it; repeatable.")
@click.option("--quorum", type=click.IntRange(1), help="How many of the witnesses must have cosigned; default all.")
@output_option
def verify(
    exported: Path,
    keys: tuple[str, ...],
    older: tuple[Path, ...],
    witnesses: tuple[str, ...],
    quorum: int | None,
    output: str,
) -> None:
    """Verify an export or a proof, offline: exit 0 good, 1 not, 2 unreadable."""
    if not keys:
        raise CliError(
            "no key to verify with", "Give --key, out of `fastness audit key`, kept in a safe place.", Exit.USAGE
        )
    with reported_errors():
        needed = Quorum.parse(witnesses, quorum)
    outcome: Verified = (verify_directory if exported.is_dir() else verify_proof)(exported, keys, older, needed)
    if output == "json":
        show_json(outcome.to_json())
    else:
        click.echo(outcome.text)
    raise SystemExit(Exit.OK if outcome.good else Exit.NO)


async def _show(
    what: str, who: str, last: int, tiles: Path | None, kubeconfig: Path | None, context: str
) -> list[dict[str, Any]]:
    newest: deque[dict[str, Any]] = deque(maxlen=last)
    async with _opened(tiles, kubeconfig, context) as record:
        # Without a filter the newest entries are at the end; with one, all are looked at.
        start = 0 if what or who else max(0, record.size - last)
        async for index, data in record.view.entries(start):
            entry = json.decode(data)
            if entry["what"] == (what or entry["what"]) and entry["who"].startswith(who):
                newest.append({"index": index, **entry})
    return list(newest)


async def refusals_of(who: str, kubeconfig: Path | None, context: str) -> list[dict[str, Any]]:
    """What was refused lately in the name of a key, oldest first; raises CliError, ApiError, TrustError."""
    async with _opened(None, kubeconfig, context, complete=False) as record:
        entries = [json.decode(data) async for _, data in record.view.entries(max(0, record.size - LATELY))]
    return [entry for entry in entries if entry["what"] == "refusal" and entry["who"] == who]


async def _keys(kubeconfig: Path | None, context: str) -> list[str]:
    async with _connected(kubeconfig, context) as (cluster, _):
        return [str(key) for key in await known_keys(cluster)]


async def _restart(reason: str, kubeconfig: Path | None, context: str) -> int:
    async with _connected(kubeconfig, context) as (cluster, _):
        return (await next_epoch(cluster, reason, SystemClock().now())).number


async def _export(directory: Path, tiles: Path | None, kubeconfig: Path | None, context: str) -> int:
    target = FileTiles(directory)
    async with _opened(tiles, kubeconfig, context) as record:
        async for path, data in record.view.pieces():
            await target.write(path, data)
        await target.write("checkpoint", record.note.encode())
        return record.size


async def _prove(
    index: int, since: int | None, tiles: Path | None, kubeconfig: Path | None, context: str
) -> dict[str, Any]:
    async with _opened(tiles, kubeconfig, context) as record:
        if index >= record.size:
            raise CliError(f"there is no entry {index}: the record has {record.size}", code=Exit.NO)
        view = record.view
        (data,) = [leaf async for _, leaf in view.entries(index, index + 1)]
        proof: dict[str, Any] = {
            "index": index,
            "leaf": base64.b64encode(data).decode(),
            "entry": json.decode(data),
            "inclusion": [base64.b64encode(step).decode() for step in await view.inclusion(index)],
            "checkpoint": record.note,
        }
        if since is not None:
            if since > record.size:
                raise CliError(
                    f"the record never had {counted(since, 'entry', 'entries')}: it has {record.size}", code=Exit.NO
                )
            hashes = [base64.b64encode(step).decode() for step in await view.consistency(since)]
            proof["consistency"] = {"size": since, "hashes": hashes}
        return proof


@asynccontextmanager
async def _connected(kubeconfig: Path | None, context: str) -> AsyncIterator[tuple[Cluster, Path | None]]:
    """The cluster, and the directory of its kubeconfig where it has one."""
    named = named_kubeconfig(kubeconfig)
    async with connected(kubeconfig, context) as cluster:
        yield cluster, named.parent if named else None


@asynccontextmanager
async def _opened(
    tiles: Path | None, kubeconfig: Path | None, context: str, *, complete: bool = True
) -> AsyncIterator[OpenRecord]:
    """The record at its newest checkpoint; raises CliError for an empty and for a damaged one.

    A `complete` one has everything that was decided before it was opened.
    """
    async with _connected(kubeconfig, context) as (cluster, beside):
        if complete:
            await _taken_in(cluster)
            await _cosigned(cluster)
        record = await open_record(cluster, FileTiles(tiles) if tiles else tiles_of(cluster, beside))
        if record is None:
            raise CliError("the record is empty", "Nothing was decided yet, or no controllers run.", Exit.NO)
        try:
            yield record
        except TlogError as error:
            raise CliError(str(error), "The record is damaged; restore it from a backup.", Exit.NO) from error


def tiles_of(cluster: Cluster, beside: Path | None) -> TileStore:
    """Where a cluster keeps its record: beside the kubeconfig of an embedded one, else in ConfigMaps."""
    near = beside / "record" if beside is not None else None
    return FileTiles(near) if near is not None and near.is_dir() else ConfigMapTiles(cluster)


async def _taken_in(cluster: Cluster) -> None:
    """Wait until what is written by now is in the record; not for long, because perhaps no controllers run."""
    waiting: set[str] | None = None
    try:
        for _ in range(TAKEN_IN_TRIES):
            there = {str(batch["metadata"]["name"]) for batch in (await cluster.list(AUDIT_BATCH.resource)).items}
            waiting = there if waiting is None else waiting & there
            if not waiting:
                return
            await asyncio.sleep(TAKEN_IN_PAUSE)
    except Forbidden:
        return  # whoever may read the record need not see what is on its way into it
    batches = counted(len(waiting or ()), "batch of entries waits", "batches of entries wait")
    tell(f"{batches} to be taken into the record: look whether the controllers run")


async def _cosigned(cluster: Cluster) -> None:
    """Wait until witnesses have seen the newest checkpoint, where this record has any; not for long."""
    for _ in range(TAKEN_IN_TRIES):
        checkpoints = sorted(
            (await cluster.list(AUDIT_CHECKPOINT.resource)).items, key=lambda checkpoint: checkpoint["spec"]["size"]
        )
        if not any(checkpoint.get("status") for checkpoint in checkpoints) or checkpoints[-1].get("status"):
            return
        await asyncio.sleep(TAKEN_IN_PAUSE)


def _short(who: str) -> str:
    """A thumbprint as people compare it."""
    return f"{who[:19]}…" if who.startswith("sha256:") else who
