"""`fastness validate` and `render`: machine configuration in files, before a cluster sees it.

Neither connects. Both call the functions that the controllers call, so what they say is what will happen.

Exit codes of `validate`: 0 good, 1 with problems, 2 unreadable.
"""

from __future__ import annotations

import click
import yaml

from fastness.cli import manifests
from fastness.cli.config import explanations, images, offline
from fastness.cli.errors import CliError, Exit
from fastness.cli.manifests import Manifests
from fastness.cli.output import output_option, show_json, tell
from fastness.formats.words import counted
from fastness.kinds.fastness_dev.trust_model import TrustModel
from fastness.kinds.kind import JsonObject
from fastness.machineconfig.render.errors import Problem
from fastness.machineconfig.render.inputs import with_stream
from fastness.machineconfig.render.render import RenderFailure, Setting
from fastness.machineconfig.render.render import render as rendered
from fastness.machineconfig.render.suggest import PushPlace, os_config
from fastness.machineconfig.render.validate import problems

_PATH = click.Path(path_type=str)


@click.command()
@click.option("--confidential", is_flag=True, help="Judge as in a confidential pool.")
@click.option(
    "--suggest", is_flag=True, help="Print a MachineOSConfig whose image does what a confidential pool refuses."
)
@click.option(
    "--pool", default="", help="With --suggest: the pool; the role of the first config where it is not given."
)
@click.option("--push-spec", default="", help="With --suggest: where the image is pushed to, HOST/REPOSITORY:TAG.")
@click.option("--push-secret", default="", help="With --suggest: the Secret with credentials for that registry.")
@output_option
@click.argument("files", nargs=-1, required=True, type=_PATH)
def validate(
    confidential: bool, suggest: bool, pool: str, push_spec: str, push_secret: str, output: str, files: tuple[str, ...]
) -> None:
    """Say everything that is wrong with MachineConfigs and MachineOSConfigs in files; offline.

    Exit 0 when all are good, 1 when there are problems, 2 when a file cannot be read.
    """
    read = manifests.read(files)
    located = _problems(read, confidential)
    if not read.of("MachineConfig", images.KIND) and not read.unreadable:
        read.unreadable[", ".join(files)] = f"holds no MachineConfig and no {images.KIND}"
    place = PushPlace(pool, push_spec, push_secret)
    snippet = _as_yaml(os_config(read.of("MachineConfig"), place)) if suggest else ""
    if output == "json":
        problems = [{"file": file, "line": line, **problem.to_json()} for file, line, problem in located]
        unreadable = [{"file": file, "message": message} for file, message in read.unreadable.items()]
        valid = not unreadable and not any(problem.fatal for _, _, problem in located)
        show_json({"valid": valid, "problems": problems, "unreadable": unreadable, "suggestion": snippet})
    else:
        _show_problems(read, located)
        if snippet:
            click.echo(f"---\n{snippet}", nl=False)
    if read.unreadable:
        raise SystemExit(Exit.USAGE)
    if any(problem.fatal for _, _, problem in located):
        raise SystemExit(Exit.NO)


class _Text(str):
    """A text of several lines, which YAML writes as it is."""


def _block(dumper: yaml.SafeDumper, text: _Text) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", str(text), style="|")


class _Dumper(yaml.SafeDumper):
    """Writes a Containerfile so that people can read it."""


_Dumper.add_representer(_Text, _block)


def _as_yaml(config: JsonObject | None) -> str:
    """A MachineOSConfig as it is applied; empty for none."""
    if config is None:
        return ""
    entries = [{**each, "content": _Text(each["content"])} for each in config["spec"]["containerFile"]]
    whole = {**config, "spec": {**config["spec"], "containerFile": entries}}
    return yaml.dump(whole, Dumper=_Dumper, sort_keys=False, width=4096)


def _problems(read: Manifests, confidential: bool) -> list[tuple[str, int, Problem]]:
    trust = TrustModel.CONFIDENTIAL_CLUSTER if confidential else TrustModel.NONE
    located: list[tuple[str, int, Problem]] = []
    places: dict[str, str] = {}
    for manifest in read.manifests:
        if manifest.kind == images.KIND:
            located += [(manifest.file, manifest.line, problem) for problem in images.problems_of(manifest.object)]
            continue
        if manifest.kind != "MachineConfig":
            tell(f"{manifest.place}: {manifest.kind} is not a MachineConfig and was left out")
            continue
        name = str((manifest.object.get("metadata") or {}).get("name") or "")
        if not name:
            missing = Problem("(unnamed)", "metadata.name", "no-name", "the config has no name", "give it one")
            located.append((manifest.file, manifest.line, missing))
        elif name in places:
            twice = Problem(name, "metadata.name", "name-twice", f"is also in {places[name]}", "rename one of the two")
            located.append((manifest.file, manifest.line, twice))
        places.setdefault(name, manifest.place)
        located += [(manifest.file, manifest.line, problem) for problem in problems(manifest.object, trust)]
    return located


def _show_problems(read: Manifests, located: list[tuple[str, int, Problem]]) -> None:
    for file, message in read.unreadable.items():
        click.echo(f"{file}: unreadable: {message}")
    for file, line, problem in located:
        click.echo(f"{file}:{line}: {problem.severity}: {problem}")
    if not read.unreadable and not any(problem.fatal for _, _, problem in located):
        for kind in ("MachineConfig", images.KIND):
            if count := len(read.of(kind)):
                click.echo(counted(count, f"{kind} is good.", f"{kind}s are good."))


@click.command()
@click.option("--pool", required=True, help="The pool to render.")
@click.option("--confidential", is_flag=True, help="Render as a confidential pool.")
@click.option(
    "--explain", default="", metavar="PATH",
    help="Instead of the config, say who wrote this file, unit or unit/drop-in of it and why; a directory stands for all below.",
)  # fmt: skip
@click.option("-o", "--output", type=click.Choice(["yaml", "json"]), default="yaml", show_default=True)
@click.argument("files", nargs=-1, required=True, type=_PATH)
def render(pool: str, confidential: bool, explain: str, output: str, files: tuple[str, ...]) -> None:
    """Print the config that a pool's machines would get from MachineConfigs in files; offline.

    Pools, KubeletConfigs and ContainerRuntimeConfigs in the files are used too; a pool that is not there is assumed. A
    ControllerConfig brings the base that makes a machine a node.
    """
    assumed = {"spec": {"mode": "Enforce"}} if confidential else None
    state = offline.state(manifests.read_all(files), pools=(pool,), assumed_cluster=assumed)
    model = TrustModel.CONFIDENTIAL_CLUSTER if confidential else TrustModel.NONE
    target = next(candidate for candidate in state.pools if candidate["metadata"]["name"] == pool)
    defaults, _, missing = with_stream(state.defaults, target, state.pools, state.streams)
    result = rendered(target, state.configs, Setting(defaults=defaults, trust=model, obstacle=missing))
    if isinstance(result, RenderFailure):
        raise CliError(result.message, f"Look at: {', '.join(result.guilty)}" if result.guilty else "")
    for warning in result.warnings:
        tell(f"warning: {warning.short}")
    if explain:
        explanations.show(result, state, explain, output)
        return
    manifest = result.manifest(target, defaults)
    if output == "json":
        show_json(manifest)
    else:
        click.echo(yaml.safe_dump(manifest, sort_keys=False, allow_unicode=True, width=120), nl=False)
