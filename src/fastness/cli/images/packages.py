"""`fastness image packages`: which packages an image has, read out of its registry before any machine boots it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click

from fastness.builds.sbom import DEB, RPM, Component, bill_of_materials
from fastness.cli.cluster import cluster_options, connected
from fastness.cli.errors import CliError, Exit
from fastness.cli.output import output_option, show_json, table
from fastness.cli.room_errors import reported_errors
from fastness.formats.errors import FormatError
from fastness.formats.package_lists import DATABASES, Package
from fastness.formats.package_lists import RPM as RPM_DATABASES
from fastness.formats.words import counted
from fastness.kinds.machineconfiguration.os_config import MACHINE_OS_CONFIG
from fastness.kube.errors import NotFound
from fastness.kube.port import Cluster
from fastness.machineconfig.live.image_tree import TreeReader
from fastness.machineconfig.live.package_databases import WRITE_AHEAD, packages
from fastness.machineconfig.live.registry import RegistryClient
from fastness.machineconfig.loops.rendering.registry_view import ask_for_objects
from fastness.machineconfig.render.errors import BadStreams
from fastness.machineconfig.render.registries.settings import registry_settings
from fastness.machineconfig.streams.access import RegistryAccess

_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)
_HINT = "Give --authfile or --ca if the registry asks for it; registries without TLS stand in the Image `cluster`."


@click.command("packages")
@click.argument("image")
@click.option("--authfile", type=_FILE, default=None, help="A pull secret (.dockerconfigjson).")
@click.option("--ca", type=_FILE, default=None, help="Certificates of registries, beside those of the system.")
@click.option("--sbom", is_flag=True, help="Print a bill of materials for scanners (CycloneDX, JSON).")
@cluster_options
@output_option
def packages_of(
    image: str, authfile: Path | None, ca: Path | None, sbom: bool, kubeconfig: Path | None, context: str, output: str
) -> None:
    """List the packages of an image, from its registry: IMAGE is one by digest, or a pool whose image was built."""
    credentials, trust = authfile.read_bytes() if authfile else b"", ca.read_text() if ca else ""
    with reported_errors():
        reference, databases = asyncio.run(_listed(image, credentials, trust, kubeconfig, context))
    if sbom:
        click.echo(bill_of_materials(reference, _components(databases)))
        return
    listed = [package for packages in databases.values() for package in packages]
    if output == "json":
        show_json({"image": reference, "packages": [package._asdict() for package in listed]})
        return
    click.echo(table([("PACKAGE", "VERSION", "ARCHITECTURE"), *listed]))
    click.echo(f"{counted(len(listed), 'package')} in {reference}.")


def _components(databases: Mapping[str, Sequence[Package]]) -> Iterator[Component]:
    for path, listed in databases.items():
        for package in listed:
            yield Component(*package, RPM if path in RPM_DATABASES else DEB)


async def _listed(
    image: str, credentials: bytes, trust: str, kubeconfig: Path | None, context: str
) -> tuple[str, dict[str, list[Package]]]:
    async with connected(kubeconfig, context) as cluster:
        reference = image if "@" in image else await _built(cluster, image)
        settings = registry_settings(await ask_for_objects(cluster))
    access = RegistryAccess(settings, credentials, trust)
    try:
        contents = await RegistryClient().contents(reference, access, TreeReader(_wants))
    except BadStreams as error:
        raise CliError(f"{reference} cannot be read: {error}", _HINT, Exit.MISSING) from error
    if contents.problem is not None:
        raise CliError(f"{reference} cannot be read: {contents.problem}", "", Exit.NO)
    files = {path: member.content for path, member in contents.tree.items() if member.content is not None}
    if not any(path in DATABASES for path in files):
        raise CliError(f"{reference} has no database of packages", "Neither rpm nor dpkg installed it.", Exit.NO)
    try:
        return reference, {
            path: list(packages(path, files[path], files.get(f"{path}{WRITE_AHEAD}", b"")))
            for path in DATABASES if path in files
        }  # fmt: skip
    except FormatError as error:
        raise CliError(f"{reference}: {error}", "", Exit.NO) from error


def _wants(path: str) -> bool:
    return path.removesuffix(WRITE_AHEAD) in DATABASES


async def _built(cluster: Cluster, pool: str) -> str:
    """The image that was built for a pool; raises CliError."""
    try:
        config = await cluster.get(MACHINE_OS_CONFIG.resource, pool)
    except NotFound as error:
        raise CliError(
            f"no image is built for a pool {pool!r}", "Name one by digest, or describe the pool's."
        ) from error
    image = str((config.get("status") or {}).get("currentImagePullSpec") or "")
    if not image:
        raise CliError(
            f"the image of pool {pool} is not built yet", "`fastness image log` shows how far it is.", Exit.NO
        )
    return image
