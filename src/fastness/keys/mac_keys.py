"""The MAC keys of the doors: challenge cookies, sessions, the state between two messages, and the nonces of proofs.

Each role has a Secret of its own, so that any replica reads what another one wrote, and a door that was taken over writes nothing
that another kind of door would believe. A key signs for a day and verifies for one more, which is longer than anything that it
signs lives.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Final, Literal, get_args

from fastness.crypto.mac import KEY_BYTES, MacKey, MacRing
from fastness.crypto.secret import SecretBytes
from fastness.keys.keyrings import KeySecret, LiveKeys, Ring
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster
from fastness.runtime.clock import Clock, Entropy

LIFETIME: Final = timedelta(hours=24)


def _made(entropy: Entropy) -> SecretBytes:
    return SecretBytes(entropy.token(KEY_BYTES))


def _ring(ring: Ring) -> MacRing:
    return MacRing([MacKey(key.material) for key in ring])


MacRole = Literal["gate", "broker", "enrolment"]
MAC_KEYS: Final[Mapping[MacRole, KeySecret]] = {
    role: KeySecret(f"{role}-mac-keys", LIFETIME, _made) for role in get_args(MacRole)
}


class MacKeys:
    """Writes and reads texts of ours with the keys of now."""

    def __init__(self, keys: LiveKeys[MacRing]) -> None:
        self._keys = keys

    @classmethod
    async def open(
        cls, role: MacRole, cluster: Cluster, informers: Informers, clock: Clock, entropy: Entropy
    ) -> MacKeys:
        """The keys of a role, made if there are none; raises DamagedKeys, ApiError."""
        return cls(await LiveKeys.open(MAC_KEYS[role], cluster, informers, clock, entropy, _ring))

    def write(self, purpose: str, payload: bytes) -> str:
        """A text of ours."""
        return self._keys.current.write(purpose, payload)

    def read(self, purpose: str, text: str) -> bytes | None:
        """Its payload, or None when no door of this role wrote it for that purpose lately."""
        return self._keys.current.read(purpose, text)

    async def renew(self, cluster: Cluster, entropy: Entropy) -> None:
        """Begin a new key if one is due; raises DamagedKeys, ApiError."""
        await self._keys.renew(cluster, entropy)
