"""Small objects to decide about."""

from __future__ import annotations

import base64
from typing import Any

from fastness.formats import data_url as dataurl
from fastness.kinds.machineconfiguration import names

JsonObject = dict[str, Any]


def file(path: str, text: str = "x\n", **more: Any) -> JsonObject:
    """A file entry with its text inside."""
    return {"path": path, "mode": 0o644, "contents": {"source": dataurl.encode(text.encode())}, **more}


def ignition(
    *files: JsonObject,
    units: list[JsonObject] | None = None,
    users: list[JsonObject] | None = None,
    version: str = "3.5.0",
    storage: JsonObject | None = None,
    **more: Any,
) -> JsonObject:
    """An Ignition document."""
    document: JsonObject = {"ignition": {"version": version}, **more}
    if files or storage:
        document["storage"] = {**({"files": list(files)} if files else {}), **(storage or {})}
    if units:
        document["systemd"] = {"units": units}
    if users:
        document["passwd"] = {"users": users}
    return document


def mc(name: str, document: JsonObject | None = None, role: str = "worker", **spec: Any) -> JsonObject:
    """A MachineConfig."""
    return {
        "apiVersion": names.API_VERSION,
        "kind": "MachineConfig",
        "metadata": {"name": name, "labels": {names.ROLE_LABEL: role}},
        "spec": {**({"config": document} if document is not None else {}), **spec},
    }


def pool(name: str = "worker", **spec: Any) -> JsonObject:
    """A pool as the product makes it; a custom one also takes what is meant for workers."""
    roles = [name] if name in names.BUILT_IN_POOLS else ["worker", name]
    selector = {"matchExpressions": [{"key": names.ROLE_LABEL, "operator": "In", "values": roles}]}
    return {
        "apiVersion": names.API_VERSION,
        "kind": "MachineConfigPool",
        "metadata": {
            "name": name,
            "uid": f"uid-{name}",
            "generation": 3,
            "labels": {f"{names.POOL_LABEL_PREFIX}{name}": ""},
        },
        "spec": {
            "machineConfigSelector": selector,
            "nodeSelector": {"matchLabels": {f"{names.NODE_ROLE_PREFIX}{name}": ""}},
            **spec,
        },
    }


def node(
    name: str,
    *roles: str,
    current: str = "",
    desired: str = "",
    state: str = "Done",
    ready: bool = True,
    created: str = "2026-01-01T00:00:00Z",
    **more: Any,
) -> JsonObject:
    """A node of some roles; `zone`, `reason`, `images` (current, desired) and `unschedulable` on request."""
    labels = {f"{names.NODE_ROLE_PREFIX}{role}": "" for role in roles}
    if more.get("zone"):
        labels[names.ZONE_LABEL] = more["zone"]
    notes = {names.CURRENT_CONFIG: current, names.DESIRED_CONFIG: desired or current, names.STATE: state}
    notes |= {names.REASON: more["reason"]} if "reason" in more else {}
    for key, image in zip((names.CURRENT_IMAGE, names.DESIRED_IMAGE), more.get("images", (None, None)), strict=True):
        if image is not None:
            notes[key] = image
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, "annotations": notes, "creationTimestamp": created},
        "spec": {"unschedulable": True} if more.get("unschedulable") else {},
        "status": {"conditions": [{"type": "Ready", "status": "True" if ready else "False"}]},
    }


CERTIFICATE = """\
-----BEGIN CERTIFICATE-----
MIIBfTCCASOgAwIBAgIQE67IMSEBuk3Xma/zcNxYozAKBggqhkjOPQQDAjAcMRow
GAYDVQQDDBFhdXRob3JpdHkuZXhhbXBsZTAgFw0yNTEyMzEyMzU1MDBaGA8yMTI1
MTIwODAwMDAwMFowHDEaMBgGA1UEAwwRYXV0aG9yaXR5LmV4YW1wbGUwWTATBgcq
hkjOPQIBBggqhkjOPQMBBwNCAAQL+y8C+sYXwHF5FxM5gpZBspgcByM/gLGm5Vtm
7so8APpCb56uTHwqZhbGPOU9Ju95pinorNHINdbYUPF/EOzyo0UwQzASBgNVHRMB
Af8ECDAGAQH/AgEAMA4GA1UdDwEB/wQEAwIBBjAdBgNVHQ4EFgQUGqWMn+alMnaN
p27tT02Ua5DEs+UwCgYIKoZIzj0EAwIDSAAwRQIgfnlkHATQBi+UGn++4djqq9w2
0SRRqXbDeHvS6oAeYA4CIQCtciJhapmk75rg+jDcc2a8DyNa1+/kR6WZXFlrSnh9
BQ==
-----END CERTIFICATE-----
"""
OTHER_CERTIFICATE = """\
-----BEGIN CERTIFICATE-----
MIIBeTCCAR+gAwIBAgIQa9Y453lI6XVgJjSk1ZXIiTAKBggqhkjOPQQDAjAaMRgw
FgYDVQQDDA9hbm90aGVyLmV4YW1wbGUwIBcNMjUxMjMxMjM1NTAwWhgPMjEyNTEy
MDgwMDAwMDBaMBoxGDAWBgNVBAMMD2Fub3RoZXIuZXhhbXBsZTBZMBMGByqGSM49
AgEGCCqGSM49AwEHA0IABLGtVD6+lHHFlUzK4hSzpKSFJ2d1Kg0c9MznboCz7crM
dqjirZ7Ulwvi4jJZYyo+F5NxfTLyFH0I3YWs0nsqOFSjRTBDMBIGA1UdEwEB/wQI
MAYBAf8CAQAwDgYDVR0PAQH/BAQDAgEGMB0GA1UdDgQWBBQIp9KDLAcxNki10rxz
TUqQmJN3czAKBggqhkjOPQQDAgNIADBFAiEAguUwe/r3Z5fN+Xh0Shu+XNtxKBeB
Z0UbR2BopTF4SGcCIFdFqkede5vGEgr6V6AkJHCCHkFeFVAc4/BEJxFkbMlH
-----END CERTIFICATE-----
"""


def controller_config(**more: Any) -> JsonObject:
    """A ControllerConfig that says everything which a node of plain Kubernetes with CRI-O needs; `notes` and `status` as well."""
    notes = {names.DISTRIBUTION: "kubernetes", names.CONTAINER_RUNTIME: "crio", **more.pop("notes", {})}
    status = more.pop("status", {})
    spec = {
        "clusterDNSIP": "172.30.0.10",
        "kubeAPIServerServingCAData": base64.b64encode(CERTIFICATE.encode()).decode(),
        "infra": {"status": {"apiServerInternalURI": "https://api-int.example.com:6443", "platform": "None"}},
        **more,
    }
    meta = {"name": "machine-config-controller", "generation": 1, "annotations": notes}
    kind = {"apiVersion": names.API_VERSION, "kind": "ControllerConfig"}
    return {**kind, "metadata": meta, "spec": spec, "status": status}
