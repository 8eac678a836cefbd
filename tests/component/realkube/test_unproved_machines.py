"""A machine of a pool without attestation, on a real Kubernetes, with what the accounts of ours may do and nothing more."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterator
from contextlib import AsyncExitStack, suppress
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

from fastness.app.accounts import CONFIG_SERVER, CONTROLLERS
from fastness.enrolment.live.approvals import REQUESTS
from fastness.enrolment.live.pool_tokens import PoolTokens
from fastness.enrolment.live.tickets import join_ticket, mint
from fastness.enrolment.loops.joined_nodes import JoinedNodeController
from fastness.enrolment.loops.pool_tokens import PoolTokenController
from fastness.enrolment.loops.unattested_joins import UnattestedJoins
from fastness.keys.authorities import SECRETS
from fastness.kinds.fastness_dev.join_ticket import JOIN_TICKET
from fastness.kube.controllers.controller import Controller
from fastness.kube.controllers.runner import Runner
from fastness.kube.errors import Forbidden
from fastness.kube.informers import Informers
from fastness.kube.places import POOL_JOINS
from fastness.kube.port import Cluster, Scope
from fastness.record.live.record import ClusterRecord
from tests.component.realkube.test_accounts import CLOCK, ENTROPY, acting, with_accounts
from tests.component.release.broker.brokered_cluster import until
from tests.component.release.config_server.doors import POOL, pool
from tests.joining import CSRS, client_request, new_key, outcome
from tests.realkube import RealKube


@pytest.fixture(scope="module")
def kube(real_kube_binaries: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealKube]:
    with with_accounts(real_kube_binaries, tmp_path_factory.mktemp("unproved")) as server:
        yield server


async def test_a_machine_without_a_proof_joins_by_what_config_server_and_controllers_may_do(kube: RealKube) -> None:
    """The token is asked for, published, bound and counted with the accounts of both, and nothing more is needed."""
    async with AsyncExitStack() as stack:
        admin = await stack.enter_async_context(acting(kube, None))
        roles = {
            role.name: await stack.enter_async_context(acting(kube, role)) for role in (CONFIG_SERVER, CONTROLLERS)
        }
        caches = {
            name: await stack.enter_async_context(Informers(cluster, clock=CLOCK, entropy=ENTROPY))
            for name, cluster in roles.items()
        }
        controllers, caching = roles["controllers"], caches["controllers"]
        loops: list[Controller] = [
            loop(controllers, caching, CLOCK) for loop in (PoolTokenController, JoinedNodeController)
        ]
        record = ClusterRecord(controllers, CLOCK, ENTROPY, "controllers")
        loops.append(UnattestedJoins(controllers, caching, record, CLOCK))
        name = f"unproved-{ENTROPY.token(3).hex()}"
        await admin.create(POOL, pool(name, f"rendered-{name}-{32 * '0'}"))
        ticket = mint(ENTROPY)
        expires = CLOCK.now() + timedelta(hours=1)
        await admin.create(JOIN_TICKET.resource, join_ticket(name, ticket, name, expires))
        work = asyncio.create_task(Runner(loops, caching, CLOCK, ENTROPY).run())
        try:
            token = (await PoolTokens(roles["configserver"], CLOCK, ENTROPY).issue(name, ticket=name)).reveal()
            request = client_request(new_key(), f"{name}-1")
            trust, headers = ssl.create_default_context(cafile=str(kube.ca)), {"authorization": f"Bearer {token}"}
            async with httpx.AsyncClient(base_url=kube.url, verify=trust, headers=headers, trust_env=False) as machine:
                made = await machine.post(CSRS, json=request)
            assert made.status_code == 201, made.text
            await until(lambda: _is_approved(admin, made.json()["metadata"]["name"]))
        finally:
            work.cancel()
            with suppress(asyncio.CancelledError):
                await work
        assert (await admin.get(JOIN_TICKET.resource, name))["status"]["used"] == 1
        with pytest.raises(Forbidden):
            await roles["configserver"].list(SECRETS, Scope(POOL_JOINS))
        with pytest.raises(Forbidden):
            await roles["configserver"].get(SECRETS, f"bootstrap-token-{token.partition('.')[0]}", "kube-system")


async def _is_approved(cluster: Cluster, name: str) -> bool:
    request = await cluster.get(REQUESTS, name)
    return outcome(request) == ("Approved", "NotAttested")
