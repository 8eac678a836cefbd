"""`fastness plan` and `blame`: what a change would do to pools and nodes, and where a part of a config came from.

Both ask the cluster, or take its objects from files with `--offline`. They call the functions that the controllers call, so what
they say is what will happen.

Exit codes of `plan`: 0 nothing goes down, 1 a pool would not render, 2 something reboots.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import click

from fastness.builds.plan import plan_images
from fastness.cli import manifests
from fastness.cli.config import images, offline, overlays, plan_view, registries
from fastness.cli.config.offline import near
from fastness.cli.config.state_options import state_of, state_options
from fastness.cli.errors import CliError, Exit
from fastness.cli.output import output_option, show_json, table
from fastness.machineconfig.render.blame import Blame, Origin
from fastness.machineconfig.render.registries import proposed as registry_objects
from fastness.machineconfig.render.render import sources_of
from fastness.machineconfig.rollout.overlay_plan import plan_overlays
from fastness.machineconfig.rollout.plan import plan as planned
from fastness.machineconfig.rollout.plan_json import to_json
from fastness.machineconfig.trust.plan import SourcePlan, plan_sources

REBOOTS = 2
PLANNED = (
    "MachineConfig", "KubeletConfig", "ContainerRuntimeConfig", "NodeOverlay", "ConfigMap", "MachineConfiguration", images.KIND,
    *offline.CLUSTER_KINDS, *registry_objects.KINDS,
)  # fmt: skip
_PATH = click.Path(path_type=str)


@click.command()
@click.option(
    "--machine", default="", metavar="NAME", help="With the overlays of this machine: a Machine, a node or a uid."
)
@state_options
@output_option
@click.argument("what", nargs=-1, required=True, metavar="[POOL] PATH")
def blame(
    what: tuple[str, ...], machine: str, output: str, files: tuple[str, ...], kubeconfig: Path | None, context: str
) -> None:
    """Say which MachineConfig a part of a pool's config came from, and what it overrode.

    Where an image is built for the pool, defaults of ours are below /usr in it: then it is said which of both files counts.

    PATH is a file, a unit, unit/drop-in, a user, an SSH key, a kernel argument, an extension or a field as kernelType. With
    --machine the pool is the machine's own, and NodeOverlays that match it are named as overlay:NAME.
    """
    if len(what) != (1 if machine else 2):
        raise CliError("name a part of a pool, or of a machine", "Give POOL PATH, or --machine NAME PATH.", Exit.USAGE)
    path, named = what[-1], () if machine else what[:1]
    state = state_of(files, kubeconfig, context, pools=named)
    pool, more = overlays.sources_for(state, machine) if machine else (what[0], [])
    target = next((candidate for candidate in state.pools if candidate["metadata"]["name"] == pool), None)
    if target is None:
        raise CliError(
            f"there is no pool {pool!r}", near(pool, [candidate["metadata"]["name"] for candidate in state.pools])
        )
    sources = [*sources_of(target, state.configs), *more]
    whole = Blame(sources)
    origins = whole.of(path)
    if not origins:
        raise CliError(
            f"nothing in pool {pool} is called {path!r}", near(path, [origin.name for origin in whole.origins])
        )
    defaults = images.defaults_for(state, pool, sources, origins)
    if output == "json":
        more_of = {origin: {"image": defaults[origin].to_json()} for origin in defaults}
        show_json([{**origin.to_json(), **more_of.get(origin, {})} for origin in origins])
        return
    click.echo(_blame_text(origins))
    for default in defaults.values():
        click.echo(f"in the image of the pool: {default.explanation}")


def _blame_text(origins: Iterable[Origin]) -> str:
    rows = [("KIND", "NAME", "FROM", "OVERRODE", "FIELDS")]
    for origin in origins:
        by_config: dict[str, list[str]] = {}
        for name, config in origin.fields.items():
            by_config.setdefault(config, []).append(name)
        fields = "; ".join(f"{config}: {', '.join(names)}" for config, names in by_config.items())
        rows.append((origin.kind, origin.name, origin.source, ", ".join(origin.overridden) or "-", fields))
    return table(rows)


@click.command()
@click.option(
    "-f", "--filename", "apply", multiple=True, type=_PATH, help="Configs and settings to apply; - for standard input."
)
@click.option(
    "--delete",
    multiple=True,
    metavar="NAME",
    help="A MachineConfig, or kubeletconfig/, ctrcfg/, nodeoverlay/, machineosconfig/, idms/ or itms/NAME, to delete.",
)
@click.option("--pool", default="", help="Look at this pool only.")
@click.option("--diff/--no-diff", "diffs", default=True, help="Show what changes inside files.")
@state_options
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

    A change is MachineConfigs, KubeletConfigs, ContainerRuntimeConfigs, NodeOverlays and MachineOSConfigs, applied or deleted,
    disruption policies (MachineConfiguration) or the cluster's own settings, applied (nodes.config, FeatureGate, APIServer),
    what is said about registries (the Image `cluster`, mirror sets, policies about signatures), or ConfigMaps of certificates
    that nodes have beside their configs.

    Exit 0 when nothing goes down, 1 when a pool would not render, 2 when something reboots.
    """
    if not apply and not delete:
        raise CliError("there is nothing to plan", "Give -f FILE or --delete NAME.", Exit.USAGE)
    new = manifests.read_all(apply) if apply else manifests.Manifests()
    beside = plan_sources(new.of("ConfigMap"))
    if beside and len(beside) == len(new.manifests) and not delete:
        _tell_beside(beside, output)  # nothing of it is about a pool, so nobody has to be asked
        return
    if apply and not any(new.of(kind) for kind in PLANNED):
        raise CliError(f"{', '.join(apply)} holds no {', '.join(PLANNED)}", "", Exit.USAGE)
    state = state_of(files, kubeconfig, context, pools=(pool,) if pool else ())
    gone, others = overlays.deleted(state, delete)
    unlisted, others = registries.deleted(state, others)
    undescribed, others = images.deleted(state, others)
    proposal = registries.with_registries(state, offline.proposal(state, new, others), new, unlisted)
    if pool and pool not in [candidate["metadata"]["name"] for candidate in state.pools]:
        raise CliError(
            f"there is no pool {pool!r}", near(pool, [candidate["metadata"]["name"] for candidate in state.pools])
        )
    policies = offline.first_of(new.of("MachineConfiguration"))
    result = planned(state if policies is None else replace(state, configuration=policies), proposal, pool)
    laid = plan_overlays(state, new.of(overlays.KIND), gone)
    built = plan_images(state, proposal, new.of(images.KIND), undescribed, pool, policies)
    if output == "json":
        show_json({
            **to_json(result), **({"overlays": laid.to_json()} if laid.overlays else {}),
            **({"images": [image.to_json() for image in built]} if built else {}),
            **({"beside": [source.to_json() for source in beside]} if beside else {}),
        })  # fmt: skip
    else:
        if result or not (laid.overlays or built):
            click.echo(plan_view.plan_text(result, diffs=diffs))
        if laid.overlays:
            click.echo(overlays.overlays_text(laid, diffs=diffs))
        click.echo(images.images_text(built), nl=False)
        click.echo(_beside_text(beside), nl=False)
    if result.reboots or any(image.reboots for image in built):
        raise SystemExit(REBOOTS)
    problems = [*(image.problems for image in built), *(source.problems for source in beside)]
    if result.fails or laid.fails or any(problems):
        raise SystemExit(Exit.NO)


def _tell_beside(beside: list[SourcePlan], output: str) -> None:
    if output == "json":
        show_json({"pools": [], "beside": [source.to_json() for source in beside]})
    else:
        click.echo(_beside_text(beside), nl=False)
    if any(source.problems for source in beside):
        raise SystemExit(Exit.NO)


def _beside_text(beside: list[SourcePlan]) -> str:
    lines = []
    for source in beside:
        lines += [source.place, f"  {source.effect}", *(f"  {path}" for path in source.files)]
        lines += [f"  refused: {problem}" for problem in source.problems]
    return "".join(f"{line}\n" for line in lines)
