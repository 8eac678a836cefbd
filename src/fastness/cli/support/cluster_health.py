"""What a running cluster says about itself, as findings of `fastness doctor`.

Conditions of the ConfidentialCluster that are False mean that something which protects the cluster does not: each has a row with
what it is for and where to read on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fastness.cli.support.doctor import Finding

if TYPE_CHECKING:
    from fastness.kube.port import Cluster

WATCHED: Final = {
    "Recorded": ("record", "every decision can be proved afterwards", "docs/how-to/run-a-witness.md"),
    "Witnessed": ("witnesses", "nobody rolls the record back unseen", "docs/how-to/run-a-witness.md"),
}

_STATUSES: Final = "nobody makes a machine look attested by writing its status"


async def statuses(cluster: Cluster) -> list[Finding]:
    """Whether the control plane wrote what Machines say about themselves; nothing without Machines. Raises ApiError."""
    from fastness.attestation.live.statuses import Statuses
    from fastness.attestation.machine.signed_status import is_disbelieved
    from fastness.kinds.fastness_dev import NAMESPACE
    from fastness.kinds.objects import object_name
    from fastness.kinds.trusted_execution.machine import MACHINE
    from fastness.kube.port import Scope
    from fastness.runtime.clock import SystemClock, SystemEntropy

    machines = (await cluster.list(MACHINE.resource, Scope(NAMESPACE))).items
    if not machines:
        return []
    judge = Statuses(None, cluster, SystemClock(), SystemEntropy())
    strange = [object_name(one).name for one in machines if is_disbelieved(await judge.judged(one))]
    words = f"the control plane wrote the status of {len(machines) - len(strange)} of {len(machines)} machines"
    if not strange:
        return [Finding("statuses", "ok", words, _STATUSES)]
    named = f"{words}; not of {', '.join(strange[:5])}{' …' if len(strange) > 5 else ''}, which count as never attested"
    return [Finding("statuses", "missing", named, _STATUSES, "see docs/how-to/who-may-write-what.md")]


async def health(cluster: Cluster) -> list[Finding]:
    """The conditions that matter, as they stand; a cluster without a ConfidentialCluster has none. Raises ApiError."""
    from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER, NAME
    from fastness.kinds.objects import condition
    from fastness.kube.errors import NotFound

    try:
        found = await cluster.get(CONFIDENTIAL_CLUSTER.resource, NAME)
    except NotFound:
        return []
    findings = []
    for kind, (name, purpose, page) in WATCHED.items():
        stands = condition(found, kind)
        if stands is not None:
            good = stands.get("status") == "True"
            words = str(stands.get("message", ""))
            findings.append(Finding(name, "ok" if good else "missing", words, purpose, "" if good else f"see {page}"))
    return findings
