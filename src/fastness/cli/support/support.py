"""`fastness support bundle`: what somebody needs to help, without secrets.

    fastness support bundle                                               everything, into ./must-gather.local.<time>
    fastness support bundle --image REGISTRY/osc-must-gather-rhel9:1.12.0   as the manual asks for it
    fastness support bundle --run-namespace NAMESPACE --image …           the namespace must exist; nothing is made in it
    fastness support bundle -- /usr/bin/gather_audit_logs                 audit logs, and nothing else

The options are those of the manual's collector, so that its commands work with another first word. No image is run: the bundle is
collected over the API by the user who asks, and needs no more rights than reading.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import click

from fastness import __version__
from fastness.cli.cluster import cluster_options, connected, named_kubeconfig
from fastness.cli.errors import CliError, Exit
from fastness.cli.output import output_option, show_json, tell
from fastness.cli.room_errors import reported_errors
from fastness.cli.support import gather
from fastness.cli.support.gather import MIB, Bounds, Bundle
from fastness.cli.support.gather_manual import NAMESPACES, manual_part
from fastness.cli.support.redact import cleaned, scrubbed
from fastness.cli.trust.audit import tiles_of
from fastness.formats import json
from fastness.formats.words import counted
from fastness.keys.errors import TrustError
from fastness.kinds.kubernetes.core import NAMESPACE
from fastness.kube.client.client import KubeCluster
from fastness.kube.errors import ApiError, NotFound
from fastness.record.live.reader import open_record

AUDIT_COMMANDS: Final = ("gather_audit_logs", "/usr/bin/gather_audit_logs")
RECORD_ENTRIES: Final = 1000
AUDIT_FILES: Final = ("audit.log.1", "audit.log", "audit-refused.log.1", "audit-refused.log")


@click.group()
def support() -> None:
    """Help others to help: collect what they need, without secrets."""


@support.command("bundle")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.option("--image", "images", multiple=True, help="Image of a collector; it is noted, not run. Repeatable.")
@click.option("--run-namespace", default="", help="Namespace that a collector would run in; it must exist.")
@click.option(
    "--dest-dir",
    type=click.Path(path_type=Path, file_okay=False),
    help="Where to write; default ./must-gather.local.<time>.",
)
@click.option(
    "--max-size",
    type=click.IntRange(1, 10_000),
    default=200,
    show_default=True,
    help="Most that the bundle may hold, in MiB.",
)
@cluster_options
@output_option
def bundle(
    command: tuple[str, ...], images: tuple[str, ...], run_namespace: str, dest_dir: Path | None, max_size: int,
    kubeconfig: Path | None, context: str, output: str,
) -> None:  # fmt: skip
    """Collect resources, logs, events and the tail of the record into a directory with an index page.

    COMMAND is what the manual's collector would run: /usr/bin/gather_audit_logs collects audit logs and nothing else.
    """
    if command and command not in {(program,) for program in AUDIT_COMMANDS}:
        raise CliError(
            f"there is no collector {' '.join(command)!r}",
            f"There is {AUDIT_COMMANDS[1]}, or none for everything.",
            Exit.USAGE,
        )
    target = dest_dir or Path(f"must-gather.local.{datetime.now(UTC):%Y%m%d%H%M%S}")
    if target.exists() and any(target.iterdir()):
        raise CliError(f"{target} is not empty", "Name a directory that does not exist yet.", Exit.USAGE)
    with reported_errors():
        made = asyncio.run(_collect(target, bool(command), images, run_namespace, max_size, kubeconfig, context))
    if output == "json":
        show_json(
            {"directory": str(target), "files": len(made.entries), "bytes": made.size, "leftOut": len(made.left_out)}
        )
        return
    click.echo(target)
    absent = counted(len(made.left_out), "thing was left out", "things were left out")
    tell(f"{counted(len(made.entries), 'file')}, {made.size} bytes; {absent}; begin at {target / 'index.html'}")


async def _collect(
    target: Path,
    audit: bool,
    images: tuple[str, ...],
    namespace: str,
    megabytes: int,
    kubeconfig: Path | None,
    context: str,
) -> Bundle:
    named = named_kubeconfig(kubeconfig)
    beside = named.parent if named is not None else None
    partial = target.with_name(f".{target.name}.partial")
    async with connected(kubeconfig, context) as cluster:
        await _require_namespace(cluster, namespace)
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(mode=0o700, parents=True)
        try:
            made = Bundle(partial, Bounds(total=megabytes * MIB))
            await (_audit(made, beside) if audit else _everything(cluster, made, beside))
            made.finish(_facts(images, namespace, audit))
            partial.rename(target)  # an empty directory of that name is replaced
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    made.root = target
    return made


def _facts(images: tuple[str, ...], namespace: str, audit: bool) -> Mapping[str, str]:
    return {
        "collector": f"fastness {__version__}",
        "what": "audit logs" if audit else "resources, events, logs, record",
        "images": ", ".join(scrubbed(image) for image in images) + (" (noted, not run)" if images else ""),
        "run namespace": namespace,
        "redaction": "Secrets are never collected; what else may hold a credential is replaced by <redacted>, see redacted.txt",
    }


async def _require_namespace(cluster: KubeCluster, name: str) -> None:
    if not name:
        return
    try:
        await cluster.get(NAMESPACE.resource, name)
    except NotFound as error:
        raise CliError(
            f"there is no namespace {name}",
            "Create it, or leave --run-namespace out: nothing is made in it anyway.",
            Exit.NO,
        ) from error


async def _everything(cluster: KubeCluster, made: Bundle, beside: Path | None) -> None:
    by_kind = await gather.gather_objects(cluster, made)
    await gather.gather_nodes(cluster, made)
    events = await gather.gather_events(cluster, made)
    await gather.gather_logs(cluster, made, by_kind.get("pods", []), NAMESPACES)
    manual_part(made, by_kind, events)
    await _record(cluster, made, beside)
    made.miss("secrets", "they are never collected")
    made.miss("audit_logs", f"only on request: fastness support bundle -- {AUDIT_COMMANDS[1]}")


async def _record(cluster: KubeCluster, made: Bundle, beside: Path | None) -> None:
    """The newest entries of the record, as far as it can be read."""
    try:
        record = await open_record(cluster, tiles_of(cluster, beside))
        if record is None:
            made.miss("record", "it is empty")
            return
        tail = [
            cleaned({"index": index, **json.decode(data)})
            async for index, data in record.view.entries(max(0, record.size - RECORD_ENTRIES))
        ]
    except (ApiError, TrustError, OSError, ValueError) as error:
        made.miss("record", f"it could not be read: {scrubbed(str(error))}")
        return
    made.put("record/tail.json", json.encode(tail).decode() + "\n", len(tail))


async def _audit(made: Bundle, beside: Path | None) -> None:
    """Audit logs of an embedded control plane, which lie beside its kubeconfig."""
    any_file = False
    for name in AUDIT_FILES:
        path = beside / name if beside is not None else None
        if path is not None and path.is_file():
            any_file = True
            with path.open("rb") as file:
                file.seek(max(0, path.stat().st_size - made.bounds.file + 1))
                made.put_text(f"audit_logs/{name}", file.read().decode(errors="replace"))
    if not any_file:
        made.miss("audit_logs", "this API server keeps its audit log where only its nodes can read it")
