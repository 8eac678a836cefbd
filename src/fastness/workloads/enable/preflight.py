"""Checks before anything is touched, each with what was found, why it matters and what to do.

A refusal means that the request cannot be met here; nothing is written then. A warning means that it can, and that somebody
should know something first. What cannot be known yet (nobody has looked at the nodes) is a warning and never a refusal.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from fastness.formats.words import counted
from fastness.kinds.fastness_dev.trust_model import TrustModel, trust_model
from fastness.kinds.kata import names
from fastness.kinds.kata.names import TRUE, Tee
from fastness.kinds.objects import condition, is_being_deleted, labels_of, object_name
from fastness.workloads.compat.combinations import combinations, release_of
from fastness.workloads.compat.support import judge
from fastness.workloads.enable.inputs import LOOKED_AT, OPTIONAL, EnableRequest, Snapshot
from fastness.workloads.enable.steps import deployment_mode
from fastness.workloads.host_configs import IOMMU_ARGUMENTS, MODULE, TDX_ARGUMENTS
from fastness.workloads.kata.eligibility import Against, choose, tees
from fastness.workloads.kata.mode import DeploymentMode
from fastness.workloads.nvidia.ccmode import PRESENT, mode_of

KEYS: Final = {Tee.TDX: "tdx.intel.com/keys", Tee.SNP: "sev-snp.amd.com/esids"}
SGX: Final = "sgx.intel.com/enclave"
MOST: Final = 3


class Result(StrEnum):
    """What a check says."""

    OK = "ok"
    WARN = "warning"
    REFUSE = "refused"


@dataclass(frozen=True, slots=True)
class Check:
    """What one check found, and what to do about it."""

    name: str
    result: Result
    message: str
    hint: str = ""


def preflight(snapshot: Snapshot, request: EnableRequest, *, has_key: bool) -> list[Check]:
    """Every check; `has_key` is whether Intel's API key is at hand."""
    checks = [*_kinds(snapshot, request), *_trust(snapshot), *_kata(snapshot), *_pools(snapshot)]
    checks += [*_nodes(snapshot, request), *_tee(snapshot, request), *_releases(snapshot, request)]
    checks += _kernels(snapshot, request)
    if request.tee is Tee.TDX and request.dcap:
        checks += _quotes(snapshot, request, has_key)
    if request.gpu:
        checks += _gpus(snapshot)
    return checks


def refusals(checks: list[Check]) -> list[Check]:
    """The checks that refuse the request."""
    return [check for check in checks if check.result is Result.REFUSE]


def _kinds(snapshot: Snapshot, request: EnableRequest) -> Iterator[Check]:
    needless = (
        OPTIONAL | (set() if request.gpu else {"clusterpolicies"}) | (set() if request.trustee else {"trusteeconfigs"})
    )
    missing = [
        f"{kind.plural}.{kind.group}" if kind.group else kind.plural
        for kind, _ in LOOKED_AT
        if snapshot.objects.get(kind.plural) is None and kind.plural not in needless
    ]
    if missing:
        hint = (
            "Install those that no other operator brings: fastness crds --with SET,… | kubectl apply --server-side -f -"
        )
        yield Check("kinds", Result.REFUSE, f"the cluster does not serve {', '.join(missing)}", hint)
    else:
        yield Check("kinds", Result.OK, "everything that is needed is served")


def _trust(snapshot: Snapshot) -> Iterator[Check]:
    confidential = [
        pool for pool in dict.fromkeys((snapshot.home, snapshot.pool))
        if trust_model(snapshot.state.cluster, pool) is TrustModel.CONFIDENTIAL_CLUSTER
    ]  # fmt: skip
    if not confidential:
        yield Check("trust model", Result.OK, f"pool {snapshot.pool} may host guests")
        return
    reason = (
        f"pool {' and '.join(confidential)}: {TrustModel.CONFIDENTIAL_CLUSTER}; its nodes are confidential machines, measured as "
        "they are: kernel arguments and extensions would break what they prove, and guests inside guests are not supported"
    )
    hint = f"If they are bare-metal hosts, list them in ConfidentialCluster spec.pools as {TrustModel.CONTAINERS_HOST}."
    yield Check("trust model", Result.REFUSE, reason, hint)


def _kata(snapshot: Snapshot) -> Iterator[Check]:
    kata = snapshot.kata
    if kata is None:
        return
    name = object_name(kata).name
    if is_being_deleted(kata):
        yield Check(
            "KataConfig", Result.REFUSE, f"{name} is being removed", "Wait until it is gone, then run this again."
        )
    elif (kata.get("spec") or {}).get("enablePeerPods") is True:
        yield Check("KataConfig", Result.WARN, f"{name} is there and has peer pods", "It is kept as it is.")
    else:
        yield Check("KataConfig", Result.OK, f"{name} is there and is kept")


def _pools(snapshot: Snapshot) -> Iterator[Check]:
    for pool in snapshot.state.pools:
        name = object_name(pool).name
        if name not in (snapshot.home, snapshot.pool):
            continue
        degraded = condition(pool, "Degraded")
        if degraded is not None and degraded.get("status") == "True":
            reason = f"pool {name} is degraded: {str(degraded.get('message') or '')[:120]}"
            yield Check("pool", Result.REFUSE, reason, f"Mend it first: kubectl describe mcp {name}")
        elif (pool.get("spec") or {}).get("paused") is True:
            yield Check("pool", Result.WARN, f"pool {name} is paused: its machines change when it is resumed")


def _nodes(snapshot: Snapshot, request: EnableRequest) -> Iterator[Check]:
    requirements = snapshot.requirements(request)
    choices = choose(
        requirements, snapshot.nodes, snapshot.state.pools, snapshot.state.cluster, snapshot.state.machines
    )
    chosen = [choice.node for choice in choices if choice.chosen]
    refused = [choice for choice in choices if choice.against is not None and choice.against.is_refusal]
    if not chosen:
        reasons = "; ".join(f"{choice.node}: {choice.message}" for choice in choices[:MOST]) or "there are no workers"
        hint = next((choice.hint for choice in (*refused, *choices) if choice.hint), "Add workers, or widen --select.")
        # What discovery did not find yet it may find later, and the KataConfig waits for it.
        waits = any(choice.against is Against.NOT_ELIGIBLE for choice in choices)
        yield Check("nodes", Result.WARN if waits else Result.REFUSE, f"no node can get the runtime: {reasons}", hint)
        return
    yield Check("nodes", Result.OK, f"{len(chosen)} can get the runtime: {_some(chosen)}")
    for choice in refused[:MOST]:
        yield Check("nodes", Result.WARN, f"{choice.node} is left out: {choice.message}", choice.hint)


def _tee(snapshot: Snapshot, request: EnableRequest) -> Iterator[Check]:
    with_tee = [node for node in snapshot.nodes if labels_of(node).get(request.tee.label) == TRUE]
    if not with_tee:
        yield _without_tee(snapshot, request)
        return
    hosts = [object_name(node).name for node in with_tee]
    have = counted(len(hosts), "node has", "nodes have")
    yield Check("hardware", Result.OK, f"{have} {request.tee}: {_some(hosts)}")
    key = KEYS.get(request.tee, "")
    keyless = [object_name(node).name for node in with_tee if not _capacity(node, key)]
    if key and keyless:
        hint = "Update the kernel of the host; without the resource confidential pods stay Pending."
        yield Check("hardware", Result.WARN, f"{_some(keyless)} offers no {key}", hint)
    others = [tee for tee in tees(snapshot.nodes) if tee is not request.tee]
    if others:
        text = f"the cluster also has {', '.join(others)}: classes are named kata-cc-tdx and kata-cc-snp, and there is no kata-cc"
        yield Check("hardware", Result.WARN, text)


def _without_tee(snapshot: Snapshot, request: EnableRequest) -> Check:
    labelled = any(labels_of(node).get(names.BASE_LABEL) == TRUE for node in snapshot.nodes)
    present = ", ".join(tees(snapshot.nodes)) or "none"
    if labelled and snapshot.all("nodefeatures") and snapshot.all("nodefeaturerules"):
        hint = f"Switch {request.tee} on in the firmware of the hosts, and look at `fastness agent features` there."
        # A TDX host shows its TEE only after the kernel argument that this very step sets.
        if request.tee is Tee.TDX:
            pending = f"no node shows tdx yet (found: {present}); hosts show it after the restart with kvm_intel.tdx=1"
            return Check("hardware", Result.WARN, pending, hint)
        return Check(
            "hardware", Result.REFUSE, f"discovery looked, and no node has {request.tee} (found: {present})", hint
        )
    return Check("hardware", Result.WARN, f"nobody has looked yet which nodes have {request.tee}; discovery will")


def _releases(snapshot: Snapshot, request: EnableRequest) -> Iterator[Check]:
    release = release_of(snapshot.get("clusterversions", "version"))
    if not release:
        yield Check("release", Result.OK, "not an OpenShift cluster: the tables of releases do not apply")
        return
    infrastructure = snapshot.get("infrastructures", "cluster")
    for combination, nodes in combinations(snapshot.nodes, infrastructure, release).items():
        if combination.tee not in ("", str(request.tee)):
            continue
        # What is asked for counts: a node that does not show its TEE or GPU yet is judged as if it did.
        support = judge(replace(combination, tee=str(request.tee), gpu=request.gpu))
        if not support.ok:
            yield Check("release", Result.REFUSE, f"{_some(nodes)}: {support.reason}", support.hint)
        elif support.reason:
            yield Check("release", Result.WARN, f"{_some(nodes)}: {support.reason}")
        else:
            yield Check("release", Result.OK, f"{_some(nodes)}: {support.level}")


def _kernels(snapshot: Snapshot, request: EnableRequest) -> Iterator[Check]:
    """Where no MachineConfig can set kernel arguments, somebody must have put them into the images."""
    by_image = not snapshot.has_machine_configs or deployment_mode(snapshot, request) == DeploymentMode.DAEMON_SET
    arguments = [*(TDX_ARGUMENTS if request.tee is Tee.TDX else ()), *(IOMMU_ARGUMENTS if request.gpu else ())]
    if by_image and arguments:
        reason = f"hosts are not configured by MachineConfigs here: their images must boot with {' '.join(arguments)}"
        hint = f"They must also load the module {MODULE}." if request.tee is Tee.TDX else ""
        yield Check("kernel", Result.WARN, reason, hint)


def _quotes(snapshot: Snapshot, request: EnableRequest, has_key: bool) -> Iterator[Check]:
    if snapshot.get("secrets", "pccs-secrets", "intel-dcap") is None and not has_key:
        hint = "Export PCCS_API_KEY from Intel's portal, or give --without-dcap if PCCS runs elsewhere."
        yield Check("quotes", Result.REFUSE, "Intel's API key is missing, and PCCS has none yet", hint)
    roles = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")
    running = snapshot.get("deployments", "pccs", "intel-dcap") is not None or request.pccs_node
    if not running and not any(any(role in labels_of(node) for role in roles) for node in snapshot.nodes):
        hint = "Give --pccs-node NAME: a node that reaches Intel."
        yield Check("quotes", Result.REFUSE, "there is no control-plane node for PCCS", hint)
    if request.pccs_node and request.pccs_node not in (nodes := [object_name(node).name for node in snapshot.nodes]):
        hint = f"Give the name of a node: {_some(nodes)}." if nodes else "Add the node first."
        yield Check("quotes", Result.REFUSE, f"PCCS is to run on {request.pccs_node}, and there is no such node", hint)
    if not any(_capacity(node, SGX) for node in snapshot.nodes):
        hint = "Install the Intel device plugins operator and an SgxDevicePlugin: QGS waits for its resources."
        yield Check("quotes", Result.WARN, f"no node offers {SGX}", hint)


def _gpus(snapshot: Snapshot) -> Iterator[Check]:
    nodes = [node for node in snapshot.nodes if labels_of(node).get(PRESENT) == TRUE]
    if not nodes:
        yield Check("gpus", Result.WARN, f"no node is labelled {PRESENT}; NVIDIA's operator will, when it finds one")
    for node in nodes:
        mode = mode_of(node)
        if not mode.confidential:
            yield Check("gpus", Result.WARN, f"{object_name(node).name}: {mode.reason}", mode.hint)


def _capacity(node: Any, key: str) -> bool:
    status = node.get("status") or {}
    return str((status.get("allocatable") or status.get("capacity") or {}).get(key) or "0") != "0"


def _some(items: list[str]) -> str:
    return ", ".join(items[:MOST]) + (f" and {len(items) - MOST} more" if len(items) > MOST else "")
