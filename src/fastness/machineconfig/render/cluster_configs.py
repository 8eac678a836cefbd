"""Configs that follow from the cluster's own settings: `97-<pool>-generated-kubelet` and `98-<pool>-generated-kubelet`.

The first comes from nodes.config, the second from the FeatureGate; every pool has both, as far as the objects are there and ask
for something. Each carries the kubelet's whole file, and so does the config of a KubeletConfig (99): the last name wins, and
loses nothing, because all of them are made from the same ground.

Control groups are a matter of kernel arguments, which the built-in pools get; custom ones have them from the workers. Where a
confidential pool would receive them they are left out, because such a pool refuses whatever changes what it boots: its image has
to bring them (`confidential_receivers`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from fastness.formats.errors import SelectorError
from fastness.formats.selectors import label_selector_from_object
from fastness.kinds.fastness_dev.trust_model import TrustModel, trust_model
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import is_being_deleted, object_name
from fastness.machineconfig.render.kubelet import cluster_settings_of, file_spec, settings_file, settings_in
from fastness.machineconfig.render.settings.cluster import (
    CGROUP_ARGUMENTS,
    DEFAULT,
    REPORT_EVERY,
    ClusterSettings,
    gates_for,
    gates_of,
    node_refusal,
)

Object = Mapping[str, Any]
NODE_CONFIG: Final = "Node"
FEATURE_GATE: Final = "FeatureGate"
PREFIXES: Final[Mapping[str, str]] = {NODE_CONFIG: "97", FEATURE_GATE: "98"}


def cluster_config_name(kind: str, pool: str) -> str:
    """The name of the config that a cluster's object generates for a pool."""
    return f"{PREFIXES[kind]}-{pool}-generated-kubelet"


def standing_latency(nodes: Object | None, configs: Iterable[Object]) -> str:
    """The latency profile that holds: the one that is asked for, unless the object that asks is refused."""
    if nodes is None:
        return DEFAULT
    name = cluster_config_name(NODE_CONFIG, names.WORKER)
    config = next((config for config in configs if object_name(config).name == name), None)
    standing = _latency_in(config) if config is not None else ""
    requested = str((nodes.get("spec") or {}).get("workerLatencyProfile") or DEFAULT)
    return (standing or DEFAULT) if node_refusal(nodes, standing or requested)[0] else requested


def _latency_in(config: Object) -> str:
    frequency = (settings_in(config) or {}).get("nodeStatusUpdateFrequency")
    return next((profile for profile, every in REPORT_EVERY.items() if every == frequency), DEFAULT)


def refusal_of_nodes(settings: ClusterSettings) -> tuple[str, bool]:
    """Why the cluster's nodes.config is not followed, and whether that concerns workers alone."""
    return node_refusal(settings.nodes, settings.latency)


def cluster_config_spec(
    kind: str, pool: Object, base: Object, settings: ClusterSettings, *, with_arguments: bool
) -> JsonObject | None:
    """The spec of the config of one kind for a pool; None when there is none."""
    owner = settings.nodes if kind == NODE_CONFIG else settings.feature_gate
    if owner is None or is_being_deleted(owner):
        return None
    if kind == NODE_CONFIG and refusal_of_nodes(settings)[0]:
        return None
    if kind == FEATURE_GATE and not gates_for(settings, pool)[0]:
        return None
    spec = file_spec(settings_file(cluster_settings_of(base, pool, settings)))
    if kind == NODE_CONFIG and with_arguments and object_name(pool).name in names.BUILT_IN_POOLS:
        spec["kernelArguments"] = list(CGROUP_ARGUMENTS)
    return spec


def confidential_receivers(role: str, pools: Iterable[Object], confidential: Object | None) -> list[str]:
    """The confidential pools that select the configs of a role, by name: none of those may set kernel arguments."""
    return sorted(
        object_name(pool).name
        for pool in pools
        if trust_model(confidential, object_name(pool).name) is TrustModel.CONFIDENTIAL_CLUSTER
        and selects_role(pool, role)
    )


def selects_role(pool: Object, role: str) -> bool:
    """Whether a pool selects configs that have the label of a role and no other."""
    value = (pool.get("spec") or {}).get("machineConfigSelector") or {}
    if not value.get("matchLabels") and not value.get("matchExpressions"):
        return False  # an empty selector is taken for a mistake
    try:
        return label_selector_from_object(value).matches({names.ROLE_LABEL: role})
    except SelectorError:
        return False


def gates_refusal(settings: ClusterSettings) -> str:
    """Why the cluster's FeatureGate is not followed; empty when it is."""
    return gates_of(settings).refusal
