"""What `fastness doctor` says about confidential containers: which combination is supported, and what about GPUs is wrong.

A combination is release, platform, architecture, TEE and GPU; the manual's tables judge it (`workloads.compat`). Asked of
a cluster, every combination among its workers is judged; asked with --openshift, the one that the options describe.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fastness.cli.support.finding import Finding
from fastness.kinds.kind import JsonObject, Kind
from fastness.kinds.kubernetes.core import NODE
from fastness.kinds.openshift.config import CLUSTER_VERSION, INFRASTRUCTURE
from fastness.kinds.openshift.workloads import CLUSTER_POLICY
from fastness.kube.errors import NotFound
from fastness.kube.port import Cluster
from fastness.workloads.compat.combinations import combinations, release_of
from fastness.workloads.compat.support import Combination, judge
from fastness.workloads.compat.tables import Platform
from fastness.workloads.nvidia.ccmode import CcState, mode_of
from fastness.workloads.nvidia.labels import CONFIDENTIAL_CLASS, missing
from fastness.workloads.nvidia.policy import check

NAME: Final = "confidential containers"
GPUS: Final = "confidential gpus"
_PURPOSE: Final = "hosts of confidential pods"
_GPU_PURPOSE: Final = "GPUs in confidential pods"
MOST: Final = 3


def judged(combination: Combination, nodes: Sequence[str] = (), *, required: bool = False) -> Finding:
    """What the tables say about a combination; one that was asked about and is not supported counts as missing."""
    support = judge(combination)
    where = (
        f"{', '.join(nodes[:MOST])}{f' and {len(nodes) - MOST} more' if len(nodes) > MOST else ''}: " if nodes else ""
    )
    if support.level is None:
        verdict = f"{where}{combination.named}: unsupported, {support.reason}"
        return Finding(NAME, "missing" if required else "optional", verdict, _PURPOSE, support.hint)
    reason = f" ({support.reason})" if support.reason else ""
    return Finding(NAME, "ok", f"{where}{combination.named}: {support.level.name}{reason}", _PURPOSE)


def asked_for(openshift: str, architecture: str, platform: str, tee: str, gpu: bool) -> Finding:
    """The combination that options describe."""
    return judged(Combination(openshift, architecture, Platform(platform), tee, gpu), required=True)


async def hosts(cluster: Cluster) -> list[Finding]:
    """The combinations of a cluster, and what is wrong with its GPUs; raises ApiError."""
    nodes = await _all(cluster, NODE)
    versions = await _all(cluster, CLUSTER_VERSION)
    infrastructures = await _all(cluster, INFRASTRUCTURE)
    release = release_of(versions[0] if versions else None)
    if not release:
        reason = "not an OpenShift cluster: the tables of releases do not apply"
        findings = [Finding(NAME, "ok", reason, _PURPOSE)]
    else:
        groups = combinations(nodes, infrastructures[0] if infrastructures else None, release)
        findings = [judged(combination, names) for combination, names in groups.items()]
    return [*findings, *_gpus(nodes, await _all(cluster, CLUSTER_POLICY))]


def _gpus(nodes: Sequence[JsonObject], policies: Sequence[JsonObject]) -> list[Finding]:
    findings = [
        Finding(GPUS, "optional", f"ClusterPolicy {policy['metadata']['name']}: {problem.sentence}", _GPU_PURPOSE)
        for policy in policies
        for problem in check(policy)
    ]
    for node in nodes:
        mode, name = mode_of(node), node["metadata"]["name"]
        if mode.state is CcState.NO_GPU:
            continue
        if mode.confidential and not missing(node, CONFIDENTIAL_CLASS):
            findings.append(Finding(GPUS, "ok", f"{name}: {mode.reason}", _GPU_PURPOSE))
        else:
            lacks = missing(node, CONFIDENTIAL_CLASS)
            message = mode.reason if not mode.confidential else f"lacks {lacks[0]}"
            findings.append(Finding(GPUS, "optional", f"{name}: {message}", _GPU_PURPOSE, mode.hint))
    return findings


async def _all(cluster: Cluster, kind: Kind) -> list[JsonObject]:
    try:
        return (await cluster.list(kind.resource)).items
    except NotFound:
        return []
