"""`fastness agent apply`: a config becomes files of an image, by the code that writes them on a machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click

from fastness.agent.apply.into_root import apply_into
from fastness.cli.errors import CliError, Exit
from fastness.cli.machine.agent import reported_agent_errors
from fastness.cli.output import output_option, show_json, tell
from fastness.formats import json
from fastness.formats.errors import JsonError
from fastness.formats.words import counted

LIMITS: Final = json.JsonLimits(max_bytes=16 * 1024 * 1024)
_DIRECTORY = click.Path(path_type=Path, exists=True, file_okay=False)


@click.command("apply")
@click.option(
    "--root", type=_DIRECTORY, required=True, help="The root directory of the image, never that of this machine."
)
@output_option
@click.argument("config", type=click.Path(path_type=Path, exists=True, dir_okay=False))
def apply(root: Path, output: str, config: Path) -> None:
    """Write a config into the root directory of an image, once: files, links and units.

    It is a MachineConfig, or an Ignition document of version 3.5. Exit 3 when a path cannot be written as the config says;
    what was written before stays.
    """
    if root.resolve() == Path("/"):
        raise CliError(
            "--root is this machine", "Here the agent follows its node: `fastness agent run`.", Exit.USAGE
        )  # fmt: skip
    document = _read(config)
    with reported_agent_errors():
        written = apply_into(root, document)
    if output == "json":
        show_json({"written": list(written)})
        return
    tell(f"{counted(len(written), 'path was', 'paths were')} written below {root}")


def _read(path: Path) -> dict[str, Any]:
    try:
        document = json.decode(path.read_bytes(), LIMITS)
    except JsonError as error:
        raise CliError(
            f"{path}: {error.message}", "Give one config as JSON: `kubectl get -o json`.", Exit.USAGE
        ) from error
    if isinstance(document, dict) and "ignition" in document:
        return {"metadata": {"name": path.name}, "spec": {"config": document}}
    if isinstance(document, dict) and document.get("kind") == "MachineConfig":
        return document
    raise CliError(f"{path} is neither a MachineConfig nor Ignition", "", Exit.USAGE)
