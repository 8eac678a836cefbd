"""Vendors' documents for the doors that this command runs: an imported directory, a cache, and the vendors' services if asked.

The services learn which chips and platforms a site has, so they are not asked unless somebody says so.

`ends_of` looks at directories from outside, for `fastness doctor`: until when each document counts. Whether it is genuine is
asked where it is used.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import httpx

from fastness.attestation.live.collateral import Collateral
from fastness.attestation.live.collateral_files import MAX_FILE
from fastness.attestation.live.vendor_services import SECONDS, Services, VendorServices
from fastness.crypto.errors import CryptoError
from fastness.crypto.silicon.revocation import RevocationList
from fastness.formats.cursor import EvidenceError
from fastness.formats.evidence.tdx.collateral import parse_collateral
from fastness.runtime.clock import Clock

IMPORTED, CACHE = "collateral", "collateral-cache"


@dataclass(frozen=True, slots=True)
class Documents:
    """Where documents are imported and kept; whether the vendors' services are asked."""

    imported: Path | None = None
    cache: Path | None = None
    services: bool = False

    @classmethod
    def below(cls, state: Path, *, services: bool) -> Documents:
        """Those of a state directory."""
        return cls(state / IMPORTED, state / CACHE, services)


@asynccontextmanager
async def opened(documents: Documents, clock: Clock) -> AsyncIterator[Collateral]:
    """The documents, for the time of the block."""
    if not documents.services:
        yield Collateral(clock, imported=documents.imported, cache=documents.cache)
        return
    async with httpx.AsyncClient(timeout=SECONDS) as client:
        services = VendorServices(client, clock, Services())
        yield Collateral(clock, imported=documents.imported, cache=documents.cache, services=services)


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
