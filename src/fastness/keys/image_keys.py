"""The key that a cluster signs the images with that it built: in a Secret, its public half in a ConfigMap as cosign reads it.

    kubectl -n fastness-system get configmap image-public-keys -o jsonpath='{.data.cosign\\.pub}'

It says that this cluster built an image, to whoever pulls it elsewhere or asks for it in `images.signers`. It says nothing about
whether machines may boot it: that is an approval. Ten years, since whoever asks for a signature has written the key down.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from fastness.crypto.keys import PrivateKey
from fastness.crypto.secret import SecretBytes
from fastness.keys.keyrings import KeySecret, Publication, RingKey
from fastness.kinds.kind import JsonObject
from fastness.runtime.clock import Entropy

LIFETIME: Final = timedelta(days=3650)
NEWEST, BEFORE = "cosign.pub", "before.pub"


def _made(entropy: Entropy) -> SecretBytes:
    return PrivateKey.generate(entropy).to_pem()


def _no_jwks(_: Sequence[RingKey]) -> JsonObject:
    return {}


@dataclass(frozen=True, slots=True)
class PemPublication(Publication):
    """Public halves as PEM: the newest, and the one before while it counts."""

    def data(self, ring: Sequence[RingKey]) -> dict[str, str]:
        """The content of the ConfigMap."""
        keys = (PrivateKey.from_pem(key.material).public_pem() for key in ring)
        return dict(zip((NEWEST, BEFORE), keys, strict=False))


IMAGE_KEYS: Final = KeySecret("image-signing-keys", LIFETIME, _made, PemPublication("image-public-keys", _no_jwks))
