"""Small images, signatures and firmware stores, made up: what a real one has that matters to a measurement, and no more."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.x509.oid import NameOID

from fastness.formats import der
from fastness.formats.evidence.efi.signature_lists import (
    GLOBAL,
    IMAGE_SECURITY,
    SIG_X509,
    STORE_AUTHENTICATED,
    STORE_VOLUME,
)
from fastness.formats.evidence.pe.authenticode import covered
from fastness.formats.evidence.pe.image import parse_pe

OWNER = bytes(range(16))
SET, TAGGED = 0x31, 0xA0
SHA256 = bytes.fromhex("0609608648016503040201")
HEADERS = 0x400


def pe(
    sections: Mapping[str, bytes], *, machine: int = 0x8664, tail: bytes = b"", wide: bool = True, setup: bytes = b""
) -> bytes:
    """A PE image with these sections; `setup` is written from 0x1F0 on, where kernels have their boot header."""
    start = 0x80 if not setup else 0x240
    magic, size, directories = (0x20B, 240, 108) if wide else (0x10B, 224, 92)
    optional = bytearray(size)
    struct.pack_into("<H", optional, 0, magic)
    struct.pack_into("<II", optional, 32, 4096, 512)
    struct.pack_into("<II", optional, 56, 4096 * (2 + len(sections)), HEADERS)
    struct.pack_into("<I", optional, 64, 0xC0FFEE)
    struct.pack_into("<I", optional, directories, 16)
    rows, body = b"", b""
    for number, (name, content) in enumerate(sections.items()):
        raw = content.ljust(len(content) + -len(content) % 512, b"\0")
        place = (len(content), 4096 * (1 + number), len(raw), HEADERS + len(body))
        rows += struct.pack("<8sIIII12xI", name.encode(), *place, 0x40000040)
        body += raw
    coff = struct.pack("<4sHH12xHH", b"PE\0\0", machine, len(sections), size, 0x22)
    head = bytearray(HEADERS)
    head[:2] = b"MZ"
    struct.pack_into("<I", head, 0x3C, start)
    if setup:
        head[0x1F0 : 0x1F0 + len(setup)] = setup
    everything = coff + bytes(optional) + rows
    head[start : start + len(everything)] = everything
    return bytes(head) + body + tail


def kernel(release: str = "6.1.0-test", *, text: bytes = b"kernel") -> bytes:
    """A kernel: a PE image with the boot header of x86."""
    name = release.encode() + b" (builder) #1\0"
    setup = bytearray(0x50)
    setup[0x12:0x16] = b"HdrS"
    struct.pack_into("<H", setup, 0x1E, 0x180)
    image = bytearray(pe({".text": text}, setup=bytes(setup)))
    image[0x380 : 0x380 + len(name)] = name
    return bytes(image)


def stub(version: str = "252.1-1") -> bytes:
    """A boot stub."""
    magic = f"#### LoaderInfo: systemd-stub {version} ####\0".encode()
    return pe({".text": b"stub", ".sbat": b"sbat,1", ".sdmagic": magic})


def loader(version: str = "252.39-1", *, text: bytes = b"loader") -> bytes:
    """A systemd-boot."""
    magic = f"#### LoaderInfo: systemd-boot {version} ####\0".encode()
    return pe({".text": text, ".sbat": b"sbat,1", ".sdmagic": magic})


def sections(**changes: bytes) -> dict[str, bytes]:
    """What a unified kernel image has besides its stub."""
    base = {"linux": kernel(), "osrel": b"ID=test\n", "cmdline": b"quiet x=1", "initrd": b"initrd " * 99, **changes}
    return {f".{name}": content for name, content in base.items() if content}


class Signer:
    """A certificate and its key; `issuer` makes it one of a chain."""

    def __init__(self, name: str, issuer: Signer | None = None, serial: int = 77) -> None:
        self.serial = serial
        self.name: str = name
        self.key = _key(name)
        above = issuer or self
        begin = datetime(2020, 1, 1, tzinfo=UTC)
        self.certificate = (
            x509.CertificateBuilder()
            .subject_name(_name(name))
            .issuer_name(_name(issuer.name if issuer else name))
            .public_key(self.key.public_key())
            .serial_number(serial)
            .not_valid_before(begin)
            .not_valid_after(begin + timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(above.key, hashes.SHA256())
        )

    @property
    def der(self) -> bytes:
        """The certificate."""
        return self.certificate.public_bytes(serialization.Encoding.DER)

    def sign(self, image: bytes, *, beside: Sequence[Signer] = (), digest: bytes | None = None) -> bytes:
        """The image with an Authenticode signature by this key; expired on purpose, as firmware does not ask."""
        padded = image + bytes(-len(image) % 8)
        computed = hashlib.sha256(b"".join(covered(parse_pe(padded)))).digest()
        return with_certificates(padded, [self.signature(digest or computed, beside=beside)])

    def signature(
        self, digest: bytes, *, beside: Sequence[Signer] = (), before: Sequence[Signer] = (), claimed: bytes = b""
    ) -> bytes:
        """PKCS #7 SignedData over an image's digest; `claimed` is put in the place of the digest after signing."""
        algorithm = _seq(SHA256 + b"\x05\x00")
        content = _seq(_oid("1.3.6.1.4.1.311.2.1.15") + _seq(b"")) + _seq(algorithm + der.encoded(der.OCTETS, digest))
        attributes = _seq(_oid("1.2.840.113549.1.9.4") + der.encoded(SET, _octets(hashlib.sha256(content).digest())))
        content = content.replace(digest, claimed or digest)
        signed = self.key.sign(der.encoded(SET, attributes), padding.PKCS1v15(), hashes.SHA256())
        serial = der.encoded(der.INTEGER, bytes([self.serial]))
        info = _seq(
            der.encoded(der.INTEGER, b"\1")
            + _seq(self.certificate.issuer.public_bytes() + serial)
            + algorithm
            + der.encoded(TAGGED, attributes)
            + _seq(_oid("1.2.840.113549.1.1.1") + b"\x05\x00")
            + _octets(signed)
        )
        inner = _seq(
            der.encoded(der.INTEGER, b"\1")
            + der.encoded(SET, algorithm)
            + _seq(_oid("1.3.6.1.4.1.311.2.1.4") + der.encoded(TAGGED, _seq(content)))
            + der.encoded(TAGGED, b"".join(entry.der for entry in (*before, self, *beside)))
            + der.encoded(SET, info)
        )
        return _seq(_oid("1.2.840.113549.1.7.2") + der.encoded(TAGGED, inner))


def with_certificates(image: bytes, blobs: Sequence[bytes]) -> bytes:
    """The image with a certificate table."""
    table = b""
    for blob in blobs:
        size = 8 + len(blob)
        table += struct.pack("<IHH", size, 0x0200, 0x0002) + blob + bytes(-size % 8)
    changed = bytearray(image)
    struct.pack_into("<II", changed, parse_pe(image).security_offset, len(image), len(table))
    return bytes(changed) + table


def siglist(kind: bytes, *entries: bytes) -> bytes:
    """EFI_SIGNATURE_LISTs: one for each entry, as their sizes differ."""
    return b"".join(
        kind + struct.pack("<III", 28 + 16 + len(entry), 0, 16 + len(entry)) + OWNER + entry for entry in entries
    )


def store(
    variables: Mapping[tuple[bytes, str], bytes], *, size: int = 0x8000, states: Mapping[str, int] | None = None
) -> bytes:
    """An EDK2 variable store."""
    body = b""
    for (vendor, name), data in variables.items():
        text = name.encode("utf-16-le") + b"\0\0"
        state = (states or {}).get(name, 0x3F)
        body += struct.pack("<HBxI8x16x4xII16s", 0x55AA, state, 7, len(text), len(data), vendor) + text + data
        body += b"\xff" * (-len(body) % 4)
    head = STORE_AUTHENTICATED + struct.pack("<IBBHI", size - 0x48, 0x5A, 0xFE, 0, 0)
    volume = bytes(16) + STORE_VOLUME + struct.pack("<Q4sIHHHBB", size, b"_FVH", 0, 0x48, 0, 0, 0, 2)
    return (volume + bytes(0x48 - len(volume)) + head + body).ljust(size, b"\xff")


def keys(db: bytes, dbx: bytes = b"") -> dict[tuple[bytes, str], bytes]:
    """The variables of a machine whose platform key is enrolled."""
    platform = siglist(SIG_X509, Signer("platform").der)
    variables = {(GLOBAL, "PK"): platform, (GLOBAL, "KEK"): platform, (IMAGE_SECURITY, "db"): db}
    return {**variables, (IMAGE_SECURITY, "dbx"): dbx} if dbx else variables


@cache
def _key(name: str) -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _seq(content: bytes) -> bytes:
    return der.encoded(der.SEQUENCE, content)


def _octets(content: bytes) -> bytes:
    return der.encoded(der.OCTETS, content)


def _oid(text: str) -> bytes:
    first, second, *rest = map(int, text.split("."))
    content = bytes([first * 40 + second])
    for number in rest:
        groups = [number & 0x7F]
        while number := number >> 7:
            groups.append(0x80 | number & 0x7F)
        content += bytes(reversed(groups))
    return der.encoded(der.OID, content)
