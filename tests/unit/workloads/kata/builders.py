"""Nodes, pools and KataConfigs for the tests of their decisions."""

from __future__ import annotations

from typing import Any

from fastness.kinds.kata import names
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names as mco
from fastness.kinds.machineconfiguration.names import WORKER_LABEL
from fastness.workloads.kata.classes import plan_classes
from fastness.workloads.kata.eligibility import NodeRequirements, requirements_of
from fastness.workloads.kata.mode import FeatureGates

BASE = {names.BASE_LABEL: "true"}
TDX = {names.TDX_LABEL: "true"}
SNP = {names.SNP_LABEL: "true"}
GPU = {
    "nvidia.com/gpu.present": "true", "nvidia.com/gpu.deploy.vfio-manager": "true",
    "nvidia.com/gpu.deploy.kata-sandbox-device-plugin": "true",
}  # fmt: skip
GPU_OFF = {**GPU, "nvidia.com/cc.mode.state": "off", "nvidia.com/cc.ready.state": "false"}
GPU_ON = {
    **GPU, "nvidia.com/cc.mode.state": "on", "nvidia.com/cc.ready.state": "true", "nvidia.com/gpu.deploy.cc-manager": "true",
}  # fmt: skip
CONFIDENTIAL = FeatureGates(confidential=True)


def node(
    name: str, *labels: dict[str, str], role: str = WORKER_LABEL, notes: dict[str, str] | None = None, **status: Any
) -> JsonObject:
    merged = {role: "", **{key: value for part in labels for key, value in part.items()}}
    meta = {"name": name, "labels": merged, "annotations": dict(notes or {})}
    return {"apiVersion": "v1", "kind": "Node", "metadata": meta, "status": status}


def config(**spec: Any) -> JsonObject:
    meta = {"name": "example-kataconfig", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"}
    return {"apiVersion": "kataconfiguration.openshift.io/v1", "kind": "KataConfig", "metadata": meta, "spec": spec}


def pool(name: str, rendered: str = "", sources: tuple[str, ...] = (), machines: int = 1, **match: str) -> JsonObject:
    selector = match or {f"{mco.NODE_ROLE_PREFIX}{name}": ""}
    spec: JsonObject = {"nodeSelector": {"matchLabels": selector}}
    if rendered:
        spec["configuration"] = {
            "name": rendered,
            "source": [{"kind": "MachineConfig", "name": source} for source in sources],
        }
    return {"kind": "MachineConfigPool", "metadata": {"name": name}, "spec": spec, "status": {"machineCount": machines}}


def requirements(check: bool = False, converged: bool = False, **selector: str) -> NodeRequirements:
    spec: JsonObject = {"checkNodeEligibility": check}
    if selector:
        spec["kataConfigPoolSelector"] = {"matchLabels": selector}
    return requirements_of({"spec": spec}, converged=converged)


def handlers(nodes: list[JsonObject], needs: NodeRequirements, gates: FeatureGates = CONFIDENTIAL) -> dict[str, str]:
    return {spec.name: spec.handler for spec in plan_classes(gates, needs, nodes).classes}
