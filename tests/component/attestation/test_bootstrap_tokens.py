"""Bootstrap tokens in the cluster: one for each machine, whatever the ids, the keys and the replicas; and gone in time."""

from __future__ import annotations

import asyncio
import base64
from datetime import UTC, datetime, timedelta

import pytest

from fastness.cluster.clock import Clock
from fastness.cluster.errors import NotFound
from fastness.cluster.informers import Informers
from fastness.cluster.port import Cluster
from fastness.controllers.attestation.joins import BINDING, BINDINGS, TOKENS, JoinTokens
from fastness.crypto.digests import sha256
from fastness.domain.attestation.subject import Basis, Grant, Subject
from fastness.model.fastness_dev.cluster import CONFIDENTIAL_CLUSTER
from fastness.model.objects import ObjectName
from fastness.services.broker.joins import JoinTokens as Delivery
from fastness.services.refusals import Refusal
from fastness.trust import bootstrap
from fastness.trust.authorities import SECRETS
from fastness.trust.bootstrap import BootstrapTokens, join_token, token_id
from fastness.trust.errors import TokenContended
from tests.embedded.fixtures import Embedded
from tests.enrolling import MovedClock
from tests.virtual import SeededEntropy, VirtualClock

KEY, OTHER = sha256(b"key"), sha256(b"other")


def grant(machine: str = "uid-1", basis: Basis = Basis.VERDICT) -> Grant:
    subject = Subject(machine, "machine-1", "sha256:" + "0" * 64, "worker", tee="tpm", endorsement="ek-certificate")
    return Grant(
        "grant-1", subject, f"machine/{machine}/bootstrap-token", {}, "v-1", basis, datetime.max.replace(tzinfo=UTC)
    )


def tokens(cluster: Cluster, clock: Clock, seed: int = 1) -> BootstrapTokens:
    return BootstrapTokens(cluster, clock, SeededEntropy(seed))


async def kept(cluster: Cluster) -> list[str]:
    found = (await cluster.list(SECRETS, TOKENS)).items
    return [one["metadata"]["name"] for one in found]


async def test_a_token_is_the_same_until_it_is_about_to_end(embedded_server: Embedded) -> None:
    clock = VirtualClock()
    made = tokens(embedded_server.cluster, clock)
    first = (await made.release(grant(), KEY)).reveal()
    await clock.advance(9 * 60)
    assert (await made.release(grant(), KEY)).reveal() == first
    await clock.advance(2 * 60)
    second = (await made.release(grant(), KEY)).reveal()
    assert second != first
    assert second[:6] == first[:6]
    found = join_token(
        await embedded_server.cluster.get(SECRETS, f"bootstrap-token-{first[:6].decode()}", "kube-system")
    )
    assert found is not None
    assert found.expires == clock.now() + bootstrap.LIFETIME


async def test_replicas_that_are_asked_at_once_give_one_token(embedded_server: Embedded) -> None:
    clock = MovedClock()
    replicas = [tokens(embedded_server.cluster, clock, seed) for seed in range(6)]
    found = await asyncio.gather(*(one.release(grant(), KEY) for one in replicas))
    assert len({one.reveal() for one in found}) == 1
    other = await replicas[0].release(grant(), OTHER)
    assert other.reveal() not in {one.reveal() for one in found}
    assert len(await kept(embedded_server.cluster)) == 1


async def test_an_id_that_is_taken_is_left_to_its_owner(embedded_server: Embedded) -> None:
    cluster, taken = embedded_server.cluster, token_id("uid-1", 0)
    data = {"token-id": taken, "token-secret": "0" * 16}
    body = {
        "apiVersion": "v1", "kind": "Secret", "type": bootstrap.TYPE,
        "metadata": {"name": f"bootstrap-token-{taken}", "namespace": "kube-system"},
        "data": {name: base64.b64encode(value.encode()).decode() for name, value in data.items()},
    }  # fmt: skip
    await cluster.create(SECRETS, body)
    found = (await tokens(cluster, VirtualClock()).release(grant(), KEY)).reveal().decode()
    assert found.partition(".")[0] == token_id("uid-1", 1)
    untouched = await cluster.get(SECRETS, f"bootstrap-token-{taken}", "kube-system")
    assert untouched["data"] == body["data"]


async def test_when_all_ids_are_taken_it_says_so(embedded_server: Embedded) -> None:
    for number in range(8):
        meta = {"name": f"bootstrap-token-{token_id('uid-1', number)}", "namespace": "kube-system"}
        await embedded_server.cluster.create(SECRETS, {"apiVersion": "v1", "kind": "Secret", "metadata": meta})
    made = tokens(embedded_server.cluster, VirtualClock())
    with pytest.raises(TokenContended):
        await made.release(grant(), KEY)
    with pytest.raises(Refusal) as refused:
        await Delivery(made).deliver(grant(), {"key": str(KEY)})
    assert refused.value.status == 503


async def test_a_grant_of_audit_mode_gets_no_token(embedded_server: Embedded) -> None:
    made = Delivery(tokens(embedded_server.cluster, VirtualClock()))
    with pytest.raises(Refusal) as refused:
        await made.deliver(grant(basis=Basis.AUDIT), {"key": str(KEY)})
    assert refused.value.status == 403
    assert await kept(embedded_server.cluster) == []


def test_ids_are_spread_and_have_the_form_that_kubernetes_wants() -> None:
    found = {token_id(f"uid-{number}", 0) for number in range(2000)}
    assert len(found) == 2000
    assert all(len(one) == 6 and one.isalnum() and one == one.lower() for one in found)


async def test_tokens_that_ended_or_whose_machine_is_gone_are_swept(embedded_server: Embedded) -> None:
    cluster, clock = embedded_server.cluster, MovedClock()
    await BootstrapTokens(cluster, clock, SeededEntropy(1)).release(grant(), KEY)
    (name,) = await kept(cluster)
    async with Informers(cluster, clock=clock, entropy=SeededEntropy(2)) as informers:
        loop = JoinTokens(cluster, informers, clock)
        clock.ahead = timedelta(minutes=16)
        await loop.reconcile(ObjectName("kube-system", name))
        with pytest.raises(NotFound):
            await cluster.get(SECRETS, name, "kube-system")
        clock.ahead = timedelta()
        await BootstrapTokens(cluster, clock, SeededEntropy(3)).release(grant("uid-gone"), KEY)
        (name,) = await kept(cluster)
        await loop.reconcile(ObjectName("kube-system", name))
        assert await kept(cluster) == []


async def test_holders_of_tokens_may_ask_only_where_attestation_is_wanted(embedded_server: Embedded) -> None:
    cluster, clock = embedded_server.cluster, MovedClock()
    async with Informers(cluster, clock=clock, entropy=SeededEntropy(1)) as informers:
        loop = JoinTokens(cluster, informers, clock)
        await informers.synced()
        await loop.reconcile(ObjectName("", ""))
        with pytest.raises(NotFound):
            await cluster.get(BINDINGS, BINDING)
        body = {
            "apiVersion": CONFIDENTIAL_CLUSTER.api_version, "kind": CONFIDENTIAL_CLUSTER.kind,
            "metadata": {"name": "cluster"}, "spec": {"mode": "Enforce", "simulated": True},
        }  # fmt: skip
        await cluster.create(CONFIDENTIAL_CLUSTER.resource, body)
        clusters = informers.of(CONFIDENTIAL_CLUSTER.resource)
        async with asyncio.timeout(10):
            while clusters.get("", "cluster") is None:  # noqa: ASYNC110  # caches tell handlers, not tests
                await asyncio.sleep(0.01)
        for _ in range(2):
            await loop.reconcile(ObjectName("", ""))
        found = await cluster.get(BINDINGS, BINDING)
        assert found["subjects"][0]["name"] == "system:bootstrappers:fastness"
