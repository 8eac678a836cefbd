"""Launch measurements: what the processor itself hashes before a confidential VM runs its first instruction.

* SNP: the launch digest is a chain over pages (SEV-SNP ABI §8.17.2, PAGE_INFO): firmware, a page with the hashes of kernel,
  initrd and command line, and one state page per processor.
* TDX: MRTD is one hash over the operations that build the domain: each page that is added and each 256 bytes that are measured
  (TDX module ABI, TDH.MEM.PAGE.ADD and TDH.MR.EXTEND).
"""

from __future__ import annotations

import hashlib
import struct
from typing import Final
from uuid import UUID

PAGE: Final = 4096
HASHES_AT: Final = 0x0081_0000
_NORMAL, _VMSA = 0x01, 0x02
_VMSA_AT: Final = 0xFFFF_FFFF_F000
_CHUNK: Final = 256
_TABLE: Final = UUID("9438d606-4f22-4cc9-b479-a793d411fd21")
_ENTRIES: Final = {
    "cmdline": UUID("97d02dd8-bd20-4c94-aa78-e7714d36ab2a"),
    "initrd": UUID("44baf731-3a2f-4bd7-9af1-41e29169781d"),
    "kernel": UUID("4de79437-abd2-427f-b835-d5b172d2045b"),
}


def whole_pages(data: bytes) -> bytes:
    """Data filled up with zeros to the end of a page."""
    return data + bytes(-len(data) % PAGE)


def kernel_hashes(kernel: bytes, initrd: bytes, command_line: str) -> bytes:
    """The page by which firmware knows what it may boot: a table of SHA-256 digests, named by GUIDs."""
    contents = {"cmdline": command_line.encode() + b"\0", "initrd": initrd, "kernel": kernel}
    entries = b"".join(
        guid.bytes_le + struct.pack("<H", 50) + hashlib.sha256(contents[name]).digest()
        for name, guid in _ENTRIES.items()
    )
    table = _TABLE.bytes_le + struct.pack("<H", 18 + len(entries)) + entries
    return table.ljust(PAGE, b"\0")


def processor_state(number: int) -> bytes:
    """The state page of a processor: where it starts and its privileges, as far as processors differ."""
    page = bytearray(PAGE)
    struct.pack_into("<Q", page, 0x178, 0xFFF0 if number == 0 else 0xB004)  # RIP: reset vector, or the waiting loop
    struct.pack_into("<Q", page, 0x3B0, 0x1)  # SEV_FEATURES: SNP active
    return bytes(page)


def snp_launch_digest(firmware: bytes, hashes: bytes, processors: int) -> bytes:
    """MEASUREMENT of an SNP guest."""
    digest = bytes(48)
    start = (1 << 32) - len(firmware)
    pages = [(_NORMAL, start + at, firmware[at : at + PAGE]) for at in range(0, len(firmware), PAGE)]
    pages.append((_NORMAL, HASHES_AT, hashes))
    pages += [(_VMSA, _VMSA_AT, processor_state(number)) for number in range(processors)]
    for kind, address, content in pages:
        info = digest + hashlib.sha384(content).digest() + struct.pack("<HBBIQ", 0x70, kind, 0, 0, address)
        digest = hashlib.sha384(info).digest()
    return digest


def mr_td(firmware: bytes) -> bytes:
    """MRTD of a trust domain whose firmware ends at 4 GiB."""
    whole, start = hashlib.sha384(), (1 << 32) - len(firmware)
    for at in range(0, len(firmware), PAGE):
        whole.update(struct.pack("<16sQ104x", b"MEM.PAGE.ADD", start + at))
        for chunk in range(at, at + PAGE, _CHUNK):
            whole.update(struct.pack("<16sQ104x", b"MR.EXTEND", start + chunk))
            whole.update(firmware[chunk : chunk + _CHUNK])
    return whole.digest()
