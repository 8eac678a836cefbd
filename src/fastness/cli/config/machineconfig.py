"""`fastness validate`, `render`, `blame` and `plan`: machine configuration before and after it is applied.

`validate` and `render` work on files and never connect. `blame` and `plan` ask the cluster, or take its objects from files with
`--offline`. All of them call the functions that the controllers call, so what they say is what will happen.

Exit codes: `validate` 0 good, 1 with problems, 2 unreadable; `plan` 0 nothing goes down, 1 a pool would not render, 2 something
reboots.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import yaml

from fastness.cli.errors import CliError, reported_errors
from fastness.cli.exits import Exit
from fastness.cli.output import output_option, show_json, table, tell

if TYPE_CHECKING:
    from fastness.cli.manifests import Manifests
    from fastness.machineconfig.render.errors import Problem
    from fastness.machineconfig.rollout.plan import State

REBOOTS = 2
PLANNED = ("MachineConfig", "KubeletConfig", "ContainerRuntimeConfig", "NodeOverlay")
_PATH = click.Path(path_type=str)


@click.command()
@click.option("--confidential", is_flag=True, help="Judge as in a confidential pool.")
@click.option("--suggest", is_flag=True, help="Print an image layer that does what a confidential pool refuses.")
@output_option
@click.argument("files", nargs=-1, required=True, type=_PATH)
def validate(confidential: bool, suggest: bool, output: str, files: tuple[str, ...]) -> None:
    """Say everything that is wrong with MachineConfigs in files; offline.

    Exit 0 when all are good, 1 when there are problems, 2 when a file cannot be read.
    """
    from fastness.cli import manifests
    from fastness.machineconfig.render.suggest import layer

    read = manifests.read(files)
    found = _problems(read, confidential)
    if not read.of("MachineConfig") and not read.unreadable:
        read.unreadable[", ".join(files)] = "holds no MachineConfig"
    snippet = layer(read.of("MachineConfig")) if suggest else ""
    if output == "json":
        problems = [{"file": file, "line": line, **problem.to_json()} for file, line, problem in found]
        unreadable = [{"file": file, "message": message} for file, message in read.unreadable.items()]
        valid = not unreadable and not any(problem.fatal for _, _, problem in found)
        show_json({"valid": valid, "problems": problems, "unreadable": unreadable, "suggestion": snippet})
    else:
        _show_problems(read, found)
        if snippet:
            click.echo(f"\n{snippet}", nl=False)
    if read.unreadable:
        raise SystemExit(Exit.USAGE)
    if any(problem.fatal for _, _, problem in found):
        raise SystemExit(Exit.NO)


def _problems(read: Manifests, confidential: bool) -> list[tuple[str, int, Problem]]:
    from fastness.kinds.fastness_dev.trust_model import TrustModel
    from fastness.machineconfig.render.errors import Problem
    from fastness.machineconfig.render.validate import problems

    trust = TrustModel.CONFIDENTIAL_CLUSTER if confidential else TrustModel.NONE
    found: list[tuple[str, int, Problem]] = []
    places: dict[str, str] = {}
    for one in read.found:
        if one.kind != "MachineConfig":
            tell(f"{one.place}: {one.kind} is not a MachineConfig and was left out")
            continue
        name = str((one.object.get("metadata") or {}).get("name") or "")
        if not name:
            missing = Problem("(unnamed)", "metadata.name", "no-name", "the config has no name", "give it one")
            found.append((one.file, one.line, missing))
        elif name in places:
            twice = Problem(name, "metadata.name", "name-twice", f"is also in {places[name]}", "rename one of the two")
            found.append((one.file, one.line, twice))
        places.setdefault(name, one.place)
        found += [(one.file, one.line, problem) for problem in problems(one.object, trust)]
    return found


def _show_problems(read: Manifests, found: list[tuple[str, int, Problem]]) -> None:
    for file, message in read.unreadable.items():
        click.echo(f"{file}: unreadable: {message}")
    for file, line, problem in found:
        click.echo(f"{file}:{line}: {problem.severity}: {problem}")
    if not read.unreadable and not any(problem.fatal for _, _, problem in found):
        click.echo(f"{len(read.of('MachineConfig'))} MachineConfigs are good.")


@click.command()
@click.option("--pool", required=True, help="The pool to render.")
@click.option("--confidential", is_flag=True, help="Render as a confidential pool.")
@click.option("-o", "--output", type=click.Choice(["yaml", "json"]), default="yaml", show_default=True)
@click.argument("files", nargs=-1, required=True, type=_PATH)
def render(pool: str, confidential: bool, output: str, files: tuple[str, ...]) -> None:
    """Print the config that a pool's machines would get from MachineConfigs in files; offline.

    Pools, KubeletConfigs and ContainerRuntimeConfigs in the files are used too; a pool that is not there is assumed.
    """
    from fastness.cli.config import offline
    from fastness.kinds.fastness_dev.trust_model import TrustModel
    from fastness.machineconfig.render.inputs import with_stream
    from fastness.machineconfig.render.render import RenderFailure, Setting
    from fastness.machineconfig.render.render import render as rendered

    state = offline.state(_readable(files), pools=(pool,))
    model = TrustModel.CONFIDENTIAL_CLUSTER if confidential else TrustModel.NONE
    wanted = next(one for one in state.pools if one["metadata"]["name"] == pool)
    defaults, _, missing = with_stream(state.defaults, wanted, state.pools, state.streams)
    result = rendered(wanted, state.configs, Setting(defaults=defaults, trust=model, obstacle=missing))
    if isinstance(result, RenderFailure):
        raise CliError(result.message, f"Look at: {', '.join(result.guilty)}" if result.guilty else "")
    for warning in result.warnings:
        tell(f"warning: {warning.short}")
    manifest = result.manifest(wanted, defaults)
    if output == "json":
        show_json(manifest)
    else:
        click.echo(yaml.safe_dump(manifest, sort_keys=False, allow_unicode=True, width=120), nl=False)


def _cluster_options(function: Any) -> Any:
    """The options of verbs that ask a cluster, or files in its place."""
    for option in (
        click.option("--context", default="", help="A context of the kubeconfig."),
        click.option("--kubeconfig", type=click.Path(path_type=Path, dir_okay=False), help="How to reach the API; as kubectl."),
        click.option("--offline", "files", multiple=True, type=_PATH, help="Take the cluster's objects from this file."),
    ):  # fmt: skip
        function = option(function)
    return function


@click.command()
@click.option(
    "--machine", default="", metavar="NAME", help="With the overlays of this machine: a Machine, a node or a uid."
)
@_cluster_options
@output_option
@click.argument("what", nargs=-1, required=True, metavar="[POOL] PATH")
def blame(
    what: tuple[str, ...], machine: str, output: str, files: tuple[str, ...], kubeconfig: Path | None, context: str
) -> None:
    """Say which MachineConfig a part of a pool's config came from, and what it overrode.

    PATH is a file, a unit, unit/drop-in, a user, an SSH key, a kernel argument, an extension or a field as kernelType. With
    --machine the pool is the machine's own, and NodeOverlays that match it are named as overlay:NAME.
    """
    from fastness.cli.config import overlays
    from fastness.machineconfig.render.blame import Blame
    from fastness.machineconfig.render.render import sources_of

    if len(what) != (1 if machine else 2):
        raise CliError("name a part of a pool, or of a machine", "Give POOL PATH, or --machine NAME PATH.", Exit.USAGE)
    path, named = what[-1], () if machine else what[:1]
    state = _state(files, kubeconfig, context, pools=named)
    pool, more = overlays.sources_for(state, machine) if machine else (what[0], [])
    found = next((one for one in state.pools if one["metadata"]["name"] == pool), None)
    if found is None:
        raise CliError(f"there is no pool {pool!r}", _near(pool, [one["metadata"]["name"] for one in state.pools]))
    whole = Blame([*sources_of(found, state.configs), *more])
    origins = whole.of(path)
    if not origins:
        raise CliError(f"nothing in pool {pool} is called {path!r}", _near(path, [one.name for one in whole.origins]))
    if output == "json":
        show_json([origin.to_json() for origin in origins])
        return
    rows = [("KIND", "NAME", "FROM", "OVERRODE", "FIELDS")]
    for origin in origins:
        by_config: dict[str, list[str]] = {}
        for name, config in origin.fields.items():
            by_config.setdefault(config, []).append(name)
        fields = "; ".join(f"{config}: {', '.join(names)}" for config, names in by_config.items())
        rows.append((origin.kind, origin.name, origin.source, ", ".join(origin.overridden) or "-", fields))
    click.echo(table(rows))


@click.command()
@click.option(
    "-f", "--filename", "apply", multiple=True, type=_PATH, help="Configs and settings to apply; - for standard input."
)
@click.option(
    "--delete",
    multiple=True,
    metavar="NAME",
    help="A MachineConfig, or kubeletconfig/, ctrcfg/ or nodeoverlay/NAME, to delete.",
)
@click.option("--pool", default="", help="Look at this pool only.")
@click.option("--diff/--no-diff", "diffs", default=True, help="Show what changes inside files.")
@_cluster_options
@output_option
def plan(
    apply: tuple[str, ...],
    delete: tuple[str, ...],
    pool: str,
    diffs: bool,
    output: str,
    files: tuple[str, ...],
    kubeconfig: Path | None,
    context: str,
) -> None:
    """Say what a change would do to every pool and node, before anything happens.

    A change is MachineConfigs, KubeletConfigs, ContainerRuntimeConfigs and NodeOverlays, applied or deleted.

    Exit 0 when nothing goes down, 1 when a pool would not render, 2 when something reboots.
    """
    from fastness.cli import manifests
    from fastness.cli.config import offline, overlays
    from fastness.cli.config import plan_view as planview
    from fastness.machineconfig.overlay.plan import plan_overlays
    from fastness.machineconfig.rollout.plan import plan as planned
    from fastness.machineconfig.rollout.plan_json import to_json

    if not apply and not delete:
        raise CliError("there is nothing to plan", "Give -f FILE or --delete NAME.", Exit.USAGE)
    new = _readable(apply) if apply else manifests.Manifests()
    if apply and not any(new.of(kind) for kind in PLANNED):
        raise CliError(f"{', '.join(apply)} holds no {', '.join(PLANNED)}", "", Exit.USAGE)
    state = _state(files, kubeconfig, context, pools=(pool,) if pool else ())
    gone, others = overlays.deleted(state, delete)
    proposal = offline.proposal(state, new, others)
    if pool and pool not in [one["metadata"]["name"] for one in state.pools]:
        raise CliError(f"there is no pool {pool!r}", _near(pool, [one["metadata"]["name"] for one in state.pools]))
    result = planned(state, proposal, pool)
    laid = plan_overlays(state, new.of(overlays.KIND), gone)
    if output == "json":
        show_json({**to_json(result), **({"overlays": laid.to_json()} if laid.overlays else {})})
    else:
        if result or not laid.overlays:
            click.echo(planview.shown(result, diffs=diffs))
        if laid.overlays:
            click.echo(overlays.shown(laid, diffs=diffs))
    if result.reboots:
        raise SystemExit(REBOOTS)
    if result.fails or laid.fails:
        raise SystemExit(Exit.NO)


def _near(name: str, known: list[str]) -> str:
    from fastness.cli.config.offline import near

    return near(name, known)


def _readable(files: tuple[str, ...]) -> Manifests:
    """The manifests of files; raises CliError for the first that cannot be read."""
    from fastness.cli import manifests

    read = manifests.read(files)
    for file, message in read.unreadable.items():
        raise CliError(f"{file}: {message}", "", Exit.USAGE)
    return read


def _state(files: tuple[str, ...], kubeconfig: Path | None, context: str, *, pools: tuple[str, ...] = ()) -> State:
    """The objects of a cluster: from files, or asked for."""
    from fastness.cli.config import offline

    if files:
        return offline.state(_readable(files), pools=pools)
    with reported_errors():
        return asyncio.run(offline.ask(kubeconfig, context))
