"""Init data: the small TOML document that a host hands to a guest, measured before the guest runs.

    version = "0.1.0"
    algorithm = "sha256"
    [data]
    "aa.toml" = '''…'''

The digest is over the exact text with the document's own algorithm. Total, with limits; unknown members are refused,
because whoever wrote them expected them to matter. `lint` in `workloads.initdata` says more about what is inside.

On its way to a guest the text is an annotation of the pod: gzip, then base64. Packing here is deterministic, unpacking takes what
any other packer made, and neither changes the digest.
"""

from __future__ import annotations

import base64
import binascii
import tomllib
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from fastness.formats.errors import FormatError

MAX_TEXT: Final = 1024 * 1024
MAX_UNPACKED: Final = 4 * 1024 * 1024
MAX_ENCODED: Final = 2 * MAX_UNPACKED
VERSIONS: Final = ("0.1.0",)
ALGORITHMS: Final[Mapping[str, str]] = {
    "sha256": "sha256", "sha384": "sha384", "sha512": "sha512",
    "sha-256": "sha256", "sha-384": "sha384", "sha-512": "sha512",
}  # fmt: skip
_GZIP_HEADER: Final = bytes.fromhex("1f8b08000000000002ff")
_ENCODE: Final = "Make it with `fastness initdata build`."
_ESCAPES: Final[Mapping[str, str]] = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


class InitDataError(FormatError):
    """A text that is not init data."""

    def __init__(self, code: str, message: str, path: str = "", hint: str = "") -> None:
        super().__init__(code, message, path, hint or "Write version, algorithm and a table [data] of texts.")


@dataclass(frozen=True, slots=True)
class InitData:
    """The document: its algorithm, its texts, and the bytes that are measured."""

    algorithm: str
    data: Mapping[str, str]
    text: bytes


def parse_init_data(text: str) -> InitData:
    """Read a document; raises InitDataError."""
    if len(text) > MAX_TEXT:
        raise InitDataError("init-data-too-large", f"the text has more than {MAX_TEXT} characters")
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InitDataError("init-data-syntax", f"this is not TOML: {error}") from error
    unknown = sorted(set(document) - {"version", "algorithm", "data"})
    if unknown:
        raise InitDataError("init-data-member", f"the member {unknown[0]!r} is not known", unknown[0])
    if document.get("version") not in VERSIONS:
        raise InitDataError("init-data-version", f"the version must be {' or '.join(VERSIONS)}", "version")
    algorithm = document.get("algorithm")
    if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
        raise InitDataError("init-data-algorithm", "the algorithm must be sha256, sha384 or sha512", "algorithm")
    data = document.get("data")
    if not isinstance(data, dict) or not all(isinstance(value, str) for value in data.values()):
        raise InitDataError("init-data-table", "data must be a table of texts", "data")
    return InitData(ALGORITHMS[algorithm], data, text.encode())


def encode_init_data(text: bytes) -> str:
    """The annotation of a pod: gzip, then base64 on one line. The same text always gives the same characters."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15, 9)
    body = packer.compress(text) + packer.flush()
    # The header has no time, no name and no operating system, so that nothing but the text decides.
    whole = (
        _GZIP_HEADER + body + zlib.crc32(text).to_bytes(4, "little") + (len(text) & 0xFFFFFFFF).to_bytes(4, "little")
    )
    return base64.b64encode(whole).decode()


def decode_init_data(encoded: str) -> bytes:
    """The text in an annotation, whatever packed it; raises InitDataError."""
    if len(encoded) > MAX_ENCODED:
        raise InitDataError("init-data-too-large", f"more than {MAX_ENCODED} characters", hint="Shorten the entries.")
    try:
        packed = base64.b64decode(encoded.strip().encode("ascii"), validate=True)
    except (UnicodeEncodeError, binascii.Error) as error:
        raise InitDataError("init-data-base64", "this is not base64", hint=_ENCODE) from error
    return unpack_init_data(packed)


def unpack_init_data(packed: bytes, most: int = MAX_UNPACKED) -> bytes:
    """The text in gzip data, at most so many bytes; raises InitDataError."""
    unpacker = zlib.decompressobj(31)
    try:
        text = unpacker.decompress(packed, most + 1)
    except zlib.error as error:
        raise InitDataError("init-data-gzip", "this is not gzip", hint=_ENCODE) from error
    if len(text) > most:
        raise InitDataError("init-data-bomb", f"it unpacks to more than {most} bytes", hint="Shorten the entries.")
    if not unpacker.eof:
        raise InitDataError("init-data-truncated", "the gzip data ends too early", hint="Copy the whole line.")
    if unpacker.unused_data:
        raise InitDataError("init-data-trailing", "something follows the gzip data", hint=_ENCODE)
    return text


def write_init_data(algorithm: str, data: Mapping[str, str]) -> str:
    """The document with these entries, in their order; raises InitDataError."""
    lines = [f'version = "{VERSIONS[0]}"', f"algorithm = {_quoted(algorithm)}", "", "[data]"]
    lines += [f"{_quoted(name)} = {_block(text)}" for name, text in data.items()]
    text = "\n".join(lines) + "\n"
    read = parse_init_data(text)
    if dict(read.data) != dict(data):
        raise InitDataError("init-data-text", "an entry has characters that TOML cannot keep", "data", "Remove them.")
    return text


def _block(text: str) -> str:
    plain = (
        "'''" not in text and not text.endswith("'") and all(c in "\n\t" or (c >= " " and c != "\x7f") for c in text)
    )
    return f"'''\n{text}'''" if plain else _quoted(text)


def _quoted(text: str) -> str:
    return '"' + "".join(_ESCAPES.get(c) or (f"\\u{ord(c):04x}" if c < " " or c == "\x7f" else c) for c in text) + '"'
