"""The firmware of simulated platforms: which versions are current, and which were once.

One table for chips, collateral and reference values: a chip that is made without a word runs the current versions, and the
vendor's documents know the old ones, with the advisories that follow from them.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final

from fastness.formats.evidence.snp.tcb import Generation, Tcb

CURRENT_TCB: Final = {
    Generation.MILAN: Tcb(bootloader=4, tee=0, snp=25, microcode=219),
    Generation.GENOA: Tcb(bootloader=10, tee=0, snp=23, microcode=84),
    Generation.TURIN: Tcb(fmc=1, bootloader=2, tee=1, snp=4, microcode=90),
}
OLD_TCB: Final = {
    Generation.MILAN: Tcb(bootloader=3, tee=0, snp=8, microcode=115),
    Generation.GENOA: Tcb(bootloader=7, tee=0, snp=14, microcode=62),
    Generation.TURIN: Tcb(fmc=0, bootloader=1, tee=0, snp=2, microcode=49),
}
CPUS: Final = {Generation.MILAN: (0x19, 0x01, 1), Generation.GENOA: (0x19, 0x11, 1), Generation.TURIN: (0x1A, 0x02, 1)}

FMSPC: Final = bytes.fromhex("5300ba5e0000")
XFAM: Final = bytes.fromhex("e702060000000000")
QE_SIGNER: Final = hashlib.sha256(b"signer of the simulated quoting enclave").digest()


@dataclass(frozen=True, slots=True)
class TdxFirmware:
    """A level of a TDX platform: processor components, provisioning enclave, TDX module and loader."""

    components: tuple[int, ...]
    pce_svn: int
    module: int
    loader: int
    status: str
    date: str
    advisories: tuple[str, ...] = ()

    @property
    def tee_tcb_svn(self) -> bytes:
        """The versions of TDX as the module reports them: module, major version 1, loader."""
        return bytes((self.module, 1, self.loader)).ljust(16, b"\0")


TDX_LEVELS: Final = {
    "current": TdxFirmware((5, 5, 2, 2, 3, 1, 0, 5) + (0,) * 8, 13, 6, 6, "UpToDate", "2026-02-11T00:00:00Z"),
    "hardening": TdxFirmware(
        (4, 4, 2, 2, 3, 1, 0, 5) + (0,) * 8, 13, 6, 5, "SWHardeningNeeded", "2025-08-13T00:00:00Z", ("INTEL-SA-00615",)
    ),
    "old": TdxFirmware(
        (3, 3, 2, 2, 3, 1, 0, 3) + (0,) * 8, 11, 4, 3, "OutOfDate", "2024-03-13T00:00:00Z",
        ("INTEL-SA-00837", "INTEL-SA-01036"),
    ),
}  # fmt: skip
