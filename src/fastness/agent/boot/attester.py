"""Whoever can speak for the hardware of a machine.

`agent.host.tee` implements it over a real TPM and over the kernel's report interface, the simulator with software TEEs. Enrolment
and the handshake with the broker know nothing else of a machine.

* The identity is one key: the attestation key of a TPM, or a guest key that the machine keeps in sealed state (P-256).
* `sign` belongs to guest keys. A restricted key of a TPM signs nothing that it did not make itself; there `activate` proves that
  the key lives beside the endorsement key.
* All calls may take long (a TPM needs a second for a key) and raise DriverError.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from fastness.crypto.secret import SecretBytes
from fastness.kinds.kind import JsonObject
from fastness.protocol.disk_report import DiskReport
from fastness.protocol.guest_key import SignedByBoot


class Attester(Protocol):
    """One machine's TEE and its identity."""

    @property
    def tee(self) -> str:
        """The kind of evidence, as messages name it: tpm, snp, tdx."""

    async def identity_public(self) -> bytes:
        """The public half of the identity: TPM2B_PUBLIC for a TPM, otherwise DER of SubjectPublicKeyInfo."""

    async def ek_certificates(self) -> list[bytes]:
        """The certificate of the endorsement key and those above it, DER, leaf first; empty without a TPM."""

    async def ek_public(self) -> bytes:
        """TPM2B_PUBLIC of the endorsement key, for a TPM that has no certificate; empty without a TPM."""

    async def activate(self, credential: bytes, secret: bytes) -> SecretBytes:
        """What was sealed to the endorsement key and the name of the identity; TPMs only."""

    async def sign(self, message: bytes) -> bytes:
        """ECDSA P-256 with SHA-256 over the message by the guest key, as r‖s; never called for a TPM."""

    async def sign_as_boot(self, message: bytes) -> SignedByBoot | None:
        """The same by a key that was made once in this boot; None where the evidence itself tells boots apart."""

    async def measure(self, event: bytes) -> None:
        """Extend a register that no value of an image is compared with, where there is one, and keep the event for the log."""

    async def leave_initrd(self) -> bool:
        """Say in a register that the initial file system is over; whether there is one. Raises DriverError if it did not move."""

    async def opened(self, disks: Sequence[DiskReport]) -> None:
        """Keep what this boot says of the volumes that it opened, until the next boot; none forgets them."""

    async def disks(self) -> Sequence[DiskReport]:
        """What was kept; it goes with every evidence but that of an unlock session."""

    async def started_with(self, init_data: str) -> None:
        """Keep the init-data document that user-data was taken from, until the next boot; an empty one: it was not."""

    async def init_data(self) -> str:
        """The document that was kept; it goes with every evidence, and the processor signed its digest. Empty for none."""

    async def evidence(self, report_data: bytes) -> JsonObject:
        """Fresh evidence that is bound to these bytes, as `primary_evidence` carries it."""
