"""Bootstrap tokens in the cluster: one for each machine, whatever the ids, the keys and the replicas; and gone in time."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import timedelta

import pytest

from fastness.crypto.digests import sha256
from fastness.enrolment.live import bootstrap_tokens as bootstrap
from fastness.enrolment.live.bootstrap_tokens import BootstrapTokens, join_token, token_id
from fastness.enrolment.loops.join_tokens import ASKED, BINDING, BINDINGS, TOKENS, BootstrapTokenController
from fastness.http.refusals import Refusal
from fastness.keys.authorities import SECRETS
from fastness.keys.errors import TokenContended
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import ObjectName
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kinds.trusted_execution.subject import Basis, Grant, Subject
from fastness.kube.controllers.runner import Runner
from fastness.kube.errors import NotFound
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster, PatchType, WriteOptions
from fastness.protocol.kbs_path import ResourcePath
from fastness.release.live.resources import BootstrapTokenSource
from fastness.runtime.clock import Clock, SystemEntropy
from fastness.runtime.tasks import background
from tests.attesting import until
from tests.embedded.fixtures import Embedded
from tests.enrolling import MovedClock
from tests.granting import grant_of
from tests.patience import PATIENCE
from tests.virtual import SeededEntropy, VirtualClock

KEY, OTHER = sha256(b"key"), sha256(b"other")


def grant(machine: str = "uid-1", basis: Basis = Basis.VERDICT) -> Grant:
    subject = Subject(machine, "machine-1", "sha256:" + "0" * 64, "worker", tee="tpm", endorsement="ek-certificate")
    return grant_of(path_of(machine), subject, basis)


def path_of(machine: str) -> ResourcePath:
    return ResourcePath("machine", machine, "bootstrap-token")


def tokens(cluster: Cluster, clock: Clock, seed: int = 1) -> BootstrapTokens:
    return BootstrapTokens(cluster, clock, SeededEntropy(seed))


@dataclass
class Site:
    """A cluster with an approved Machine, and the loop that publishes tokens."""

    cluster: Cluster
    clock: MovedClock
    uid: str
    loop: BootstrapTokenController

    def grant(self, basis: Basis = Basis.VERDICT) -> Grant:
        return grant(self.uid, basis)

    @property
    def tokens(self) -> BootstrapTokens:
        return tokens(self.cluster, self.clock)

    async def token_names(self) -> list[str]:
        return [secret["metadata"]["name"] for secret in (await self.cluster.list(SECRETS, TOKENS)).items]

    async def requests(self) -> list[JsonObject]:
        return (await self.cluster.list(SECRETS, ASKED)).items


@pytest.fixture
async def site(embedded_server: Embedded) -> AsyncIterator[Site]:
    cluster, clock, entropy = embedded_server.cluster, MovedClock(), SystemEntropy()
    body = {
        "apiVersion": MACHINE.api_version, "kind": MACHINE.kind, "metadata": {"name": "machine-1", "namespace": NAMESPACE},
        "spec": {"id": "00000000-0000-4000-8000-000000000001", "approval": "Approved"},
    }  # fmt: skip
    machine = await cluster.create(MACHINE.resource, body)
    approved = {
        "type": "Approved",
        "status": "True",
        "reason": "x",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    status = {"keyThumbprint": "sha256:" + "0" * 64, "conditions": [approved]}
    options = WriteOptions(subresource="status")
    await cluster.patch(MACHINE.resource, "machine-1", {"status": status}, PatchType.MERGE, NAMESPACE, options)
    async with Informers(cluster, clock=clock, entropy=entropy) as informers:
        loop = BootstrapTokenController(cluster, informers, clock)
        async with background("site", loops=Runner([loop], informers, clock, entropy).run):
            yield Site(cluster, clock, machine["metadata"]["uid"], loop)


async def test_a_token_is_the_same_until_it_is_about_to_end(site: Site) -> None:
    made = site.tokens
    first = (await made.release(site.grant(), KEY)).reveal()
    site.clock.ahead = timedelta(minutes=9)
    assert (await made.release(site.grant(), KEY)).reveal() == first
    site.clock.ahead = timedelta(minutes=11)
    second = (await made.release(site.grant(), KEY)).reveal()
    assert second != first
    assert second[:6] == first[:6]
    token = join_token(await site.cluster.get(SECRETS, f"bootstrap-token-{first[:6].decode()}", "kube-system"))
    assert token is not None
    assert timedelta() <= site.clock.now() + bootstrap.LIFETIME - token.expires < timedelta(minutes=1)


async def test_what_is_handed_out_is_what_the_api_accepts_and_nothing_more(site: Site) -> None:
    token = (await site.tokens.release(site.grant(), KEY)).reveal().decode()
    identity, _, secret = token.partition(".")
    stored = await site.cluster.get(SECRETS, f"bootstrap-token-{identity}", "kube-system")
    data = {name: base64.b64decode(value).decode() for name, value in stored["data"].items()}
    assert (data["token-id"], data["token-secret"]) == (identity, secret)
    assert {name: value for name, value in data.items() if name.startswith(("usage-", "auth-"))} == {
        "usage-bootstrap-authentication": "true",
        "auth-extra-groups": "system:bootstrappers:fastness",
    }


async def test_a_broker_that_was_taken_over_gets_no_other_kind_of_token(site: Site) -> None:
    """It may write anything into its own namespace: other groups, other usages, a life of years, machines that are not."""
    await site.tokens.release(site.grant(), KEY)
    (good,) = await site.requests()
    wrong = {
        "auth-extra-groups": "system:bootstrappers:kubeadm:default-node-token", "usage-bootstrap-signing": "true",
        "usage-bootstrap-authentication": "false",
    }  # fmt: skip
    await forge(site, good, wrong, {})
    (name,) = await site.token_names()
    await until(lambda: secret_holds(site, name, lambda data: data["token-secret"] == "f" * 16))
    stored = await site.cluster.get(SECRETS, name, "kube-system")
    data = {name: base64.b64decode(value).decode() for name, value in stored["data"].items()}
    assert data["auth-extra-groups"] == "system:bootstrappers:fastness"
    assert data["usage-bootstrap-authentication"] == "true"
    assert "usage-bootstrap-signing" not in data
    years = {"expiration": "2099-01-01T00:00:00Z"}
    for data_change, notes in (
        (years, {}), ({"token-secret": "short"}, {}), ({}, {bootstrap.MACHINE: "uid-of-nobody"}),
        ({}, {bootstrap.MACHINE_NAME: "machine-2"}), ({"token-id": "../../"}, {}),
    ):  # fmt: skip
        await site.tokens.release(site.grant(), KEY)
        (good,) = await site.requests()
        await forge(site, good, {"token-secret": "g" * 16} | data_change, notes)
        await until(lambda: gone(site))
        for left in await site.token_names():
            held = await site.cluster.get(SECRETS, left, "kube-system")
            assert base64.b64decode(held["data"]["token-secret"]).decode() != "g" * 16, (data_change, notes)


async def forge(site: Site, good: JsonObject, data: dict[str, str], notes: dict[str, str]) -> None:
    """Change a request as whoever holds the broker's account can."""
    changed = {
        name: base64.b64encode(value.encode()).decode() for name, value in ({"token-secret": "f" * 16} | data).items()
    }
    patch = {"metadata": {"annotations": notes}, "data": changed}
    await site.cluster.patch(SECRETS, good["metadata"]["name"], patch, PatchType.MERGE, bootstrap.ASKED_NAMESPACE)


async def secret_holds(site: Site, name: str, holds: Callable[[dict[str, str]], bool]) -> bool:
    stored = await site.cluster.get(SECRETS, name, "kube-system")
    return holds({key: base64.b64decode(value).decode() for key, value in stored["data"].items()})


async def gone(site: Site) -> bool:
    return await site.requests() == []


async def test_replicas_that_are_asked_at_once_give_one_token(site: Site) -> None:
    replicas = [tokens(site.cluster, site.clock, seed) for seed in range(6)]
    released = await asyncio.gather(*(replica.release(site.grant(), KEY) for replica in replicas))
    assert len({token.reveal() for token in released}) == 1
    other = await replicas[0].release(site.grant(), OTHER)
    assert other.reveal() not in {token.reveal() for token in released}
    assert len(await site.token_names()) == 1


async def test_an_id_that_is_taken_is_left_to_its_owner(site: Site) -> None:
    cluster, taken = site.cluster, token_id(site.uid, 0)
    data = {"token-id": taken, "token-secret": "0" * 16}
    body = {
        "apiVersion": "v1", "kind": "Secret", "type": bootstrap.TYPE,
        "metadata": {"name": f"bootstrap-token-{taken}", "namespace": "kube-system"},
        "data": {name: base64.b64encode(value.encode()).decode() for name, value in data.items()},
    }  # fmt: skip
    await cluster.create(SECRETS, body)
    token = (await site.tokens.release(site.grant(), KEY)).reveal().decode()
    assert token.partition(".")[0] == token_id(site.uid, 1)
    untouched = await cluster.get(SECRETS, f"bootstrap-token-{taken}", "kube-system")
    assert untouched["data"] == body["data"]


async def test_when_all_ids_are_taken_it_says_so(site: Site) -> None:
    for number in range(8):
        meta = {"name": f"bootstrap-token-{token_id(site.uid, number)}", "namespace": "kube-system"}
        await site.cluster.create(SECRETS, {"apiVersion": "v1", "kind": "Secret", "metadata": meta})
    with pytest.raises(TokenContended):
        await site.tokens.release(site.grant(), KEY)
    with pytest.raises(Refusal) as refused:
        await BootstrapTokenSource(site.tokens).read(site.grant(), path_of(site.uid), {"key": str(KEY)})
    assert refused.value.status == 503


async def test_a_machine_whose_id_meets_that_of_another_does_not_get_its_token(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It shows the same key, too: what it is given is for itself, or nothing."""
    monkeypatch.setattr(bootstrap, "token_id", lambda _machine, number: f"aaaaa{number}")
    first = (await site.tokens.release(site.grant(), KEY)).reveal()
    (request,) = await site.requests()
    with pytest.raises(TokenContended):
        await site.tokens.release(grant("uid-of-nobody"), KEY)
    assert (await site.tokens.release(site.grant(), KEY)).reveal() == first
    untouched = await site.cluster.get(SECRETS, request["metadata"]["name"], bootstrap.ASKED_NAMESPACE)
    assert untouched["data"] == request["data"]


async def test_a_request_that_the_controllers_take_away_gets_no_token(embedded_server: Embedded) -> None:
    """As they do when the machine is no longer trusted."""
    clock, cluster = VirtualClock(), embedded_server.cluster
    asking = asyncio.create_task(tokens(cluster, clock).release(grant(), KEY))
    async with asyncio.timeout(PATIENCE):
        while not asking.done():
            for request in (await cluster.list(SECRETS, ASKED)).items:
                await cluster.delete(SECRETS, request["metadata"]["name"], bootstrap.ASKED_NAMESPACE)
            await clock.advance(0.1)
            await asyncio.sleep(0.01)
    with pytest.raises(TokenContended, match="publish no bootstrap token for this machine"):
        await asking


async def test_without_controllers_the_broker_says_what_is_missing(embedded_server: Embedded) -> None:
    clock = VirtualClock()
    asking = asyncio.create_task(tokens(embedded_server.cluster, clock).release(grant(), KEY))
    async with asyncio.timeout(PATIENCE):
        while not asking.done():
            await clock.advance(1)
            await asyncio.sleep(0.01)
    with pytest.raises(TokenContended, match="the controllers have not published"):
        await asking


async def test_a_grant_of_audit_mode_gets_no_token(site: Site) -> None:
    with pytest.raises(Refusal) as refused:
        await BootstrapTokenSource(site.tokens).read(site.grant(Basis.AUDIT), path_of(site.uid), {"key": str(KEY)})
    assert refused.value.status == 403
    assert (await site.token_names(), await site.requests()) == ([], [])


async def test_a_token_that_somebody_deletes_is_published_again(site: Site) -> None:
    first = await site.tokens.release(site.grant(), KEY)
    (name,) = await site.token_names()
    await site.cluster.delete(SECRETS, name, "kube-system")
    await until(lambda: present(site, name))
    assert (await site.tokens.release(site.grant(), KEY)).reveal() == first.reveal()


async def present(site: Site, name: str) -> bool:
    return name in await site.token_names()


def test_ids_are_spread_and_have_the_form_that_kubernetes_wants() -> None:
    ids = {token_id(f"uid-{number}", 0) for number in range(2000)}
    assert len(ids) == 2000
    assert all(len(identifier) == 6 and identifier.isalnum() and identifier == identifier.lower() for identifier in ids)


async def test_tokens_that_ended_or_whose_machine_is_gone_are_swept(site: Site) -> None:
    await site.tokens.release(site.grant(), KEY)
    (name,) = await site.token_names()
    (request,) = await site.requests()
    site.clock.ahead = timedelta(minutes=16)

    async def ended() -> bool:
        # The loop runs beside this and may hold one of them just now, so both are looked at again.
        await site.loop.reconcile(ObjectName("kube-system", name))
        await site.loop.reconcile(ObjectName(bootstrap.ASKED_NAMESPACE, request["metadata"]["name"]))
        return (await site.token_names(), await site.requests()) == ([], [])

    await until(ended)
    site.clock.ahead = timedelta()
    await site.tokens.release(site.grant(), KEY)
    await site.cluster.delete(MACHINE.resource, "machine-1", NAMESPACE)

    async def swept() -> bool:
        return (await site.token_names(), await site.requests()) == ([], [])

    await until(swept)


async def test_holders_of_tokens_may_ask_only_where_attestation_is_wanted(embedded_server: Embedded) -> None:
    cluster, clock = embedded_server.cluster, MovedClock()
    async with Informers(cluster, clock=clock, entropy=SeededEntropy(1)) as informers:
        loop = BootstrapTokenController(cluster, informers, clock)
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
        async with asyncio.timeout(PATIENCE):
            while clusters.get("", "cluster") is None:  # noqa: ASYNC110  # caches tell handlers, not tests
                await asyncio.sleep(0.01)
        for _ in range(2):
            await loop.reconcile(ObjectName("", ""))
        binding = await cluster.get(BINDINGS, BINDING)
        assert binding["subjects"][0]["name"] == "system:bootstrappers:fastness"
