"""A small cluster to ask about: two nodes, what belongs to them, and what belongs to nobody."""

from __future__ import annotations

from typing import Any

import httpx

CORE = "/api/v1"
DEFAULT = f"{CORE}/namespaces/default"
ACCOUNTS = f"{DEFAULT}/serviceaccounts"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
MCO = "/apis/machineconfiguration.openshift.io/v1"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CONFIDENTIAL = "/apis/fastness.dev/v1alpha1/confidentialclusters"


async def create(client: httpx.AsyncClient, collection: str, body: dict[str, Any]) -> dict[str, Any]:
    """Create an object or fail with what the server said."""
    answer = await client.post(collection, json=body)
    assert answer.status_code == 201, answer.text
    created: dict[str, Any] = answer.json()
    return created


def pod(name: str, node: str = "") -> dict[str, Any]:
    """A pod that refers to the Secret and the ConfigMap of its node."""
    container = {"name": "main", "image": "registry.invalid/app:1"}
    spec: dict[str, Any] = {"containers": [container]}
    if node:
        spec |= {
            "nodeName": node,
            "volumes": [
                {"name": "secret", "secret": {"secretName": f"of-{node}"}},
                {"name": "config", "configMap": {"name": f"of-{node}"}},
            ],
        }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def machine_config(name: str) -> dict[str, Any]:
    """A MachineConfig without content."""
    return {
        "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
        "metadata": {"name": name, "labels": {"machineconfiguration.openshift.io/role": "worker"}},
        "spec": {"config": {"ignition": {"version": "3.4.0"}}},
    }  # fmt: skip


def machine_config_node(name: str) -> dict[str, Any]:
    """The MachineConfigNode of a node."""
    return {
        "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfigNode", "metadata": {"name": name},
        "spec": {"node": {"name": name}, "pool": {"name": "worker"}, "configVersion": {"desired": "rendered-worker-1"}},
    }  # fmt: skip


def definition(plural: str, kind: str) -> dict[str, Any]:
    """A user's own definition."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.example.dev"},
        "spec": {
            "group": "example.dev", "scope": "Cluster", "versions": [version],
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"},
        },
    }  # fmt: skip


def role_binding(name: str, role: str, subject: dict[str, str]) -> dict[str, Any]:
    """A ClusterRoleBinding."""
    return {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [subject],
    }


async def populate(admin: httpx.AsyncClient) -> None:
    """Everything that the matrix asks about."""
    for node in ("n1", "n2"):
        objects = {
            f"machineconfiguration.openshift.io/{which}Config": f"rendered-{node}" for which in ("current", "desired")
        }
        await create(admin, f"{CORE}/nodes", {"metadata": {"name": node, "annotations": objects}})
        await create(admin, f"{DEFAULT}/secrets", {"metadata": {"name": f"of-{node}"}, "data": {"k": "dg=="}})
        await create(admin, f"{DEFAULT}/configmaps", {"metadata": {"name": f"of-{node}"}, "data": {"k": "v"}})
        await create(admin, f"{DEFAULT}/pods", pod(f"on-{node}", node))
        await create(admin, LEASES, {"metadata": {"name": node}, "spec": {"holderIdentity": node}})
        await create(admin, f"{MCO}/machineconfigs", machine_config(f"rendered-{node}"))
        await create(admin, f"{MCO}/machineconfignodes", machine_config_node(node))
    await create(admin, f"{MCO}/machineconfigs", machine_config("50-mine"))
    await create(admin, f"{DEFAULT}/pods", pod("free"))
    await create(admin, CRDS, definition("things", "Thing"))
    await create(
        admin,
        CONFIDENTIAL,
        {
            "apiVersion": "fastness.dev/v1alpha1",
            "kind": "ConfidentialCluster",
            "metadata": {"name": "cluster"},
            "spec": {"mode": "Audit", "simulated": True},
        },
    )
    for account in ("viewer", "nobody"):
        await create(admin, ACCOUNTS, {"metadata": {"name": account}})
    viewer = {"kind": "ServiceAccount", "name": "viewer", "namespace": "default"}
    vera = {"kind": "User", "name": "vera", "apiGroup": "rbac.authorization.k8s.io"}
    await create(admin, f"{RBAC}/clusterrolebindings", role_binding("viewer", "view", viewer))
    await create(admin, f"{RBAC}/clusterrolebindings", role_binding("vera", "view", vera))
