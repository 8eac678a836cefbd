"""The pinned makers of TPMs against the store that others publish."""

from __future__ import annotations

from fastness.crypto.errors import BadCertificate
from fastness.crypto.secret import SecretBytes
from fastness.crypto.silicon.chains import Links, load_certificates, signed_by
from fastness.crypto.silicon.credential import EndorsementKey, make_credential
from fastness.crypto.silicon.pins import TPM_ROOTS
from fastness.crypto.silicon.verify import AttestationKey
from fastness.crypto.x509 import Certificate
from tests.evidence.vectors import vectors
from tests.virtual import SeededEntropy


def published() -> tuple[list[Certificate], list[str]]:
    """Every certificate of the store that can be read, and the files that cannot."""
    certificates, unreadable = [], []
    for path in sorted((vectors() / "roots" / "tpm-ek").glob("*.pem")):
        try:
            certificates += load_certificates(path.read_bytes())
        except BadCertificate:
            unreadable.append(path.name)
    return certificates, unreadable


def test_every_readable_certificate_of_the_store_is_pinned_and_nothing_else() -> None:
    certificates, unreadable = published()
    assert {entry.fingerprint.hex for entry in certificates} == set(TPM_ROOTS.values())
    assert all(name.startswith(("NTC", "NUVO")) for name in unreadable), "names that break DER are Nuvoton's alone"


def test_pinned_intermediates_of_today_lead_to_pinned_roots() -> None:
    certificates, _ = published()
    linked = sum(
        signed_by(child, other, Links.TPM) for child in certificates for other in certificates if child is not other
    )
    assert linked >= 15
    weak = [
        certificate
        for certificate in certificates
        if getattr(certificate.handle.signature_hash_algorithm, "name", "") == "sha1"
    ]
    assert weak
    assert not any(signed_by(certificate, other, Links.TPM) for certificate in weak for other in certificates), (
        "SHA-1 vouches for nobody"
    )


def test_public_keys_of_a_real_tpm_are_read_and_a_credential_can_be_made_for_them() -> None:
    ak = AttestationKey((vectors() / "tpm" / "akpub.pem").read_bytes())
    ek = EndorsementKey((vectors() / "tpm" / "ekpub.pem").read_bytes())
    assert (ak.kind, ek.kind) == ("RSA-2048", "RSA-2048")
    blob = make_credential(ek, b"\x00\x0b" + bytes(32), SecretBytes(bytes(32)), SeededEntropy())
    assert len(blob.credential) == 2 + 2 + 32 + 2 + 32
    assert len(blob.secret) == 2 + 256
