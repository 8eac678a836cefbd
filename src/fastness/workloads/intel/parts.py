"""Pieces that objects of the caching and the quoting service share: names, labels, pods, volumes."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Final

from fastness.kinds.kind import JsonObject

NAMESPACE: Final = "intel-dcap"
PCCS_ACCOUNT, QGS_ACCOUNT = "pccs-sa", "qgs-sa"
PCCS, QGS = "pccs", "tdx-qgs"
SECRETS, TLS, AUTHORITY = "pccs-secrets", "pccs-tls", "pccs-ca"
SERVICE: Final = "pccs-service"
PORT: Final = 8042
CACHE_LABEL: Final = "trustedservices.intel.com/cache"
DATABASE: Final = "/var/cache/pccs"
PART_OF: Final = {"app.kubernetes.io/part-of": "fastness-dcap"}
# Also nodes without proof: what attests machines must run for one of them to prove itself at all.
TOLERATIONS: Final = [
    *(
        {"key": f"node-role.kubernetes.io/{role}", "operator": "Exists", "effect": "NoSchedule"}
        for role in ("master", "control-plane")
    ),
    {"key": "fastness.dev/not-attested", "operator": "Exists"},
]


def obj(api_version: str, kind: str, name: str, **body: Any) -> JsonObject:
    """An object of the namespace."""
    meta = {"name": name, "namespace": NAMESPACE, "labels": dict(PART_OF)}
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, **body}


def secret(name: str, values: Mapping[str, bytes]) -> JsonObject:
    """A Secret."""
    data = {key: base64.b64encode(value).decode() for key, value in values.items()}
    return obj("v1", "Secret", name, type="Opaque", data=data)


def env(**values: str) -> list[JsonObject]:
    """Environment variables."""
    return [{"name": name, "value": value} for name, value in values.items()]


def from_secrets() -> list[JsonObject]:
    """Key and tokens as environment variables."""
    return [{"secretRef": {"name": SECRETS}}]


def mount(name: str, path: str, **more: Any) -> JsonObject:
    """Where a volume appears."""
    return {"name": name, "mountPath": path, **more}


def host_path(name: str, path: str, kind: str = "") -> JsonObject:
    """A directory of the host."""
    return {"name": name, "hostPath": {"path": path, "type": kind}}


def bound_to(account: str) -> JsonObject:
    """The right of an account to run privileged, as `oc adm policy add-scc-to-user privileged -z` grants it."""
    return obj(
        "rbac.authorization.k8s.io/v1", "RoleBinding", f"{account}-privileged",
        roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:openshift:scc:privileged"},
        subjects=[{"kind": "ServiceAccount", "name": account, "namespace": NAMESPACE}],
    )  # fmt: skip
