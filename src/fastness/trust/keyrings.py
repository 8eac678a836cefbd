"""Keys that live in a Secret of the cluster and change by themselves: made by whoever comes first, shared by all replicas.

    data.keys   JSON {"version": 1, "keys": [{"created", "key"}]}, the newest first

* A new key is made when the newest is older than its lifetime; the one before stays, so two are live, and older ones go.
* A new key is published for a while before it signs: replicas that have not read it yet would refuse what it made. Until then
  the one before signs.
* Every change is written with the version that was read: of two who change a Secret at once, one wins and both read the result.

`KeySecret` says which Secret and what keys; `LiveKeys` follows it for one process and gives whatever is built from the keys.
`mackeys`, `tokens` and `admins` are such rings.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Generic, TypeVar

from fastness.cluster.clock import Clock, Entropy
from fastness.cluster.errors import AlreadyExists, Conflict, NotFound
from fastness.cluster.informers import Informer
from fastness.cluster.port import Cluster, PatchType, WriteOptions
from fastness.crypto.secret import SecretBytes
from fastness.formats import json
from fastness.formats.errors import FormatError
from fastness.model.kind import JsonObject
from fastness.model.objects import metadata, rfc3339
from fastness.trust.authorities import NAMESPACE, SECRETS
from fastness.trust.errors import DamagedKeys

VERSION: Final = 1
LIVE: Final = 2
TRIES: Final = 50
PAUSE_SECONDS: Final = 0.05  # a write that another one made is told of before it can be read
PUBLISHED_FOR: Final = timedelta(minutes=2)
_AS: Final = WriteOptions(manager="doors")

Built = TypeVar("Built")


@dataclass(frozen=True, slots=True)
class RingKey:
    """One key and when it was made."""

    created: datetime
    material: SecretBytes


Ring = tuple[RingKey, ...]


def _nothing(_ring: Sequence[RingKey]) -> Mapping[str, bytes]:
    return {}


@dataclass(frozen=True, slots=True)
class KeySecret:
    """Which Secret holds a ring, how its keys are made and how long each signs; `public` is what else the Secret tells."""

    name: str
    lifetime: timedelta
    make: Callable[[Entropy], SecretBytes]
    public: Callable[[Sequence[RingKey]], Mapping[str, bytes]] = _nothing

    async def open(self, cluster: Cluster, entropy: Entropy, now: datetime) -> Ring:
        """The ring out of the cluster, made if there is none; raises DamagedKeys, ApiError."""
        for _ in range(TRIES):
            try:
                return self.read(await cluster.get(SECRETS, self.name, NAMESPACE))
            except NotFound:
                made: Ring = (RingKey(now.replace(microsecond=0), self.make(entropy)),)
            try:
                await cluster.create(SECRETS, self._secret(made), _AS)
            except AlreadyExists:
                await asyncio.sleep(PAUSE_SECONDS)
                continue
            return made
        raise _contended(self.name)

    async def renew(self, cluster: Cluster, entropy: Entropy, now: datetime) -> Ring:
        """Begin a new key if one is due; raises DamagedKeys, ApiError."""
        for _ in range(TRIES):
            try:
                secret = await cluster.get(SECRETS, self.name, NAMESPACE)
            except NotFound:
                return await self.open(cluster, entropy, now)
            ring = self.read(secret)
            if now - ring[0].created < self.lifetime:
                return ring
            after = (RingKey(now.replace(microsecond=0), self.make(entropy)), *ring)[:LIVE]
            patch = {"metadata": {"resourceVersion": metadata(secret)["resourceVersion"]}, "data": self._data(after)}
            try:
                await cluster.patch(SECRETS, self.name, patch, PatchType.MERGE, NAMESPACE, _AS)
            except Conflict:
                await asyncio.sleep(PAUSE_SECONDS)
                continue
            return after
        raise _contended(self.name)

    def read(self, secret: JsonObject) -> Ring:
        """The ring in a Secret, the newest key first; raises DamagedKeys."""
        try:
            document = json.decode(base64.b64decode(secret["data"]["keys"], validate=True))
            if document["version"] != VERSION:
                raise ValueError("version")
            found = [
                RingKey(
                    datetime.fromisoformat(entry["created"]), SecretBytes(base64.b64decode(entry["key"], validate=True))
                )
                for entry in document["keys"]
            ]
            ring = tuple(sorted(found, key=lambda key: key.created, reverse=True))
            if not ring:
                raise ValueError("empty")
        except (KeyError, TypeError, ValueError, binascii.Error, FormatError):
            # Not `from` the original: it may carry the document, which holds keys.
            raise DamagedKeys(
                f"the Secret {NAMESPACE}/{self.name} does not hold keys",
                "Delete it: new keys are made, and whoever holds something that the old ones made must ask again.",
            ) from None
        return ring

    def _secret(self, ring: Ring) -> JsonObject:
        meta = {"name": self.name, "namespace": NAMESPACE}
        return {"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": meta, "data": self._data(ring)}

    def _data(self, ring: Ring) -> dict[str, str]:
        keys = [
            {"created": rfc3339(key.created), "key": base64.b64encode(key.material.reveal()).decode()} for key in ring
        ]
        parts = {"keys": json.encode({"version": VERSION, "keys": keys}), **self.public(ring)}
        return {name: base64.b64encode(value).decode() for name, value in parts.items()}


def _contended(name: str) -> Conflict:
    return Conflict(f"the Secret {NAMESPACE}/{name} changes all the time")


def signing_first(ring: Ring, now: datetime) -> Ring:
    """The ring with the key first that signs now: the newest that has been published long enough."""
    if len(ring) > 1 and now - ring[0].created < PUBLISHED_FOR:
        return (ring[1], ring[0], *ring[2:])
    return ring


class LiveKeys(Generic[Built]):
    """What is built from a ring, as this process sees the ring now; a damaged Secret changes nothing."""

    def __init__(
        self, kind: KeySecret, ring: Ring, informer: Informer, clock: Clock, build: Callable[[Ring], Built]
    ) -> None:
        self.kind = kind
        self._ring = ring
        self._seen: JsonObject | None = None
        self._informer = informer
        self._clock = clock
        self._build = build
        self._order = signing_first(ring, clock.now())
        self._built = build(self._order)

    @classmethod
    async def open(
        cls,
        kind: KeySecret,
        cluster: Cluster,
        informer: Informer,
        clock: Clock,
        entropy: Entropy,
        build: Callable[[Ring], Built],
    ) -> LiveKeys[Built]:
        """Make the ring if there is none and follow it; `informer` is one of Secrets in our namespace."""
        ring = await kind.open(cluster, entropy, clock.now())
        await informer.synced()
        return cls(kind, ring, informer, clock, build)

    @property
    def current(self) -> Built:
        """What the ring gives now."""
        secret = self._informer.get(NAMESPACE, self.kind.name)
        if secret is not None and secret is not self._seen:
            self._seen = secret
            try:
                self._ring = self.kind.read(secret)
            except DamagedKeys:
                return self._built
        order = signing_first(self._ring, self._clock.now()) if len(self._ring) > 1 else self._ring
        if order is not self._order:
            # Keys compare in constant time, which costs: only what was read anew is compared.
            if order != self._order:
                self._built = self._build(order)
            self._order = order
        return self._built

    async def renew(self, cluster: Cluster, entropy: Entropy) -> None:
        """Begin a new key if one is due; raises DamagedKeys, ApiError."""
        await self.kind.renew(cluster, entropy, self._clock.now())
