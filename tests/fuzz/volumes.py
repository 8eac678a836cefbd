"""The parsers of LUKS2 headers as fuzz targets: JSON and binary part, with checksums that fit, as a host makes them."""

from __future__ import annotations

from typing import Final

from fastness.formats import json
from fastness.formats.luks2.binary import parse_binary
from fastness.formats.luks2.header import HEADER_BYTES, Header, encode_copy, parse_header
from fastness.formats.luks2.integrity import parse_superblock
from fastness.formats.luks2.metadata import JSON_BYTES, encode_metadata, parse_metadata, to_json
from tests.fuzz.driver import Target
from tests.volumes import COPY, summed, text_of, volume

_TEXT: Final = json.encode(text_of(volume()))
_SMALL: Final = (
    b'{"keyslots":{},"tokens":{},"segments":{"0":{"type":"linear","offset":"0","size":"dynamic","flags":["x"]}},'
    b'"digests":{},"config":{"json_size":"12288","keyslots_size":"0","requirements":{"mandatory":["a"]}}}'
)
_TOKENS: Final = (
    b"{", b"}", b"[", b"]", b":", b",", b'"', b"null", b"true", b"-1", b"1e9", b"18446744073709551615", b'"dynamic"', b'"0"',
    b'"encryption":"cipher_null-ecb",', b'"type":"linear",', b'"type":"argon2id",', b'"flags":["allow-discards"],',
    b'"integrity":{"type":"aead"},', b'"segments":{},', b"\\u0065", b"\\u003a", b"\0", b"[[[[[[[[", b"\xff", b"=",
)  # fmt: skip


def _metadata(data: bytes) -> object:
    """What is accepted is written and read back the same, where it fits."""
    metadata = parse_metadata(data)
    if len(json.encode(to_json(metadata))) < JSON_BYTES:
        assert parse_metadata(encode_metadata(metadata)) == metadata
    return metadata


def _header(text: bytes) -> Header:
    """A header whose first copy is torn and whose second has this JSON: it speaks alone."""
    second = bytearray(volume()[COPY : COPY + 4096] + text[:JSON_BYTES].ljust(JSON_BYTES, b"\0"))
    header = parse_header(bytes(COPY) + summed(second))
    assert header.newest == 1
    return header


def _binary(head: bytes) -> object:
    """A first copy with this binary part."""
    copy = bytearray(head[:4096].ljust(4096, b"\0") + volume()[4096:COPY])
    return parse_binary(summed(copy), 0)


TARGETS: Final = (
    Target("LUKS2 metadata", _metadata, (_TEXT, _SMALL), _TOKENS),
    Target("LUKS2 header, second copy", _header, (_TEXT, _SMALL), _TOKENS),
    Target(
        "LUKS2 binary header",
        _binary,
        (volume()[:512],),
        (b"LUKS\xba\xbe", b"SKUL\xba\xbe", b"\xff" * 8, b"\0" * 8, b"sha256", b"sha1", b"\0\2", b"-"),
    ),
    Target(
        "superblock of dm-integrity",
        parse_superblock,
        (b"integrt\0\4\17\x20\0" + bytes(4) + b"\1" * 8 + bytes(40),),
        (b"integrt\0", b"\xff" * 8, b"\0" * 8, b"\5", b"\3"),
    ),
)


def whole() -> bytes:
    """A header as it was written."""
    header = parse_header(volume()[:HEADER_BYTES])
    return b"".join(encode_copy(copy, position) for position, copy in enumerate(header.copies) if copy)
