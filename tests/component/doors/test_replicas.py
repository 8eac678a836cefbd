"""Two brokers with real verifiers on a real kube-apiserver: what was answered at one is answered everywhere (decision 83).

Uses of tickets at two doors are in tests/component/enrolment/test_on_real_kubernetes.py; tokens, nonces of proofs and revocations
at two gates in tests/component/release/gate/test_gate.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from fastness.agent.boot.prove import BrokerClient
from fastness.attestation.live.collateral import Collateral
from fastness.http.limits import Limits, Rate
from fastness.kinds.crd import manifests
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster
from fastness.protocol import kbs
from fastness.release.door.broker.server import BrokerOptions
from tests.attesting import ENTROPY, AttestingDoors, AttestingWorld, attesting, attesting_world
from tests.contract.worlds import https, served
from tests.patience import PATIENCE
from tests.realkube import RealKube

GROUPS = ("fastness.dev", "trusted-execution-clusters.io", "confidentialcontainers.org")
ATTEST = "/kbs/v0/attest"
FEW = BrokerOptions(limits=Limits(address=Rate(burst=2, per_second=0.001)))


@pytest.fixture(scope="module")
def kube(real_kube_binaries: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealKube]:
    """A server of its own: the ConfidentialCluster is a singleton."""
    with RealKube.start(tmp_path_factory.mktemp("replicas"), real_kube_binaries, unsafe_no_fsync=True) as server:
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        definitions = [manifest for manifest in manifests() if manifest["spec"]["group"] in GROUPS]
        with server.client() as admin:
            for manifest in definitions:
                assert admin.post(path, json=manifest).status_code == 201, manifest["metadata"]["name"]
            for manifest in definitions:
                assert any(served(admin, f"{path}/{manifest['metadata']['name']}") for _ in range(600))
        yield server


@dataclass
class Pair:
    """Two replicas of the doors, each with a connection and caches of its own."""

    world: AttestingWorld
    ports: tuple[int, int]

    async def show(self, port: int, recorded: Recorded) -> tuple[int, str]:
        """Send what somebody recorded to a broker; status and code of the answer."""
        async with httpx.AsyncClient(verify=self.world.trust, timeout=PATIENCE, trust_env=False) as http:
            headers = {"content-type": "application/json", "cookie": recorded.cookie}
            answer = await http.post(f"https://127.0.0.1:{port}{ATTEST}", content=recorded.body, headers=headers)
        return answer.status_code, answer.json().get("code", "")


@dataclass(frozen=True)
class Recorded:
    """An answer to a challenge, as it went over the wire."""

    cookie: str
    body: bytes


class Recording(BrokerClient):
    """A machine whose answer to its challenge is kept instead of being sent."""

    recorded: Recorded | None = None

    async def _call(self, method: str, path: str, body: bytes = b"") -> bytes:
        if path == ATTEST:
            self.recorded = Recorded(self._session, body)
            raise asyncio.CancelledError
        return await super()._call(method, path, body)


@asynccontextmanager
async def pair(kube: RealKube, options: BrokerOptions = BrokerOptions()) -> AsyncIterator[Pair]:  # noqa: B008  # frozen
    async with (
        https(kube.kubeconfig) as near,
        https(kube.kubeconfig) as other,
        attesting_world(near) as world,
        Informers(other, clock=world.clock, entropy=ENTROPY) as informers,
        doors_of(world, near, world.informers, options) as first,
        doors_of(world, other, informers, options) as second,
    ):
        yield Pair(world, (first.broker.port, second.broker.port))


def doors_of(
    world: AttestingWorld, cluster: Cluster, informers: Informers, options: BrokerOptions
) -> AbstractAsyncContextManager[AttestingDoors]:
    """One more replica of the doors."""
    documents = Collateral(world.clock)
    return attesting(cluster, informers, world.clock, cipher=world.cipher, collateral=documents, broker=options)


async def answer_of(pair: Pair) -> Recorded:
    """What a machine that enrolled answers to a challenge of the first broker; nobody has seen it yet."""
    machine = await pair.world.enrolled()
    client = Recording(f"https://127.0.0.1:{pair.ports[0]}", pair.world.trust, machine, ENTROPY)
    async with client:
        with pytest.raises(asyncio.CancelledError):
            await client.attest()
    assert client.recorded is not None
    return client.recorded


async def test_an_answer_to_a_challenge_counts_once_at_whichever_broker_it_is_shown(kube: RealKube) -> None:
    async with pair(kube) as here:
        await here.world.approve("tpm")
        recorded = await answer_of(here)
        first, second = here.ports
        assert (await here.show(second, recorded))[0] == 200, "a challenge of one is answered at the other"
        assert await here.show(first, recorded) == (401, "challenge-replayed")
        assert await here.show(second, recorded) == (401, "challenge-replayed")
        raced = await answer_of(here)
        answers = await asyncio.gather(*(here.show(port, raced) for port in (first, second) * 4))
        assert sorted(status for status, _ in answers) == [200] + [401] * 7


async def test_each_replica_counts_strangers_by_itself_so_two_let_in_twice_as_many(kube: RealKube) -> None:
    async with pair(kube, FEW) as here, httpx.AsyncClient(verify=here.world.trust, trust_env=False) as http:
        statuses = [
            [
                (
                    await http.post(f"https://127.0.0.1:{port}/kbs/v0/auth", content=kbs.request_message("tpm"))
                ).status_code
                for _ in range(4)
            ]
            for port in here.ports
        ]
        assert statuses == [[200, 200, 503, 503]] * 2
