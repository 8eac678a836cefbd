"""Variables of UEFI firmware: the store in a firmware image, and the bytes that a measurement of one covers.

The store is EDK2's (OVMF_VARS.fd and kin): a firmware volume whose GUID says "variables", a store header, and records that
begin on multiples of four bytes. A record whose state is not "added" was replaced or deleted. What a variable is measured as
is UEFI_VARIABLE_DATA (TCG PC Client Platform Firmware Profile).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Final

from fastness.formats.errors import ImageError
from fastness.formats.evidence.efi.signature_lists import STORE_AUTHENTICATED, STORE_VOLUME

MAX_STORE: Final = 16 * 1024 * 1024
MAX_VARIABLES: Final = 4096
Variables = Mapping[tuple[bytes, str], bytes]
_START: Final = 0x55AA
_ADDED: Final = 0x3F
_ADDED_AND_REPLACING: Final = 0x3E  # in deletion, but the new value was not written to its end
_HEADER: Final = struct.Struct("<HBxI8x16x4xII16s")
_FORMATTED: Final = 0x5A
_HEALTHY: Final = 0xFE


def variable_data(vendor: bytes, name: str, data: bytes) -> bytes:
    """UEFI_VARIABLE_DATA: what firmware hashes for a variable."""
    text = name.encode("utf-16-le")
    return vendor + struct.pack("<QQ", len(text) // 2, len(data)) + text + data


def parse_store(data: bytes) -> dict[tuple[bytes, str], bytes]:
    """The variables in an EDK2 store by vendor GUID and name; raises ImageError."""
    if len(data) > MAX_STORE:
        raise ImageError("too-large", f"a variable store has at most {MAX_STORE} bytes")
    at, end = _bounds(data)
    current: dict[tuple[bytes, str], bytes] = {}
    fallback: dict[tuple[bytes, str], bytes] = {}
    for _ in range(MAX_VARIABLES):
        if at + _HEADER.size > end or int.from_bytes(data[at : at + 2], "little") != _START:
            return {**fallback, **current}
        _, state, _, name_size, data_size, vendor = _HEADER.unpack_from(data, at)
        body = at + _HEADER.size
        if name_size % 2 or body + name_size + data_size > end:
            raise ImageError("bad-variable", f"a variable at {at:#x} runs out of its store")
        key = (vendor, _name(data[body : body + name_size]))
        value = data[body + name_size : body + name_size + data_size]
        if state == _ADDED:
            current[key] = value
        # EDK2 writes the new value before it ends the old one: after a power cut in between the old one counts.
        elif state == _ADDED_AND_REPLACING:
            fallback[key] = value
        at = body + name_size + data_size
        at += -at % 4
    raise ImageError("too-many-variables", f"a variable store has at most {MAX_VARIABLES} records")


def _bounds(data: bytes) -> tuple[int, int]:
    if len(data) < 0x48 or data[0x28:0x2C] != b"_FVH" or data[16:32] != STORE_VOLUME:
        raise ImageError(
            "not-a-variable-store",
            "the file is no firmware volume with variables",
            hint="Give the variable store of the machine's firmware, such as OVMF_VARS.fd.",
        )
    length = int.from_bytes(data[0x20:0x28], "little")
    start = int.from_bytes(data[0x30:0x32], "little")
    store = data[start : start + 28]
    if length > len(data) or start < 0x48 or len(store) < 28:
        raise ImageError("cut-off", "the firmware volume is longer than its file, or has no store")
    if store[:16] != STORE_AUTHENTICATED:
        raise ImageError("not-a-variable-store", "the volume holds no authenticated variables")
    size = int.from_bytes(store[16:20], "little")
    if store[20] != _FORMATTED or store[21] != _HEALTHY or not 28 <= size <= length - start:
        raise ImageError("bad-store", "the variable store is not formatted, not healthy, or leaves its volume")
    return start + 28, start + size


def _name(data: bytes) -> str:
    try:
        text = data.decode("utf-16-le")
    except UnicodeDecodeError as error:
        raise ImageError("bad-variable", "the name of a variable is not UTF-16") from error
    return text.split("\0", 1)[0]
