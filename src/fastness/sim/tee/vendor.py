"""A silicon vendor that is made up: the roots of its three works, and the chips that come out of them.

    vendor = SimVendor(entropy, now)
    vendor.chip("tpm"), vendor.chip("snp", generation=Generation.TURIN), vendor.chip("tdx", level="old")
    vendor.roots.amd, vendor.roots.intel, vendor.roots.tpm    # for the expectations of the production verifier
    vendor.collateral(at), vendor.revocations(Generation.MILAN, at)

One draw of 32 bytes from the entropy decides everything. A simulated cluster that keeps them has the same vendor after a
restart: `SimVendor.of(seed)`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Final, Literal, overload

from fastness.crypto.entropy import RandomBytes
from fastness.formats.evidence.snp.tcb import Generation, Tcb
from fastness.formats.evidence.tdx.collateral import Collateral
from fastness.sim.tee.firmware import FMSPC, TdxFirmware
from fastness.sim.tee.snp import Endorsement, SnpChip, SnpFoundry
from fastness.sim.tee.tdx import TdxChip, TdxFoundry
from fastness.sim.tee.tpm import Keys, TpmChip, TpmFoundry
from fastness.sim.tee.writers import tpm2
from fastness.sim.tee.writers.authority import Period
from fastness.sim.tee.writers.keys import Seed
from fastness.sim.tee.writers.tdx_documents import QE_SVN

SEED_BYTES: Final = 32
EPOCH: Final = datetime(2026, 1, 1, tzinfo=UTC)
# Fixed, so that a root depends on the seed alone and a cluster that restarts years later still knows its own.
VALIDITY: Final = Period(datetime(2020, 1, 1, tzinfo=UTC), datetime(2049, 12, 31, tzinfo=UTC))
_DEFAULT_SEED: Final = b"fastness simulated vendor".ljust(SEED_BYTES, b"\0")


@dataclass(frozen=True, slots=True)
class SimRoots:
    """The fingerprints of the vendor's roots, in the shapes that expectations take."""

    amd: dict[str, str]
    intel: str
    tpm: frozenset[str]


class SimVendor:
    """A vendor with works for TPMs, for SNP and for TDX."""

    def __init__(self, entropy: RandomBytes | None = None, now: datetime = EPOCH) -> None:
        self.seed = entropy.token(SEED_BYTES) if entropy else _DEFAULT_SEED
        self.now = now
        self._tree = Seed(self.seed)
        self._made = {"tpm": 0, "snp": 0, "tdx": 0}

    @classmethod
    def of(cls, seed: bytes, now: datetime = EPOCH) -> SimVendor:
        """The vendor of a seed that was kept."""
        return cls(_Kept(seed), now)

    @cached_property
    def tpm(self) -> TpmFoundry:
        """The works for TPMs."""
        return TpmFoundry(self._tree.branch("tpm"), VALIDITY)

    @cached_property
    def snp(self) -> SnpFoundry:
        """The works for SNP."""
        return SnpFoundry(self._tree.branch("snp"), VALIDITY)

    @cached_property
    def tdx(self) -> TdxFoundry:
        """The works for TDX."""
        return TdxFoundry(self._tree.branch("tdx"), VALIDITY)

    @cached_property
    def roots(self) -> SimRoots:
        """The fingerprints of all roots."""
        return SimRoots(self.snp.roots, self.tdx.root.fingerprint, frozenset({self.tpm.root.fingerprint}))

    @overload
    def chip(
        self,
        tee: Literal["tpm"],
        *,
        serial: int | None = None,
        keys: Keys = "ecc",
        ak_attributes: int = tpm2.AK_ATTRIBUTES,
    ) -> TpmChip: ...
    @overload
    def chip(
        self,
        tee: Literal["snp"],
        *,
        serial: int | None = None,
        generation: Generation = Generation.GENOA,
        tcb: Tcb | None = None,
        endorsement: Endorsement = "VCEK",
        validity: Period | None = None,
    ) -> SnpChip: ...
    @overload
    def chip(
        self,
        tee: Literal["tdx"],
        *,
        serial: int | None = None,
        level: str | TdxFirmware = "current",
        fmspc: bytes = FMSPC,
        qe_svn: int = QE_SVN,
    ) -> TdxChip: ...
    @overload
    def chip(self, tee: str, *, serial: int | None = None) -> TpmChip | SnpChip | TdxChip: ...
    def chip(self, tee: str, *, serial: int | None = None, **options: Any) -> TpmChip | SnpChip | TdxChip:
        """A chip: the next one, or the one with that serial number. The options are those of its works."""
        if tee not in self._made:
            raise ValueError(f"there is no simulated TEE {tee!r}: choose one of {', '.join(self._made)}")
        number = self._made[tee] if serial is None else serial
        self._made[tee] = max(self._made[tee], number + 1)
        foundry: Any = getattr(self, tee)
        chip: TpmChip | SnpChip | TdxChip = foundry.chip(serial=number, **options)
        return chip

    def collateral(self, at: datetime | None = None, **changes: Any) -> Collateral:
        """What Intel would publish about the TDX platforms at that time; `changes` as in TdxFoundry.collateral."""
        return self.tdx.collateral(at or self.now, **changes)

    def revocations(
        self, generation: Generation, at: datetime | None = None, serials: Iterable[int] = (), number: int = 1
    ) -> bytes:
        """AMD's revocation list for a generation, in DER."""
        return self.snp.revocations(generation, at or self.now, serials, number)


class _Kept:
    """Entropy that was drawn once and kept."""

    def __init__(self, seed: bytes) -> None:
        if len(seed) != SEED_BYTES:
            raise ValueError(f"the seed of a vendor has {SEED_BYTES} bytes, not {len(seed)}")
        self._seed = seed

    def token(self, length: int) -> bytes:
        return self._seed[:length]
