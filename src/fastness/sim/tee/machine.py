"""What every chip and every booted machine can do, whatever their TEE.

A chip is silicon: it keeps its keys over boots. A machine is one boot of one image on it. The agent's attester, the storm of a
thousand machines and the tests are written against these two; the modules of the TEEs implement them.

A confidential guest, whoever made its processor, has the image that it booted and a key of its own. The key comes from the chip's
seed and the guest's number, so a guest keeps it over boots, and no two guests of a chip share one.
"""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import Any, Protocol

from fastness.sim.tee.images import BootImage
from fastness.sim.tee.writers.keys import EcKey, Seed


class IdentityKey(Protocol):
    """The key that a machine is enrolled by."""

    def public_der(self) -> bytes:
        """The public half as SubjectPublicKeyInfo."""


class BootedMachine(Protocol):
    """A machine that has booted and can prove it."""

    @property
    def tee(self) -> str:
        """The kind of evidence: tpm, snp, tdx."""

    @property
    def image(self) -> BootImage:
        """What was booted."""

    @property
    def identity_key(self) -> IdentityKey:
        """The key that stays with the machine over boots: the AK of a TPM, a guest key otherwise."""

    @property
    def thumbprint(self) -> str:
        """`sha256:…` of the identity key, as enrolment writes it."""

    @property
    def event_log(self) -> bytes:
        """The log of measured boot; empty where the TEE has none."""

    def measure(self, event: bytes) -> None:
        """Extend the register that belongs to what runs after the boot, where the TEE has one."""

    def quote(self, report_data: bytes) -> dict[str, Any]:
        """Evidence over these bytes, as the key broker takes it in `primary_evidence`."""


class Chip(Protocol):
    """Silicon of the simulated vendor."""

    @property
    def tee(self) -> str:
        """The kind of evidence that it gives."""

    def boot(self, image: BootImage | None = None) -> BootedMachine:
        """A machine that booted the image; the default image when none is given."""


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
