"""The oldest firmware of each generation of EPYC that still proves something: a table with its date and its sources.

Below these versions a host can load microcode of its own making (AMD-SB-3019, CVE-2024-56161), and then nothing that the chip
signs is worth believing. So they hold in every cluster, whatever it says; `minimumTcb` of a cluster can only raise them, for
instance to what later bulletins ask (AMD-SB-3020, AMD-SB-3027).

* The version of the SNP firmware is that of its generation: AMD-SB-3019 names 0x18 for Milan and 0x17 for Genoa, and none for
  Turin, whose first firmware has the fix.
* The version of the microcode is the last byte of its revision, which counts for each stepping anew: 0x0A0011DB is 219 on a
  Milan B1, and a Milan-X has it fixed from 68 on. The first good revisions are one above the cut-offs that Linux has for the same
  flaw (arch/x86/kernel/cpu/microcode/amd.c). Reports name their stepping from version 3 on. Older ones, and steppings that
  nobody knows, are held to the ordinary stepping of their generation.
* Components that neither source names are not compared.

The table is compared with AMD's bulletins at its date. `fastness doctor` says when that is too long ago.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from typing import Final

from fastness.formats.evidence.snp.tcb import Generation, Tcb

DATE: Final = date(2026, 11, 16)
SOURCE: Final = "AMD-SB-3019 and the microcode cut-offs of Linux"
GROWS_OLD: Final = timedelta(days=180)
FLOORS: Final[Mapping[Generation, Tcb]] = {
    Generation.MILAN: Tcb(bootloader=0, tee=0, snp=0x18, microcode=0xDB),
    Generation.GENOA: Tcb(bootloader=0, tee=0, snp=0x17, microcode=0x54),
    Generation.TURIN: Tcb(bootloader=0, tee=0, snp=0, microcode=0x47, fmc=0),
}
# By family, model and stepping.
MICROCODE: Final[Mapping[tuple[int, int, int], int]] = {
    (0x19, 0x01, 0): 0x7B,  # Milan B0
    (0x19, 0x01, 1): 0xDB,  # Milan B1
    (0x19, 0x01, 2): 0x44,  # Milan-X
    (0x19, 0x11, 1): 0x54,  # Genoa B1
    (0x19, 0x11, 2): 0x4F,  # Genoa-X
    (0x19, 0xA0, 1): 0x17,  # Bergamo and Siena A1
    (0x19, 0xA0, 2): 0x19,  # Bergamo and Siena A2
    (0x1A, 0x02, 1): 0x47,  # Turin C1
    (0x1A, 0x11, 0): 0x47,  # Turin Dense B0
}


def floor_of(generation: Generation, cpu: tuple[int, int, int] | None, raised: Tcb | None = None) -> Tcb:
    """The least versions of a chip: those of the table, or what a cluster asks where that is more."""
    floor = FLOORS[generation]
    # The ordinary stepping counts otherwise: an unknown one must not be the way below the floor.
    if cpu is not None and cpu in MICROCODE:
        floor = floor._replace(microcode=MICROCODE[cpu])
    if raised is None:
        return floor
    more = raised.components()
    # The larger of the two, component by component: a setting of the cluster never lowers what is built in.
    return floor._replace(**{name: max(least, more.get(name, 0)) for name, least in floor.components().items()})


def is_old(today: date) -> bool:
    """Whether the table was compared with AMD's bulletins too long ago."""
    return today - DATE > GROWS_OLD
