"""`fastness machine vouch`: a person says that statuses are right which nobody of the control plane signed.

What is vouched for is the status as it was read here, by its digest: if somebody writes into it meanwhile, it counts for nothing.
The controllers sign it and take the digest away again.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fastness.cli.trust.machine import all_machines, connected, one_of

if TYPE_CHECKING:
    from fastness.kinds.kind import JsonObject


async def vouch_for(names: Sequence[str], reason: str, kubeconfig: Path | None, context: str) -> list[str]:
    """Vouch for these machines, or for all that need it; a line for each. Raises CliError, ApiError."""
    from fastness.attestation.live.statuses import Statuses
    from fastness.attestation.machine.signed_status import is_disbelieved, vouched_digest
    from fastness.kinds.trusted_execution.machine import MACHINE
    from fastness.kube.port import PatchType, WriteOptions
    from fastness.runtime.clock import SystemClock, SystemEntropy

    async with connected(kubeconfig, context) as cluster:
        machines = await all_machines(cluster)
        chosen = [one_of(machines, name) for name in names] if names else machines
        judge, lines = Statuses(None, cluster, SystemClock(), SystemEntropy()), []
        for machine in chosen:
            meta = machine["metadata"]
            if not is_disbelieved(await judge.judged(machine)):
                lines += [f"{meta['name']}: the control plane wrote its status"] if names else []
                continue
            spec = {"vouched": vouched_digest(machine), "vouchedReason": reason}
            patch = {"metadata": {"resourceVersion": meta["resourceVersion"]}, "spec": spec}
            options = WriteOptions(manager="fastness-cli")
            await cluster.patch(MACHINE.resource, meta["name"], patch, PatchType.MERGE, meta["namespace"], options)
            lines.append(f"{meta['name']}: vouched for{_summary(machine)}")
    return lines


def _summary(machine: JsonObject) -> str:
    """What the person vouches for, in short: the parts of a status that open something."""
    status = machine.get("status") or {}
    named = {"pool": "pool", "node": "nodeName", "key": "keyThumbprint", "chip": "chip", "attested": "lastAttested"}
    told = [f"{word} {status[name]}" for word, name in named.items() if status.get(name)]
    return f" ({', '.join(told)})" if told else ""
