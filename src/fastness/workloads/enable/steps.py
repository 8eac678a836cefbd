"""Everything that has to be there for a request, in the order of the manual, each step with its reason; and who restarts for it.

Who else may have done a part is looked for before anything is made: an operator that is subscribed to under another name, a
second OperatorGroup (which would stop its namespace), a running discovery, MachineConfigs that do the same under other names, a
KataConfig of another name, a ClusterPolicy. Runtime classes and the pool `kata-oc` are not made here: the KataConfig brings them.
For the same reason the plan of machine configuration does not show them yet, so `reboots` puts both into its picture: chosen
nodes are shown in that pool, with the configs that it would take.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, Final

from fastness.kinds.kata import names
from fastness.kinds.kata.names import Tee
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names as mco
from fastness.kinds.objects import labels_of, metadata, object_name
from fastness.machineconfig.rollout.plan import Plan, Proposal, plan
from fastness.workloads import host_configs
from fastness.workloads.compat.combinations import release_of
from fastness.workloads.compat.support import parse_release
from fastness.workloads.enable import manifests
from fastness.workloads.enable.changes import Action, ObjectChange, compared, resource_of
from fastness.workloads.enable.inputs import EnableRequest, Object, Snapshot
from fastness.workloads.intel import parts
from fastness.workloads.intel.dcap import DcapInputs, dcap_objects
from fastness.workloads.kata.eligibility import choose
from fastness.workloads.kata.mode import DeploymentMode, read_gates
from fastness.workloads.kata.objects import extension_config, kata_pool
from fastness.workloads.nvidia.policy import REQUIRED_ENV, REQUIRED_FIELDS, check, cluster_policy

SANDBOXED_CSV: Final = "sandboxed-containers-operator.v1.12.0"
# Made once and then in use: never changed afterwards.
_MADE_ONCE: Final = ("Secret", "PersistentVolumeClaim", "ConfigMap")


@dataclass(frozen=True, slots=True)
class Step:
    """One step: what it is for, and what happens to which objects."""

    title: str
    reason: str
    changes: tuple[ObjectChange, ...]

    @property
    def done(self) -> bool:
        """Whether nothing is left to do."""
        return all(change.action is Action.KEEP for change in self.changes)


def steps(snapshot: Snapshot, request: EnableRequest, dcap: DcapInputs | None = None) -> list[Step]:
    """All steps; `dcap` is what Intel's services are made from, where they are asked for."""
    plan_steps = [
        Step("operators", "they own the kinds that the next steps use", tuple(_operators(snapshot, request))),
        Step("discovery", "nodes are chosen by what is found on them", tuple(_discovery(snapshot, request))),
        Step("hosts", "the kernels of hosts must offer their TEE to guests", tuple(_hosts(snapshot, request))),
    ]
    if request.trustee:
        plan_steps.append(
            Step("attestation", "guests get secrets only after they proved themselves", tuple(_trustee(snapshot)))
        )
    if request.tee is Tee.TDX and request.dcap and dcap is not None:
        plan_steps.append(
            Step("quotes", "TDX guests need somebody on their host to sign quotes", tuple(_dcap(snapshot, dcap)))
        )
    if request.gpu:
        policy = (_cluster_policy(snapshot),)
        plan_steps.append(Step("gpus", "GPUs are handed to guests whole, in their confidential mode", policy))
    runtime = (
        _gates(snapshot, request),
        compared(snapshot, manifests.kata_config(request), keep=True, twin=_any_of("kataconfigs")),
    )
    plan_steps.append(Step("runtime", "the runtime is installed node by node; classes follow at its end", runtime))
    return plan_steps


def deployment_mode(snapshot: Snapshot, request: EnableRequest) -> str:
    """How the runtime gets onto nodes: as it was asked for, or else as this cluster configures its machines."""
    return request.mode or str(
        DeploymentMode.MACHINE_CONFIG if snapshot.has_machine_configs else DeploymentMode.DAEMON_SET
    )


def _operators(snapshot: Snapshot, request: EnableRequest) -> Iterator[ObjectChange]:
    operators = [
        manifests.operator(
            manifests.OSC, "sandboxed-containers-operator", "sandboxed-containers-operator-group", csv=SANDBOXED_CSV
        ),
        manifests.operator(manifests.NFD, "nfd", "openshift-nfd-group"),
    ]
    if request.trustee:
        operators.append(manifests.operator(manifests.TRUSTEE, "trustee-operator", "trustee-operator-group"))
    if request.gpu:
        operators.append(
            manifests.operator(
                manifests.NVIDIA, "gpu-operator-certified", "nvidia-gpu-operator-group", "certified-operators"
            )
        )
    for namespace, group, subscription in operators:
        other = _subscribed(snapshot, subscription)
        if other is not None:
            yield ObjectChange(Action.KEEP, resource_of(other), other, note="subscribed already")
            place = namespace["metadata"]["name"]
            if object_name(other).namespace != place:
                # It lives elsewhere; its objects still go where the manual puts them.
                yield compared(snapshot, namespace, keep=True)
            continue
        yield compared(snapshot, namespace, keep=True)
        yield compared(snapshot, group, keep=True, twin=_group_there)
        yield compared(snapshot, subscription, keep=True)


def _subscribed(snapshot: Snapshot, subscription: JsonObject) -> JsonObject | None:
    package = subscription["spec"]["name"]
    subscriptions = snapshot.all("subscriptions")
    return next((other for other in subscriptions if (other.get("spec") or {}).get("name") == package), None)


def _group_there(snapshot: Snapshot, group: JsonObject) -> JsonObject | None:
    place = group["metadata"]["namespace"]
    return next((other for other in snapshot.all("operatorgroups") if object_name(other).namespace == place), None)


def _any_of(plural: str) -> Any:
    return lambda snapshot, _target: next(iter(snapshot.all(plural)), None)


def _discovery(snapshot: Snapshot, request: EnableRequest) -> Iterator[ObjectChange]:
    release = parse_release(release_of(snapshot.get("clusterversions", "version")))
    version = f"{release[0]}.{release[1]}" if release else manifests.NFD_VERSION
    yield compared(snapshot, manifests.discovery(version), keep=True, twin=_any_of("nodefeaturediscoveries"))
    yield compared(snapshot, manifests.hardware_rule())
    if request.gpu:
        yield compared(snapshot, manifests.gpu_rule())


def _hosts(snapshot: Snapshot, request: EnableRequest) -> Iterator[ObjectChange]:
    """MachineConfigs, unless others do the same; where machines have none, their images must."""
    if not snapshot.has_machine_configs or deployment_mode(snapshot, request) == DeploymentMode.DAEMON_SET:
        return
    if request.tee is Tee.TDX:
        tdx = host_configs.recognise_tdx(snapshot.state.configs, snapshot.roles)
        yield _host_config(snapshot, host_configs.tdx_config(snapshot.pool), tdx)
    if request.gpu:
        iommu = host_configs.recognise_iommu(snapshot.state.configs, snapshot.roles, str(request.tee))
        yield _host_config(snapshot, host_configs.iommu_config(snapshot.home), iommu)


def _host_config(snapshot: Snapshot, config: JsonObject, recognised: host_configs.Recognised) -> ObjectChange:
    resource, own = resource_of(config), object_name(config).name
    if recognised.complete:
        by = next(other for other in snapshot.state.configs if object_name(other).name == recognised.configs[0])
        note = "" if recognised.configs == (own,) else f"{', '.join(recognised.configs)} do it"
        return ObjectChange(Action.KEEP, resource, dict(by), note=note)
    present = next((other for other in snapshot.state.configs if object_name(other).name == own), None)
    if present is None:
        return ObjectChange(Action.CREATE, resource, config)
    note = f"its role was {(present['metadata'].get('labels') or {}).get(mco.ROLE_LABEL, 'not set')}"
    return ObjectChange(Action.CHANGE, resource, config, tuple(recognised.missing), note)


def _trustee(snapshot: Snapshot) -> Iterator[ObjectChange]:
    other = next(iter([*snapshot.all("kbsconfigs"), *snapshot.all("trusteeconfigs")]), None)
    if other is not None:
        yield ObjectChange(Action.KEEP, resource_of(other), other, note="configures it already")
    else:
        yield compared(snapshot, manifests.trustee_config(), keep=True)


def _dcap(snapshot: Snapshot, given: DcapInputs) -> Iterator[ObjectChange]:
    whole = all(
        snapshot.get(plural, name, parts.NAMESPACE) is not None
        for plural, name in (("secrets", parts.TLS), ("configmaps", parts.AUTHORITY))
    )
    for obj in dcap_objects(given):
        name = object_name(obj).name
        # Certificate and authority belong together: if one is lost, both are made anew.
        pair = name in (parts.TLS, parts.AUTHORITY) and not whole
        keep = obj["kind"] in ("Namespace", "ServiceAccount") or (obj["kind"] in _MADE_ONCE and not pair)
        yield compared(snapshot, obj, keep=keep)


def _cluster_policy(snapshot: Snapshot) -> ObjectChange:
    policy = cluster_policy()
    present = next(iter(snapshot.all("clusterpolicies")), None)
    if present is None:
        return ObjectChange(Action.CREATE, resource_of(policy), policy)
    wrong = check(present)
    if not wrong:
        return ObjectChange(Action.KEEP, resource_of(policy), dict(present))
    mended = {**policy, "metadata": {"name": object_name(present).name}, "spec": _mended(present)}
    return ObjectChange(Action.CHANGE, resource_of(policy), mended, tuple(field.sentence for field in wrong))


def _mended(present: JsonObject) -> JsonObject:
    """The judged fields as they should be, everything else as it is."""
    spec: JsonObject = {}
    for field, value, _ in REQUIRED_FIELDS:
        section, _, name = field.partition(".")
        spec.setdefault(section, {})[name] = value
    for field, name, value, _ in REQUIRED_ENV:
        section, _, key = field.partition(".")
        entries = spec[section].get(key)
        if entries is None:
            stored: Any = ((present.get("spec") or {}).get(section) or {}).get(key)
            entries = spec[section][key] = deepcopy(stored) if isinstance(stored, list) else []
        entries[:] = [entry for entry in entries if entry.get("name") != name] + [{"name": name, "value": value}]
    return spec


def _gates(snapshot: Snapshot, request: EnableRequest) -> ObjectChange:
    gate_map = manifests.feature_gates(deployment_mode(snapshot, request))
    present = snapshot.get("configmaps", names.FEATURE_GATES, names.NAMESPACE)
    if present is None:
        return ObjectChange(Action.CREATE, resource_of(gate_map), gate_map)
    gates, differing = read_gates(present), []
    if not gates.confidential:
        differing.append("data.confidential")
    if request.mode and str(gates.deployment_mode) != request.mode:
        differing.append("data.deploymentMode")
    data = {name.partition(".")[2]: gate_map["data"][name.partition(".")[2]] for name in differing}
    return ObjectChange(
        Action.CHANGE if differing else Action.KEEP, resource_of(gate_map), {**gate_map, "data": data}, tuple(differing)
    )


def open_changes(planned: Sequence[Step]) -> list[ObjectChange]:
    """Everything that would be written, in order."""
    return [change for step in planned for change in step.changes if change.action is not Action.KEEP]


def reboots(snapshot: Snapshot, request: EnableRequest, steps: Sequence[Step]) -> Plan:
    """What machines would do for these steps, as a plan of machine configuration; empty where nothing about them changes."""
    changes = [change for step in steps for change in step.changes if change.action is not Action.KEEP]
    configs: list[JsonObject] = [change.target for change in changes if change.resource.kind == "MachineConfig"]
    state = snapshot.state
    fresh = [change.target for change in changes if change.resource.kind == "KataConfig"]
    by_machine_config = deployment_mode(snapshot, request) != DeploymentMode.DAEMON_SET and snapshot.has_machine_configs
    if fresh and by_machine_config:
        configs.append(extension_config(fresh[0], snapshot.pool, names.EXTENSION).obj)
        if not snapshot.converged:
            chosen = {
                choice.node
                for choice in choose(
                    snapshot.requirements(request), snapshot.nodes, state.pools, state.cluster, state.machines
                )
                if choice.chosen
            }
            there = any(object_name(pool).name == names.POOL for pool in state.pools)
            pools = [*state.pools, *(() if there else (kata_pool().obj,))]
            state = replace(state, pools=pools, nodes=[_in_pool(node, chosen) for node in snapshot.nodes])
    return plan(state, Proposal(configs)) if configs else Plan()


def _in_pool(node: Object, chosen: set[str]) -> Object:
    if object_name(node).name not in chosen:
        return node
    return {**node, "metadata": {**metadata(node), "labels": {**labels_of(node), names.ROLE_LABEL: ""}}}
