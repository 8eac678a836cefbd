"""`fastness attest explain`: the verdict about a machine in plain words, with the commands that change it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fastness.attestation.status.unproved_nodes import never_attested
from fastness.attestation.verdict.explain import Explanation, Unproved, explain, unproved_of
from fastness.cli.cluster import connected
from fastness.cli.errors import CliError
from fastness.cli.trust.audit import refusals_of
from fastness.cli.trust.enrolled_machines import all_machines, confidential_cluster, machine_named, standings
from fastness.keys.errors import TrustError
from fastness.kinds.fastness_dev.verdict import VERDICT, Check
from fastness.kinds.kind import JsonObject
from fastness.kinds.kubernetes.core import NODE
from fastness.kinds.machineconfiguration.pool import MACHINE_CONFIG_POOL
from fastness.kinds.objects import view
from fastness.kinds.trusted_execution.machine import Machine
from fastness.kube.errors import ApiError, Forbidden, NotFound
from fastness.kube.port import Cluster

NODES: Final = NODE.resource
_WORDS: Final = {"Pass": "pass", "Fail": "FAIL", "Warn": "warn", "NotAssessed": "open"}
_WIDTH: Final = 100
MOST: Final = 10
"""As many machines as are explained at once: whoever has more to read looks at one of them."""


@dataclass(frozen=True, slots=True)
class Unattested:
    """What a cluster has to tell of those that did not prove themselves."""

    machines: list[Explanation]
    left_out: int
    enrolled: int
    nodes: tuple[str, ...]


async def explained(name: str, kubeconfig: Path | None, context: str) -> Explanation:
    """The explanation of one machine of a cluster; raises CliError, ApiError."""
    async with connected(kubeconfig, context) as cluster:
        machine, standing = await machine_named(cluster, name), await standings(cluster)
        verdict = await _verdict(cluster, machine)
    return explain(machine, standing(view(machine, Machine)), verdict, await _unproved(machine, kubeconfig, context))


async def unattested(kubeconfig: Path | None, context: str) -> Unattested:
    """Machines that are not attested, at most MOST of them explained, and nodes that never were; raises ApiError."""
    async with connected(kubeconfig, context) as cluster:
        machines, standing = await all_machines(cluster), await standings(cluster)
        judged = [(obj, standing(view(obj, Machine))) for obj in machines]
        chosen = [(obj, stands) for obj, stands in judged if not stands.proved]
        nodes = await _nodes(cluster, machines)
        verdicts = [await _verdict(cluster, obj) for obj, _ in chosen[:MOST]]
    explanations = [
        explain(machine, stands, verdict, await _unproved(machine, kubeconfig, context))
        for (machine, stands), verdict in zip(chosen, verdicts, strict=False)
    ]
    return Unattested(explanations, len(chosen) - len(explanations), len(machines), nodes)


async def _nodes(cluster: Cluster, machines: Sequence[JsonObject]) -> tuple[str, ...]:
    """The nodes that never attested, worked out here as the control plane does; raises ApiError."""
    confidential = await confidential_cluster(cluster)
    try:
        nodes, pools = (await cluster.list(NODES)).items, (await cluster.list(MACHINE_CONFIG_POOL.resource)).items
    except Forbidden:
        # Whoever may not list nodes gets what the control plane wrote down.
        return tuple(((confidential or {}).get("status") or {}).get("neverAttested") or ())
    return never_attested(confidential, nodes, pools, [view(machine, Machine) for machine in machines])


async def _verdict(cluster: Cluster, machine: JsonObject) -> JsonObject | None:
    """The last verdict about a machine, if there is one still."""
    last = (machine.get("status") or {}).get("lastVerdict")
    if not last:
        return None
    try:
        return await cluster.get(VERDICT.resource, last)
    except NotFound:
        return None


async def _unproved(machine: JsonObject, kubeconfig: Path | None, context: str) -> list[Unproved]:
    """What the record says was refused without a verdict since the machine last stood well; nothing where it cannot be read."""
    status = machine.get("status") or {}
    try:
        refusals = await refusals_of(str(status.get("keyThumbprint", "")), kubeconfig, context)
    except (CliError, ApiError, TrustError):
        return []
    return unproved_of(machine, refusals)


def explanation_text(explanation: Explanation, *, everything: bool) -> str:
    """The explanation as text: the answer, why, and what to do."""
    caveats = f" [{', '.join(explanation.standing.caveats)}]" if explanation.standing.caveats else ""
    where = f" ({explanation.node}, pool {explanation.pool})" if explanation.node else ""
    lines = [f"{explanation.machine}{where} {explanation.answer}{caveats}"]
    if explanation.last_attested:
        lines.append(f"last attested {explanation.last_attested}")
    if explanation.verdict:
        lines.append(f"verdict {explanation.verdict}")
    if explanation.user_data:
        lines.append(f"took from its user-data: {explanation.user_data}")
    checks = [*explanation.why, *(explanation.others if everything else ())]
    if checks:
        lines.append("")
    for check in checks:
        lines += _check(check)
    for refused in explanation.unproved:
        lines.append(f"refused since, without proof of who it was: {refused.code} at {refused.time}")
    lines += [f"disputed: {dispute}" for dispute in explanation.disputes]
    lines += [f"disk {disk}" for disk in explanation.disks]
    lines += [f"note: {note}" for note in explanation.notes]
    if explanation.actions:
        lines += ["", "What to do:", *(f"  {action}" for action in explanation.actions)]
    return "\n".join(lines)


def _check(check: Check) -> Iterator[str]:
    yield f"{_WORDS.get(check.result, check.result):<5} {check.name}: {check.code}"
    if check.result == "Pass":
        return
    for label, text in (("seen", check.seen), ("expected", check.expected)):
        if text:
            yield f"        {label:<9}{_short(text)}"
    if check.hint:
        yield f"        {check.hint}"


def _short(text: str) -> str:
    return text if " " in text or len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"
