"""The parsers of boot images and firmware variables as fuzz targets; the corpus is minted and small."""

from __future__ import annotations

import bz2
import gzip
import lzma
from typing import Final

from fastness.formats.cpio import unpack_initrd
from fastness.formats.elf import parse_elf
from fastness.formats.evidence.efi.signature_lists import GLOBAL, IMAGE_SECURITY, SIG_SHA256, SIG_X509, parse_siglists
from fastness.formats.evidence.efi.variables import parse_store
from fastness.formats.evidence.pe.authenticode import certificates, covered
from fastness.formats.evidence.pe.image import PeImage, parse_pe
from fastness.formats.evidence.pe.pkcs7 import parse_signed_image
from fastness.formats.evidence.pe.uki import parse_uki
from fastness.sim.vms.initrd import archive
from tests.elves import elf
from tests.fuzz.driver import Target
from tests.measuredboot import minted

_SIGNER: Final = minted.Signer("signer")
_MAGIC: Final = b"#### LoaderInfo: systemd-stub 252 ####"
_PLAIN: Final = minted.pe({".a": b"one", ".b": b"two" * 200})
_ARCHIVE: Final = archive({"etc/initrd-release": b"ID=test\n", "bin/a": bytes(70)}, {"init": "bin/a"})
_LENGTHS: Final = (b"\xff\xff\xff\xff", b"\x00\x00", b"\xff\xff", b"\x00\x00\x00\x80", bytes(8), b"\xff" * 8)
_VARIABLES: Final = {(GLOBAL, "PK"): b"key" * 9, (IMAGE_SECURITY, "db"): b"list", (GLOBAL, "SecureBootEnable"): b"\1"}


def _image(data: bytes) -> PeImage:
    image = parse_pe(data)
    # What is accepted has a hash over at most the file, and its certificates can be listed or are refused.
    assert sum(map(len, covered(image))) <= len(data)
    certificates(image)
    return image


def _uki(data: bytes) -> object:
    uki = parse_uki(data)
    assert all(len(content) <= len(data) + 1024 * 1024 for content in uki.sections.values())
    return uki.release


TARGETS: Final = (
    Target(
        "PE image",
        _image,
        (
            _PLAIN,
            minted.pe({".a": b"x"}, wide=False, tail=b"behind"),
            minted.with_certificates(_PLAIN, [b"one", b"two"]),
        ),
        (*_LENGTHS, b"MZ", b"PE\0\0", b"\x0b\x02", b"\x0b\x01"),
    ),
    Target(
        "unified kernel image",
        _uki,
        (minted.pe({".sdmagic": _MAGIC, ".linux": minted.kernel()}),),
        (*_LENGTHS, b".linux", b"HdrS", _MAGIC),
    ),
    Target(
        "Authenticode signature",
        parse_signed_image,
        (_SIGNER.signature(bytes(32)), _SIGNER.signature(bytes(32), beside=[_SIGNER])),
        (*_LENGTHS, b"\x30\x80", b"\xa0\x82", b"\x31\x00", b"\x06\x09", b"\x02\x01"),
    ),
    Target(
        "firmware variables",
        parse_store,
        (minted.store(_VARIABLES, size=0x400), minted.store({}, size=0x100)),
        (*_LENGTHS, b"\xaa\x55", b"\x3f", b"_FVH"),
    ),
    Target(
        "signature lists",
        parse_siglists,
        (minted.siglist(SIG_X509, b"certificate") + minted.siglist(SIG_SHA256, bytes(32), bytes(32)), b""),
        (*_LENGTHS, SIG_X509, SIG_SHA256, b"\x30\x00\x00\x00"),
    ),
    Target(
        "program of Linux",
        parse_elf,
        (elf(), elf(["libseccomp.so.2", "libc.so.6"], "/lib64/ld-linux-x86-64.so.2"), elf(machine=0xB7)),
        (*_LENGTHS, b"\x7fELF", b"\x02\x01", b"\x01\x02", b"\x3e\x00", b"\x40\x00\x38\x00"),
    ),
    Target(
        "initial file system",
        unpack_initrd,
        (
            _ARCHIVE,
            _ARCHIVE + bytes(512) + gzip.compress(_ARCHIVE, mtime=0),
            lzma.compress(_ARCHIVE) + bz2.compress(_ARCHIVE),
        ),
        (
            b"070701",
            b"070702",
            b"TRAILER!!!\0",
            b"ffffffff",
            b"00000000",
            b"-0000001",
            b"\x1f\x8b",
            b"\xfd7zXZ\0",
            b"BZh9",
        ),
    ),
)
