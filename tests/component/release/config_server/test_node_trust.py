"""Nodes that never attest and whom they shall believe: their certificate opens it, for their own pool, signed and recorded."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest

from fastness.agent.boot.configs import ConfigRefused
from fastness.crypto.x509 import Credential
from fastness.http import Answer
from fastness.kinds.machineconfiguration.controller_config import CONTROLLER_CONFIG, SINGLETON
from fastness.kube.port import PatchType
from fastness.protocol.config_proof import HEADER
from tests.component.release.config_server.test_node_releases import door_between, passed_on
from tests.component.release.config_server.test_nodes import NODE_OF_A_MACHINE, World, opened
from tests.embedded.fixtures import Embedded
from tests.unit.machineconfig.build import CERTIFICATE, controller_config


@pytest.fixture
async def world(embedded_server: Embedded) -> AsyncIterator[World]:
    stated = {"kubeAPIServerServingCAData": controller_config()["spec"]["kubeAPIServerServingCAData"]}
    await embedded_server.cluster.patch(CONTROLLER_CONFIG.resource, SINGLETON, {"spec": stated}, PatchType.MERGE)
    async with opened(embedded_server) as opening:
        yield opening


async def get(
    world: World, credential: Credential | None, pool: str, headers: dict[str, str] | None = None
) -> httpx.Response:
    async with httpx.AsyncClient(verify=world.tls(credential), timeout=20, trust_env=False) as client:
        return await client.get(f"{world.url}/trust/{pool}", headers=headers)


async def test_a_node_gets_it_for_its_certificate_and_the_record_says_so(world: World) -> None:
    trust = await world.configs("plain-1").trust("plain")
    assert trust.kubelet_ca == CERTIFICATE
    release = (await world.recorded())[-1]
    assert (release["what"], release["resource"]) == ("release", "pool/plain/trust")
    assert (release["who"], release["detail"]["config"]) == ("system:node:plain-1", trust.name)


async def test_who_is_of_another_pool_of_a_confidential_one_barred_or_nobody_gets_nothing(world: World) -> None:
    await world.quarantine(NODE_OF_A_MACHINE)
    ticket = await world.ticket("plain")
    refused = [
        (world.shows("plain-1"), "host", None, 403), (world.shows("plain-1"), "secret", None, 403),
        (world.shows("secret-1"), "secret", None, 403), (world.shows("nobody"), "plain", None, 403),
        (world.shows(NODE_OF_A_MACHINE), "host", None, 403), (None, "plain", None, 401), (None, "plain", ticket, 403),
    ]  # fmt: skip
    for credential, pool, headers, status in refused:
        answer = await get(world, credential, pool, headers)
        assert answer.status_code == status
        assert b"CERTIFICATE" not in answer.content


async def test_an_answer_that_was_changed_or_kept_is_refused(world: World) -> None:
    own = world.shows("plain-1")
    earlier = await get(world, own, "plain", {"fastness-nonce": "n" * 24})

    async def altered(nonce: str) -> Answer:
        answer = await get(world, own, "plain", {"fastness-nonce": nonce})
        body = answer.content.replace(b'"registries":{}', b'"registries":{"evil.test":""}')
        assert body != answer.content
        return Answer(200, body, headers=((HEADER.encode(), answer.headers[HEADER].encode()),))

    async def replayed(_nonce: str) -> Answer:
        return passed_on(earlier)

    for answer in (altered, replayed):
        async with door_between(world, answer) as url:
            with pytest.raises(ConfigRefused, match="not what the cluster signed for this request"):
                await world.configs_for(own, url).trust("plain")
