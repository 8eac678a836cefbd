"""People inside the cluster: accounts with exactly the rights that a test names, over HTTPS; and the record that they leave."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx

from fastness.kinds.fastness_dev.audit import AUDIT_BATCH
from tests.embedded.fixtures import Embedded

RBAC = "/apis/rbac.authorization.k8s.io/v1"
CLUSTER = "/apis/fastness.dev/v1alpha1/confidentialclusters"
Rule = tuple[str, Sequence[str], Sequence[str]]


def user_name(name: str, namespace: str = "default") -> str:
    """How the API knows the person."""
    return f"system:serviceaccount:{namespace}:{name}"


@asynccontextmanager
async def person(
    embedded: Embedded, name: str, *rules: Rule, role: str = "", namespace: str = "default"
) -> AsyncIterator[httpx.AsyncClient]:
    """Somebody with these rules in the whole cluster, or with a role that is there."""
    async with embedded.client() as admin:
        accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
        await _made(admin, accounts, {"metadata": {"name": name}})
        if rules:
            role = role or f"of-{name}"
            rows = [
                {"apiGroups": [group], "resources": list(kinds), "verbs": list(verbs)} for group, kinds, verbs in rules
            ]
            await _made(admin, f"{RBAC}/clusterroles", {"metadata": {"name": role}, "rules": rows})
        if role:
            subject = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
            reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
            binding = {"metadata": {"name": f"{name}-{role}"}, "roleRef": reference, "subjects": [subject]}
            await _made(admin, f"{RBAC}/clusterrolebindings", binding)
        answer = await admin.post(f"{accounts}/{name}/token", json={"spec": {}})
        token = answer.raise_for_status().json()["status"]["token"]
    async with embedded.client(certificate=False, token=token) as client:
        yield client


async def _made(admin: httpx.AsyncClient, path: str, obj: dict[str, Any]) -> None:
    answer = await admin.post(path, json=obj)
    assert answer.status_code in (201, 409), answer.text


async def recorded(embedded: Embedded) -> list[dict[str, Any]]:
    """The entries that wait for the sequencer, in the order in which they were written."""
    batches = (await embedded.cluster.list(AUDIT_BATCH.resource)).items
    batches.sort(key=lambda batch: (batch["spec"]["door"], batch["spec"]["sequence"]))
    return [entry for batch in batches for entry in batch["spec"]["entries"]]
