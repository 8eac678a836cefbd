"""Kinds that share a storage show the same objects, each in its own name."""

from __future__ import annotations

from tests.embedded.fixtures import Embedded
from tests.unit.kinds.examples import EXAMPLES

PROJECTS = "/apis/project.openshift.io/v1/projects"


async def test_a_namespace_can_be_looked_at_as_a_project(embedded_server: Embedded) -> None:
    async with embedded_server.client() as client:
        answer = await client.get(f"{PROJECTS}/default")
        project = answer.json()
        assert (project["apiVersion"], project["kind"]) == ("project.openshift.io/v1", "Project")
        assert project["status"]["phase"] == "Active"
        listed = (await client.get(PROJECTS)).json()["items"]
        assert {item["kind"] for item in listed} == {"Project"}
        namespace = (await client.get("/api/v1/namespaces/default")).json()
        assert (namespace["apiVersion"], namespace["kind"]) == ("v1", "Namespace")
        assert namespace["metadata"] == project["metadata"]


async def test_a_project_cannot_be_written(embedded_server: Embedded) -> None:
    body = {"apiVersion": "project.openshift.io/v1", "kind": "Project", "metadata": {"name": "blue"}}
    async with embedded_server.client() as client:
        assert (await client.post(PROJECTS, json=body)).status_code == 405
        assert (await client.delete(f"{PROJECTS}/default")).status_code == 405
        assert (await client.get("/api/v1/namespaces/blue")).status_code == 404


async def test_a_feature_rule_is_the_same_object_under_three_addresses(embedded_server: Embedded) -> None:
    addresses = ("nfd.openshift.io/v1alpha1", "nfd.openshift.io/v1", "nfd.k8s-sigs.io/v1alpha1")
    rule = {**EXAMPLES["nodefeaturerules.nfd.openshift.io"], "apiVersion": "nfd.k8s-sigs.io/v1alpha1"}
    async with embedded_server.client() as client:
        created = await client.post("/apis/nfd.k8s-sigs.io/v1alpha1/nodefeaturerules", json=rule)
        assert created.status_code == 201, created.text
        for address in addresses:
            served = (await client.get(f"/apis/{address}/nodefeaturerules/tdx")).json()
            assert (served["apiVersion"], served["kind"]) == (address, "NodeFeatureRule")
            assert served["metadata"]["uid"] == created.json()["metadata"]["uid"]
            assert served["spec"] == rule["spec"]
