"""The PKCS #7 SignedData of an Authenticode signature: what it signs, who signed it, and the certificates beside it.

    ContentInfo { signedData, [0] SignedData { version, digestAlgorithms, contentInfo { spcIndirectData, [0] content },
                  [0] certificates, signerInfos { one SignerInfo } } }

The content names the hash of the image; the signer signs attributes that hold the hash of the content. Exactly one signer is
read, as firmware does. Nothing is verified here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from fastness.formats import der
from fastness.formats.cursor import EvidenceError
from fastness.formats.errors import ImageError

MAX_SIGNATURE: Final = 256 * 1024
MAX_CERTIFICATES: Final = 16
_SIGNED_DATA: Final = "1.2.840.113549.1.7.2"
_INDIRECT_DATA: Final = "1.3.6.1.4.1.311.2.1.4"
_MESSAGE_DIGEST: Final = "1.2.840.113549.1.9.4"
_SET: Final = 0x31
_TAGGED_0: Final = 0xA0
_HASHES: Final[Mapping[str, str]] = {
    "1.3.14.3.2.26": "sha1",
    "2.16.840.1.101.3.4.2.1": "sha256",
    "2.16.840.1.101.3.4.2.2": "sha384",
    "2.16.840.1.101.3.4.2.3": "sha512",
}
Element = tuple[int, bytes]


@dataclass(frozen=True, slots=True)
class SignedImage:
    """One Authenticode signature, read."""

    image_hash: str
    image_digest: bytes
    content: bytes
    certificates: tuple[bytes, ...]
    issuer: bytes
    serial: int
    hash: str
    content_digest: bytes
    message: bytes
    signature: bytes


def parse_signed_image(data: bytes) -> SignedImage:
    """Read a signature; raises ImageError."""
    if len(data) > MAX_SIGNATURE:
        raise ImageError("too-large", f"a signature has at most {MAX_SIGNATURE} bytes, not {len(data)}")
    try:
        return _signed_data(data)
    except EvidenceError as error:
        raise ImageError("bad-signature", f"the signature of the image cannot be read: {error.message}") from error


def _signed_data(data: bytes) -> SignedImage:
    # The entry of the certificate table is filled up to eight bytes, so zeros may follow the structure.
    outer = _Reader(_first(data, der.SEQUENCE))
    if der.dotted(outer.take(der.OID)) != _SIGNED_DATA:
        raise EvidenceError("bad-signature", "it is not SignedData")
    inner = _Reader(der.only(outer.take(_TAGGED_0), der.SEQUENCE))
    inner.take(der.INTEGER)
    inner.take(_SET)
    image_hash, image_digest, content = _content(inner.take(der.SEQUENCE))
    certificates = tuple(der.encoded(tag, body) for tag, body in der.elements(inner.take(_TAGGED_0)))
    if len(certificates) > MAX_CERTIFICATES:
        raise EvidenceError("bad-signature", f"it carries more than {MAX_CERTIFICATES} certificates")
    if inner.peek() == 0xA1:
        inner.take(0xA1)
    # `only`: with a second signer, one reader would verify the first and another the second.
    signer = _Reader(der.only(inner.take(_SET), der.SEQUENCE))
    signer.take(der.INTEGER)
    name = _Reader(signer.take(der.SEQUENCE))
    issuer = der.encoded(der.SEQUENCE, name.take(der.SEQUENCE))
    serial = int.from_bytes(name.take(der.INTEGER), "big", signed=True)
    hash_name = _hash(signer.take(der.SEQUENCE))
    # Optional in PKCS #7 (RFC 2315 §9.2) and demanded by Authenticode: without them the signature is over the content itself.
    attributes = signer.take(_TAGGED_0)
    signer.take(der.SEQUENCE)
    return SignedImage(
        image_hash=image_hash,
        image_digest=image_digest,
        content=content,
        certificates=certificates,
        issuer=issuer,
        serial=serial,
        hash=hash_name,
        content_digest=_message_digest(attributes),
        # Signed as a SET though it is sent under [0] (RFC 2315 §9.3).
        message=der.encoded(_SET, attributes),
        signature=signer.take(der.OCTETS),
    )


def _content(data: bytes) -> tuple[str, bytes, bytes]:
    reader = _Reader(data)
    if der.dotted(reader.take(der.OID)) != _INDIRECT_DATA:
        raise EvidenceError("bad-signature", "it signs something other than an image")
    content = der.only(reader.take(_TAGGED_0), der.SEQUENCE)
    fields = _Reader(content)
    fields.take(der.SEQUENCE)
    info = _Reader(fields.take(der.SEQUENCE))
    return _hash(info.take(der.SEQUENCE)), info.take(der.OCTETS), content


def _hash(data: bytes) -> str:
    number = der.dotted(_Reader(data).take(der.OID))
    if number not in _HASHES:
        raise EvidenceError("unknown-hash", f"it uses the unknown hash {number}")
    return _HASHES[number]


def _message_digest(attributes: bytes) -> bytes:
    for tag, body in der.elements(attributes):
        row = _Reader(body)
        if tag == der.SEQUENCE and der.dotted(row.take(der.OID)) == _MESSAGE_DIGEST:
            return der.only(row.take(_SET), der.OCTETS)
    raise EvidenceError("bad-signature", "its attributes hold no digest of the content")


def _first(data: bytes, tag: int) -> bytes:
    elements = der.elements(data)
    kind, body = next(elements, (0, b""))
    rest = data[len(der.encoded(kind, body)) :]
    if kind != tag or any(rest):
        raise EvidenceError("bad-signature", "it is not one SEQUENCE, or something follows it")
    return body


class _Reader:
    """Elements one after the other, each of the tag that is asked for."""

    def __init__(self, data: bytes) -> None:
        self._elements: Iterator[Element] = der.elements(data)
        self._next: Element | None = next(self._elements, None)

    def peek(self) -> int:
        """The tag of the next element; 0 at the end."""
        return self._next[0] if self._next else 0

    def take(self, tag: int) -> bytes:
        """The content of the next element."""
        if self._next is None or self._next[0] != tag:
            raise EvidenceError("bad-signature", f"an element of tag {tag:#04x} is missing")
        body, self._next = self._next[1], next(self._elements, None)
        return body
