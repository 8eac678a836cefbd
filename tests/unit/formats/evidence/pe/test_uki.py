"""Unified kernel images and their signatures, read."""

from __future__ import annotations

import pytest

from fastness.formats.errors import ImageError
from fastness.formats.evidence.pe.pkcs7 import parse_signed_image
from fastness.formats.evidence.pe.uki import parse_uki
from fastness.images.uki import write_uki
from tests.measuredboot import minted

DIGEST = bytes(range(32))


def refused(data: bytes) -> str:
    with pytest.raises(ImageError) as caught:
        parse_uki(data)
    assert caught.value.hint
    return caught.value.code


def test_an_image_names_its_stub_its_kernel_and_its_sections() -> None:
    image = parse_uki(write_uki(minted.stub("252.39-1~deb12u2"), minted.sections()))
    assert (image.stub, image.stub_name) == (252, "252.39-1~deb12u2")
    assert (image.release, image.kernel_version) == ("6.1.0-test", (6, 1))
    assert image.sections == {**minted.sections(), ".sbat": b"sbat,1"}


def test_what_is_no_unified_kernel_image_is_refused_by_its_lack() -> None:
    assert refused(minted.kernel()) == "no-stub"
    assert refused(minted.stub()) == "no-kernel"
    assert refused(write_uki(minted.stub("two"), minted.sections())) == "no-stub"
    assert refused(write_uki(minted.stub(), minted.sections(linux=b"not a kernel"))) == "not-pe"
    assert refused(write_uki(minted.stub(), minted.sections(linux=minted.pe({".text": b"x"})))) == "not-linux"


def test_images_for_other_machines_are_refused() -> None:
    magic = b"#### LoaderInfo: systemd-stub 252 ####\0"
    arm = minted.pe({".sdmagic": magic, ".linux": minted.kernel()}, machine=0xAA64)
    assert refused(arm) == "other-machine"


def test_a_signature_tells_what_it_signs_and_by_whom() -> None:
    root = minted.Signer("root")
    leaf = minted.Signer("leaf", root)
    signature = parse_signed_image(leaf.signature(DIGEST, beside=[root]) + bytes(5))
    assert (signature.image_hash, signature.image_digest, signature.hash) == ("sha256", DIGEST, "sha256")
    assert signature.certificates == (leaf.der, root.der)
    assert (signature.issuer, signature.serial) == (root.certificate.subject.public_bytes(), 77)


@pytest.mark.parametrize("cut", [0, 1, 20, 100, 400, -1])
def test_cut_signatures_are_refused(cut: int) -> None:
    data = minted.Signer("leaf").signature(DIGEST)
    with pytest.raises(ImageError) as caught:
        parse_signed_image(data[:cut])
    assert caught.value.code == "bad-signature"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("2a864886f70d010702", "2a864886f70d010703"),
        ("2b0601040182370201 04", "2b0601040182370201 05"),
        ("2a864886f70d010904", "2a864886f70d010905"),
        ("608648016503040201", "608648016503040207"),
    ],
    ids=["not SignedData", "not an image", "no digest of the content", "unknown hash"],
)
def test_other_structures_are_refused(old: str, new: str) -> None:
    data = minted.Signer("leaf").signature(DIGEST)
    assert bytes.fromhex(old) in data
    with pytest.raises(ImageError) as caught:
        parse_signed_image(data.replace(bytes.fromhex(old), bytes.fromhex(new)))
    assert caught.value.code == "bad-signature"


def test_something_behind_a_signature_is_refused() -> None:
    with pytest.raises(ImageError):
        parse_signed_image(minted.Signer("leaf").signature(DIGEST) + b"\1")
    with pytest.raises(ImageError) as caught:
        parse_signed_image(bytes(256 * 1024 + 1))
    assert caught.value.code == "too-large"
