"""`fastness enable`: from bare metal to runtime classes in one step.

    fastness enable tdx --plan        what is checked, what would be made and changed, which machines restart
    fastness enable tdx               do it; again: nothing is left to do
    fastness enable snp --gpu         with confidential GPUs

Nothing is written while a check refuses. Objects are written in order, each for itself: if one cannot be written, what was done
stays, and running the command again goes on from there.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import click

from fastness.cli.cluster import cluster_options, connected
from fastness.cli.config import plan_view
from fastness.cli.config.cluster_state import state_of
from fastness.cli.errors import CliError, Exit
from fastness.cli.output import output_option, show_json, table, tell
from fastness.cli.room_errors import reported_errors
from fastness.cli.workloads.dcap import ADMIN, KEY, inputs_for, inputs_in_use, place_in, tell_admin
from fastness.formats.words import counted
from fastness.kinds.kata.config import KATA_CONFIG
from fastness.kinds.kata.names import Tee
from fastness.kinds.kind import JsonObject
from fastness.kinds.kubernetes.native import RUNTIME_CLASS
from fastness.kinds.machineconfiguration.pool import MACHINE_CONFIG_POOL
from fastness.kinds.objects import condition, object_name
from fastness.kube.errors import AlreadyExists, NotFound
from fastness.kube.port import Cluster, PatchType, Scope, WriteOptions
from fastness.machineconfig.rollout.plan import Plan
from fastness.machineconfig.rollout.plan_json import to_json
from fastness.workloads.enable.changes import Action, ObjectChange
from fastness.workloads.enable.inputs import LOOKED_AT, EnableRequest, Snapshot
from fastness.workloads.enable.preflight import Check, preflight
from fastness.workloads.enable.steps import Step, open_changes, reboots, steps
from fastness.workloads.intel import parts
from fastness.workloads.intel.dcap import DcapInputs
from fastness.workloads.intel.parts import SECRETS

MARKS: Final = {"ok": "+", "warning": "!", "refused": "x", "create": "+", "change": "~", "keep": "="}
POLL_SECONDS: Final = 0.5
_LABEL: Final = re.compile(r"([A-Za-z0-9./_-]{1,317})=([A-Za-z0-9._-]{0,63})\Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was looked at and what would happen."""

    checks: list[Check]
    steps: list[Step]
    plan: Plan
    dcap: DcapInputs | None = None

    @property
    def refused(self) -> bool:
        """Whether a check stands against it."""
        return any(str(check.result) == "refused" for check in self.checks)


@click.command()
@click.argument("tee", type=click.Choice(["tdx", "snp"]))
@click.option("--gpu", is_flag=True, help="Also NVIDIA GPUs in their confidential mode.")
@click.option(
    "--plan", "only_plan", is_flag=True, help="Print what would be made, changed and restarted, and do nothing."
)
@click.option(
    "--select", "selected", multiple=True, metavar="LABEL=VALUE", help="Only workers with this label; may be repeated."
)
@click.option("--name", default="example-kataconfig", show_default=True, help="Name of the KataConfig.")
@click.option(
    "--deployment-mode", type=click.Choice(["MachineConfig", "DaemonSet", "DaemonSetFallback"]), default=None,
    help="How the runtime gets onto nodes; default by what the cluster has.",
)  # fmt: skip
@click.option("--without-dcap", is_flag=True, help="Do not deploy PCCS and QGS: they run elsewhere.")
@click.option("--pccs-node", default="", help="The node that PCCS runs on; default the first of the control plane.")
@click.option("--trustee-elsewhere", is_flag=True, help="Do not configure the attestation service here.")
@click.option(
    "--wait", "seconds", type=click.FloatRange(0, 86400), default=0.0, help="Wait so long for the runtime classes."
)
@cluster_options
@output_option
def enable(
    tee: str, only_plan: bool, seconds: float, kubeconfig: Path | None, context: str, output: str, **given: Any
) -> None:
    """Make a cluster run confidential containers on TDX or SNP hosts, in one step that can be repeated.

    Exit code 1 when a check refuses; nothing is written then.
    """
    request = _request(tee, **given)
    with reported_errors():
        done = asyncio.run(_run(request, only_plan, seconds, kubeconfig, context, output))
    if not done:
        sys.exit(Exit.NO)


def _request(
    tee: str, *, gpu: bool, selected: tuple[str, ...], name: str, deployment_mode: str | None, without_dcap: bool,
    trustee_elsewhere: bool, pccs_node: str,
) -> EnableRequest:  # fmt: skip
    labels: dict[str, str] = {}
    for text in selected:
        pair = _LABEL.match(text)
        if pair is None:
            raise CliError(f"--select: {text!r} is not LABEL=VALUE", "For example kata-cc=true.", Exit.USAGE)
        labels[pair[1]] = pair[2]
    return EnableRequest(
        Tee(tee), gpu, not without_dcap, not trustee_elsewhere, labels, name, deployment_mode or "", pccs_node
    )


async def _run(
    request: EnableRequest, only_plan: bool, seconds: float, kubeconfig: Path | None, context: str, output: str
) -> bool:
    async with connected(kubeconfig, context) as cluster:
        outcome = await outcome_of(cluster, request)
        if output == "json":
            show_json(as_json(outcome))
        else:
            click.echo(outcome_text(outcome))
        if outcome.refused or only_plan:
            return not outcome.refused
        say = tell if output == "json" else click.echo
        await apply(cluster, outcome.steps, outcome.dcap, say)
        return await _settled(cluster, seconds, outcome.plan, say) if seconds else True


async def outcome_of(cluster: Cluster, request: EnableRequest) -> Outcome:
    """Look at a cluster and say what a request means for it; raises ApiError, CliError."""
    snapshot = await look(cluster)
    checks = preflight(snapshot, request, has_key=bool(os.environ.get(KEY)))
    dcap = await _dcap(cluster, snapshot, request)
    planned = steps(snapshot, request, dcap)
    return Outcome(checks, planned, reboots(snapshot, request, planned), dcap)


async def look(cluster: Cluster) -> Snapshot:
    """Everything that is looked at; raises ApiError."""

    objects: dict[str, list[JsonObject] | None] = {}
    for kind, namespaces in LOOKED_AT:
        try:
            pages = [await cluster.list(kind.resource, Scope(namespace)) for namespace in namespaces or ("",)]
            objects[kind.plural] = [obj for page in pages for obj in page.items]
        except NotFound:
            objects[kind.plural] = None
    return Snapshot(await state_of(cluster), objects)


async def _dcap(cluster: Cluster, snapshot: Snapshot, request: EnableRequest) -> DcapInputs | None:
    """What Intel's services are made from; None where they are not asked for or cannot be made."""
    if str(request.tee) != "tdx" or not request.dcap:
        return None
    place = await place_in(cluster)
    running = snapshot.get("deployments", parts.PCCS, parts.NAMESPACE)
    # The database is on the node where PCCS runs: it stays there.
    where = ((((running or {}).get("spec") or {}).get("template") or {}).get("spec") or {}).get("nodeSelector") or {}
    place = replace(place, node=where.get("kubernetes.io/hostname") or request.pccs_node or place.node)
    if snapshot.get("secrets", parts.SECRETS, parts.NAMESPACE) is not None:
        return inputs_in_use(place)
    return inputs_for(place) if os.environ.get(KEY) and place.node else None


async def apply(cluster: Cluster, planned: list[Step], dcap: DcapInputs | None, say: Callable[[str], None]) -> None:
    """Write what is open, in order; raises ApiError. A new admin token of PCCS is told when its hash was stored."""
    options = WriteOptions(manager="fastness-enable")
    for change in open_changes(planned):
        place = object_name(change.target)
        if change.action is Action.CREATE:
            try:
                await cluster.create(change.resource, change.target, options)
            except AlreadyExists:
                tell(f"{change.named}: made by somebody else in the meantime")
                continue
            say(f"{change.named} created")
            if dcap is not None and place.name == SECRETS and not os.environ.get(ADMIN):
                tell_admin(dcap.admin_token)
        else:
            await cluster.patch(change.resource, place.name, change.patch, PatchType.MERGE, place.namespace, options)
            say(f"{change.named} changed")


async def _settled(cluster: Cluster, seconds: float, plan: Plan, say: Callable[[str], None]) -> bool:
    """Wait until the machines that restart are back and the runtime is installed; whether that was in time."""

    classes, last = RUNTIME_CLASS.resource, ""
    try:
        async with asyncio.timeout(seconds):
            while True:
                progress, done = await _progress(cluster)
                if progress != last:
                    tell(progress)
                    last = progress
                if done and await _moved(cluster, plan):
                    names = [
                        str(runtime_class["metadata"]["name"]) for runtime_class in (await cluster.list(classes)).items
                    ]
                    say(f"runtime classes: {', '.join(sorted(names))}")
                    return True
                await asyncio.sleep(POLL_SECONDS)
    except TimeoutError:
        tell(f"not done within {seconds:g} seconds; it goes on: kubectl get kataconfig -w")
        return False


async def _progress(cluster: Cluster) -> tuple[str, bool]:
    """How far the runtime is, in words, and whether that is all the way."""
    items = (await cluster.list(KATA_CONFIG.resource)).items
    status = (items[0].get("status") or {}) if items else {}
    nodes, progress = status.get("kataNodes") or {}, condition(items[0], "InProgress") if items else None
    finished = progress is not None and progress.get("status") == "False" and not progress.get("reason")
    settled = finished and bool(status.get("runtimeClasses"))
    return f"{nodes.get('readyNodeCount', 0)} of {counted(nodes.get('nodeCount', 0), 'node')} have the runtime", settled


async def _moved(cluster: Cluster, plan: Plan) -> bool:
    """Whether every pool whose machines restart has left the config that it had, with all of them."""
    before = {pool_plan.pool: pool_plan.before for pool_plan in plan.pools if pool_plan.reboots}
    for pool in (await cluster.list(MACHINE_CONFIG_POOL.resource)).items if before else ():
        name, status = pool["metadata"]["name"], pool.get("status") or {}
        current = (status.get("configuration") or {}).get("name")
        if name in before and (
            current in (None, "", before[name]) or status.get("updatedMachineCount") != status.get("machineCount")
        ):
            return False
    return True


def outcome_text(outcome: Outcome) -> str:
    """For people: checks, steps, restarts."""
    rows = [
        [MARKS[str(check.result)], check.name, check.message + (f"  ({check.hint})" if check.hint else "")]
        for check in outcome.checks
    ]
    lines = ["Checks", table(rows)]
    if outcome.refused:
        return "\n".join([*lines, "", "Nothing was done: the checks that are marked x must pass first."])
    for step in outcome.steps:
        if step.changes:
            lines += ["", f"{step.title}: {step.reason}", *(f"  {_line(change)}" for change in step.changes)]
    if outcome.plan:
        lines += ["", "Machines", plan_view.plan_text(outcome.plan, diffs=False)]
    elif all(step.done for step in outcome.steps):
        lines += ["", "Nothing is left to do."]
    return "\n".join(lines)


def _line(change: ObjectChange) -> str:
    remarks = [*change.fields, *([change.note] if change.note else [])]
    return f"{MARKS[str(change.action)]} {change.named}" + (f": {'; '.join(remarks)}" if remarks else "")


def as_json(outcome: Outcome) -> dict[str, Any]:
    """For programs."""
    return {
        "refused": outcome.refused,
        "checks": [
            {"name": check.name, "result": str(check.result), "found": check.message, "hint": check.hint}
            for check in outcome.checks
        ],
        "steps": [
            {
                "title": step.title,
                "reason": step.reason,
                "changes": [
                    {
                        "action": str(change.action),
                        "object": change.named,
                        "fields": list(change.fields),
                        "note": change.note,
                    }
                    for change in step.changes
                ],
            }
            for step in outcome.steps
        ],
        "machines": to_json(outcome.plan),
    }
