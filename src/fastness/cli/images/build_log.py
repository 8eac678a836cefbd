"""`fastness image log BUILD`: what a build of a pool's image printed, while it runs or afterwards."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

import click

from fastness.builds.build_objects import LOG, NAMESPACE, log_name
from fastness.cli.cluster import cluster_options, connected
from fastness.cli.errors import CliError, Exit
from fastness.cli.output import tell
from fastness.cli.room_errors import reported_errors
from fastness.kinds.kind import JsonObject
from fastness.kinds.kubernetes.core import CONFIG_MAP
from fastness.kinds.machineconfiguration.os_build import MACHINE_OS_BUILD
from fastness.kinds.machineconfiguration.os_config import MACHINE_OS_CONFIG
from fastness.kinds.objects import condition, object_name
from fastness.kube.errors import NotFound
from fastness.kube.port import Cluster
from fastness.machineconfig.rollout.built import phase_of
from fastness.machineconfig.rollout.status import BuildPhase
from fastness.runtime.clock import Clock, SystemClock

LOOK_EVERY: Final = 1.0
_OVERLAP: Final = 4096


@click.command("log")
@click.argument("build")
@click.option("--follow", "-f", is_flag=True, help="Go on until the build ends.")
@cluster_options
def build_log(build: str, follow: bool, kubeconfig: Path | None, context: str) -> None:
    """Print the log of a build of a pool's image: of a MachineOSBuild, or of the current one of a MachineOSConfig.

    With --follow the exit code is 1 when the build does not succeed.
    """

    async def show() -> JsonObject:
        async with connected(kubeconfig, context) as cluster:
            return await print_log(cluster, build, SystemClock(), follow=follow)

    with reported_errors():
        ended = asyncio.run(show())
    phase = phase_of(ended)
    text = str((condition(ended, phase) or {}).get("message") or "")
    tell(f"{object_name(ended).name}: {phase}{': ' + text.splitlines()[0] if text else ''}")
    if follow and phase is not BuildPhase.SUCCEEDED:
        raise CliError("the build did not succeed", "See docs/how-to/my-build-failed.md.", Exit.NO)


async def print_log(cluster: Cluster, name: str, clock: Clock, *, follow: bool) -> JsonObject:
    """Print what there is, and with `follow` what comes; the build as it is then; raises ApiError, CliError."""
    build, printed = await _build(cluster, name), ""
    while True:
        under_way = phase_of(build).under_way
        text = await _log(cluster, build)
        click.echo(_new(printed, text), nl=False)
        printed = text or printed
        if not follow or not under_way:
            if not printed:
                tell("no log is kept of this build: nothing was run for it")
            return build
        await clock.sleep(LOOK_EVERY)
        build = await _build(cluster, object_name(build).name)


def _new(printed: str, text: str) -> str:
    """What came since; all of it where the log began anew."""
    if text.startswith(printed):
        return text[len(printed) :]
    # The middle of a long log is left out: go on after what was printed last.
    at = text.rfind(printed[-_OVERLAP:])
    return text[at + len(printed[-_OVERLAP:]) :] if at >= 0 else text


async def _build(cluster: Cluster, name: str) -> JsonObject:
    try:
        return await cluster.get(MACHINE_OS_BUILD.resource, name)
    except NotFound:
        pass
    try:
        config = await cluster.get(MACHINE_OS_CONFIG.resource, name)
    except NotFound:
        hint = "List them: kubectl get machineosbuilds,machineosconfigs"
        raise CliError(f"there is no MachineOSBuild and no MachineOSConfig {name!r}", hint) from None
    current = str(((config.get("status") or {}).get("machineOSBuild") or {}).get("name") or "")
    if not current:
        hint = f"What keeps it from being built: kubectl get machineosconfig {name} -o yaml"
        raise CliError(f"nothing was built for MachineOSConfig {name!r} yet", hint)
    return await cluster.get(MACHINE_OS_BUILD.resource, current)


async def _log(cluster: Cluster, build: JsonObject) -> str:
    try:
        kept = await cluster.get(CONFIG_MAP.resource, log_name(object_name(build).name), NAMESPACE)
    except NotFound:
        return ""
    return str((kept.get("data") or {}).get(LOG) or "")
