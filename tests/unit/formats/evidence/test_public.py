"""Public areas of TPM keys: what is read, what is refused, and the name that follows."""

from __future__ import annotations

import hashlib
import struct

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from fastness.formats.cursor import EvidenceError
from fastness.formats.evidence.tpm.public import Attributes, EccPublic, RsaPublic, parse_public
from fastness.sim.tee.writers.tpm2 import sized
from tests.evidence import tpm

AK = 0x00050072  # fixedTPM, fixedParent, sensitiveDataOrigin, userWithAuth, restricted, sign
NULL = struct.pack(">H", 0x0010)
AES_128_CFB = struct.pack(">HHH", 0x0006, 128, 0x0043)


def area(
    key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey,
    *,
    attributes: int = AK,
    name: int = 0x000B,
    kind: int | None = None,
    symmetric: bytes = NULL,
    scheme: bytes | None = None,
    bits: int | None = None,
    exponent: int = 0,
    curve: int = 0x0003,
    policy: bytes = b"",
) -> bytes:
    """TPMT_PUBLIC."""
    numbers = key.public_key().public_numbers()
    if isinstance(numbers, rsa.RSAPublicNumbers):
        tail = struct.pack(">HI", bits or key.key_size, exponent) + sized(numbers.n.to_bytes(key.key_size // 8, "big"))
        defaults = (0x0001, struct.pack(">HH", 0x0014, 0x000B))
    else:
        tail = struct.pack(">HH", curve, 0x0010) + b"".join(
            sized(number.to_bytes(32, "big")) for number in (numbers.x, numbers.y)
        )
        defaults = (0x0023, struct.pack(">HH", 0x0018, 0x000B))
    head = struct.pack(">HHI", kind if kind is not None else defaults[0], name, attributes) + sized(policy)
    return head + symmetric + (defaults[1] if scheme is None else scheme) + tail


def refused(data: bytes) -> str:
    with pytest.raises(EvidenceError) as caught:
        parse_public(data)
    return caught.value.code


def test_an_attestation_key_reads_field_by_field() -> None:
    public = parse_public(area(tpm.ec_key(), policy=b"p" * 32))
    assert public.is_attestation_key
    assert public.auth_policy == b"p" * 32
    assert (public.parameters.scheme, public.parameters.hash and public.parameters.hash.name) == ("ECDSA", "sha256")
    assert isinstance(public.key, EccPublic)
    assert public.key.curve.name == "P-256"
    numbers = tpm.rsa_key().public_key().public_numbers()
    other = parse_public(area(tpm.rsa_key(), symmetric=AES_128_CFB, attributes=0x000300B2, scheme=NULL)).key
    assert other == RsaPublic(numbers.n.to_bytes(256, "big"), 65537)


@pytest.mark.parametrize("key", [tpm.ec_key(), tpm.rsa_key()])
def test_the_key_comes_out_as_the_rest_of_the_world_writes_it(key: tpm.Key) -> None:
    assert parse_public(area(key)).spki == tpm.public(key)


@pytest.mark.parametrize(("number", "name"), [(0x000B, "sha256"), (0x000C, "sha384"), (0x000D, "sha512")])
def test_the_name_is_the_hash_over_the_whole_area(number: int, name: str) -> None:
    data = area(tpm.ec_key(), name=number)
    assert parse_public(data).name == struct.pack(">H", number) + hashlib.new(name, data).digest()


def test_an_area_with_its_size_in_front_is_the_same_area() -> None:
    data = area(tpm.ec_key())
    assert parse_public(sized(data)) == parse_public(data)
    assert parse_public(data).sized == sized(data)


@pytest.mark.parametrize("key", [tpm.ec_key(), tpm.rsa_key()])
def test_every_prefix_is_refused_and_nothing_may_follow(key: tpm.Key) -> None:
    for data in (area(key), sized(area(key))):
        for end in range(len(data)):
            assert refused(data[:end])
        for tail in (b"\0", b"\xff", bytes(64)):
            assert refused(data + tail)


@pytest.mark.parametrize(
    ("flag", "attribute"),
    [
        (Attributes.RESTRICTED, "restricted"),
        (Attributes.SIGN, "sign"),
        (Attributes.FIXED_TPM, "fixedTPM"),
        (Attributes.FIXED_PARENT, "fixedParent"),
        (Attributes.SENSITIVE_DATA_ORIGIN, "sensitiveDataOrigin"),
    ],
)
def test_a_key_that_lacks_an_attribute_is_no_attestation_key(flag: Attributes, attribute: str) -> None:
    public = parse_public(area(tpm.ec_key(), attributes=AK & ~flag))
    assert public.lacks == (attribute,)
    assert not public.is_attestation_key


def test_a_key_that_also_decrypts_is_no_attestation_key() -> None:
    public = parse_public(area(tpm.ec_key(), attributes=AK | Attributes.DECRYPT))
    assert public.lacks == ()
    assert not public.is_attestation_key


@pytest.mark.parametrize("bit", [0, 3, 12, 15, 20, 31])
def test_reserved_attributes_are_refused(bit: int) -> None:
    assert refused(area(tpm.ec_key(), attributes=AK | 1 << bit)) == "bad-attributes"


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"kind": 0x0008}, "not-a-key"),
        ({"kind": 0x0025}, "not-a-key"),
        ({"name": 0x0010}, "unknown-hash"),
        ({"name": 0x0004}, "unknown-hash"),
        ({"curve": 0x0010}, "unknown-curve"),
        ({"symmetric": struct.pack(">HHH", 0x000A, 128, 0)}, "unknown-cipher"),
        ({"scheme": struct.pack(">HH", 0x0099, 0x000B)}, "unknown-scheme"),
        ({"scheme": struct.pack(">HH", 0x0018, 0x0099)}, "unknown-hash"),
    ],
)
def test_what_is_not_known_is_refused(changes: dict[str, int | bytes], code: str) -> None:
    assert refused(area(tpm.ec_key(), **changes)) == code  # type: ignore[arg-type]


@pytest.mark.parametrize("changes", [{"bits": 1024}, {"bits": 4096}, {"exponent": 2}, {"exponent": 1}])
def test_rsa_keys_that_contradict_themselves_are_refused(changes: dict[str, int]) -> None:
    assert refused(area(tpm.rsa_key(), **changes)) == "bad-key"  # type: ignore[arg-type]


def test_short_coordinates_are_filled_up_because_some_tpms_strip_zeros() -> None:
    data = area(tpm.ec_key())
    x, y = data[-68:-34], data[-34:]
    short = data[:-68] + sized(x[2 + 1 :]) + y
    point = parse_public(short).key
    assert isinstance(point, EccPublic)
    assert point.x == b"\0" + x[3:]
    assert len(point.y) == 32


def test_a_point_of_no_coordinates_is_refused() -> None:
    assert refused(area(tpm.ec_key())[:-68] + sized(b"") + sized(b"")) == "bad-key"
