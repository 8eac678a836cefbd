"""Keys that live in a Secret of the cluster and change by themselves: made by whoever comes first, shared by all replicas.

    data.keys   JSON {"version": 1, "keys": [{"created", "key"}]}, the newest first

* A new key is made when the newest is older than its lifetime; the one before stays, so two are live, and older ones go.
* A new key is published for a while before it signs: replicas that have not read it yet would refuse what it made. Until then
  the one before signs.
* Every change is written with the version that was read: of two who change a Secret at once, one wins and both read the result.

* Who only verifies never reads that Secret: the public halves are published in a ConfigMap that only the Secret's owner writes.

`KeySecret` says which Secret and what keys; `LiveKeys` follows it for one process and gives whatever is built from the keys;
`PublishedKeys` follows the ConfigMap. `mac_keys`, and in `release/live` `tokens` and `admins`, are such rings. A door renews the
keys that it holds itself (`keep_renewed`).
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Generic, TypeVar

from fastness.crypto.errors import BadKey
from fastness.crypto.secret import SecretBytes
from fastness.formats import json
from fastness.formats.errors import FormatError
from fastness.keys.authorities import SECRETS, first_content, found_secret, named
from fastness.keys.errors import DamagedKeys, TrustError
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.kind import JsonObject
from fastness.kinds.kubernetes.core import CONFIG_MAP
from fastness.kinds.objects import metadata, rfc3339
from fastness.kube.errors import AlreadyExists, ApiError, Conflict, NotFound
from fastness.kube.informers import Informer, Informers
from fastness.kube.port import Cluster, PatchType, WriteOptions
from fastness.observe import logs
from fastness.runtime.clock import Clock, Entropy

VERSION: Final = 1
LIVE: Final = 2
TRIES: Final = 50
PAUSE_SECONDS: Final = 0.05  # a write that another one made is told of before it can be read
# Longer than a cache may be out of touch (90 seconds): by then a replica has read the key or releases nothing.
PUBLISHED_FOR: Final = timedelta(minutes=2)
RENEW_SECONDS: Final = 300.0
# Shorter than `PUBLISHED_FOR`: one failure leaves others time to learn of a new key.
AGAIN_SECONDS: Final = 20.0
JWKS: Final = "jwks.json"
_AS: Final = WriteOptions(manager="doors")
_log = logs.logger("keys")

Built = TypeVar("Built")


@dataclass(frozen=True, slots=True)
class RingKey:
    """One key and when it was made."""

    created: datetime
    material: SecretBytes


Ring = tuple[RingKey, ...]


@dataclass(frozen=True, slots=True)
class Publication:
    """A ConfigMap with the public halves of a ring, as a JWKS document."""

    name: str
    jwks: Callable[[Sequence[RingKey]], JsonObject]

    def data(self, ring: Sequence[RingKey]) -> dict[str, str]:
        """The content of the ConfigMap."""
        return {JWKS: json.encode(self.jwks(ring)).decode()}

    async def publish(self, cluster: Cluster, ring: Sequence[RingKey]) -> None:
        """Make sure that the public halves are there; raises ApiError."""
        data = self.data(ring)
        try:
            published = await cluster.get(CONFIG_MAP.resource, self.name, NAMESPACE)
        except NotFound:
            meta = {"name": self.name, "namespace": NAMESPACE}
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}
            with suppress(AlreadyExists):  # by another replica, which publishes the same
                await cluster.create(CONFIG_MAP.resource, body, _AS)
            return
        if published.get("data") != data:
            await cluster.patch(CONFIG_MAP.resource, self.name, {"data": data}, PatchType.MERGE, NAMESPACE, _AS)


@dataclass(frozen=True, slots=True)
class KeySecret:
    """Which Secret holds a ring, how its keys are made, how long each signs, and where the public halves are told."""

    name: str
    lifetime: timedelta
    make: Callable[[Entropy], SecretBytes]
    publication: Publication | None = None

    async def open(self, cluster: Cluster, entropy: Entropy, now: datetime) -> Ring:
        """The ring out of the cluster, made if there is none, and published; raises DamagedKeys, ApiError."""
        for _ in range(TRIES):
            secret = await found_secret(cluster, self.name)
            if secret is not None and secret.get("data"):
                return await self._published(cluster, self.read(secret))
            made: Ring = (RingKey(now.replace(microsecond=0), self.make(entropy)),)
            # Of two replicas that start together one writes; the other throws its key away and reads the winner's.
            if await first_content(cluster, self.name, secret, self._data(made)):
                return await self._published(cluster, made)
            await asyncio.sleep(PAUSE_SECONDS)
        raise _contended(self.name)

    async def renew(self, cluster: Cluster, entropy: Entropy, now: datetime) -> Ring:
        """Begin a new key if one is due; raises DamagedKeys, ApiError."""
        return await self._changed(cluster, entropy, now, at_once=False, keep=True)

    async def begin(self, cluster: Cluster, entropy: Entropy, now: datetime, *, keep: bool) -> Ring:
        """Begin a new key now, and forget those before unless they are to be kept; raises DamagedKeys, ApiError."""
        return await self._changed(cluster, entropy, now, at_once=True, keep=keep)

    async def _changed(self, cluster: Cluster, entropy: Entropy, now: datetime, *, at_once: bool, keep: bool) -> Ring:
        for _ in range(TRIES):
            secret = await found_secret(cluster, self.name)
            if secret is None or not secret.get("data"):
                return await self.open(cluster, entropy, now)
            ring = self.read(secret)
            if not at_once and now - ring[0].created < self.lifetime:
                return await self._published(cluster, ring)
            # The one before stays for a lifetime: what it signed last must be readable until it ends by itself.
            after = (RingKey(now.replace(microsecond=0), self.make(entropy)), *(ring if keep else ()))[:LIVE]
            patch = {"metadata": {"resourceVersion": metadata(secret)["resourceVersion"]}, "data": self._data(after)}
            try:
                await cluster.patch(SECRETS, self.name, patch, PatchType.MERGE, NAMESPACE, _AS)
            except Conflict:
                await asyncio.sleep(PAUSE_SECONDS)
                continue
            return await self._published(cluster, after)
        raise _contended(self.name)

    def read(self, secret: JsonObject) -> Ring:
        """The ring in a Secret, the newest key first; raises DamagedKeys."""
        try:
            document = json.decode(base64.b64decode(secret["data"]["keys"], validate=True))
            if document["version"] != VERSION:
                raise ValueError("version")
            keys = [
                RingKey(
                    datetime.fromisoformat(entry["created"]), SecretBytes(base64.b64decode(entry["key"], validate=True))
                )
                for entry in document["keys"]
            ]
            # By date and not by place: a Secret that somebody edited must not make an old key sign again.
            ring = tuple(sorted(keys, key=lambda key: key.created, reverse=True))
            if not ring:
                raise ValueError("empty")
        except (KeyError, TypeError, ValueError, binascii.Error, FormatError):
            # Not `from` the original: it may carry the document, which holds keys.
            raise DamagedKeys(
                f"the Secret {NAMESPACE}/{self.name} does not hold keys",
                "Delete it: new keys are made, and whoever holds something that the old ones made must ask again.",
            ) from None
        return ring

    async def _published(self, cluster: Cluster, ring: Ring) -> Ring:
        if self.publication is not None:
            await self.publication.publish(cluster, ring)
        return ring

    def _data(self, ring: Ring) -> dict[str, str]:
        keys = [
            {"created": rfc3339(key.created), "key": base64.b64encode(key.material.reveal()).decode()} for key in ring
        ]
        return {"keys": base64.b64encode(json.encode({"version": VERSION, "keys": keys})).decode()}


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
        informers: Informers,
        clock: Clock,
        entropy: Entropy,
        build: Callable[[Ring], Built],
    ) -> LiveKeys[Built]:
        """Make the ring if there is none and follow it."""
        ring = await kind.open(cluster, entropy, clock.now())
        informer = informers.of(SECRETS, named(kind.name))
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
            # Somebody damaged the Secret: the keys from before go on, because a door without keys would lock every machine out.
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


class PublishedKeys(Generic[Built]):
    """What is built from published public halves, as this process sees them now; None while nobody published any.

    A document that cannot be read changes nothing: whoever owns the keys writes it again.
    """

    def __init__(self, publication: Publication, informer: Informer, build: Callable[[Any], Built]) -> None:
        self._name = publication.name
        self._informer = informer
        self._build = build
        self._seen: JsonObject | None = None
        self._built: Built | None = None

    @classmethod
    async def open(
        cls, publication: Publication, informers: Informers, build: Callable[[Any], Built]
    ) -> PublishedKeys[Built]:
        """Follow the ConfigMap; `build` makes something of the JWKS document, or raises BadKey."""
        informer = informers.of(CONFIG_MAP.resource, named(publication.name))
        await informer.synced()
        return cls(publication, informer, build)

    @property
    def current(self) -> Built | None:
        """What is published now."""
        config_map = self._informer.get(NAMESPACE, self._name)
        if config_map is not None and config_map is not self._seen:
            self._seen = config_map
            try:
                self._built = self._build(json.decode(str((config_map.get("data") or {}).get(JWKS, "")).encode()))
            except (BadKey, FormatError) as error:
                _log.error("keys.unreadable", configmap=self._name, error=error)
        return self._built


async def keep_renewed(door: str, clock: Clock, *renewals: Callable[[], Awaitable[None]]) -> None:
    """Begin the keys that a door holds anew when they are due, until cancelled; what fails is tried again soon."""
    pause = RENEW_SECONDS
    while True:
        await clock.sleep(pause)
        pause = RENEW_SECONDS
        for renew in renewals:
            try:
                await renew()
            except (ApiError, TrustError) as error:
                pause = AGAIN_SECONDS
                _log.warning("keys.not-renewed", door=door, error=error, hint=error.hint)
