"""The vault key of the broker in a Secret of its own, for a cluster whose replicas share no disk (decision 78).

    Secret fastness-system/broker-vault, key ring.json       read and filled by the broker's account alone

What the broker keeps in `fastness-resources` and `fastness-disks` is sealed with it. Whoever reads those namespaces has bytes
that open nothing; whoever reads all Secrets of the cluster, or etcd as it lies on a disk, has both. Encryption at rest of the API
server, or a file of the operator's own (`--vault`, with `--kms` wrapped), is what keeps the key apart.

Brokers follow it: `SharedVault` is read again before a write counts, and when something was sealed with a key that is not known.
`vault_turning` turns it while all of them serve.

A ring is made when the Secret is empty and nothing is sealed yet. An empty Secret beside sealed data means that the key was lost:
a new one would let the broker start well and lose everything with the next write.
"""

from __future__ import annotations

import base64
import binascii
from datetime import datetime
from pathlib import Path
from typing import Final

from fastness.crypto.secret import SecretBytes
from fastness.keys.authorities import SECRETS, first_content, found_secret
from fastness.keys.errors import DamagedKeyFile, MissingVaultKey
from fastness.keys.vault import Vault
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import metadata
from fastness.kube.errors import Unavailable
from fastness.kube.places import DISKS
from fastness.kube.port import Cluster, Scope
from fastness.release.live.resources import SEALED_NAMESPACE
from fastness.runtime.clock import Clock, Entropy

NAME: Final = "broker-vault"
RING: Final = "ring.json"
TRIES: Final = 5


class SecretRing:
    """A ring as a Secret had it; what is saved goes back there by whoever opened it."""

    def __init__(self, content: SecretBytes | None) -> None:
        self.path = Path(f"Secret {NAMESPACE}/{NAME}")  # for messages
        self.content = content
        self.saved = SecretBytes(b"")

    def load(self) -> SecretBytes | None:
        """The ring, None when there is none yet."""
        return self.content

    def save(self, content: SecretBytes) -> None:
        """Keep it until it is written."""
        self.saved = content


async def open_vault_secret(cluster: Cluster, now: datetime, entropy: Entropy) -> Vault:
    """The vault of this cluster; the first broker begins it. Raises MissingVaultKey, DamagedKeyFile, ApiError."""
    for _ in range(TRIES):
        secret = await found_secret(cluster, NAME)
        ring = SecretRing(ring_in(secret or {}))
        if ring.content is not None:
            return Vault.open_file(ring, now, entropy, create=False)
        vault = Vault.open_file(ring, now, entropy, create=not await _is_anything_sealed(cluster))
        data = {RING: base64.b64encode(ring.saved.reveal()).decode()}
        # Another broker may begin one at this moment: whichever is stored first is the key of both.
        if await first_content(cluster, NAME, secret, data):
            return vault
    raise MissingVaultKey(
        f"the Secret {NAMESPACE}/{NAME} is being changed by others", "Look at who else writes to it, and start again."
    )


def vault_in(secret: JsonObject, now: datetime, entropy: Entropy) -> Vault | None:
    """The vault that a Secret holds, None for an empty one; raises DamagedKeyFile."""
    content = ring_in(secret)
    return None if content is None else Vault.open_file(SecretRing(content), now, entropy, create=False)


class SharedVault:
    """The vault as the Secret has it: what one broker turns, all others follow. A `SharedCipher`."""

    def __init__(self, cluster: Cluster, vault: Vault, clock: Clock, entropy: Entropy) -> None:
        self._cluster = cluster
        self._vault = vault
        self._clock = clock
        self._entropy = entropy
        self._version = ""

    @classmethod
    async def begin(cls, cluster: Cluster, clock: Clock, entropy: Entropy) -> SharedVault:
        """The vault of this cluster, begun if nothing is sealed; raises MissingVaultKey, DamagedKeyFile, ApiError."""
        return cls(cluster, await open_vault_secret(cluster, clock.now(), entropy), clock, entropy)

    @property
    def present(self) -> Vault:
        """The keys as they were last read."""
        return self._vault

    def seal(self, plaintext: bytes, context: bytes) -> bytes:
        """An envelope that opens only with the same context."""
        return self._vault.seal(plaintext, context)

    def open(self, sealed: bytes, context: bytes) -> bytes:
        """What was sealed; raises BrokenSeal, UnknownSealKey."""
        return self._vault.open(sealed, context)

    def is_current(self, sealed: bytes) -> bool:
        """Whether an envelope was sealed with the present key."""
        return self._vault.is_current(sealed)

    async def refresh(self) -> None:
        """Read the keys anew; raises ApiError, DamagedKeyFile."""
        await self.read()

    async def read(self) -> JsonObject:
        """The Secret as it is now, with its keys taken up; raises Unavailable where it holds none, ApiError, DamagedKeyFile."""
        secret = await found_secret(self._cluster, NAME)
        vault = vault_in(secret or {}, self._clock.now(), self._entropy)
        if secret is None or vault is None:
            # What is sealed now would not open again when this process ends.
            raise Unavailable(f"the Secret {NAMESPACE}/{NAME} holds no key: see docs/how-to/recover-the-vault-key.md")
        version = str(metadata(secret)["resourceVersion"])
        if version != self._version:
            self._vault, self._version = vault, version
        return secret


async def _is_anything_sealed(cluster: Cluster) -> bool:
    places = [await cluster.list(SECRETS, Scope(namespace), limit=1) for namespace in (SEALED_NAMESPACE, DISKS)]
    return any(page.items for page in places)


def ring_in(secret: JsonObject) -> SecretBytes | None:
    """The ring that a Secret holds, None for an empty one; raises DamagedKeyFile."""
    text = (secret.get("data") or {}).get(RING)
    if text is None:
        return None
    try:
        return SecretBytes(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError):
        # Not `from` the original, which carries what it could not read.
        raise DamagedKeyFile(
            f"the Secret {NAMESPACE}/{NAME} cannot be used: {RING} is not base64", "Restore it from a backup."
        ) from None
