"""Authorities issue what peers accept, and only for the purpose, the time and the authority that fit."""

from __future__ import annotations

import ssl
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from hypothesis import given
from hypothesis import strategies as st

from fastness.crypto.errors import (
    BadCertificate,
    BadKey,
    CertificateExpired,
    CertificateNotYetValid,
    CryptoError,
    UntrustedCertificate,
    WrongPurpose,
)
from fastness.crypto.keys import PrivateKey
from fastness.crypto.secret import SecretBytes
from fastness.crypto.x509 import Certificate, CertificateAuthority, split_pem, verify_client, verify_server
from tests.unit.crypto.seeded import NOW, Seeded

DAY = timedelta(days=1)


@pytest.fixture(scope="module")
def authority() -> CertificateAuthority:
    return CertificateAuthority.create("fastness api", NOW, Seeded())


def test_client_certificate_verifies_and_names_user_and_groups(authority: CertificateAuthority) -> None:
    issued = authority.issue_client("alice", ["dev", "ops"], DAY, NOW)
    subject = verify_client(issued.certificate, [authority.certificate], at=NOW)
    assert subject.common_name == "alice"
    assert subject.organizations == ("dev", "ops")


def test_peer_certificate_is_read_from_der(authority: CertificateAuthority) -> None:
    issued = authority.issue_client("alice", ["dev"], DAY, NOW)
    again = Certificate.from_der(issued.certificate.der)
    assert again.subject == issued.certificate.subject
    assert again.fingerprint == issued.certificate.fingerprint
    assert str(again.fingerprint).startswith("sha256:")


def test_serving_certificate_speaks_for_names_and_addresses(authority: CertificateAuthority) -> None:
    issued = authority.issue_server(["127.0.0.1", "localhost", "::1"], DAY, NOW)
    assert set(issued.certificate.hosts) == {"127.0.0.1", "localhost", "::1"}
    verify_server(issued.certificate, [authority.certificate], "localhost", NOW)
    with pytest.raises(UntrustedCertificate, match="does not speak for"):
        verify_server(issued.certificate, [authority.certificate], "example.com", NOW)


def test_serving_certificate_loads_into_an_ssl_context(authority: CertificateAuthority, tmp_path: Path) -> None:
    issued = authority.issue_server(["localhost"], DAY, NOW)
    file = tmp_path / "serving.pem"
    file.write_bytes(issued.key_pem.reveal() + issued.certificate.pem)
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(file)


def test_certificate_of_a_foreign_authority_is_refused(authority: CertificateAuthority) -> None:
    foreign = CertificateAuthority.create("fastness api", NOW, Seeded(99))
    issued = foreign.issue_client("alice", ["system:masters"], DAY, NOW)
    with pytest.raises(UntrustedCertificate) as caught:
        verify_client(issued.certificate, [authority.certificate], at=NOW)
    assert caught.value.code == "untrusted-certificate"


def test_one_of_several_authorities_is_enough(authority: CertificateAuthority) -> None:
    successor = CertificateAuthority.create("successor", NOW, Seeded(5))
    issued = successor.issue_client("alice", [], DAY, NOW)
    verify_client(issued.certificate, [authority.certificate, successor.certificate], at=NOW)


def test_no_authority_trusts_nobody(authority: CertificateAuthority) -> None:
    issued = authority.issue_client("alice", [], DAY, NOW)
    with pytest.raises(UntrustedCertificate):
        verify_client(issued.certificate, [], at=NOW)


@pytest.mark.parametrize(
    ("moment", "error"),
    [
        (NOW + DAY + timedelta(seconds=1), CertificateExpired),
        (NOW - timedelta(hours=1), CertificateNotYetValid),
    ],
)
def test_certificate_outside_its_dates_is_refused(
    authority: CertificateAuthority, moment: datetime, error: type[CryptoError]
) -> None:
    issued = authority.issue_client("alice", [], DAY, NOW)
    with pytest.raises(error):
        verify_client(issued.certificate, [authority.certificate], at=moment)


def test_fresh_certificate_tolerates_a_clock_that_is_late(authority: CertificateAuthority) -> None:
    issued = authority.issue_client("alice", [], DAY, NOW)
    verify_client(issued.certificate, [authority.certificate], at=NOW - timedelta(minutes=4))


def test_expired_authority_refuses_its_leaves_and_issues_none() -> None:
    brief = CertificateAuthority.create("brief", NOW, Seeded(2), lifetime=DAY)
    issued = brief.issue_client("alice", [], 10 * DAY, NOW)
    assert issued.certificate.not_after == brief.certificate.not_after
    with pytest.raises(CertificateExpired):
        verify_client(issued.certificate, [brief.certificate], at=NOW + 2 * DAY)
    with pytest.raises(CertificateExpired):
        brief.issue_client("bob", [], DAY, NOW + 2 * DAY)


def test_serving_certificate_is_no_client_certificate(authority: CertificateAuthority) -> None:
    issued = authority.issue_server(["localhost"], DAY, NOW)
    with pytest.raises(WrongPurpose):
        verify_client(issued.certificate, [authority.certificate], at=NOW)


def test_client_certificate_is_no_serving_certificate(authority: CertificateAuthority) -> None:
    issued = authority.issue_client("localhost", [], DAY, NOW)
    with pytest.raises(WrongPurpose):
        verify_server(issued.certificate, [authority.certificate], "localhost", NOW)


def _forged(authority: CertificateAuthority, *, usage: bool = True, ca: bool = False) -> Certificate:
    key = PrivateKey.generate(Seeded(7)).handle
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "mallory")]))
        .issuer_name(authority.certificate.handle.subject)
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(NOW - DAY)
        .not_valid_after(NOW + DAY)
        .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
    )
    if usage:
        builder = builder.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
    return Certificate(builder.sign(key, hashes.SHA256()))


def test_certificate_that_only_claims_the_issuer_is_refused(authority: CertificateAuthority) -> None:
    with pytest.raises(UntrustedCertificate):
        verify_client(_forged(authority), [authority.certificate], at=NOW)


def test_certificate_without_any_purpose_is_refused(authority: CertificateAuthority) -> None:
    with pytest.raises(WrongPurpose):
        verify_client(_forged(authority, usage=False), [authority.certificate], at=NOW)


def test_leaf_cannot_act_as_an_authority(authority: CertificateAuthority) -> None:
    leaf = authority.issue_client("alice", [], DAY, NOW)
    rogue = CertificateAuthority(leaf.certificate, leaf.key, Seeded(8))
    issued = rogue.issue_client("root", ["system:masters"], DAY, NOW)
    with pytest.raises(UntrustedCertificate):
        verify_client(issued.certificate, [authority.certificate], at=NOW, via=[leaf.certificate])


@pytest.mark.filterwarnings("ignore:Parsed a serial number")
@given(st.integers(min_value=0), st.integers(min_value=0, max_value=7))
def test_one_flipped_bit_never_changes_what_verifies(position: int, bit: int) -> None:
    authority = CertificateAuthority.create("fastness api", NOW, Seeded())
    genuine = authority.issue_client("alice", ["dev"], DAY, NOW).certificate
    der = bytearray(genuine.der)
    der[position % len(der)] ^= 1 << bit
    try:
        changed = Certificate.from_der(bytes(der))
        verify_client(changed, [authority.certificate], at=NOW)
    except CryptoError:
        return
    # The count of unused bits around the signature is not signed; everything that is read must be.
    assert changed.handle.tbs_certificate_bytes == genuine.handle.tbs_certificate_bytes


def test_authority_survives_saving_and_loading(authority: CertificateAuthority) -> None:
    again = CertificateAuthority.load(authority.certificate.pem, authority.key_pem, Seeded(3))
    issued = again.issue_client("alice", [], DAY, NOW)
    verify_client(issued.certificate, [authority.certificate], at=NOW)


def test_authority_refuses_a_key_that_is_not_its_own(authority: CertificateAuthority) -> None:
    with pytest.raises(BadCertificate, match="does not belong"):
        CertificateAuthority.load(authority.certificate.pem, PrivateKey.generate(Seeded(4)).to_pem(), Seeded())


def test_same_seed_gives_the_same_authority() -> None:
    first, second = (CertificateAuthority.create("x", NOW, Seeded(42)) for _ in range(2))
    assert first.certificate.der == second.certificate.der


def test_serial_numbers_differ(authority: CertificateAuthority) -> None:
    serials = {authority.issue_client("a", [], DAY, NOW).certificate.handle.serial_number for _ in range(20)}
    assert len(serials) == 20
    assert all(0 < serial < 1 << 127 for serial in serials)


@pytest.mark.parametrize("pem", [b"", b"rubbish", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"])
def test_rubbish_is_a_bad_certificate(pem: bytes) -> None:
    with pytest.raises(BadCertificate):
        Certificate.from_pem(pem)
    with pytest.raises(BadCertificate):
        Certificate.from_der(pem)
    with pytest.raises(BadCertificate):
        split_pem(pem)


def test_names_that_do_not_fit_are_refused_with_a_hint(authority: CertificateAuthority) -> None:
    with pytest.raises(BadCertificate) as caught:
        authority.issue_client("x" * 65, [], DAY, NOW)
    assert "64" in caught.value.hint
    with pytest.raises(BadCertificate):
        authority.issue_client("", [], DAY, NOW)
    with pytest.raises(BadCertificate):
        authority.issue_server([], DAY, NOW)
    with pytest.raises(BadCertificate):
        authority.issue_server(["bad\u00e9host"], DAY, NOW)


def test_bundle_is_split_in_order(authority: CertificateAuthority) -> None:
    other = CertificateAuthority.create("other", NOW, Seeded(6))
    bundle = authority.certificate.pem + other.certificate.pem
    assert [entry.fingerprint for entry in split_pem(bundle)] == [
        authority.certificate.fingerprint,
        other.certificate.fingerprint,
    ]


@pytest.mark.parametrize("content", [b"", b"rubbish"])
def test_rubbish_is_a_bad_key(content: bytes) -> None:
    with pytest.raises(BadKey):
        PrivateKey.from_pem(SecretBytes(content))


def test_keys_of_other_kinds_are_refused() -> None:
    for other in (ec.generate_private_key(ec.SECP384R1()), rsa.generate_private_key(65537, 2048)):
        pem = other.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        with pytest.raises(BadKey):
            PrivateKey.from_pem(SecretBytes(pem))


def test_broken_entropy_gives_no_key() -> None:
    class Zeros(Seeded):
        def token(self, length: int) -> bytes:
            return bytes(length)

    with pytest.raises(BadKey, match="entropy"):
        PrivateKey.generate(Zeros())


def test_private_key_does_not_print_itself() -> None:
    assert "redacted" in repr(PrivateKey.generate(Seeded()))
