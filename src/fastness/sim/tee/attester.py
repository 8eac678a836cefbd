"""A simulated machine behind the port that agents know: enrolment and the handshake cannot tell it from a real one.

    attester = SimAttester(vendor.chip("tpm").boot(image))
    await attester.evidence(binding)

Nothing here waits; the methods are coroutines because a real TPM takes its time.
"""

from __future__ import annotations

from collections.abc import Sequence

from fastness.agent.host.errors import TpmFailure
from fastness.crypto.errors import CryptoError
from fastness.crypto.secret import SecretBytes
from fastness.crypto.silicon.registers import hashed
from fastness.kinds.kind import JsonObject
from fastness.protocol.disk_report import DiskReport
from fastness.protocol.guest_key import SignedByBoot
from fastness.protocol.user_data_event import LEAVE_INITRD, PHASE_PCR
from fastness.sim.tee.machine import BootedMachine
from fastness.sim.tee.tdx import TdxMachine
from fastness.sim.tee.tpm import TpmMachine
from fastness.sim.tee.writers.keys import EcKey


class SimAttester:
    """One simulated machine as its agent sees it."""

    def __init__(self, machine: BootedMachine) -> None:
        self.machine = machine
        self._init_data = ""
        self._disks: tuple[DiskReport, ...] = ()

    @property
    def tee(self) -> str:
        """The kind of evidence."""
        return self.machine.tee

    async def identity_public(self) -> bytes:
        """TPM2B_PUBLIC of the attestation key, or SubjectPublicKeyInfo of the guest's key."""
        if isinstance(self.machine, TpmMachine):
            return self.machine.ak_public
        return self.machine.identity_key.public_der()

    async def ek_certificates(self) -> list[bytes]:
        """The certificate of the endorsement key and its issuer; real TPMs do not carry the root either."""
        return list(self.machine.chip.ek_certificates[:2]) if isinstance(self.machine, TpmMachine) else []

    async def ek_public(self) -> bytes:
        """TPM2B_PUBLIC of the endorsement key."""
        return self.machine.ek_public if isinstance(self.machine, TpmMachine) else b""

    async def activate(self, credential: bytes, secret: bytes) -> SecretBytes:
        """What was sealed to this TPM and its attestation key; raises TpmFailure."""
        if not isinstance(self.machine, TpmMachine):
            raise TpmFailure(f"a machine of the kind {self.tee} has no TPM")
        try:
            return self.machine.activate(credential, secret)
        except CryptoError as error:
            raise TpmFailure(f"the TPM does not open the credential: {error.message}") from error

    async def sign(self, message: bytes) -> bytes:
        """r‖s by the guest's key; raises TpmFailure for a TPM, whose key signs nothing that it did not make."""
        key = self.machine.identity_key
        if not isinstance(key, EcKey):
            raise TpmFailure("a restricted key does not sign foreign bytes")
        return key.raw(message)

    async def sign_as_boot(self, message: bytes) -> SignedByBoot | None:
        """By the key of this boot of a trust domain; other evidence tells its boots apart."""
        if not isinstance(self.machine, TdxMachine):
            return None
        key = self.machine.boot_key
        return SignedByBoot(key.public_der(), key.raw(message))

    async def measure(self, event: bytes) -> None:
        """Extend PCR 15 or RTMR 3; an SNP guest has neither."""
        self.machine.measure(event)

    async def leave_initrd(self) -> bool:
        """Extend PCR 11 or RTMR 3; an SNP guest has neither."""
        if isinstance(self.machine, TpmMachine):
            self.machine.extend(PHASE_PCR, hashed("sha256", LEAVE_INITRD))
        elif isinstance(self.machine, TdxMachine):
            self.machine.extend(LEAVE_INITRD)
        return isinstance(self.machine, TpmMachine | TdxMachine)

    async def opened(self, disks: Sequence[DiskReport]) -> None:
        """Keep the reports."""
        self._disks = tuple(disks)

    async def disks(self) -> Sequence[DiskReport]:
        """What was kept."""
        return self._disks

    async def started_with(self, init_data: str) -> None:
        """Keep it, as a confidential guest does; a TPM signs no digest of it."""
        self._init_data = "" if isinstance(self.machine, TpmMachine) else init_data

    async def init_data(self) -> str:
        """What was kept."""
        return self._init_data

    async def evidence(self, report_data: bytes) -> JsonObject:
        """Fresh evidence."""
        return self.machine.quote(report_data)
