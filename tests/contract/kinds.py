"""The kinds that the contract uses, and objects of them."""

from __future__ import annotations

from typing import Any

from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.registry import find

NAMESPACE = find("", "v1", "namespaces").resource
CONFIG_MAP = find("", "v1", "configmaps").resource
POD = find("", "v1", "pods").resource
TICKET = find("fastness.dev", "v1alpha1", "jointickets").resource
VALUES = find("fastness.dev", "v1alpha1", "referencevaluesets").resource
POOL = find("machineconfiguration.openshift.io", "v1", "machineconfigpools").resource
TENANT = find("fastness.dev", "v1alpha1", "tenantclusters").resource
UNKNOWN = Resource("nowhere.example", "v1", "things", "Thing", namespaced=False)


def config_map(namespace: str, name: str, data: dict[str, str] | None = None, **meta: Any) -> JsonObject:
    """A ConfigMap."""
    metadata = {"namespace": namespace, "name": name, **meta}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data or {"a": "1"}}


def ticket(name: str, **meta: Any) -> JsonObject:
    """A JoinTicket."""
    spec = {"pool": "worker", "expires": "2030-01-01T00:00:00Z", "secretHash": "sha256:" + "0" * 64}
    return {
        "apiVersion": "fastness.dev/v1alpha1", "kind": "JoinTicket", "metadata": {"name": name, **meta}, "spec": spec,
    }  # fmt: skip


def pool(name: str, **meta: Any) -> JsonObject:
    """A MachineConfigPool."""
    role = {"key": "machineconfiguration.openshift.io/role", "operator": "In", "values": ["worker", name]}
    spec = {"machineConfigSelector": {"matchExpressions": [role]}, "paused": False}
    return {
        "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfigPool",
        "metadata": {"name": name, **meta}, "spec": spec,
    }  # fmt: skip


def value_set(name: str, *values: tuple[str, str]) -> JsonObject:
    """A ReferenceValueSet with named values."""
    listed = [{"name": key, "value": value} for key, value in values]
    return {
        "apiVersion": "fastness.dev/v1alpha1", "kind": "ReferenceValueSet", "metadata": {"name": name},
        "spec": {"source": "manual", "values": listed},
    }  # fmt: skip


def tenant(namespace: str, name: str, spec: JsonObject, **meta: Any) -> JsonObject:
    """A TenantCluster: what it says is not ours to know."""
    metadata = {"namespace": namespace, "name": name, **meta}
    return {"apiVersion": "fastness.dev/v1alpha1", "kind": "TenantCluster", "metadata": metadata, "spec": spec}


def names(items: list[JsonObject]) -> list[str]:
    """The names of objects, in their order."""
    return [item["metadata"]["name"] for item in items]
