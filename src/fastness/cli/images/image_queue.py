"""`fastness image history NODE` and `fastness image replay NODE`: what a node booted, and the same images again elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click
import yaml

from fastness.cli.cluster import cluster_options, connected
from fastness.cli.errors import CliError, Exit
from fastness.cli.output import output_option, show_json, table, tell
from fastness.cli.room_errors import reported_errors
from fastness.formats.words import counted
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration.node import MACHINE_CONFIG_NODE
from fastness.kinds.objects import object_name
from fastness.kube.errors import NotFound
from fastness.machineconfig.live.saved_images import NotSaved, SavedImages
from fastness.machineconfig.rollout.image_queue import Boot, ImageQueue, queue_of
from fastness.machineconfig.streams.access import RegistryAccess

MAX_BUNDLE_FILE: Final = 16 * 1024 * 1024
_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)
_BUNDLE = click.option(
    "--bundle", type=_FILE, default=None,
    help="machineconfignodes.yaml of a support bundle, in the place of a cluster.",
)  # fmt: skip


@click.command("history")
@click.argument("node")
@_BUNDLE
@cluster_options
@output_option
def history(node: str, bundle: Path | None, kubeconfig: Path | None, context: str, output: str) -> None:
    """Say what a node booted, oldest first: when, which image, of which build, with which config and its sources."""
    queue = _queue(node, bundle, kubeconfig, context)
    if output == "json":
        show_json({"node": node, "dropped": queue.dropped, "boots": [boot.to_json() for boot in queue.boots]})
        return
    if queue.dropped:
        click.echo(f"{counted(queue.dropped, 'older entry', 'older entries')} fell out.")
    rows = [
        (boot.at, boot.image, boot.build or "-", boot.config, ",".join(boot.sources) or "-") for boot in queue.boots
    ]
    click.echo(table([("SINCE", "IMAGE", "BUILD", "CONFIG", "MADE OF"), *rows]))


@click.command("replay")
@click.argument("node")
@click.option(
    "--into", type=click.Path(path_type=Path, file_okay=False), required=True, help="A directory for the images."
)
@_BUNDLE
@click.option("--authfile", type=_FILE, default=None, help="A pull secret (.dockerconfigjson).")
@click.option("--ca", type=_FILE, default=None, help="Certificates of registries, beside those of the system.")
@click.option("--insecure-registry", "insecure", multiple=True, help="A registry that is asked without TLS.")
@cluster_options
def replay(
    node: str, into: Path, bundle: Path | None, authfile: Path | None, ca: Path | None, insecure: tuple[str, ...],
    kubeconfig: Path | None, context: str,
) -> None:  # fmt: skip
    """Fetch the images that a node booted, in the same order, to boot them one after the other elsewhere.

    DIR becomes an OCI image layout in which 01, 02, … are the images; sequence.json says when each was booted, and with what.
    """
    if into.exists() and any(into.iterdir()):
        raise CliError(f"{into} is not empty", "Name a directory that is not there yet.", Exit.USAGE)
    queue = _queue(node, bundle, kubeconfig, context)
    access = RegistryAccess(
        credentials=authfile.read_bytes() if authfile else b"", trust=ca.read_text() if ca else ""
    )  # fmt: skip
    missing = asyncio.run(_fetch(queue, SavedImages(into), access, frozenset(insecure), node))
    click.echo(f"{counted(len(queue.images) - len(missing), 'image')} of {node} in {into}, in order.")
    if missing:
        raise CliError(f"not fetched: {'; '.join(missing)}", NotSaved.hint, Exit.MISSING)


async def _fetch(
    queue: ImageQueue, saved: SavedImages, access: RegistryAccess, insecure: frozenset[str], node: str
) -> list[str]:
    """Fetch what can be fetched; why the others were not."""
    missing, sequence = [], []
    for number, boot in enumerate(queue.images, start=1):
        name = f"{number:02}"
        tell(f"{name} {boot.image}")
        try:
            await saved.fetch(boot.image, access, name, insecure)
        except NotSaved as error:
            missing.append(str(error.message))
        sequence.append({"name": name, **boot.to_json(), "configs": _configs(queue.boots, boot)})
    saved.write_index({"node": node, "dropped": queue.dropped, "images": sequence, "notFetched": missing})
    return missing


def _configs(boots: Sequence[Boot], first: Boot) -> list[str]:
    """The configs that the node had with an image, until it booted the next."""
    configs: list[str] = []
    for boot in boots[boots.index(first) :]:
        if boot.image != first.image:
            break
        configs.append(boot.config)
    return configs


def _queue(node: str, bundle: Path | None, kubeconfig: Path | None, context: str) -> ImageQueue:
    """The queue of a node; raises CliError."""
    with reported_errors():
        config_node = (
            _from_bundle(node, bundle) if bundle is not None else asyncio.run(_asked(node, kubeconfig, context))
        )
    if config_node is None:
        raise CliError(f"there is no MachineConfigNode {node!r}", "`kubectl get machineconfignodes` lists them.")
    queue = queue_of(config_node)
    if not queue.boots:
        raise CliError(
            f"nothing is known about what {node} booted", "Package hosts boot no image; others tell when they are well."
        )
    return queue


async def _asked(node: str, kubeconfig: Path | None, context: str) -> JsonObject | None:
    async with connected(kubeconfig, context) as cluster:
        try:
            return await cluster.get(MACHINE_CONFIG_NODE.resource, node)
        except NotFound:
            return None


def _from_bundle(node: str, bundle: Path) -> JsonObject | None:
    if bundle.stat().st_size > MAX_BUNDLE_FILE:
        raise CliError(f"{bundle} has more than {MAX_BUNDLE_FILE} bytes")
    try:
        documents = list(yaml.safe_load_all(bundle.read_text()))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise CliError(f"{bundle} cannot be read: {error}") from error
    return next((each for each in documents if isinstance(each, dict) and object_name(each).name == node), None)
