"""Generations of EPYC processors and the layout of their TCB versions.

A TCB version is eight bytes; which byte is which component changed with Turin. Reports say their processor from version 3 on;
before that only the certificate knows, so the layout is an argument everywhere.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Generation(StrEnum):
    """A generation, named as AMD's certificates do. Bergamo and Siena are Genoa to them."""

    MILAN = "Milan"
    GENOA = "Genoa"
    TURIN = "Turin"

    @property
    def chip_id_size(self) -> int:
        """How many bytes of the chip id are used; the rest are zero."""
        return 8 if self is Generation.TURIN else 64


class Tcb(NamedTuple):
    """Security versions of the firmware components; `fmc` exists from Turin on."""

    bootloader: int
    tee: int
    snp: int
    microcode: int
    fmc: int | None = None

    def components(self) -> dict[str, int]:
        """Name to version, without what the generation lacks."""
        named = {"bootloader": self.bootloader, "tee": self.tee, "snp": self.snp, "microcode": self.microcode}
        return named if self.fmc is None else {"fmc": self.fmc, **named}

    def behind(self, floor: Tcb) -> list[str]:
        """The components that are older than `floor`."""
        mine, needed = self.components(), floor.components()
        # A component that is asked for and not there is behind: a chip cannot pass by not reporting it.
        return [name for name, version in needed.items() if mine.get(name, -1) < version]

    def __str__(self) -> str:
        return " ".join([f"{name}={version}" for name, version in self.components().items()])


def read_tcb(raw: bytes, generation: Generation) -> Tcb:
    """The components of eight bytes, by the generation's layout."""
    # The generation is that of the certificate, which AMD signed: read in the other layout, an old version looks like a new one.
    if generation is Generation.TURIN:
        return Tcb(fmc=raw[0], bootloader=raw[1], tee=raw[2], snp=raw[3], microcode=raw[7])
    return Tcb(bootloader=raw[0], tee=raw[1], snp=raw[6], microcode=raw[7])


def generation_of_cpu(family: int, model: int) -> Generation | None:
    """The generation of a processor by CPUID; None for those without a root that is known here."""
    if family == 0x19:
        if model <= 0x0F:
            return Generation.MILAN
        if 0x10 <= model <= 0x1F or 0xA0 <= model <= 0xAF:
            return Generation.GENOA
    if family == 0x1A and model <= 0x11:
        return Generation.TURIN
    return None
