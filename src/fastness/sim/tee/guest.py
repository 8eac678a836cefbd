"""What every confidential guest has, whoever made its processor: the image that it booted, and a key of its own.

The key comes from the chip's seed and the guest's number, so a guest keeps it over boots, and no two guests of a chip share one.
"""

from __future__ import annotations

import hashlib
from functools import cached_property

from fastness.sim.tee.images import BootImage
from fastness.sim.tee.writers.keys import EcKey, Seed


class Guest:
    """A guest with an image, a number on its chip, and an identity."""

    def __init__(self, seed: Seed, image: BootImage, guest: int) -> None:
        self._seed = seed
        self.image = image
        self.guest = guest

    @cached_property
    def identity_key(self) -> EcKey:
        """The guest's key."""
        return EcKey(self._seed.branch("guest", self.guest))

    @property
    def thumbprint(self) -> str:
        """`sha256:…` of the guest's key."""
        return f"sha256:{hashlib.sha256(self.identity_key.public_der()).hexdigest()}"

    def measure(self, event: bytes) -> None:
        """Nothing: such a guest has no register that it could extend after its launch."""
