"""Simulated TPMs: an endorsement key with a certificate, an attestation key, registers, quotes and credential activation.

    chip = TpmFoundry(seed, validity).chip()
    machine = chip.boot(image)
    machine.activate(blob.credential, blob.secret)           # proves that AK and EK share this TPM
    machine.quote(binding)                                   # registers after the boot, with the event log

A TPM keeps its keys over boots and counts them. Keys are on P-256 unless RSA is asked for: both exist in the field, and an RSA
key costs fifty times as much to make. The certificate carries what the TCG's EK Credential Profile asks for.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any, Final, Literal

from fastness.attestation.evidence.proofs import SIMULATED_TPM_FIRMWARE
from fastness.crypto.secret import SecretBytes
from fastness.crypto.silicon.credential import CredentialBlob, open_credential
from fastness.crypto.silicon.registers import extend, hashed
from fastness.protocol.user_data_event import PCR, USER_DATA_PCR, logged
from fastness.sim.tee.images import PCRS, BootImage, default_image
from fastness.sim.tee.writers import asn1, tpm2
from fastness.sim.tee.writers.authority import Authority, Extension, Period, key_usage
from fastness.sim.tee.writers.keys import EcKey, Seed, rsa_handle, rsa_public_der

Keys = Literal["ecc", "rsa"]
ROOT: Final = "Simulated TPM Root CA"
INTERMEDIATE: Final = "Simulated TPM Issuing CA"
MANUFACTURER: Final = "id:53494D00"  # the letters SIM; no entry of the TCG's registry
MODEL: Final = "Fastness software TPM"
VERSION: Final = "id:20260101"
FIRMWARE: Final = SIMULATED_TPM_FIRMWARE
_BOOT_MILLISECONDS: Final = 40_000


def public_der(key: tpm2.TpmKey) -> bytes:
    """SubjectPublicKeyInfo of a TPM's key."""
    return key.public_der() if isinstance(key, EcKey) else rsa_public_der(key)


def endorsement_extensions(keys: Keys) -> list[Extension]:
    """What the EK Credential Profile wants in a certificate: the TPM's make as subject, its specification, its purpose."""
    make = asn1.sequence(
        *(
            asn1.collection(asn1.sequence(asn1.oid(f"2.23.133.2.{number}"), asn1.utf8(text)))
            for number, text in ((1, MANUFACTURER), (2, MODEL), (3, VERSION))
        )
    )
    specification = asn1.sequence(asn1.utf8("2.0"), asn1.integer(0), asn1.integer(159))
    attribute = asn1.sequence(asn1.oid("2.23.133.2.16"), asn1.collection(specification))
    return [
        Extension("2.5.29.17", asn1.sequence(asn1.tagged(4, make)), critical=True),
        Extension("2.5.29.9", asn1.sequence(attribute)),
        Extension("2.5.29.37", asn1.sequence(asn1.oid("2.23.133.8.1"))),
        key_usage(4 if keys == "ecc" else 2),  # key agreement, or encipherment of keys
    ]


class TpmFoundry:
    """The vendor's works for TPMs: a root, an issuing authority, and TPMs below it."""

    def __init__(self, seed: Seed, validity: Period) -> None:
        self._seed = seed
        self.root = Authority.root(ROOT, EcKey(seed.branch("root")), serial=1, validity=validity)
        self.authority = self.root.subordinate(INTERMEDIATE, EcKey(seed.branch("issuing CA")), serial=2)

    def chip(self, *, serial: int = 0, keys: Keys = "ecc", ak_attributes: int = tpm2.AK_ATTRIBUTES) -> TpmChip:
        """The TPM with that serial number."""
        return TpmChip(self, self._seed.branch("chip", serial), keys, ak_attributes)

    def revocations(self, at: datetime, serials: Iterable[int] = (), number: int = 1) -> bytes:
        """The revocation list of the issuing authority: TPMs that no longer count."""
        return self.authority.revocations(at, serials, number=number)


class TpmChip:
    """A TPM."""

    tee: Final = "tpm"

    def __init__(self, foundry: TpmFoundry, seed: Seed, keys: Keys, ak_attributes: int) -> None:
        self.foundry = foundry
        self.seed = seed
        self.keys: Keys = keys
        self._ak_attributes = ak_attributes
        self.ek_serial = int.from_bytes(seed.branch("certificate").token(16), "big") >> 1 or 1
        self.boots = 0

    @cached_property
    def ek(self) -> tpm2.TpmKey:
        """The endorsement key."""
        return self._key("endorsement")

    @cached_property
    def ak(self) -> tpm2.TpmKey:
        """The attestation key."""
        return self._key("attestation")

    @cached_property
    def ek_area(self) -> bytes:
        """TPMT_PUBLIC of the endorsement key."""
        return tpm2.endorsement_area(self.ek)

    @cached_property
    def ak_area(self) -> bytes:
        """TPMT_PUBLIC of the attestation key."""
        return tpm2.attestation_area(self.ak, self._ak_attributes)

    @cached_property
    def ek_certificate(self) -> bytes:
        """The certificate of the endorsement key; its subject is empty, the TPM is named beside it."""
        return self.foundry.authority.issue(
            asn1.sequence(),
            public_der(self.ek),
            serial=self.ek_serial,
            extensions=endorsement_extensions(self.keys),
        )

    @property
    def ek_certificates(self) -> tuple[bytes, bytes, bytes]:
        """Endorsement key, issuing authority and root, in DER."""
        return self.ek_certificate, self.foundry.authority.certificate, self.foundry.root.certificate

    def boot(self, image: BootImage | None = None, *, registers: Sequence[int] = range(PCRS)) -> TpmMachine:
        """The machine after it booted the image; it will quote these registers."""
        self.boots += 1
        return TpmMachine(self, image or default_image(), registers, self.boots)

    def activate(self, credential: bytes, secret: bytes) -> SecretBytes:
        """TPM2_ActivateCredential; raises BrokenSeal when it was sealed to another TPM or another key."""
        handle = self.ek.handle if isinstance(self.ek, EcKey) else rsa_handle(self.ek)
        return open_credential(handle, tpm2.name_of(self.ak_area), CredentialBlob(credential, secret))

    def _key(self, name: str) -> tpm2.TpmKey:
        seed = self.seed.branch(name)
        return EcKey(seed) if self.keys == "ecc" else seed.rsa(2048)


class AkKey:
    """The attestation key as an identity: its public half, and no more."""

    __slots__ = ("_der",)

    def __init__(self, der: bytes) -> None:
        self._der = der

    def public_der(self) -> bytes:
        """SubjectPublicKeyInfo."""
        return self._der


class TpmMachine:
    """A machine with a TPM, some time after its boot."""

    tee: Final = "tpm"

    def __init__(self, chip: TpmChip, image: BootImage, registers: Sequence[int], boots: int) -> None:
        self.chip = chip
        self.image = image
        self.pcrs = list(image.pcrs)
        self.event_log = image.event_log
        """The log of this boot; of what was extended later it has what `measure` did."""
        self._registers = sorted(set(registers))
        self._boots = boots
        self.quotes = 0

    @cached_property
    def identity_key(self) -> AkKey:
        """The attestation key."""
        return AkKey(public_der(self.chip.ak))

    @property
    def thumbprint(self) -> str:
        """`sha256:…` of the attestation key."""
        return f"sha256:{hashlib.sha256(self.identity_key.public_der()).hexdigest()}"

    @property
    def ak_public(self) -> bytes:
        """TPM2B_PUBLIC of the attestation key."""
        return tpm2.sized(self.chip.ak_area)

    @property
    def ek_public(self) -> bytes:
        """TPM2B_PUBLIC of the endorsement key."""
        return tpm2.sized(self.chip.ek_area)

    @property
    def ek_certificate(self) -> bytes:
        """The certificate of the endorsement key, in DER."""
        return self.chip.ek_certificate

    def activate(self, credential: bytes, secret: bytes) -> SecretBytes:
        """TPM2_ActivateCredential; raises BrokenSeal."""
        return self.chip.activate(credential, secret)

    def extend(self, index: int, digest: bytes) -> None:
        """TPM2_PCR_Extend in the SHA-256 bank."""
        self.pcrs[index] = extend("sha256", self.pcrs[index], digest)

    def measure(self, event: bytes) -> None:
        """Extend PCR 15, and say so in the log."""
        self.extend(USER_DATA_PCR, hashed("sha256", event))
        self.event_log = logged(self.event_log, PCR.runtime, [event])

    def attest(self, report_data: bytes) -> tuple[bytes, bytes]:
        """TPMS_ATTEST and TPMT_SIGNATURE over the registers, bound to these bytes."""
        if len(report_data) > 64:
            raise ValueError("qualifying data has at most 64 bytes")
        self.quotes += 1
        clock = tpm2.clock_info(self._boots * _BOOT_MILLISECONDS + self.quotes, self._boots, 0)
        digest = hashlib.sha256(b"".join(self.pcrs[index] for index in self._registers)).digest()
        signer = tpm2.qualified_name(self.chip.ek_area, self.chip.ak_area)
        chosen = [tpm2.selection("sha256", self._registers)]
        message = tpm2.attest(signer, report_data, clock, chosen, digest, firmware=FIRMWARE)
        return message, tpm2.signature(self.chip.ak, message)

    def quote(self, report_data: bytes) -> dict[str, Any]:
        """Evidence with the event log."""
        message, signature = self.attest(report_data)
        values: Any = {str(index): self.pcrs[index].hex() for index in self._registers}
        whole = len(values) == PCRS
        inner = {
            "message": _b64(message),
            "signature": _b64(signature),
            "pcrs": list(values.values()) if whole else {"bank": "sha256", "values": values},
        }
        return {
            "ak_public": _b64(self.identity_key.public_der()),
            "tpm_quote": inner,
            "event_log": _b64(self.event_log),
        }


def _b64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
