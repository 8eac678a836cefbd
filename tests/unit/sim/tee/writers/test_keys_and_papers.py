"""Keys and certificates of the simulator, read and verified by a library that had no part in writing them."""

from __future__ import annotations

import warnings
from datetime import timedelta

import pytest
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa

from fastness.crypto.silicon.chains import chain_to_pin, load_certificates, outside_validity
from fastness.crypto.silicon.revocation import RevocationList
from fastness.formats import der
from fastness.formats.evidence.snp.tcb import Generation
from fastness.sim.tee import SimVendor
from fastness.sim.tee.vendor import EPOCH
from fastness.sim.tee.writers import asn1
from fastness.sim.tee.writers.authority import Authority, Period, name
from fastness.sim.tee.writers.keys import EcKey, RsaAuthority, Seed, rsa_handle, rsa_public_der
from fastness.sim.tee.writers.rsa import RsaKey

VENDOR = SimVendor()
PSS = padding.PSS(padding.MGF1(hashes.SHA384()), 48)
PERIOD = Period(EPOCH, EPOCH + timedelta(days=365))


def loaded(spki: bytes) -> rsa.RSAPublicKey:
    key = serialization.load_der_public_key(spki)
    assert isinstance(key, rsa.RSAPublicKey)
    return key


@pytest.mark.parametrize("bits", [2048, 4096])
def test_an_rsa_key_has_exactly_its_bits_and_signs_as_the_library_expects(bits: int) -> None:
    key = RsaKey.draw(bits, Seed(b"rsa"))
    public = loaded(rsa_public_der(key))
    assert public.key_size == bits
    public.verify(key.sign_pss(b"message"), b"message", PSS, hashes.SHA384())
    public.verify(key.sign_pkcs1(b"message"), b"message", padding.PKCS1v15(), hashes.SHA256())
    with pytest.raises(InvalidSignature):
        public.verify(key.sign_pss(b"message"), b"massage", PSS, hashes.SHA384())


@pytest.mark.parametrize("number", range(16))
def test_no_message_makes_a_signature_that_does_not_fit(number: int) -> None:
    key = RsaKey.draw(2048, Seed(bytes([number])))
    message = number.to_bytes(4, "big")
    loaded(rsa_public_der(key)).verify(key.sign_pss(message), message, PSS, hashes.SHA384())


def test_the_library_can_use_a_key_of_many_primes() -> None:
    key = RsaKey.draw(2048, Seed(b"many"))
    oaep = padding.OAEP(padding.MGF1(hashes.SHA256()), hashes.SHA256(), b"label")
    assert rsa_handle(key).decrypt(loaded(rsa_public_der(key)).encrypt(b"secret", oaep), oaep) == b"secret"


@pytest.mark.parametrize(("size", "algorithm"), [(32, hashes.SHA256()), (48, hashes.SHA384())])
def test_elliptic_keys_repeat_and_sign_with_the_hash_of_their_curve(size: int, algorithm: hashes.HashAlgorithm) -> None:
    key, twin = EcKey(Seed(b"ec"), size), EcKey(Seed(b"ec"), size)
    assert (key.public_der(), key.sign(b"m")) == (twin.public_der(), twin.sign(b"m"))
    public = serialization.load_der_public_key(key.public_der())
    assert isinstance(public, ec.EllipticCurvePublicKey)
    public.verify(key.sign(b"m"), b"m", ec.ECDSA(algorithm))
    assert (
        b"".join(key.point)
        == public.public_bytes(serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)[1:]
    )


def test_what_is_written_in_der_reads_back() -> None:
    data = asn1.sequence(asn1.integer(217), asn1.oid("1.3.6.1.4.1.3704.1.3.8"), asn1.octets(bytes(200)), asn1.ia5("x"))
    parts = list(der.elements(der.only(data, der.SEQUENCE)))
    assert der.number(parts[0][1]) == 217
    assert der.dotted(parts[1][1]) == "1.3.6.1.4.1.3704.1.3.8"
    assert (parts[2][1], parts[3]) == (bytes(200), (der.IA5, b"x"))


def test_dates_after_2049_have_four_digits() -> None:
    assert asn1.instant(EPOCH)[0] == 0x17
    assert asn1.instant(EPOCH.replace(year=2050)) == b"\x18\x0f20500101000000Z"


@pytest.mark.parametrize("endorsement", ["VCEK", "VLEK"])
@pytest.mark.parametrize("generation", list(Generation))
def test_the_library_verifies_every_link_of_amds_chains(generation: Generation, endorsement: str) -> None:
    chip = VENDOR.snp.chip(generation, endorsement="VCEK" if endorsement == "VCEK" else "VLEK")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # serial number zero, as AMD has it
        leaf, middle, root = (x509.load_der_x509_certificate(entry) for entry in chip.certificates)
        assert leaf.serial_number == 0
    for subject, issuer in ((leaf, middle), (middle, root), (root, root)):
        key = issuer.public_key()
        assert isinstance(key, rsa.RSAPublicKey)
        key.verify(subject.signature, subject.tbs_certificate_bytes, PSS, hashes.SHA384())
        subject.verify_directly_issued_by(issuer)
    assert isinstance(leaf.public_key(), ec.EllipticCurvePublicKey)


def test_certificates_say_that_they_are_made_up() -> None:
    for entry in (*VENDOR.chip("snp").certificates, *VENDOR.chip("tdx").certificates):
        (certificate,) = load_certificates(entry)
        assert certificate.subject.organizations == ("Fastness Simulated Silicon",)


def test_an_endorsement_certificate_has_what_the_profile_asks_for() -> None:
    for keys, usage in (("ecc", "key_agreement"), ("rsa", "key_encipherment")):
        chip = VENDOR.tpm.chip(keys="ecc" if keys == "ecc" else "rsa")
        handle = x509.load_der_x509_certificate(chip.ek_certificate)
        names = handle.extensions.get_extension_for_class(x509.SubjectAlternativeName)
        (directory,) = names.value.get_values_for_type(x509.DirectoryName)
        assert [(entry.oid.dotted_string, entry.value) for entry in directory] == [
            ("2.23.133.2.1", "id:53494D00"),
            ("2.23.133.2.2", "Fastness software TPM"),
            ("2.23.133.2.3", "id:20260101"),
        ]
        assert names.critical  # because the subject is empty
        assert len(handle.subject) == 0
        purposes = handle.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
        assert [entry.dotted_string for entry in purposes] == ["2.23.133.8.1"]
        used = handle.extensions.get_extension_for_class(x509.KeyUsage).value
        assert getattr(used, usage)
        assert not used.digital_signature
        assert not handle.extensions.get_extension_for_class(x509.BasicConstraints).value.ca


@pytest.mark.parametrize("algorithm", ["rsa", "ec"])
def test_revocation_lists_are_signed_current_and_name_what_they_were_told(algorithm: str) -> None:
    key = RsaAuthority(RsaKey.draw(4096, Seed(b"crl"))) if algorithm == "rsa" else EcKey(Seed(b"crl"))
    root = Authority.root("root", key, serial=1, validity=PERIOD)
    (authority,) = load_certificates(root.certificate)
    (good,), (bad,) = (
        load_certificates(root.issue(name("leaf"), EcKey(Seed(b"l")).public_der(), serial=serial)) for serial in (7, 8)
    )
    listed = RevocationList(root.revocations(EPOCH, [8], number=3))
    assert listed.signed_by(authority)
    assert listed.current(EPOCH)
    assert not listed.current(EPOCH + timedelta(days=31))
    assert (listed.revokes(good), listed.revokes(bad)) == (False, True)
    assert listed.handle.extensions.get_extension_for_class(x509.CRLNumber).value.crl_number == 3


def test_a_chain_leads_to_its_root_and_ends_with_its_dates() -> None:
    leaf, middle, root = (load_certificates(entry)[0] for entry in VENDOR.chip("tdx").certificates)
    chain = chain_to_pin(leaf, [middle, root], [VENDOR.roots.intel])
    assert not outside_validity(chain, EPOCH)
    assert len(outside_validity(chain, EPOCH + timedelta(days=26 * 365))) == 3


def test_branches_of_a_seed_are_apart_and_repeat() -> None:
    seed = Seed(b"s")
    assert seed.branch("a", 1).token(8) == seed.branch("a", 1).token(8) == Seed(b"s").branch("a", 1).token(8)
    first = seed.branch("a")
    assert len({first.token(8), first.token(8), seed.branch("b").token(8), seed.branch("a", 1).token(8)}) == 4
