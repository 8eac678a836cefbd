"""`fastness image diff A B`: files, packages and measurements that are different between two images."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

from fastness.cli.cluster import cluster_options, connected
from fastness.cli.errors import CliError, Exit
from fastness.cli.output import output_option, show_json, table
from fastness.cli.room_errors import reported_errors
from fastness.formats.errors import FormatError, ImageReferenceError
from fastness.formats.image_reference import parse_image
from fastness.formats.words import counted
from fastness.images.difference import Difference, ImageFacts, difference, facts_of, is_read
from fastness.kinds.machineconfiguration.os_build import MACHINE_OS_BUILD
from fastness.kube.errors import NotFound
from fastness.machineconfig.live.saved_images import NotSaved, SavedImages
from fastness.machineconfig.live.saved_layers import NoLayout, read_layers
from fastness.machineconfig.streams.access import RegistryAccess

SHOWN: Final = 40
_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)
_WHAT: Final = (
    "Name an image as REGISTRY/NAME@sha256:…, a MachineOSBuild, or a directory (OCI image layout) as DIR or DIR:NAME."
)


@click.command("diff")
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@click.option("--limit", type=click.IntRange(1, 100_000), default=SHOWN, show_default=True, help="Rows of each table.")
@click.option("--authfile", type=_FILE, default=None, help="A pull secret (.dockerconfigjson).")
@click.option("--ca", type=_FILE, default=None, help="Certificates of registries, beside those of the system.")
@click.option("--insecure-registry", "insecure", multiple=True, help="A registry that is asked without TLS.")
@cluster_options
@output_option
def diff(
    first: str, second: str, limit: int, authfile: Path | None, ca: Path | None, insecure: tuple[str, ...],
    kubeconfig: Path | None, context: str, output: str,
) -> None:  # fmt: skip
    """Say what is different between two images: files, packages, and what machines measure that boot them.

    A and B are images by digest (REGISTRY/NAME@sha256:…), MachineOSBuilds by name, or directories with an OCI image layout
    (DIR, or DIR:NAME). Nothing of them is run or unpacked.
    """
    access = RegistryAccess(credentials=authfile.read_bytes() if authfile else b"", trust=ca.read_text() if ca else "")
    with reported_errors(), tempfile.TemporaryDirectory(prefix="fastness-diff-") as scratch:
        saved = SavedImages(Path(scratch))
        try:
            facts = [
                _facts(each, saved, Path(scratch), access, frozenset(insecure), kubeconfig, context) for each in (first, second)
            ]  # fmt: skip
        except (NotSaved, NoLayout) as error:
            raise CliError(error.message, error.hint, Exit.MISSING) from error
        except FormatError as error:
            raise CliError(str(error), error.hint) from error
    between = difference(*facts)
    if output == "json":
        show_json(between.to_json())
        return
    click.echo("\n".join(_text(between, limit)))


def _facts(
    named: str, saved: SavedImages, scratch: Path, access: RegistryAccess, insecure: frozenset[str],
    kubeconfig: Path | None, context: str,
) -> ImageFacts:  # fmt: skip
    """What is compared of an image; raises CliError, NotSaved, NoLayout, FormatError."""
    directory, _, name = named.partition(":")
    if Path(directory).is_dir():
        return facts_of(named, read_layers(Path(directory), name, lambda _: True, lambda path: not is_read(path)))
    image = named if "@" in named else asyncio.run(_built(named, kubeconfig, context))
    try:
        digest = parse_image(image).digest
    except ImageReferenceError as error:
        raise CliError(f"{named!r} is no image: {error.message}", _WHAT, Exit.USAGE) from error
    asyncio.run(saved.fetch(image, access, digest, insecure))
    return facts_of(image, read_layers(scratch, digest, lambda _: True, lambda path: not is_read(path)))


async def _built(name: str, kubeconfig: Path | None, context: str) -> str:
    """The image of a build; raises CliError."""
    if "/" in name or ":" in name:
        raise CliError(f"{name!r} names no digest", _WHAT, Exit.USAGE)
    async with connected(kubeconfig, context) as cluster:
        try:
            build = await cluster.get(MACHINE_OS_BUILD.resource, name)
        except NotFound as error:
            raise CliError(f"there is no MachineOSBuild {name!r}", _WHAT, Exit.MISSING) from error
    image = str((build.get("status") or {}).get("digestedImagePushSpec") or "")
    if not image:
        raise CliError(f"MachineOSBuild {name} made no image", "`kubectl get machineosbuilds` says how far each came.")
    return image


def _text(between: Difference, limit: int) -> list[str]:
    lines = [f"A  {between.first.image}", f"B  {between.second.image}"]
    for name, facts in (("A", between.first), ("B", between.second)):
        lines += [f"{name}: {note}" for note in facts.notes]
    if between.same:
        return [*lines, "", "Nothing that is compared is different."]
    files = [
        *((path, "removed", "") for path in between.removed), *((path, "added", "") for path in between.added),
        *((path, "changed", ", ".join(what)) for path, what in between.changed),
    ]  # fmt: skip
    measured = [
        (state, f"PCR {pcr}", before or "-", after or "-") for state, pcr, before, after in between.measurements
    ]
    packages = [(name, before or "-", after or "-") for name, before, after in between.packages]
    lines += _part("file", ("PATH", "", "WHAT"), sorted(files), limit)
    lines += _part("package", ("PACKAGE", "A", "B"), packages, limit)
    lines += _part("measurement", ("STATE", "REGISTER", "A", "B"), measured, limit)
    return lines


def _part(what: str, head: Sequence[str], rows: Sequence[Sequence[str]], limit: int) -> list[str]:
    if not rows:
        return ["", f"No {what} is different."]
    left = len(rows) - limit
    more = [f"and {left} more; --limit {len(rows)} or -o json shows all"] if left > 0 else []
    return ["", f"{counted(len(rows), what)} different:", table([tuple(head), *map(tuple, rows[:limit])]), *more]
