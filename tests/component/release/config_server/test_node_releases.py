"""What nodes that never attested get on day two is signed for them and on the record before it leaves.

Whoever stands between a node and the config server has a certificate of the doors here: a proxy that ends TLS, or a door that was
taken over. It passes on, changes and replays answers; the agent behind it is the real one.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from fastness.agent.boot.configs import ConfigRefused
from fastness.apiserver import LocalCluster
from fastness.crypto.eddsa import SEED_BYTES, Ed25519Signer
from fastness.crypto.secret import SecretBytes
from fastness.crypto.x509 import Credential
from fastness.http import Answer, send_answer
from fastness.http.certificates import LoopListener
from fastness.http.freshness import Touch
from fastness.keys.doors import doors_authority
from fastness.kinds.fastness_dev.audit import AUDIT_BATCH
from fastness.kube.errors import Unavailable
from fastness.protocol.config_proof import HEADER, Served, ServedToNode, signed
from fastness.protocol.door import DoorRole
from fastness.record.entry import RecordEntry
from fastness.record.live.record import ClusterRecord
from tests.component.release.config_server.test_nodes import ENTROPY, HOST, NEW, NODE_OF_A_MACHINE, OLD, World, opened
from tests.embedded.fixtures import Embedded

Change = Callable[[httpx.Response], Answer]


@pytest.fixture
async def world(embedded_server: Embedded) -> AsyncIterator[World]:
    async with opened(embedded_server) as opening:
        yield opening


@asynccontextmanager
async def door_between(world: World, answer: Callable[[str], Awaitable[Answer]]) -> AsyncIterator[str]:
    """Somebody with a certificate of the doors who answers as it likes, for the nonce of the request; its URL."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        nonce = dict(scope["headers"])[b"fastness-nonce"].decode()
        await send_answer(await answer(nonce), send)

    listener = LoopListener(app)
    now = datetime.now(UTC)
    authority = await doors_authority(world.cluster, ENTROPY, now)
    await listener.show(authority.serving(DoorRole.CONFIG_SERVER, ["127.0.0.1"], now))
    try:
        yield f"https://127.0.0.1:{listener.port}"
    finally:
        await listener.stop()


def passed_on(answer: httpx.Response) -> Answer:
    return Answer(answer.status_code, answer.content, headers=((HEADER.encode(), answer.headers[HEADER].encode()),))


async def test_an_answer_for_another_node_or_another_certificate_is_refused(world: World) -> None:
    own = world.shows("plain-1")
    for other, config in ((world.shows("plain-1"), NEW), (world.shows("plain-2"), OLD)):

        async def theirs(nonce: str, credential: Credential = other, config: str = config) -> Answer:
            return passed_on(await world.get(credential, "plain", config, {"fastness-nonce": nonce}))

        async with door_between(world, theirs) as url:
            with pytest.raises(ConfigRefused, match="not what the cluster signed for this request"):
                await world.configs_for(own, url).fetch(config)
    assert (await world.configs_for(own).fetch(NEW))["metadata"]["name"] == NEW


def altered(answer: httpx.Response) -> Answer:
    body = answer.content.replace(b"content%20of", b"command%20of")
    assert body != answer.content
    return Answer(200, body, headers=((HEADER.encode(), answer.headers[HEADER].encode()),))


def unsigned(answer: httpx.Response) -> Answer:
    return Answer(200, answer.content)


@pytest.mark.parametrize("change", [altered, unsigned], ids=["altered", "unsigned"])
async def test_a_config_that_was_changed_on_the_way_is_refused(world: World, change: Change) -> None:
    own = world.shows("plain-1")

    async def changed(nonce: str) -> Answer:
        return change(await world.get(own, "plain", NEW, {"fastness-nonce": nonce}))

    async with door_between(world, changed) as url:
        with pytest.raises(ConfigRefused, match=r"signed for this request|cannot be read"):
            await world.configs_for(own, url).fetch(NEW)


async def test_an_answer_to_an_earlier_request_is_refused(world: World) -> None:
    own = world.shows("plain-1")
    earlier = await world.get(own, "plain", NEW, {"fastness-nonce": "n" * 24})

    async def replayed(_nonce: str) -> Answer:
        return passed_on(earlier)

    async with door_between(world, replayed) as url:
        with pytest.raises(ConfigRefused, match="not what the cluster signed for this request"):
            await world.configs_for(own, url).fetch(NEW)


async def test_another_config_than_the_one_that_was_asked_for_is_refused(world: World) -> None:
    own = world.shows("plain-1")

    async def older(nonce: str) -> Answer:
        return passed_on(await world.get(own, "plain", OLD, {"fastness-nonce": nonce}))

    async with door_between(world, older) as url:
        with pytest.raises(ConfigRefused, match="not what the cluster signed for this request"):
            await world.configs_for(own, url).fetch(NEW)


@pytest.mark.parametrize("case", ["another key", "expired", "for a machine"])
async def test_a_statement_of_another_key_time_or_kind_is_refused(world: World, case: str) -> None:
    own, signer = world.shows("plain-1"), Ed25519Signer(SecretBytes(ENTROPY.token(SEED_BYTES)))
    trusted = [] if case == "another key" else [dict(signer.verifier.jwk())]
    until = datetime.now(UTC) + timedelta(minutes=-1 if case == "expired" else 5)

    async def forged(nonce: str) -> Answer:
        body = (await world.get(own, "plain", NEW)).content
        certificate = str(own.certificate.fingerprint)
        statement = ServedToNode(body, "plain", "plain-1", certificate, nonce, NEW)
        machine = Served(body, "plain", "plain-1", nonce, NEW, certificate)
        text = signed(machine if case == "for a machine" else statement, signer, until)
        return Answer(200, body, headers=((HEADER.encode(), text.encode()),))

    async with door_between(world, forged) as url:
        with pytest.raises(ConfigRefused, match=r"does not know|expired|another kind"):
            await world.configs_for(own, url, trusted).fetch(NEW)


async def test_every_release_is_on_the_record_with_the_node_and_its_certificate(world: World) -> None:
    own = world.shows("plain-1")
    await world.configs_for(own).fetch(NEW)
    (entry,) = await world.recorded()
    assert (entry["what"], entry["who"], entry["resource"]) == ("release", "system:node:plain-1", "pool/plain/config")
    facts = {name: entry["detail"][name] for name in ("basis", "certificate", "config")}
    assert facts == {"basis": "node-certificate", "certificate": str(own.certificate.fingerprint), "config": NEW}
    (batch,) = (await world.cluster.list(AUDIT_BATCH.resource)).items
    assert batch["spec"]["door"].startswith("configserver-")


async def test_without_the_record_nothing_leaves(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    create = LocalCluster.create

    async def failing(self: LocalCluster, resource: Any, *rest: Any) -> Any:
        if resource == AUDIT_BATCH.resource:
            raise Unavailable("the disk is full")
        return await create(self, resource, *rest)

    monkeypatch.setattr(LocalCluster, "create", failing)
    answer = await world.get(world.shows("plain-1"), "plain", NEW)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
    assert b"content%20of" not in answer.content
    assert await world.recorded() == []


async def test_trust_that_ends_while_the_record_is_written_keeps_the_config_here(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[Callable[[], Awaitable[None]]] = [
        lambda: world.quarantine(NODE_OF_A_MACHINE), lambda: world.sent("plain-1", OLD, OLD),
    ]  # fmt: skip
    write = ClusterRecord.append

    async def append(self: ClusterRecord, entry: RecordEntry) -> None:
        await write(self, entry)
        if entry.what == "release" and events:
            await events.pop(0)()

    monkeypatch.setattr(ClusterRecord, "append", append)
    assert await world.answer(world.shows(NODE_OF_A_MACHINE), "host", HOST) == (403, "revoked")
    assert await world.answer(world.shows("plain-1"), "plain", NEW) == (403, "not-assigned")
    entries = await world.recorded()
    assert [entry["what"] for entry in entries] == ["release", "withheld", "release", "withheld"]
    assert [entry["detail"]["code"] for entry in entries[1::2]] == ["revoked", "not-assigned"]
    assert entries[0]["grant"] == entries[1]["grant"]


@pytest.mark.parametrize("when", ["before", "while the record is written"])
async def test_a_config_server_that_lost_touch_gives_nothing_for_a_certificate(
    world: World, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    write = ClusterRecord.append

    def lose() -> None:
        monkeypatch.setattr(Touch, "in_touch", property(lambda _: False))

    async def append(self: ClusterRecord, entry: RecordEntry) -> None:
        await write(self, entry)
        lose()

    if when == "before":
        lose()
    monkeypatch.setattr(ClusterRecord, "append", append)
    assert await world.answer(world.shows("plain-1"), "plain", NEW) == (503, "out-of-touch")
    assert [entry["what"] for entry in await world.recorded()] == ([] if when == "before" else ["release", "withheld"])


async def test_a_final_refusal_of_a_node_is_on_the_record_once_a_minute(world: World) -> None:
    credential = world.shows("plain-2")
    for _ in range(3):
        assert await world.answer(credential, "plain", NEW) == (403, "not-assigned")
    assert await world.answer(None, "plain", NEW) == (401, "certificate-required")
    (entry,) = await world.recorded()
    assert (entry["what"], entry["who"]) == ("refusal", "system:node:plain-2")
    assert entry["detail"] == {"code": "not-assigned", "certificate": str(credential.certificate.fingerprint)}


async def test_a_nonce_that_is_too_long_is_refused_before_anything_is_written(world: World) -> None:
    answer = await world.get(world.shows("plain-1"), "plain", NEW, {"fastness-nonce": "n" * 129})
    assert (answer.status_code, answer.json()["code"]) == (400, "bad-nonce")
    assert await world.recorded() == []
