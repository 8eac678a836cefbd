"""Namespaces whose objects speak for the cluster: nobody makes one first, and nobody makes one anew."""

from __future__ import annotations

import httpx
import pytest

from fastness.kinds.kata.names import NAMESPACE as KATA
from fastness.kinds.kind import JsonObject
from fastness.kinds.registry import find
from fastness.kube.places import HOME, MADE_HERE, RESERVED
from tests.component.insiders.owner import NAMESPACES
from tests.embedded.fixtures import Embedded

ROLES = find("rbac.authorization.k8s.io", "v1", "clusterroles").resource
BINDINGS = find("rbac.authorization.k8s.io", "v1", "clusterrolebindings").resource


async def maker(embedded: Embedded, *more: JsonObject) -> httpx.AsyncClient:
    """Somebody who may create and delete every namespace, and more."""
    cluster = embedded.cluster
    await cluster.create(
        find("", "v1", "serviceaccounts").resource, {"metadata": {"name": "m", "namespace": "default"}}
    )
    rule = {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["create", "delete", "get"]}
    await cluster.create(ROLES, {"metadata": {"name": "namespaces"}, "rules": [rule, *more]})
    bound = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "namespaces"}
    subject = {"kind": "ServiceAccount", "name": "m", "namespace": "default"}
    await cluster.create(BINDINGS, {"metadata": {"name": "m"}, "roleRef": bound, "subjects": [subject]})
    async with embedded.client() as admin:
        path = "/api/v1/namespaces/default/serviceaccounts/m/token"
        token = (await admin.post(path, json={"spec": {}})).json()["status"]["token"]
    return embedded.client(certificate=False, token=token)


@pytest.mark.parametrize("name", sorted(set(MADE_HERE) - {HOME}))
async def test_namespaces_in_which_objects_count_are_there_and_stay(embedded_server: Embedded, name: str) -> None:
    async with await maker(embedded_server) as http:
        assert (await http.post("/api/v1/namespaces", json=namespace(name))).status_code == 403
        assert (await http.delete(f"/api/v1/namespaces/{name}")).status_code == 403
    assert (await embedded_server.cluster.get(NAMESPACES, name))["status"]["phase"] == "Active"


async def test_whoever_may_make_namespaces_makes_none_in_which_we_read_by_name(embedded_server: Embedded) -> None:
    """The content of the operator's namespace says what runs on nodes of its pool."""
    async with await maker(embedded_server) as http:
        for name in sorted(set(RESERVED) - set(MADE_HERE)):
            refused = await http.post("/api/v1/namespaces", json=namespace(name))
            assert (refused.status_code, "an administrator makes it" in refused.text) == (403, True), name
        assert (await http.post("/api/v1/namespaces", json=namespace("a-team"))).status_code == 201
    async with embedded_server.client() as admin:
        assert (await admin.post("/api/v1/namespaces", json=namespace(KATA))).status_code == 201


async def test_an_administrator_is_whoever_may_bind_roles(embedded_server: Embedded) -> None:
    binds = {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterrolebindings"], "verbs": ["create"]}
    async with await maker(embedded_server, binds) as http:
        assert (await http.post("/api/v1/namespaces", json=namespace(KATA))).status_code == 201


def namespace(name: str) -> JsonObject:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
