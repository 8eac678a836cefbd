"""The key that signs served configurations: the config server's alone, which puts them together and signs them.

Its public half is in the image, so it changes with images and not by itself. Gate and broker pass on what was signed.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from fastness.crypto.eddsa import SEED_BYTES, Ed25519Signer
from fastness.crypto.secret import SecretBytes
from fastness.keys.keyrings import KeySecret, LiveKeys, Publication, Ring, RingKey
from fastness.kinds.kind import JsonObject
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster
from fastness.protocol.config_proof import Served, ServedToNode, Statement, signed
from fastness.runtime.clock import Clock, Entropy

LIFETIME: Final = timedelta(days=3650)
SIGNATURE_LIFETIME: Final = timedelta(minutes=5)


def _made(entropy: Entropy) -> SecretBytes:
    return SecretBytes(entropy.token(SEED_BYTES))


def _signers(ring: Ring) -> tuple[Ed25519Signer, ...]:
    return tuple(Ed25519Signer(key.material) for key in ring)


def _jwks(ring: Sequence[RingKey]) -> JsonObject:
    return {"keys": [signer.verifier.jwk() for signer in _signers(tuple(ring))]}


CONFIG_JWKS: Final = Publication("config-public-keys", _jwks)
CONFIG_KEYS: Final = KeySecret("config-signing-keys", LIFETIME, _made, CONFIG_JWKS)


class ConfigSigner:
    """Signs configurations with the key of now."""

    def __init__(self, keys: LiveKeys[tuple[Ed25519Signer, ...]]) -> None:
        self._keys = keys

    @classmethod
    async def open(cls, cluster: Cluster, informers: Informers, clock: Clock, entropy: Entropy) -> ConfigSigner:
        """The signer of this cluster, its key made if there is none; raises DamagedKeys, ApiError."""
        return cls(await LiveKeys.open(CONFIG_KEYS, cluster, informers, clock, entropy, _signers))

    def sign(self, served: Served | ServedToNode, now: datetime) -> str:
        """The signature of an answer."""
        return self.sign_until(served, now + SIGNATURE_LIFETIME)

    def sign_until(self, statement: Statement, until: datetime) -> str:
        """The signature of a statement that counts until then."""
        return signed(statement, self._keys.current[0], until)

    def jwks(self) -> list[JsonObject]:
        """The public halves, for the image's trust.json."""
        return [dict(one.verifier.jwk()) for one in self._keys.current]
