"""What a kubelet would be asked for, where there is none; amounts that are none."""

from __future__ import annotations

from typing import Any

import pytest

from tests.embedded.fixtures import Embedded

PODS = "/api/v1/namespaces/default/pods"


def pod(name: str, **spec: Any) -> dict[str, Any]:
    containers = [{"name": "c", "image": "i"}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": containers, **spec}}


async def test_a_pod_that_never_ran_has_no_log_and_nothing_else_can_be_asked_for(embedded_server: Embedded) -> None:
    async with embedded_server.client() as client:
        (await client.post(PODS, json=pod("waiting"))).raise_for_status()
        log = await client.get(f"{PODS}/waiting/log")
        assert log.status_code == 400, "an empty log would look like a program that ran and said nothing"
        assert log.json()["message"] == "pod waiting never ran, so it has no log: it is on no node"
        for part in ("exec", "attach", "portforward"):
            answer = await client.get(f"{PODS}/waiting/{part}")
            assert (answer.status_code, answer.json()["message"]) == (400, "pod waiting does not have a host assigned")
        assert (await client.get(f"{PODS}/nobody/log")).status_code == 404


async def test_a_pod_on_a_node_says_that_nothing_runs_there_and_never_shows_itself(embedded_server: Embedded) -> None:
    async with embedded_server.client() as client:
        (await client.post(PODS, json=pod("placed", nodeName="worker-0"))).raise_for_status()
        for part in ("log", "exec"):
            answer = await client.get(f"{PODS}/placed/{part}")
            assert answer.status_code == 400
            assert "run no containers" in answer.json()["message"]


@pytest.mark.parametrize("size", ["<size>", "", "1 Gi", "ten"])
async def test_a_claim_asks_for_an_amount(embedded_server: Embedded, size: str) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
    body = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c"}, "spec": spec}
    async with embedded_server.client() as client:
        answer = await client.post("/api/v1/namespaces/default/persistentvolumeclaims", json=body)
        assert answer.status_code == 422, answer.text
        assert "storage" in answer.json()["message"]


async def test_resources_of_a_container_are_amounts(embedded_server: Embedded) -> None:
    resources = {"requests": {"cpu": "lots"}, "limits": {"tdx.intel.com/keys": "1", "memory": "1.5Gi"}}
    body = pod("greedy", containers=[{"name": "c", "image": "i", "resources": resources}])
    async with embedded_server.client() as client:
        answer = await client.post(PODS, json=body)
        assert answer.status_code == 422
        assert [cause["field"] for cause in answer.json()["details"]["causes"]] == [
            "spec.containers[0].resources.requests[cpu]"
        ]


async def test_what_manuals_of_openshift_look_up_is_there_from_the_start(embedded_server: Embedded) -> None:
    async with embedded_server.client() as client:
        proxy = await client.get("/apis/config.openshift.io/v1/proxies/cluster")
        assert (proxy.status_code, proxy.json()["spec"]) == (200, {})
        role = await client.get("/apis/rbac.authorization.k8s.io/v1/clusterroles/system:openshift:scc:privileged")
        assert role.json()["rules"][0]["resourceNames"] == ["privileged"]
        assert (
            await client.get("/apis/security.openshift.io/v1/securitycontextconstraints/privileged")
        ).status_code == 200
