"""Vendors' documents as files: what an operator imports, and what was fetched before.

    tdx/<fmspc>-<platform|processor>.json      Intel's documents about a kind of platform, nine members
    snp/<generation>/authorities.pem           AMD's intermediates and root
    snp/<generation>/crl.der                   AMD's revocation list
    snp/<generation>/<chip id>/<versions>.der  an endorsement key, e.g. bl02_tee00_snp06_ucode21.der (fmc01_… on Turin)
    tpm/*.pem, *.der                           certificates of makers of TPMs
    numbers.json                               the highest numbers seen (only in the directory that Fastness writes)

Imported directories are read and never written. Files are replaced as a whole, so that a reader sees the old one or the new one.
Numbers never go down: whoever can put an older document back would otherwise hide what was revoked since.

`ends_of` looks at directories from outside, for `fastness doctor`: until when each document counts. Whether it is genuine is
asked where it is used.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Final

from fastness.crypto.errors import CryptoError
from fastness.crypto.silicon.chains import load_certificates
from fastness.crypto.silicon.revocation import RevocationList
from fastness.crypto.x509 import Certificate
from fastness.formats import json
from fastness.formats.cursor import EvidenceError
from fastness.formats.errors import JsonError
from fastness.formats.evidence.snp.tcb import Generation, Tcb
from fastness.formats.evidence.tdx.collateral import parse_collateral

IMPORTED: Final = "collateral"
"""The directory below a state directory into which an operator imports documents."""
CACHE: Final = "collateral-cache"
"""The directory beside it that keeps what was fetched."""
MAX_FILE: Final = 2 * 1024 * 1024
NUMBERS: Final = "numbers.json"
_SHORT: Final = {"fmc": "fmc", "bootloader": "bl", "tee": "tee", "snp": "snp", "microcode": "ucode"}


def tdx_file(fmspc: str, ca: str) -> str:
    """Where the documents of a kind of platform lie."""
    return f"tdx/{fmspc}-{ca}.json"


def authorities_file(generation: Generation) -> str:
    """Where AMD's authorities lie."""
    return f"snp/{generation}/authorities.pem"


def crl_file(generation: Generation) -> str:
    """Where AMD's revocation list lies."""
    return f"snp/{generation}/crl.der"


def vcek_file(generation: Generation, chip_id: bytes, tcb: Tcb) -> str:
    """Where the endorsement key of a chip with these firmware versions lies."""
    versions = "_".join(f"{_SHORT[name]}{version:02d}" for name, version in tcb.components().items())
    return f"snp/{generation}/{chip_id.hex()}/{versions}.der"


class Shelf:
    """A directory with documents of vendors, each under a name that says what it is about."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def read(self, name: str) -> bytes | None:
        """A document; None when there is none, or one too large to be one."""
        try:
            with (self._directory / name).open("rb") as file:
                # One byte more than is allowed tells a file that is too large from one that fits, without reading the rest of it.
                data = file.read(MAX_FILE + 1)
        except OSError:
            return None
        return data if len(data) <= MAX_FILE else None

    def write(self, name: str, data: bytes) -> None:
        """Replace a document; raises OSError."""
        target = self._directory / name
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o755)
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=".new-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                # Before the rename: after a loss of power the new name must not stand over empty blocks.
                os.fsync(file.fileno())
            Path(temporary).replace(target)
        except OSError:
            with contextlib.suppress(OSError):
                Path(temporary).unlink()
            raise

    def makers(self) -> list[Certificate]:
        """The certificates of makers of TPMs; a file that cannot be read is passed over."""
        certificates: list[Certificate] = []
        directory = self._directory / "tpm"
        for path in sorted(directory.iterdir()) if directory.is_dir() else []:
            data = self.read(f"tpm/{path.name}") if path.suffix in (".pem", ".der", ".crt") else None
            if data:
                with contextlib.suppress(CryptoError):
                    certificates += load_certificates(data)
        return certificates


class Numbers:
    """The highest number of each document that was ever accepted; kept on a shelf if there is one."""

    def __init__(self, shelf: Shelf | None) -> None:
        self._shelf = shelf
        self._highest: dict[str, int] = {}
        data = shelf.read(NUMBERS) if shelf else None
        if data:
            with contextlib.suppress(JsonError, AttributeError):
                stored = json.decode(data).items()
                # A file that cannot be read begins anew: refusing to start would let whoever can damage it stop all attestation.
                self._highest = {str(name): number for name, number in stored if type(number) is int}

    def behind(self, offered: dict[str, int]) -> list[str]:
        """Which of these are lower than one that was seen."""
        return [
            f"{name} {number} after {self._highest[name]}"
            for name, number in sorted(offered.items())
            # Equal is fine: vendors sign the same number again with new dates.
            if number < self._highest.get(name, number)
        ]

    def keep(self, offered: dict[str, int]) -> None:
        """Remember numbers that only grew; raises OSError when they cannot be written."""
        grown = {name: number for name, number in offered.items() if number > self._highest.get(name, -1)}
        if not grown:
            return
        self._highest |= grown
        if self._shelf is not None:
            self._shelf.write(NUMBERS, json.canonical(self._highest))


def ends_of(directories: Iterable[Path]) -> dict[str, datetime | None]:
    """Until when the documents in directories count, by file; None for one that cannot be read."""
    ends: dict[str, datetime | None] = {}
    for directory in directories:
        for pattern in ("tdx/*.json", "snp/*/crl.der"):
            for path in sorted(directory.glob(pattern)):
                ends[str(path.relative_to(directory.parent))] = _end_of(path)
    return ends


def _end_of(path: Path) -> datetime | None:
    try:
        if path.stat().st_size > MAX_FILE:
            return None
        data = path.read_bytes()
        if path.suffix == ".der":
            return RevocationList(data).ends
        documents = parse_collateral(data)
        lists = [RevocationList(crl).ends for crl in (documents.pck_crl, documents.root_crl)]
        ends = [documents.tcb_info.next_update, documents.qe_identity.next_update, *lists]
        return min(end for end in ends if end is not None)
    except (OSError, CryptoError, EvidenceError):
        return None
