"""The key that signs served configurations. Its public half is in the image, so it changes with images and not by itself."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from fastness.cluster.clock import Clock, Entropy
from fastness.cluster.informers import Informer
from fastness.cluster.port import Cluster
from fastness.crypto.eddsa import SEED_BYTES, Ed25519Signer
from fastness.crypto.secret import SecretBytes
from fastness.domain.attestation.configproof import Served, signed
from fastness.formats import json
from fastness.model.kind import JsonObject
from fastness.trust.keyrings import KeySecret, LiveKeys, Ring

LIFETIME: Final = timedelta(days=3650)
SIGNATURE_LIFETIME: Final = timedelta(minutes=5)


def _made(entropy: Entropy) -> SecretBytes:
    return SecretBytes(entropy.token(SEED_BYTES))


def _signers(ring: Ring) -> tuple[Ed25519Signer, ...]:
    return tuple(Ed25519Signer(key.material) for key in ring)


CONFIG_KEYS: Final = KeySecret(
    "config-signing-keys",
    LIFETIME,
    _made,
    lambda ring: {"jwks.json": json.encode({"keys": [one.verifier.jwk() for one in _signers(tuple(ring))]})},
)


class ConfigSigner:
    """Signs configurations with the key of now."""

    def __init__(self, keys: LiveKeys[tuple[Ed25519Signer, ...]]) -> None:
        self._keys = keys

    @classmethod
    async def open(cls, cluster: Cluster, secrets: Informer, clock: Clock, entropy: Entropy) -> ConfigSigner:
        """The signer of this cluster, its key made if there is none; raises DamagedKeys, ApiError."""
        return cls(await LiveKeys.open(CONFIG_KEYS, cluster, secrets, clock, entropy, _signers))

    def sign(self, served: Served, now: datetime) -> str:
        """The signature of an answer."""
        return signed(served, self._keys.current[0], now + SIGNATURE_LIFETIME)

    def jwks(self) -> list[JsonObject]:
        """The public halves, for the image's trust.json."""
        return [dict(one.verifier.jwk()) for one in self._keys.current]
