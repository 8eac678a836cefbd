"""Signs what was built here with the key of the cluster, and puts the signature beside the image."""

from __future__ import annotations

from fastness.builds.live import transfers
from fastness.builds.live.transfers import Way
from fastness.builds.signing import signature_of
from fastness.crypto.keys import PrivateKey
from fastness.keys.image_keys import IMAGE_KEYS
from fastness.keys.keyrings import signing_first
from fastness.kube.port import Cluster
from fastness.machineconfig.streams.access import RegistryAccess
from fastness.runtime.clock import Clock, Entropy


class ImageSigner:
    """The key of the cluster for images; read for each image, so that a new one counts at once."""

    def __init__(self, cluster: Cluster, clock: Clock, entropy: Entropy) -> None:
        self._cluster, self._clock, self._entropy = cluster, clock, entropy

    async def sign(self, image: str, access: RegistryAccess) -> None:
        """Put a signature beside an image by digest; raises TransferFailed, TrustError, ApiError."""
        now = self._clock.now()
        ring = await IMAGE_KEYS.renew(self._cluster, self._entropy, now)
        key = PrivateKey.from_pem(signing_first(ring, now)[0].material)
        await transfers.put_beside(Way.to_write(access, image), signature_of(image, key.sign_der))
