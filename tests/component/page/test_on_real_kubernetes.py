"""The page in front of a real kube-apiserver: its reviews say who somebody is and may, and decisions arrive with their token."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from fastness.app.replica import as_bearer
from fastness.attestation.loops.door_certificates import issuing
from fastness.kinds.crd import manifests
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.kind import Resource
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.client.client import KubeCluster, connect
from fastness.kube.client.config import Surroundings, find
from fastness.kube.errors import AlreadyExists
from fastness.kube.informers import Informers
from fastness.kube.port import PatchType, WriteOptions
from fastness.page.admission import ReviewDoor
from fastness.page.server import PageOptions, web_server
from fastness.page.view_scope import SEEN
from fastness.runtime.clock import SystemClock
from tests.component.page.scan import shows
from tests.component.page.served_page import ACCOUNTS, BINDINGS, Browser, condition
from tests.contract.worlds import served
from tests.enrolling import ENTROPY
from tests.realkube import RealKube

NAME = "machine-one"
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", False)


@pytest.fixture(scope="module")
def kube(real_kube_binaries: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealKube]:
    """A server with the definitions of everything that pages show."""
    groups = {resource.group for resource in SEEN if resource.group}
    with RealKube.start(tmp_path_factory.mktemp("page"), real_kube_binaries, unsafe_no_fsync=True) as server:
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        definitions = [manifest for manifest in manifests() if manifest["spec"]["group"] in groups]
        with server.client() as admin:
            for manifest in definitions:
                assert admin.post(path, json=manifest).status_code == 201, manifest["metadata"]["name"]
            for manifest in definitions:
                for _ in range(600):
                    if served(admin, f"{path}/{manifest['metadata']['name']}"):
                        break
        yield server


async def test_people_log_in_with_tokens_of_the_server_and_decide_as_themselves(kube: RealKube, tmp_path: Path) -> None:
    connection, clock = find(Surroundings({}, tmp_path), kubeconfig=kube.kubeconfig), SystemClock()
    async with connect(connection) as cluster, Informers(cluster, clock=clock, entropy=ENTROPY) as informers:
        with suppress(AlreadyExists):
            await cluster.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        door = ReviewDoor(cluster, lambda token: connect(as_bearer(connection, token)), clock)
        async with (
            issuing(cluster, informers, clock, ENTROPY),
            web_server(cluster, informers, door, clock, ENTROPY, PageOptions()) as page,
        ):
            await _machine(cluster)
            boss, nobody, stranger = Browser(page), Browser(page), Browser(page)
            try:
                assert (
                    await boss.log_in(await _token(cluster, f"boss-{ENTROPY.token(4).hex()}", "cluster-admin"))
                ).status_code == 303
                assert (
                    await nobody.log_in(await _token(cluster, f"nobody-{ENTROPY.token(4).hex()}"))
                ).status_code == 303
                assert (await nobody.get("/")).status_code == 403
                assert (await stranger.log_in("eyJ.no.token")).status_code == 401
                await shows(boss, f"/machines/{NAME}", "Decide")
                assert (await boss.decide(NAME, "quarantine", "seen in another rack")).status_code == 303
            finally:
                for browser in (boss, nobody, stranger):
                    await browser.http.aclose()
            stored = await cluster.get(MACHINE.resource, NAME, NAMESPACE)
            assert stored["spec"]["approvalReason"] == "seen in another rack"


async def _machine(cluster: KubeCluster) -> None:
    body = {
        "apiVersion": MACHINE.api_version,
        "kind": MACHINE.kind,
        "metadata": {"name": NAME, "namespace": NAMESPACE},
    }
    await cluster.create(
        MACHINE.resource, {**body, "spec": {"id": "e934ab39-fcb4-4ae5-a4c8-94f271ef7499", "approval": "Pending"}}
    )
    status = {
        "keyThumbprint": "sha256:" + "ab" * 32,
        "pool": "worker",
        "tee": "tpm",
        "conditions": [condition("Approved", "False")],
    }
    options = WriteOptions(subresource="status")
    await cluster.patch(MACHINE.resource, NAME, {"status": status}, PatchType.MERGE, NAMESPACE, options)


async def _token(cluster: KubeCluster, name: str, role: str = "") -> str:
    await cluster.create(
        ACCOUNTS, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": "default"}}
    )
    if role:
        await cluster.create(BINDINGS, {
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "default"}],
        })  # fmt: skip
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    return str((await cluster.connect(ACCOUNTS, name, "default", "token", body))["status"]["token"])
