"""Objects that the tests with kubectl write."""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]


def config_map(name: str, data: dict[str, str] | None = None, **meta: Any) -> Object:
    """A ConfigMap."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **meta}, "data": data or {"k": "v"}}


SERVING = '{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}'
"""The status of a pod that serves, as a patch: no kubelet writes it here."""


def pod(name: str, node: str = "", **meta: Any) -> Object:
    """A pod."""
    spec: Object = {"containers": [{"name": "c", "image": "registry.example/app:1"}]}
    if node:
        spec["nodeName"] = node
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **meta}, "spec": spec}


def node(name: str, **labels: str) -> Object:
    """A node that is ready."""
    return {
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels},
        "status": {"conditions": [{"type": "Ready", "status": "True"}], "nodeInfo": {"kubeletVersion": "v1.36.0"}},
    }  # fmt: skip


def pool(name: str, **spec: Any) -> Object:
    """A custom MachineConfigPool that admission accepts."""
    roles = {"key": "machineconfiguration.openshift.io/role", "operator": "In", "values": ["worker", name]}
    return {
        "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfigPool", "metadata": {"name": name},
        "spec": {
            "machineConfigSelector": {"matchExpressions": [roles]},
            "nodeSelector": {"matchLabels": {f"node-role.kubernetes.io/{name}": ""}}, **spec,
        },
    }  # fmt: skip


def machine_config(name: str, role: str = "worker") -> Object:
    """A MachineConfig with an empty Ignition config."""
    return {
        "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
        "metadata": {"name": name, "labels": {"machineconfiguration.openshift.io/role": role}},
        "spec": {"config": {"ignition": {"version": "3.4.0"}}},
    }  # fmt: skip


def definition(plural: str, kind: str, group: str, *short: str) -> Object:
    """A user's own kind with a size and a status."""
    schema = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "required": ["size"],
                "description": "What is wanted.",
                "properties": {
                    "size": {"type": "integer", "minimum": 1, "description": "How many."},
                    "color": {"type": "string", "enum": ["red", "green"], "default": "green"},
                },
                "x-kubernetes-validations": [
                    {"rule": "self.color != 'red' || self.size < 5", "message": "red ones are small"}
                ],
            },
            "status": {"type": "object", "properties": {"ready": {"type": "integer"}}},
        },
    }
    version = {
        "name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.ready"}},
        "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
    }  # fmt: skip
    names = {"plural": plural, "singular": kind.lower(), "kind": kind, "shortNames": list(short)}
    return {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [version]},
    }  # fmt: skip
