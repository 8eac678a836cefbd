"""The loops for images, values and policies over a running embedded API, driven by hand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, TypeVar

from fastness.attestation.loops.images import IMAGES, SETS, Images
from fastness.attestation.loops.policies import POLICIES, Policies
from fastness.attestation.loops.values import Values
from fastness.attestation.policy.cases import Trial, try_policy
from fastness.attestation.policy.claims import TrustVector
from fastness.attestation.policy.policy import PolicySet
from fastness.attestation.values.values import ReferenceValues
from fastness.formats import json
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.objects import condition
from fastness.kube.controllers.controller import Controller
from fastness.kube.controllers.fenced import FencedCluster
from fastness.kube.informers import Informers
from fastness.kube.informers.placed import scopes_of
from fastness.kube.places import AT_HOME, Places
from fastness.kube.port import Cluster, WriteOptions
from tests.unit.attestation.inprocess import decided
from tests.virtual import SeededEntropy, VirtualClock

NAMESPACE = "fastness-system"
DIGEST = "ab" * 32
IMAGE = f"registry.example/os@sha256:{DIGEST}"
SET = f"image-{DIGEST}"
MAX_TURNS = 5000
W = TypeVar("W", bound="World")
PCRS = {number: f"{number:064x}" for number in (4, 7, 11, 12, 14)}


def manifest(pcrs: Mapping[int, str] = PCRS) -> JsonObject:
    """What machines measure, listed by hand."""
    return {"values": [{"name": f"tpm_pcr{number}", "value": value} for number, value in pcrs.items()]}


def approved_image(name: str = "os", image: str = IMAGE, measured: JsonObject | None = None) -> JsonObject:
    """An ApprovedImage with measurements."""
    notes = {"fastness.dev/measurements": json.encode(manifest() if measured is None else measured).decode()}
    return {
        "apiVersion": IMAGES.api_version,
        "kind": "ApprovedImage",
        "metadata": {"name": name, "namespace": NAMESPACE, "annotations": notes},
        "spec": {"image": image},
    }


def quoted(pcrs: Mapping[int, str] = PCRS) -> JsonObject:
    """The input of a policy for a genuine quote with these registers."""
    return {
        "tpm": {"pcr08": "0" * 64, **{f"pcr{number:02}": value for number, value in pcrs.items()}},
        "appraisal": {"authentic": True, "acceptable": True, "checks": {"attestation-key": "Pass"}},
    }


def _versions(objects: Iterable[JsonObject]) -> set[tuple[str, str]]:
    return {(obj["metadata"]["uid"], obj["metadata"]["resourceVersion"]) for obj in objects}


async def in_process(spec: Mapping[str, Any]) -> Trial:
    """A trial without a child, for texts that are known to be harmless."""
    return try_policy(spec)


class World:
    """An API with the three loops; each call of `settle` lets all of them look at everything until nothing changes."""

    def __init__(
        self, cluster: Cluster, informers: Informers, clock: VirtualClock, attempt: Callable[..., Any]
    ) -> None:
        self.cluster = cluster
        self.clock = clock
        self.informers = informers
        self.status = WriteOptions(subresource="status")
        self.followed: list[Resource] = [IMAGES, SETS]

        def fenced(loop: Any) -> FencedCluster:
            return FencedCluster(cluster, loop.name, loop.writes)

        self.loops: list[Controller] = [
            Images(fenced(Images), informers, clock),
            Values(fenced(Values), informers, clock),
            Policies(fenced(Policies), clock, attempt),
        ]

    async def settle(self, rounds: int = 3) -> None:
        """Every loop on every key, some times over."""
        for _ in range(rounds):
            for loop in self.loops:
                for key in await self._keys(loop):
                    await self._caught_up()
                    await loop.reconcile(key)

    async def _keys(self, loop: Controller) -> list[Any]:
        await self._caught_up()
        loop_keys = {key for source in loop.sources for obj in await self._all(source) for key in source.keys(obj)}
        return sorted(loop_keys)

    async def _caught_up(self) -> None:
        """Wait until the caches hold what the API holds."""
        for resource in self.followed:
            informer = self.informers.of(resource)
            for _ in range(MAX_TURNS):
                there = await self._counting(resource)
                if _versions(informer.list()) == _versions(there):
                    break
                await asyncio.sleep(0.001)
            else:
                raise AssertionError("the caches do not catch up")

    async def _counting(self, resource: Resource) -> list[JsonObject]:
        scopes = scopes_of(self.informers.places, resource)
        return [obj for scope in scopes for obj in (await self.cluster.list(resource, scope)).items]

    async def _all(self, source: Any) -> list[JsonObject]:
        return await self._counting(source.resource)

    async def book(self) -> ReferenceValues:
        """The values as a verifier sees them now."""
        sets = (await self.cluster.list(SETS)).items
        images = await self._counting(IMAGES)
        return ReferenceValues.of(sets, self.clock.now(), images)

    async def judge(self, document: JsonObject, tee: str = "tpm") -> TrustVector:
        """A policy's answer, as a verifier asks for it."""
        policies = (await self.cluster.list(POLICIES)).items
        return decided(PolicySet.of(policies).judging(tee, document, await self.book())).vector

    async def condition(self, resource: Any, name: str, kind: str, namespace: str = "") -> Mapping[str, Any]:
        """A condition of an object."""
        reported = condition(await self.cluster.get(resource, name, namespace), kind)
        assert reported is not None, f"{name} has no condition {kind}"
        return reported


@asynccontextmanager
async def world(
    cluster: Cluster,
    attempt: Callable[[Mapping[str, Any]], Awaitable[Trial]] = in_process,
    places: Places = AT_HOME,
) -> AsyncIterator[World]:
    """The loops over an API."""
    async with world_of(World, cluster, attempt, places) as made:
        yield made


@asynccontextmanager
async def world_of(
    kind: type[W],
    cluster: Cluster,
    attempt: Callable[[Mapping[str, Any]], Awaitable[Trial]] = in_process,
    places: Places = AT_HOME,
) -> AsyncIterator[W]:
    """A world with more loops."""
    clock = VirtualClock(datetime.now(UTC))
    async with Informers(cluster, clock=clock, entropy=SeededEntropy(), places=places) as informers:
        yield kind(cluster, informers, clock, attempt)
