"""Somebody with exactly the rights that a test names, at the API of an embedded control plane."""

from __future__ import annotations

import ssl
from pathlib import Path

import httpx

from fastness.apiserver import ApiServer
from tests.patience import PATIENCE

_RBAC = "/apis/rbac.authorization.k8s.io/v1"


async def somebody(
    server: ApiServer, directory: Path, name: str, group: str, resources: list[str], verbs: list[str]
) -> httpx.AsyncClient:
    """A client of a user who may do this with these resources, and nothing else. The caller closes it."""
    context = ssl.create_default_context(cafile=str(directory / "pki" / "ca.crt"))
    context.load_cert_chain(str(directory / "pki" / "admin.pem"))
    rule = {"apiGroups": [group], "resources": resources, "verbs": verbs}
    role = {"metadata": {"name": name}, "rules": [rule]}
    bound = {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name}],
    }
    async with httpx.AsyncClient(base_url=server.url, verify=context) as admin:
        for collection, body in (("clusterroles", role), ("clusterrolebindings", bound)):
            answer = await admin.post(f"{_RBAC}/{collection}", json=body)
            assert answer.status_code == 201, answer.text
    return httpx.AsyncClient(base_url=server.url, verify=context, headers={"Impersonate-User": name}, timeout=PATIENCE)
