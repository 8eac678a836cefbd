"""What an attestation costs the API server, counted at the port: a storm of machines is a storm of these requests."""

from __future__ import annotations

from collections import Counter
from typing import Any

from fastness.kinds.kind import Resource
from tests.attesting import attesting_world
from tests.embedded.fixtures import Embedded

MOST = 6
VERBS = ("get", "list", "create", "patch", "delete")


class Counted:
    """A cluster that counts what it is asked, by verb and kind."""

    def __init__(self, cluster: Any) -> None:
        self._cluster = cluster
        self.asked: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._cluster, name)
        if name not in VERBS:
            return method

        async def counting(resource: Resource, *words: Any, **more: Any) -> Any:
            self.asked[f"{name} {resource.kind}"] += 1
            return await method(resource, *words, **more)

        return counting


async def test_an_attestation_asks_the_api_at_most_six_times(embedded_server: Embedded) -> None:
    counted: Any = Counted(embedded_server.cluster)
    async with attesting_world(counted) as world:
        await world.approve("tpm")
        async with world.broker(await world.enrolled()) as broker:
            await broker.attest()  # a door makes its key of the record with its first entry
        async with world.broker(await world.enrolled()) as broker:
            counted.asked.clear()
            await broker.attest()
            first = Counter(counted.asked)
            counted.asked.clear()
            await broker.attest()
            again = Counter(counted.asked)
    assert first["create SpentChallenge"] == again["create SpentChallenge"] == 1, "it was counted at all"
    assert first.total() <= MOST, first
    assert again.total() <= MOST, again
