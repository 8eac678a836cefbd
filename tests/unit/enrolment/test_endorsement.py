"""Endorsements: whose TPM it is, on paper. Each rule broken once."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.x509.oid import NameOID

from fastness.attestation.evidence.checks import Findings
from fastness.crypto.silicon.chains import load_certificates
from fastness.crypto.silicon.pins import TPM_ROOTS
from fastness.crypto.x509 import Certificate
from fastness.enrolment.endorsement import Endorsement, judge_endorsement
from fastness.formats.evidence.tpm.public import Attributes, parse_public
from tests.evidence import tpm
from tests.evidence.snp import VENDOR
from tests.unit.formats.evidence.test_public import AK, area

AT = datetime(2026, 6, 1, tzinfo=UTC)
START, END = datetime(2024, 1, 1, tzinfo=UTC), datetime(2034, 1, 1, tzinfo=UTC)
EK = x509.ObjectIdentifier("2.23.133.8.1")
MAKER = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Maker of TPMs")])
ROOT_KEY = ec.generate_private_key(ec.SECP384R1())
Key = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey


USES = (
    "digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement",
    "key_cert_sign", "crl_sign", "encipher_only", "decipher_only",
)  # fmt: skip


def usage(**named: bool) -> x509.KeyUsage:
    return x509.KeyUsage(**{name: named.get(name, False) for name in USES})


def issued(
    key: Key,
    signer: Key,
    *,
    subject: x509.Name | None = None,
    issuer: x509.Name = MAKER,
    ca: bool = False,
    uses: x509.KeyUsage | None = None,
    purposes: Sequence[x509.ObjectIdentifier] | None = (EK,),
    model: bool = True,
    critical: bool = False,
    pss: bool = False,
    end: datetime = END,
) -> Certificate:
    """A certificate with any of the properties that are asked about."""
    builder = (
        x509.CertificateBuilder().subject_name(subject or x509.Name([])).issuer_name(issuer)
        .public_key(key.public_key()).serial_number(7).not_valid_before(START).not_valid_after(end)
        .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
    )  # fmt: skip
    default = usage(key_encipherment=True) if isinstance(key, rsa.RSAPrivateKey) else usage(key_agreement=True)
    builder = builder.add_extension(uses or default, critical=True)
    if purposes is not None:
        builder = builder.add_extension(x509.ExtendedKeyUsage(list(purposes)), critical=False)
    if model:
        made = [("1", "id:54455354"), ("2", "TEST"), ("3", "id:00010002")]
        oids = [x509.NameAttribute(x509.ObjectIdentifier(f"2.23.133.2.{n}"), text) for n, text in made]
        builder = builder.add_extension(
            x509.SubjectAlternativeName([x509.DirectoryName(x509.Name(oids))]), critical=True
        )
    if critical:
        strange = x509.UnrecognizedExtension(x509.ObjectIdentifier("1.2.3.4"), b"\x05\x00")
        builder = builder.add_extension(strange, critical=True)
    scheme = padding.PSS(padding.MGF1(hashes.SHA256()), 32) if pss else None
    made_by = builder.sign(signer, hashes.SHA256(), rsa_padding=scheme)
    return load_certificates(made_by.public_bytes(serialization.Encoding.DER))[0]


def root(key: Key = ROOT_KEY, **changes: object) -> Certificate:
    defaults: dict[str, object] = {"subject": MAKER, "ca": True, "uses": usage(key_cert_sign=True), "purposes": None}
    return issued(key, key, model=False, **{**defaults, **changes})  # type: ignore[arg-type]


ROOT = root()


def judged(
    leaf: Certificate, *above: Certificate, ak: bytes | None = None, roots: set[str] | None = None
) -> tuple[Endorsement | None, list[str]]:
    findings = Findings()
    pins = {ROOT.fingerprint.hex} if roots is None else roots
    endorsement = judge_endorsement(findings, [leaf, *above], parse_public(ak or area(tpm.ec_key())), pins, AT)
    return endorsement, [check.code for check in findings.checks if check.refuses]


@pytest.mark.parametrize("key", [tpm.rsa_key(number=5), tpm.ec_key(5), ec.generate_private_key(ec.SECP384R1())])
def test_an_endorsement_under_a_pinned_root_is_accepted(key: Key) -> None:
    endorsement, refused = judged(issued(key, ROOT_KEY), ROOT)
    assert endorsement is not None, refused
    assert (endorsement.manufacturer, endorsement.model, endorsement.version) == ("id:54455354", "TEST", "id:00010002")
    assert endorsement.root == ROOT.fingerprint.hex
    assert endorsement.ak_name == parse_public(area(tpm.ec_key())).name


@pytest.mark.parametrize("pss", [False, True])
def test_makers_may_sign_with_rsa_in_both_paddings(pss: bool) -> None:
    key = tpm.rsa_key(number=6)
    top = root(key)
    endorsement, refused = judged(issued(tpm.ec_key(5), key, pss=pss), top, roots={top.fingerprint.hex})
    assert endorsement is not None, refused


def test_the_simulators_tpm_passes_with_its_own_root_and_with_no_other() -> None:
    chip = VENDOR.tpm.chip(serial=3)
    papers = [load_certificates(raw)[0] for raw in (chip.ek_certificate, VENDOR.tpm.authority.certificate)]
    papers += load_certificates(VENDOR.tpm.root.certificate)
    assert judged(*papers, ak=chip.ak_area, roots=set(VENDOR.roots.tpm))[0] is not None
    endorsement, refused = judged(*papers, ak=chip.ak_area, roots=set(TPM_ROOTS.values()))
    assert endorsement is None
    assert refused == ["untrusted-certificate"]


def test_a_copy_of_the_root_with_the_same_name_is_no_root() -> None:
    forger = ec.generate_private_key(ec.SECP384R1())
    endorsement, refused = judged(issued(tpm.ec_key(5), forger), root(forger))
    assert endorsement is None
    assert refused == ["untrusted-certificate"]


def test_a_certificate_that_the_maker_did_not_sign_is_refused() -> None:
    endorsement, refused = judged(issued(tpm.ec_key(5), ec.generate_private_key(ec.SECP384R1())), ROOT)
    assert endorsement is None
    assert refused == ["untrusted-certificate"]


def test_without_the_makers_certificate_nothing_is_known() -> None:
    endorsement, refused = judged(issued(tpm.ec_key(5), ROOT_KEY))
    assert endorsement is None
    assert refused == ["missing-issuer"]


def test_without_any_certificate_nothing_is_known() -> None:
    findings = Findings()
    assert judge_endorsement(findings, [], parse_public(area(tpm.ec_key())), {ROOT.fingerprint.hex}, AT) is None
    assert [check.code for check in findings.checks if check.refuses] == ["endorsement-missing"]


def test_an_authority_that_may_not_sign_certificates_vouches_for_nobody() -> None:
    top = root(uses=usage(digital_signature=True))
    assert judged(issued(tpm.ec_key(5), ROOT_KEY), top, roots={top.fingerprint.hex})[1] == ["untrusted-certificate"]
    leaf = root(ca=False)
    assert judged(issued(tpm.ec_key(5), ROOT_KEY), leaf, roots={leaf.fingerprint.hex})[1] == ["untrusted-certificate"]


def test_signatures_with_sha1_do_not_count() -> None:
    leaf = issued(tpm.ec_key(5), ROOT_KEY)
    weak = _resigned_with_sha1(tpm.rsa_key(number=6))
    assert judged(leaf, ROOT)[0] is not None
    top = root(tpm.rsa_key(number=6))
    assert judged(weak, top, roots={top.fingerprint.hex})[1] == ["untrusted-certificate"]


def _resigned_with_sha1(signer: rsa.RSAPrivateKey) -> Certificate:
    """The library refuses to sign with SHA-1: the algorithm is written into a certificate of the same shape instead."""
    good = issued(tpm.ec_key(5), signer)
    sha256, sha1 = bytes.fromhex("06092a864886f70d01010b"), bytes.fromhex("06092a864886f70d010105")
    body = good.handle.tbs_certificate_bytes.replace(sha256, sha1)
    signature = signer.sign(body, padding.PKCS1v15(), hashes.SHA1())
    raw = good.der.replace(good.handle.tbs_certificate_bytes, body).replace(sha256, sha1)
    return load_certificates(raw.replace(good.handle.signature, signature))[0]


@pytest.mark.parametrize(
    "changes",
    [
        {"ca": True},
        {"purposes": [x509.ObjectIdentifier("1.3.6.1.5.5.7.3.1")]},
        {"purposes": None, "model": False},
        {"uses": usage(digital_signature=True)},
        {"uses": usage(key_encipherment=True)},
        {"critical": True},
    ],
)
def test_other_certificates_of_the_same_maker_are_no_endorsements(changes: dict[str, object]) -> None:
    endorsement, refused = judged(issued(tpm.ec_key(5), ROOT_KEY, **changes), ROOT)  # type: ignore[arg-type]
    assert endorsement is None
    assert refused == ["endorsement-purpose"]


def test_a_certificate_without_purposes_must_name_a_tpm() -> None:
    assert judged(issued(tpm.ec_key(5), ROOT_KEY, purposes=None), ROOT)[0] is not None


def test_an_endorsement_that_ended_is_refused() -> None:
    endorsement, refused = judged(issued(tpm.ec_key(5), ROOT_KEY, end=datetime(2025, 1, 1, tzinfo=UTC)), ROOT)
    assert endorsement is None
    assert refused == ["certificate-dates"]


def test_a_key_that_has_no_template_cannot_be_proved() -> None:
    endorsement, refused = judged(issued(tpm.rsa_key(1024), ROOT_KEY), ROOT)
    assert endorsement is None
    assert refused == ["bad-key"]


@pytest.mark.parametrize(
    "attributes",
    [
        AK & ~Attributes.RESTRICTED,
        AK & ~Attributes.FIXED_TPM,
        AK & ~Attributes.FIXED_PARENT,
        AK & ~Attributes.SENSITIVE_DATA_ORIGIN,
        AK & ~Attributes.SIGN | Attributes.DECRYPT,
        AK | Attributes.DECRYPT,
    ],
)
def test_pitfall_6_a_key_that_can_lie_or_leave_is_no_attestation_key(attributes: int) -> None:
    endorsement, refused = judged(issued(tpm.ec_key(5), ROOT_KEY), ROOT, ak=area(tpm.ec_key(), attributes=attributes))
    assert endorsement is None
    assert refused == ["attestation-key-attributes"]


@pytest.mark.parametrize("scheme", [b"\x00\x10", b"\x00\x18\x00\x04", b"\x00\x1a\x00\x0b\x00\x01"])
def test_an_attestation_key_without_a_sound_scheme_is_refused(scheme: bytes) -> None:
    endorsement, refused = judged(issued(tpm.ec_key(5), ROOT_KEY), ROOT, ak=area(tpm.ec_key(), scheme=scheme))
    assert endorsement is None
    assert refused == ["attestation-key-scheme"]


def test_a_point_beside_the_curve_is_no_key() -> None:
    data = bytearray(area(tpm.ec_key()))
    data[-1] ^= 1
    endorsement, refused = judged(issued(tpm.ec_key(5), ROOT_KEY), ROOT, ak=bytes(data))
    assert endorsement is None
    assert refused == ["bad-key"]
