"""What a running cluster says about itself, as findings of `fastness doctor`.

Whether another operator does work that is ours, whether machines can join or protection be lowered past us, whether what is
stored can be read and who wrote it. Conditions of the ConfidentialCluster that are False mean that something which protects the
cluster does not: each has a row with what it is for and where to read on.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from fastness.app.other_operators import FAMILIES, held_back
from fastness.attestation.admission.topology import confidential_pools, unsupported
from fastness.attestation.live.statuses import Statuses
from fastness.attestation.machine.signed_status import is_disbelieved
from fastness.cli.support.finding import Finding
from fastness.disks.volumes import pools_on_open_disks, pools_opened_by_clevis
from fastness.enrolment.kubelet_certificates import other_approvers
from fastness.enrolment.loops.join_tokens import BINDINGS
from fastness.formats.words import counted
from fastness.keys.home import WAY_BACK, Home
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER, NAME
from fastness.kinds.kind import JsonObject, Kind
from fastness.kinds.kubernetes.core import CONFIG_MAP, NODE
from fastness.kinds.machineconfiguration.names import CURRENT_CONFIG, OS_DRIVER
from fastness.kinds.machineconfiguration.pool import MACHINE_CONFIG_POOL
from fastness.kinds.objects import annotations_of, condition, object_name, view
from fastness.kinds.openshift.config import INFRASTRUCTURE, MICROSHIFT
from fastness.kinds.registry import all_kinds
from fastness.kinds.trusted_execution.machine import MACHINE, Machine
from fastness.kube.errors import ApiError, NotFound
from fastness.kube.port import Cluster, Scope
from fastness.machineconfig.rollout.rollout import named
from fastness.runtime.clock import SystemClock, SystemEntropy

WATCHED: Final = {
    "Recorded": ("record", "every decision can be proved afterwards", "docs/how-to/run-a-witness.md"),
    "Witnessed": ("witnesses", "nobody rolls the record back unseen", "docs/how-to/run-a-witness.md"),
}

_STATUSES: Final = "nobody makes a machine look attested by writing its status"


async def cluster_findings(cluster: Cluster, now: datetime) -> list[Finding]:
    """Everything that is looked for in a cluster; raises ApiError."""
    findings = [*await neighbours(cluster, now), await approvers(cluster), await guarded(cluster), await home(cluster)]
    findings.append(await ground(cluster))
    return [
        *findings,
        *await health(cluster),
        *await unreadable_objects(cluster),
        *await statuses(cluster),
        await disks(cluster),
        *await pinned_disks(cluster),
        await drivers(cluster),
    ]


async def neighbours(cluster: Cluster, now: datetime) -> list[Finding]:
    """For each family of controllers, whether somebody else does its work in this cluster."""
    held = await held_back(cluster, (), now)
    return [
        Finding(
            f"{family} operator",
            "optional" if family in held else "ok",
            held.get(family, "no other is active"),
            "its controllers start here",
            f"they do not start without `fastness serve --adopt {family}`" if family in held else "",
        )
        for family in FAMILIES
    ]


async def approvers(cluster: Cluster) -> Finding:
    """Whether somebody else lets machines join, past attestation."""
    others = other_approvers((await cluster.list(BINDINGS)).items)
    purpose = "only machines that proved themselves, or have a token of their pool, become nodes"
    if not others:
        return Finding("node approval", "ok", "nobody else approves nodes", purpose)
    fix = f"kubectl delete clusterrolebinding {' '.join(others)}"
    return Finding("node approval", "optional", f"Kubernetes approves nodes by {', '.join(others)}", purpose, fix)


async def guarded(cluster: Cluster) -> Finding:
    """Whether protection can be lowered past admission, or was."""
    purpose = "protection is lowered only with a confirmation, on the record"
    try:
        cluster_object = await cluster.get(CONFIDENTIAL_CLUSTER.resource, NAME)
    except NotFound:
        return Finding("guard", "ok", "there is no ConfidentialCluster", purpose)
    guard = condition(cluster_object, "Guarded")
    if guard is None:
        return Finding("guard", "optional", "no controller has looked yet", purpose, "run `fastness serve`")
    if guard["status"] == "True":
        return Finding("guard", "ok", str(guard["message"]), purpose)
    fix = (
        "run the webhook role"
        if guard["reason"] == "NoWebhook"
        else "make the cluster as strict as it was; see `fastness audit show`"
    )
    return Finding("guard", "missing", str(guard["message"]), purpose, fix)


async def ground(cluster: Cluster) -> Finding:
    """Whether the control plane can be one that judges confidential pools."""
    purpose = "whoever judges machines is neither the one that is judged nor in other hands"
    found = unsupported(
        await _get(cluster, INFRASTRUCTURE, NAME), await _get(cluster, CONFIG_MAP, *reversed(MICROSHIFT))
    )
    if found is None:
        return Finding("topology", "ok", "confidential pools can stand here", purpose)
    confidential = await _get(cluster, CONFIDENTIAL_CLUSTER, NAME)
    pools = confidential_pools(confidential, (await cluster.list(MACHINE_CONFIG_POOL.resource)).items)
    where, reason = found
    if not pools:
        return Finding("topology", "optional", f"no pool can be confidential {where}: {reason}", purpose)
    words = f"pool {' and '.join(pools)} cannot be confidential {where}: {reason}"
    fix = "move the control plane to machines of its own, or make the pools ContainersHost or None"
    return Finding("topology", "missing", words, purpose, fix)


async def _get(cluster: Cluster, kind: Kind, name: str, namespace: str = "") -> JsonObject | None:
    try:
        return await cluster.get(kind.resource, name, namespace)
    except NotFound:
        return None


async def home(cluster: Cluster) -> Finding:
    """Whether the namespace that holds machines, approvals and keys is there."""
    looking, purpose = Home(cluster, SystemClock()), "machines, approvals and keys live in it"
    await looking.look()
    problem = looking.problem()
    if problem is None:
        return Finding("fastness-system", "ok", "is there", purpose)
    return Finding("fastness-system", "missing", problem, purpose, WAY_BACK)


async def health(cluster: Cluster) -> list[Finding]:
    """The conditions that matter, as they stand; a cluster without a ConfidentialCluster has none. Raises ApiError."""
    try:
        cluster_object = await cluster.get(CONFIDENTIAL_CLUSTER.resource, NAME)
    except NotFound:
        return []
    findings = []
    for kind, (name, purpose, page) in WATCHED.items():
        stands = condition(cluster_object, kind)
        if stands is not None:
            good = stands.get("status") == "True"
            words = str(stands.get("message", ""))
            findings.append(Finding(name, "ok" if good else "missing", words, purpose, "" if good else f"see {page}"))
    return findings


async def unreadable_objects(cluster: Cluster) -> list[Finding]:
    """The objects of a cluster that our controllers set aside, because they cannot be read; of all kinds that we know."""
    purpose, bad = "what controllers read can be read", []
    for resource in (kind.resource for kind in all_kinds() if "list" in kind.verbs and kind.kind != "Event"):
        try:
            page = await cluster.list(resource)
        except ApiError:  # not served here, or not for us to read
            continue
        for obj, reason in page.unreadable:
            name = "/".join(filter(None, (obj["metadata"].get("namespace"), obj["metadata"]["name"])))
            fix = f"kubectl delete {resource.plural} {name.replace('/', ' ')}, or make it smaller"
            bad.append(Finding("objects", "optional", f"set aside: {resource.plural} {name}: {reason}", purpose, fix))
    return bad or [Finding("objects", "ok", "all can be read", purpose)]


async def statuses(cluster: Cluster) -> list[Finding]:
    """Whether the control plane wrote what Machines say about themselves; nothing without Machines. Raises ApiError."""
    machines = (await cluster.list(MACHINE.resource, Scope(NAMESPACE))).items
    if not machines:
        return []
    judge = Statuses(None, cluster, SystemClock(), SystemEntropy())
    strange = [object_name(machine).name for machine in machines if is_disbelieved(await judge.judged(machine))]
    words = (
        f"the control plane wrote the status of {len(machines) - len(strange)} of {counted(len(machines), 'machine')}"
    )
    if not strange:
        return [Finding("statuses", "ok", words, _STATUSES)]
    named = f"{words}; not of {', '.join(strange[:5])}{' …' if len(strange) > 5 else ''}, which count as never attested"
    return [Finding("statuses", "missing", named, _STATUSES, "see docs/how-to/who-may-write-what.md")]


async def drivers(cluster: Cluster) -> Finding:
    """The nodes whose operating system rpm-ostree deploys, and their pools."""
    purpose = "operating systems are images that bootc deploys"
    reasons: dict[str, list[str]] = {}
    for node in (await cluster.list(NODE.resource)).items:
        driver, _, why = annotations_of(node).get(OS_DRIVER, "").partition(": ")
        if driver == "rpm-ostree":
            pool = annotations_of(node).get(CURRENT_CONFIG, "").removeprefix("rendered-").rpartition("-")[0]
            reasons.setdefault(f"{f'pool {pool}: ' if pool else ''}{why}", []).append(object_name(node).name)
    if not reasons:
        return Finding("os drivers", "ok", "no node says that it needs rpm-ostree", purpose)
    words = "; ".join(f"{named(sorted(nodes))} ({why})" for why, nodes in sorted(reasons.items()))
    fix = (
        "enable the gate BootcNodeManagement in FeatureGate cluster; bake layered packages into the image of the pool and remove "
        "them from the machines, or stage 3 of image mode is refused"
    )
    return Finding("os drivers", "optional", f"nodes on rpm-ostree: {words}", purpose, fix)


async def disks(cluster: Cluster) -> Finding:
    """The pools of an enforcing cluster whose machines keep what they are given on disks that their host reads."""
    purpose = "what machines are given stays secret when they are off"
    try:
        confidential = await cluster.get(CONFIDENTIAL_CLUSTER.resource, NAME)
    except NotFound:
        return Finding("disks", "ok", "there is no ConfidentialCluster", purpose)
    machines = [view(entry, Machine) for entry in (await cluster.list(MACHINE.resource, Scope(NAMESPACE))).items]
    open_pools = pools_on_open_disks(confidential, machines)
    if not open_pools:
        return Finding("disks", "ok", "no enforcing pool has machines on open disks", purpose)
    listed = ", ".join(f"{pool} ({counted(count, 'machine')})" for pool, count in open_pools.items())
    fix = "set disk.volume of the pools in the ConfidentialCluster, and replace their nodes"
    return Finding("disks", "optional", f"secrets on open disks: {listed}", purpose, fix)


async def pinned_disks(cluster: Cluster) -> list[Finding]:
    """The pools whose disks the Clevis pin opens, which is weaker than the agent; nothing without any. Raises ApiError."""
    try:
        confidential = await cluster.get(CONFIDENTIAL_CLUSTER.resource, NAME)
    except NotFound:
        confidential = None
    machines = [view(entry, Machine) for entry in (await cluster.list(MACHINE.resource, Scope(NAMESPACE))).items]
    pools = pools_opened_by_clevis(confidential, machines)
    if not pools:
        return []
    listed = ", ".join(f"{pool} ({counted(count, 'machine')})" for pool, count in pools.items())
    words = f"disks opened by the Clevis pin, which is weaker and trusts on first use: {listed}"
    fix = "set disk.pin of the pools to Agent, and replace their nodes by ones with the agent in their image"
    return [
        Finding("clevis pin", "optional", words, "a key of a disk goes to a machine that booted what was approved", fix)
    ]
