"""What an Authenticode hash covers, and the signatures that an image carries (Authenticode_PE.docx; EDK2 measures the same way).

The hash is over the file without the checksum, the directory entry of the certificate table and the table itself. Firmware
adds up what it has hashed: headers, then sections by their place in the file, then as many bytes from that sum on as are
left. Where sections have gaps between them that is not the same as the file in order, and the firmware's way decides.

* Nothing is filled up to eight bytes here: tools that sign do that to the file, and then it is part of the file.
* `digest_in` reads the digest that a signature vouches for (SpcIndirectDataContent); whether it is the image's is the caller's
  question.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fastness.formats.errors import ImageError
from fastness.formats.evidence.pe.image import PeImage

MAX_CERTIFICATES: Final = 16
_PKCS_SIGNED_DATA: Final = 0x0002
_REVISION_2: Final = 0x0200


@dataclass(frozen=True, slots=True)
class WinCertificate:
    """One entry of the certificate table: PKCS #7 SignedData."""

    pkcs7: bytes


def covered(image: PeImage) -> list[bytes]:
    """The pieces of the file that the hash is over, in order."""
    data, table = image.data, image.certificates[0]
    pieces = [
        data[: image.checksum_offset],
        data[image.checksum_offset + 4 : image.security_offset],
        data[image.security_offset + 8 : image.headers_size],
    ]
    done = image.headers_size
    for row in sorted((row for row in image.sections if row.raw_size), key=lambda row: row.raw_offset):
        pieces.append(data[row.raw_offset : row.raw_end])
        done += row.raw_size
    pieces.append(data[done:table])
    return pieces


def certificates(image: PeImage) -> tuple[WinCertificate, ...]:
    """The signatures of the image, in the order in which firmware tries them; raises ImageError."""
    offset, size = image.certificates
    end, entries = offset + size, list[WinCertificate]()
    while end - offset >= 8:
        length = int.from_bytes(image.data[offset : offset + 4], "little")
        revision = int.from_bytes(image.data[offset + 4 : offset + 6], "little")
        kind = int.from_bytes(image.data[offset + 6 : offset + 8], "little")
        # A length of nothing would never end the loop.
        if length <= 8 or length > end - offset:
            raise ImageError("bad-certificates", f"an entry of the certificate table claims {length} bytes")
        if len(entries) == MAX_CERTIFICATES:
            raise ImageError("bad-certificates", f"an image has at most {MAX_CERTIFICATES} signatures")
        if kind != _PKCS_SIGNED_DATA or revision != _REVISION_2:
            raise ImageError(
                "unknown-signature",
                f"an entry of the certificate table has revision {revision:#06x} and type {kind:#06x}",
                hint="Firmware verifies Authenticode signatures (PKCS #7). Sign the image with sbsign or its like.",
            )
        entries.append(WinCertificate(image.data[offset + 8 : offset + length]))
        # Entries begin at multiples of eight (Microsoft PE format, attribute certificate table).
        offset += length + -length % 8
    # Inside of the table and in no entry: covered by no hash and read by nobody.
    if any(image.data[offset:end]):
        raise ImageError("bad-certificates", "bytes follow the last entry of the certificate table")
    return tuple(entries)
