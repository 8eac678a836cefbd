"""`fastness attest explain`: the verdict about a machine in plain words, with the commands that change it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from fastness.cli.audit import refusals_of
from fastness.cli.errors import CliError
from fastness.cli.machine import all_machines, connected, one_machine
from fastness.cluster.errors import ApiError, NotFound
from fastness.cluster.port import Cluster
from fastness.domain.attestation.explain import Explanation, Unproved, explain, unproved_of
from fastness.domain.attestation.membership import Membership, membership_of
from fastness.model.fastness_dev.verdict import VERDICT, Check
from fastness.model.kind import JsonObject
from fastness.model.objects import condition, view
from fastness.model.trusted_execution.machine import Machine
from fastness.trust.errors import TrustError

_WORDS: Final = {"Pass": "pass", "Fail": "FAIL", "Warn": "warn", "NotAssessed": "open"}
_WIDTH: Final = 100
MOST: Final = 10
"""As many machines as are explained at once: whoever has more to read looks at one of them."""


async def explained(name: str, kubeconfig: Path | None, context: str) -> Explanation:
    """The explanation of one machine of a cluster; raises CliError, ApiError."""
    async with connected(kubeconfig, context) as cluster:
        machine = await one_machine(cluster, name)
        verdict = await _verdict(cluster, machine)
    return explain(machine, verdict, await _unproved(machine, kubeconfig, context))


async def unattested(kubeconfig: Path | None, context: str) -> tuple[list[Explanation], int]:
    """The explanations of machines that are not attested, at most MOST of them, and how many were left out; raises ApiError."""
    async with connected(kubeconfig, context) as cluster:
        chosen = [one for one in await all_machines(cluster) if not _stands(one)]
        judged = [(one, await _verdict(cluster, one)) for one in chosen[:MOST]]
    found = [explain(machine, verdict, await _unproved(machine, kubeconfig, context)) for machine, verdict in judged]
    return found, len(chosen) - len(found)


def _stands(machine: JsonObject) -> bool:
    """Whether a machine is attested and nobody has taken it out since."""
    attested = (condition(machine, "Attested") or {}).get("status") == "True"
    return attested and membership_of(view(machine, Machine)) is Membership.APPROVED


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
        found = await refusals_of(str(status.get("keyThumbprint", "")), kubeconfig, context)
    except (CliError, ApiError, TrustError):
        return []
    return unproved_of(machine, found)


def told_plainly(found: Explanation, *, everything: bool) -> str:
    """The explanation as text: the answer, why, and what to do."""
    simulated = " [simulated]" if found.simulated else ""
    where = f" ({found.node}, pool {found.pool})" if found.node else ""
    lines = [f"{found.machine}{where} {found.answer}{simulated}"]
    if found.last_attested:
        lines.append(f"last attested {found.last_attested}")
    if found.verdict:
        lines.append(f"verdict {found.verdict}")
    checks = [*found.why, *(found.others if everything else ())]
    if checks:
        lines.append("")
    for check in checks:
        lines += _check(check)
    for refused in found.unproved:
        lines.append(f"refused since, without proof of who it was: {refused.code} at {refused.time}")
    if found.actions:
        lines += ["", "What to do:", *(f"  {action}" for action in found.actions)]
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
