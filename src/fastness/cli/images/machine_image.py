"""`fastness machine image`: put the agent into an image, and close the ways by which its host could turn it.

    fastness machine image root --shape debian --platform qemu --agent agent --trust trust.json
    fastness machine image root --shape debian --platform qemu --agent agent --with-node node
    fastness machine image root --shape debian --check-only

The directory is the root of an image that is being built; a raw disk is mounted for the time of the work, which needs root.
A second run changes nothing and says so; a file that was there and differed is named. What stands open and cannot be closed from
here (a boot loader, a disk that is mounted by its label) is said with its reason; `--strict` then ends with 1, as `--check-only`
does.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import click

from fastness.agent.host.errors import DriverError
from fastness.agent.host.files import RootedFiles
from fastness.agent.host.image.disk import root_of_disk
from fastness.agent.host.image.root import Prepared, RootTree, prepare
from fastness.agent.host.states import File
from fastness.agent.host.user_data import PLATFORMS
from fastness.cli.cluster import cluster_options
from fastness.cli.errors import CliError, Exit
from fastness.cli.images.image_trust import readable_trust, trust_of_cluster
from fastness.cli.images.image_ways import look, warn
from fastness.cli.images.node_files import node_files
from fastness.cli.output import output_option, show_json
from fastness.formats.words import counted
from fastness.images.check.layout import AGENT, PROGRAM, Lack, Parts, lacks, pieces
from fastness.images.check.programs import NodeRefused, node_programs
from fastness.images.check.tree import FilePiece, Shape
from fastness.runtime.deployed import NotDeployed, deployed_files

SHAPES: Final = ("debian", "fcos", "rhcos")
_DIRECTORY: Final = click.Path(exists=True, file_okay=False, path_type=Path)
_FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command("image")
@click.argument("root", type=click.Path(exists=True, path_type=Path))
@click.option("--shape", type=click.Choice(SHAPES), required=True, help="What kind of system the image is.")
@click.option(
    "--platform",
    default="",
    help="Where its machines run, as Ignition names it (qemu, aws …); default: as the image says.",
)
@click.option(
    "--agent", type=_DIRECTORY, help="The directory that tools/agent_image.py built; default: as the image has it."
)
@click.option(
    "--with-node", "node", type=_DIRECTORY,
    help="Bring the programs of a node: a directory with kubelet, containerd, runc, network plug-ins; default: none.",
)  # fmt: skip
@click.option("--trust", "trusted", type=_FILE, help="The trust.json of the cluster; default: asked of the cluster.")
@click.option("--origin", default="", help="Without --trust: tie the image to one address of the cluster.")
@click.option(
    "--check-only", is_flag=True, help="Write nothing: say what is missing and what stands open; 1 if anything is."
)
@click.option("--strict", is_flag=True, help="End with 1 while a way into the image stands open or was not looked at.")
@cluster_options
@output_option
def image(
    root: Path, shape: str, platform: str, agent: Path | None, node: Path | None, trusted: Path | None, origin: str,
    check_only: bool, strict: bool, kubeconfig: Path | None, context: str, output: str,
) -> None:  # fmt: skip
    """Put the agent into an image, and close the ways by which its host could turn it; ROOT is a directory or a raw disk."""
    done, kind = Prepared(), Shape(shape)
    _require_platform(platform)
    try:
        with _root(root, writable=not check_only) as directory:
            files = RootedFiles(directory)
            tree = RootTree(files)
            if not check_only:
                trust = (
                    readable_trust(trusted.read_bytes()) if trusted else trust_of_cluster(origin, kubeconfig, context)
                )
                parts = _parts(files, agent, trust)
                programs = node_programs(node_files(node), tree) if node is not None else []
                done = prepare(files, [*pieces(kind, tree, parts, platform), *programs], owned=AGENT)
            missing, ways = lacks(kind, tree), look(None, directory)
    except NodeRefused as error:
        raise CliError(f"{node}: {error.message}", error.hint, Exit.USAGE) from error
    except DriverError as error:
        raise CliError(f"{root}: {error.message}", error.hint, Exit.USAGE) from error
    _show(root, done, missing, ways, check_only=check_only, output=output)
    if (missing or ways["open"] or ways["unseen"]) and (check_only or strict):
        raise SystemExit(Exit.NO)


def _require_platform(platform: str) -> None:
    """Raise CliError for a platform whose user-data the agent could not read."""
    if platform and platform not in PLATFORMS:
        raise CliError(
            f"{platform!r} is not a platform that the agent knows", f"It is one of {', '.join(PLATFORMS)}.", Exit.USAGE
        )


def _root(root: Path, *, writable: bool) -> AbstractContextManager[Path]:
    """The directory of an image: the one that was given, or the root of a disk for as long as it is needed."""
    return nullcontext(root) if root.is_dir() else root_of_disk(root, writable=writable)


def _parts(files: RootedFiles, agent: Path | None, trust: bytes) -> Parts:
    """What goes into the image; raises CliError, DriverError."""
    try:
        home = deployed_files()
    except NotDeployed as error:
        raise CliError(error.message, error.hint, Exit.MISSING) from error
    return Parts(
        agent=_agent(agent) if agent else _agent_of(files),
        trust=trust,
        dracut_module=_contents(home / "dracut/50fastness"),
        units=_contents(home / "systemd"),
    )


def _contents(directory: Path) -> Mapping[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(directory.iterdir()) if path.is_file()}


def _agent(directory: Path) -> Mapping[str, FilePiece]:
    if not (directory / "bin/fastness-agent").is_file():
        hint = "Build it: python tools/agent_image.py DIRECTORY"
        raise CliError(f"{directory} has no bin/fastness-agent", hint, Exit.USAGE)
    return {
        str(path.relative_to(directory)): FilePiece("", path.read_bytes(), path.stat().st_mode & 0o755)
        for path in directory.rglob("*")
        if path.is_file()
    }


def _agent_of(files: RootedFiles) -> Mapping[str, FilePiece]:
    """The agent that the image has already; raises CliError where it has none."""
    held = {path: files.look(path) for path in RootTree(files).below(AGENT)}
    if PROGRAM not in held:
        hint = "Build it with tools/agent_image.py, and give the directory with --agent."
        raise CliError("the image has no agent", hint, Exit.USAGE)
    return {
        path.removeprefix(f"{AGENT}/"): FilePiece(path, state.content, state.mode)
        for path, state in held.items()
        if isinstance(state, File)
    }


def _show(
    root: Path, done: Prepared, missing: list[Lack], ways: dict[str, Any], *, check_only: bool, output: str
) -> None:
    if output == "json":
        changes = {"written": done.written, "replaced": done.replaced, "removed": done.removed}
        show_json({"root": str(root), **changes, "missing": [asdict(lack) for lack in missing], **ways})
        return
    for path in done.replaced:
        click.echo(f"{path}: replaced, it differed")
    for path in done.removed:
        click.echo(f"{path}: removed, it is not part of the agent")
    if not check_only:
        written = f"{counted(len(done.written), 'file or link', 'files and links')} written"
        click.echo(f"{root}: {written if done.changed else 'nothing to change'}")
    for lack in missing:
        click.echo(f"{lack.path}: missing, {lack.consequence}")
    warn(ways)
    if check_only and not (missing or ways["open"] or ways["unseen"]):
        click.echo(f"{root}: nothing is missing, and no way that is known stands open")
