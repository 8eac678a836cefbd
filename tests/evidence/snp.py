"""SNP reports that are wrong on purpose: a simulated chip whose reports can be changed in any byte before they are signed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from itertools import count
from typing import Any

from fastness.crypto.silicon.chains import load_certificates
from fastness.crypto.x509 import Certificate
from fastness.formats.evidence.snp.tcb import Generation, Tcb
from fastness.sim.tee import SimVendor
from fastness.sim.tee.snp import SnpChip, tcb_bytes
from fastness.sim.tee.writers.authority import Period
from tests.evidence.authority import END, START

VENDOR = SimVendor()
_NUMBERS = count()


@dataclass(frozen=True)
class Chip:
    """A chip of a generation, with its key for some firmware versions and the chain above it."""

    generation: str = "Milan"
    shared: bool = False
    versions: dict[str, int] = field(default_factory=lambda: {"bootloader": 3, "tee": 0, "snp": 28, "microcode": 230})
    start: datetime = START
    end: datetime = END
    number: int = field(default_factory=_NUMBERS.__next__)

    @cached_property
    def simulated(self) -> SnpChip:
        """The chip itself."""
        return VENDOR.snp.chip(
            Generation(self.generation),
            serial=self.number,
            tcb=self._tcb(),
            endorsement="VLEK" if self.shared else "VCEK",
            validity=Period(self.start, self.end),
        )

    @property
    def chip_id(self) -> bytes:
        """The identity in hardware: 8 bytes on Turin, 64 before."""
        return self.simulated.chip_id

    def _tcb(self, **changes: int) -> Tcb:
        first = {"fmc": 1} if self.generation == "Turin" else {}
        return Tcb(**{**first, **self.versions, **changes})

    def tcb(self, **changes: int) -> bytes:
        """A TCB version in the generation's layout."""
        return tcb_bytes(self._tcb(**changes))

    def certificates(self) -> list[Certificate]:
        """Endorsement key, intermediate, root."""
        return [entry for der in self.simulated.certificates for entry in load_certificates(der)]

    @property
    def roots(self) -> dict[str, str]:
        """The pin of this vendor's root."""
        return {self.generation: VENDOR.roots.amd[self.generation]}

    def report(
        self, version: int = 3, *, nonce: bytes = b"", fields: Mapping[str, bytes] | None = None, **changes: Any
    ) -> bytes:
        """A signed report; members like `x1F0=…` replace bytes by offset, others (policy, vmpl) are those of a boot."""
        raw = {**{place: value for place, value in changes.items() if place[0] == "x"}, **(fields or {})}
        booted = {place: value for place, value in changes.items() if place not in raw}
        patches = {0x90: bytes(range(48)), **{int(place[1:], 16): value for place, value in raw.items()}}
        return self.simulated.boot(version=version, **booted).report(nonce, patches)
