"""The broker against a real kube-apiserver with two replicas: keys, handshakes and resources that they share."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from fastness.keys.authorities import SECRETS
from fastness.keys.mac_keys import MAC_KEYS
from fastness.kinds.crd import manifests
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.kind import Resource
from fastness.kube.errors import AlreadyExists
from fastness.release.handshake import COOKIE
from fastness.release.live.tokens import TOKEN_KEYS
from tests.component.release.broker.brokered_cluster import BrokeredCluster, Guest, brokered, until
from tests.contract.worlds import https, served
from tests.realkube import RealKube

GROUPS = ("fastness.dev", "trusted-execution-clusters.io", "confidentialcontainers.org")
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", False)


@pytest.fixture(scope="module")
def kube(real_kube_binaries: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealKube]:
    """A server of its own, with our kinds."""
    with RealKube.start(tmp_path_factory.mktemp("broker"), real_kube_binaries, unsafe_no_fsync=True) as server:
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        definitions = [manifest for manifest in manifests() if manifest["spec"]["group"] in GROUPS]
        with server.client() as admin:
            for manifest in definitions:
                assert admin.post(path, json=manifest).status_code == 201, manifest["metadata"]["name"]
            for manifest in definitions:
                assert any(served(admin, f"{path}/{manifest['metadata']['name']}") for _ in range(600))
        yield server


@pytest.fixture
async def here(kube: RealKube) -> AsyncIterator[BrokeredCluster]:
    async with https(kube.kubeconfig) as cluster:
        with suppress(AlreadyExists):
            await cluster.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        async with brokered(cluster) as made:
            yield made


async def test_two_replicas_share_keys_handshakes_and_resources(here: BrokeredCluster) -> None:
    other = await here.replica()
    guest = await here.guest()
    own = f"machine/{guest.who.machine}/key"
    await here.put(own, b"from a real cluster")
    nonce = await guest.challenge()
    second = Guest(await here.client(other), guest.who, guest.key)
    second.http.cookies.set(COOKIE, guest.http.cookies[COOKIE], "127.0.0.1", "/kbs/v0")
    assert (await second.send(second.evidence(nonce))).status_code == 200
    assert await second.read(own) == b"from a real cluster"
    guest.http.cookies.clear()
    guest.http.cookies.set(COOKIE, second.http.cookies[COOKIE], "127.0.0.1", "/kbs/v0")
    assert await guest.read(own) == b"from a real cluster"
    assert here.door.tokens.jwks() == other.tokens.jwks()
    for kind in (MAC_KEYS["broker"], TOKEN_KEYS):
        assert len(kind.read(await here.cluster.get(SECRETS, kind.name, NAMESPACE))) == 1


async def test_bindings_and_administration_work_at_any_replica(here: BrokeredCluster) -> None:
    other = await here.replica()
    http, headers = await here.client(other), {"authorization": await here.admin()}
    path = "/kbs/v0/resource/default/db/password"
    assert (await http.post(path, content=b"secret", headers=headers)).status_code == 200
    guest = await here.guest()
    await guest.attest()
    assert (await guest.get("default/db/password")).json()["code"] == "not-bound"
    await here.bind("db", "default/db/*", pools=["worker"])

    async def opened() -> bool:
        return (await guest.get("default/db/password")).status_code == 200

    await until(opened)
    assert await guest.read("default/db/password") == b"secret"
    assert (await http.delete(path, headers=headers)).status_code == 200
    assert (await guest.get("default/db/password")).status_code == 404
