"""A disk that boots through systemd-boot: a partition table, an EFI system partition, images to choose from.

Everything is fixed, identifiers as well: the table is measured, and a prediction is made from the disk before it boots.
"""

from __future__ import annotations

import shutil
import struct
import tempfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from uuid import UUID

from fastness.agent.host.process import run
from fastness.formats.evidence.efi.gpt import BEGINNING, Gpt, parse_gpt
from tests.components import require_program
from tests.measuredboot import machine

SYSTEMD_BOOT = Path("/usr/lib/systemd/boot/efi/systemd-bootx64.efi")
ESP = UUID("c12a7328-f81f-11d2-ba4b-00a0c93ec93b")
DATA = UUID("0fc63daf-8483-4772-8e79-3d69d8477de4")
FIRST = 2048
_SECTOR = 512
_ENTRIES = 128


def systemd_boot() -> bytes:
    """Debian's boot loader; skips by name where it is missing."""
    require_program(SYSTEMD_BOOT, "systemd-boot-efi")
    return SYSTEMD_BOOT.read_bytes()


def write_disk(
    path: Path, images: Mapping[str, bytes], default: str, *, loader: bytes, table: bool = True, room: int = 12
) -> None:
    """A disk with these images by name, which boots `default`; with a partition table, or as a bare file system.

    `room` is what it has beside them, in megabytes.
    """
    megabytes = sum(map(len, images.values())) // 1024**2 + room
    start = FIRST * _SECTOR if table else 0
    with path.open("wb") as file:
        file.truncate(start + (megabytes + 2) * 1024**2)
    if table:
        write_table(path, megabytes * 2048)
    drive = f"{path}@@{start}"
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        files = {"EFI/BOOT/BOOTX64.EFI": loader, "loader/loader.conf": f"default {default}\ntimeout 0\n".encode()}
        files |= {f"EFI/Linux/{name}": content for name, content in images.items()}
        run(["mformat", "-i", drive, "-T", str(megabytes * 2048), "-N", "0", "::"])
        run(["mmd", "-i", drive, "::/EFI", "::/EFI/BOOT", "::/EFI/Linux", "::/loader"])
        for number, (name, content) in enumerate(files.items()):
            source = Path(scratch) / str(number)
            source.write_bytes(content)
            run(["mcopy", "-i", drive, str(source), f"::/{name}"])


def write_table(path: Path, esp: int) -> None:
    """Give a disk a partition table: an EFI system partition of so many sectors, and the rest."""
    with path.open("r+b") as file:
        primary, backup, last = _table(file.seek(0, 2) // _SECTOR, esp)
        file.seek(0)
        file.write(primary)
        file.seek((last + 1) * _SECTOR - len(backup))
        file.write(backup)


def table_of(path: Path) -> Gpt:
    """The partition table of a disk."""
    with path.open("rb") as file:
        return parse_gpt(file.read(BEGINNING))


def boot(disk: Path, nonce: bytes, *, secure_boot: bool = False) -> machine.Booted:
    """Boot a disk in a new machine, which quotes and ends."""
    with tempfile.TemporaryDirectory(prefix="fastness-boot-") as scratch:
        place = Path(scratch)
        code, variables = machine.SECURE if secure_boot else machine.PLAIN
        shutil.copy(machine.FIRMWARE / variables, place / "vars.fd")
        (place / "esp.img").symlink_to(disk)
        return machine.boot_in(place, machine.FIRMWARE / code, nonce, secure_boot=secure_boot, writable=True)


def _table(sectors: int, size: int) -> tuple[bytes, bytes, int]:
    """Protective record, header and entries; entries and header of the copy; the last sector."""
    last = sectors - 1
    rows = [(ESP, UUID(int=1), FIRST, FIRST + size - 1, "esp"), (DATA, UUID(int=2), FIRST + size, last - 34, "data")]
    entries = b"".join(
        kind.bytes_le + own.bytes_le + struct.pack("<QQQ", first, end, 0) + name.encode("utf-16-le").ljust(72, b"\0")
        for kind, own, first, end, name in rows
    ).ljust(_ENTRIES * 128, b"\0")
    record = bytes(446) + struct.pack("<B3sB3sII", 0, b"\0\2\0", 0xEE, b"\xff\xff\xff", 1, last)
    record = record.ljust(510, b"\0") + b"\x55\xaa"

    def header(mine: int, other: int, at: int) -> bytes:
        ends = struct.pack("<QQQQ16sQIII", mine, other, FIRST, last - 34, UUID(int=3).bytes_le, at, _ENTRIES, 128,
                           zlib.crc32(entries))  # fmt: skip
        start = b"EFI PART" + struct.pack("<II", 0x00010000, 92)
        sum_ = zlib.crc32(start + bytes(8) + ends)
        return (start + struct.pack("<II", sum_, 0) + ends).ljust(_SECTOR, b"\0")

    return record + header(1, last, 2) + entries, entries + header(last, 1, last - 32), last
