"""The keys with which doors sign their batches of the record, and who is a door. Statuses of Machines are signed with them, too.

    Secret     <role>-record-key      the private half: the door's own account reads it and no other
    ConfigMap  <role>-record-key      the public half: only that door's account writes it
    ConfigMap  record-doors           what the controllers registered: only their account writes it, and the sequencer believes it

A key signs for 30 days, and the one before stays registered. All replicas of a role share one; each life of a process has a name
of its own, which begins with its role.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Final, Literal, get_args

from fastness.crypto.eddsa import SEED_BYTES, Ed25519Signer, Ed25519Verifier
from fastness.crypto.errors import BadKey
from fastness.crypto.secret import SecretBytes
from fastness.formats import json
from fastness.formats.errors import JsonError
from fastness.keys.keyrings import JWKS, KeySecret, Publication, RingKey, signing_first
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.kind import JsonObject
from fastness.kinds.kubernetes.core import CONFIG_MAP
from fastness.kube.errors import AlreadyExists, NotFound
from fastness.kube.port import Cluster, PatchType, WriteOptions
from fastness.record.signing import Registered
from fastness.runtime.clock import Clock, Entropy

RecordRole = Literal["gate", "broker", "enrolment", "configserver", "controllers", "api", "webhook"]
RECORD_ROLES: Final[tuple[RecordRole, ...]] = get_args(RecordRole)
REGISTRY: Final = "record-doors"
LIFETIME: Final = timedelta(days=30)
LOOK: Final = timedelta(hours=1)
_AS: Final = WriteOptions(manager="sequencer")


def _made(entropy: Entropy) -> SecretBytes:
    return SecretBytes(entropy.token(SEED_BYTES))


def _jwks(ring: Sequence[RingKey]) -> JsonObject:
    return {"keys": [Ed25519Signer(key.material).verifier.jwk() for key in ring]}


DOOR_KEYS: Final[Mapping[RecordRole, KeySecret]] = {
    role: KeySecret(f"{role}-record-key", LIFETIME, _made, Publication(f"{role}-record-key", _jwks))
    for role in RECORD_ROLES
}


class DoorSigner:
    """The key of a role, made and published when it is first needed, and looked at again every hour."""

    def __init__(self, role: RecordRole, cluster: Cluster, clock: Clock, entropy: Entropy) -> None:
        self._kind = DOOR_KEYS[role]
        self._cluster = cluster
        self._clock = clock
        self._entropy = entropy
        self._looked: datetime | None = None
        self._ring: tuple[RingKey, ...] = ()
        self._signer: tuple[RingKey, Ed25519Signer] | None = None

    async def current(self) -> Ed25519Signer:
        """The key that signs now; raises DamagedKeys, ApiError."""
        now = self._clock.now()
        # Also when the clock went back: otherwise a key would not be looked at again until it has caught up.
        if self._looked is None or not timedelta() <= now - self._looked < LOOK:
            self._ring = await self._kind.renew(self._cluster, self._entropy, now)
            self._looked = now
        key = signing_first(self._ring, now)[0]
        if self._signer is None or self._signer[0] is not key:
            self._signer = key, Ed25519Signer(key.material)
        return self._signer[1]


async def published_keys(cluster: Cluster, role: str) -> Mapping[str, Ed25519Verifier]:
    """The keys that a role has published as its own, the newest first; raises ApiError."""
    try:
        published = await cluster.get(CONFIG_MAP.resource, f"{role}-record-key", NAMESPACE)
    except NotFound:
        return {}
    return _keys(str((published.get("data") or {}).get(JWKS, "")))


async def registered_doors(cluster: Cluster) -> Registered:
    """The keys that are registered; a role whose entry cannot be read has none. Raises ApiError."""
    try:
        registry = await cluster.get(CONFIG_MAP.resource, REGISTRY, NAMESPACE)
    except NotFound:
        return {}
    return {str(role): _keys(str(text)) for role, text in (registry.get("data") or {}).items()}


async def register_doors(cluster: Cluster) -> Registered:
    """Register what each role has published as its own, and nothing else; raises ApiError."""
    data: dict[str, str] = {}
    for role in RECORD_ROLES:
        # From the ConfigMap that only the account of that role may write: the name of the object says whose key it is.
        keys = await published_keys(cluster, role)
        if keys:
            data[role] = json.encode({"keys": [key.jwk() for key in keys.values()]}).decode()
    try:
        registry = await cluster.get(CONFIG_MAP.resource, REGISTRY, NAMESPACE)
        # Added to what is registered, role by role: a role that publishes nothing at the moment keeps its keys, or its batches
        # would fail.
        if {**(registry.get("data") or {}), **data} != registry.get("data"):
            await cluster.patch(CONFIG_MAP.resource, REGISTRY, {"data": data}, PatchType.MERGE, NAMESPACE, _AS)
    except NotFound:
        meta = {"name": REGISTRY, "namespace": NAMESPACE}
        with suppress(AlreadyExists):
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}
            await cluster.create(CONFIG_MAP.resource, body, _AS)
    return {role: _keys(text) for role, text in data.items()}


def _keys(text: str) -> dict[str, Ed25519Verifier]:
    try:
        document = json.decode(text.encode())
        keys = [Ed25519Verifier.from_jwk(key) for key in document["keys"]]
    except (JsonError, BadKey, KeyError, TypeError, AttributeError):
        return {}
    return {key.id: key for key in keys}
