"""Vendors' documents for the doors that this command runs: an imported directory, a cache, and the vendors' services if asked.

The services learn which chips and platforms a site has, so they are not asked unless somebody says so.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from fastness.attestation.live.collateral import Collateral
from fastness.attestation.live.collateral_files import CACHE, IMPORTED
from fastness.attestation.live.vendor_services import SECONDS, Services, VendorServices
from fastness.runtime.clock import Clock


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
