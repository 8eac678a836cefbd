"""Which entry of the firmware's db lets an image start.

Secure Boot measures the entry that an image was verified with. Firmware tries the signatures of the image in order, each
against the certificates of db in order, and after that the hash of the image itself; dbx has the last word.

* A signature counts when it vouches for exactly this image and its signer is the certificate in db or was issued by it.
* Dates and key usages are not asked: firmware has no trustworthy clock, and EDK2 asks for neither.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fastness.crypto.digests import fingerprint
from fastness.crypto.silicon.authenticode import leads_to, subject_of, tbs_digest
from fastness.crypto.silicon.registers import hashed
from fastness.formats.evidence.efi.signature_lists import (
    IMAGE_SECURITY,
    SIG_SHA256,
    SIG_X509,
    SIG_X509_SHA256,
    Signature,
)
from fastness.formats.evidence.pe.authenticode import certificates, covered
from fastness.formats.evidence.pe.image import PeImage
from fastness.formats.evidence.pe.pkcs7 import SignedImage, parse_signed_image
from fastness.formats.words import counted
from fastness.images.errors import NotBootable
from fastness.images.firmware import FirmwareVars


@dataclass(frozen=True, slots=True)
class Authority:
    """An entry of a variable: what firmware measures about why an image was allowed."""

    vendor: bytes
    variable: str
    entry: bytes
    description: str


def authority_of(image: PeImage, digest: bytes, firmware: FirmwareVars) -> Authority:
    """The entry of db that lets this image start; raises NotBootable or ImageError."""
    forbidden = firmware.forbidden
    if any(entry.kind == SIG_SHA256 and entry.data == digest for entry in forbidden):
        raise NotBootable(
            "forbidden", "the hash of the image is in the firmware's dbx", "Use another build of the image."
        )
    signatures = [parse_signed_image(entry.pkcs7) for entry in certificates(image)]
    for signed in signatures:
        _refuse_revoked(signed, forbidden)
        for entry in firmware.allowed:
            if entry.kind == SIG_X509 and _vouches(signed, entry.data, image):
                return _named(entry, f"db certificate {subject_of(entry.data)}")
    for entry in firmware.allowed:
        if entry.kind == SIG_SHA256 and entry.data == digest:
            return _named(entry, "db holds the hash of the image")
    raise NotBootable(
        "not-allowed",
        f"no entry of the firmware's db allows the image, which has {counted(len(signatures), 'signature')}",
    )


def _named(entry: Signature, description: str) -> Authority:
    return Authority(IMAGE_SECURITY, "db", entry.raw, description)


def _refuse_revoked(signed: SignedImage, forbidden: Sequence[Signature]) -> None:
    exact = {entry.data for entry in forbidden if entry.kind == SIG_X509}
    # The hash is followed by the time of revocation; firmware without a trusted time takes it as always revoked.
    hashes = {entry.data[:32] for entry in forbidden if entry.kind == SIG_X509_SHA256}
    for certificate in signed.certificates:
        if certificate in exact or (hashes and tbs_digest(certificate) in hashes):
            name = subject_of(certificate) or fingerprint(certificate).hex()
            raise NotBootable("forbidden", f"certificate {name} of the image is in the firmware's dbx")


def _vouches(signed: SignedImage, anchor: bytes, image: PeImage) -> bool:
    if hashed(signed.image_hash, b"".join(covered(image))) != signed.image_digest:
        return False
    return leads_to(
        anchor,
        signed.certificates,
        issuer=signed.issuer,
        serial=signed.serial,
        algorithm=signed.hash,
        signature=signed.signature,
        message=signed.message,
        content=signed.content,
        content_digest=signed.content_digest,
    )
