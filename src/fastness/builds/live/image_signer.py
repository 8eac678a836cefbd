"""Signs what was built here with the key of the cluster; whoever built it puts the signature beside the image."""

from __future__ import annotations

from fastness.builds.signing import Beside, signature_of
from fastness.crypto.keys import PrivateKey
from fastness.keys.image_keys import IMAGE_KEYS
from fastness.keys.keyrings import signing_first
from fastness.kube.port import Cluster
from fastness.runtime.clock import Clock, Entropy


class ImageSigner:
    """The key of the cluster for images; read for each image, so that a new one counts at once."""

    def __init__(self, cluster: Cluster, clock: Clock, entropy: Entropy) -> None:
        self._cluster, self._clock, self._entropy = cluster, clock, entropy

    async def sign(self, image: str) -> Beside:
        """The signature of an image by digest, which belongs beside it; raises TrustError, ApiError."""
        now = self._clock.now()
        ring = await IMAGE_KEYS.renew(self._cluster, self._entropy, now)
        key = PrivateKey.from_pem(signing_first(ring, now)[0].material)
        return signature_of(image, key.sign_der)
