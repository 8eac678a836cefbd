"""Namespaces whose objects speak for the cluster: nobody makes one first, and nobody makes one anew."""

from __future__ import annotations

import pytest

from fastness.domain.places import HOME, MADE_HERE
from fastness.model.registry import find
from tests.component.insiders.owner import NAMESPACES
from tests.embedded.fixtures import Embedded

ROLES = find("rbac.authorization.k8s.io", "v1", "clusterroles").resource
BINDINGS = find("rbac.authorization.k8s.io", "v1", "clusterrolebindings").resource


@pytest.mark.parametrize("name", sorted(set(MADE_HERE) - {HOME}))
async def test_namespaces_in_which_objects_count_are_there_and_stay(embedded_server: Embedded, name: str) -> None:
    """For somebody who may create and delete every namespace."""
    cluster = embedded_server.cluster
    await cluster.create(
        find("", "v1", "serviceaccounts").resource, {"metadata": {"name": "m", "namespace": "default"}}
    )
    rule = {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["create", "delete", "get"]}
    await cluster.create(ROLES, {"metadata": {"name": "namespaces"}, "rules": [rule]})
    bound = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "namespaces"}
    subject = {"kind": "ServiceAccount", "name": "m", "namespace": "default"}
    await cluster.create(BINDINGS, {"metadata": {"name": "m"}, "roleRef": bound, "subjects": [subject]})
    async with embedded_server.client() as admin:
        path = "/api/v1/namespaces/default/serviceaccounts/m/token"
        token = (await admin.post(path, json={"spec": {}})).json()["status"]["token"]
    async with embedded_server.client(certificate=False, token=token) as maker:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        assert (await maker.post("/api/v1/namespaces", json=body)).status_code == 409
        assert (await maker.delete(f"/api/v1/namespaces/{name}")).status_code == 403
    assert (await cluster.get(NAMESPACES, name))["status"]["phase"] == "Active"
