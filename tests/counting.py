"""A cluster that counts what it is asked: what something costs the API server, seen at the port."""

from __future__ import annotations

from collections import Counter
from typing import Any

from fastness.kinds.kind import Resource
from tests.attesting import attesting_world

VERBS = ("get", "list", "create", "patch", "delete")


class Counted:
    """Passes on to a cluster, and counts by verb and kind."""

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


async def attestations_of_one_machine(cluster: Any) -> tuple[Counter[str], Counter[str]]:
    """What the first attestation of a machine asks, and what the next does."""
    counted: Any = Counted(cluster)
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
            return first, Counter(counted.asked)
