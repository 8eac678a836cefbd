"""Telling the doors of a simulated cluster about its vendor, and telling them again before its documents run out."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from fastness.cluster.clock import Clock
from fastness.cluster.errors import ApiError
from fastness.cluster.port import Cluster
from fastness.domain.attestation.anchors import Anchors
from fastness.formats.snp.tcb import Generation
from fastness.observe import logs
from fastness.sim.tee.tdx import pem
from fastness.sim.tee.vendor import SimVendor
from fastness.trust.simulated import SOURCE, Published, announce

# Documents last a month; a day is also the age from which a newer one is looked for.
AGAIN_SECONDS: Final = 24 * 3600.0
RETRY_SECONDS: Final = 60.0
_log = logs.logger("simulator")


def anchors_of_vendor(vendor: SimVendor) -> Anchors:
    """The roots of a simulated vendor."""
    return Anchors(vendor.roots.amd, vendor.roots.intel, vendor.roots.tpm, SOURCE, simulated=True)


async def announce_vendor(cluster: Cluster, vendor: SimVendor, now: datetime) -> None:
    """Announce roots, certificates and documents of a vendor; its documents are as of `now` and last a month."""
    works = vendor.tpm
    published = Published(
        pem(works.authority.certificate, works.root.certificate),
        vendor.collateral(now).raw.encode(),
        {generation: vendor.revocations(generation, now) for generation in Generation},
    )
    await announce(cluster, anchors_of_vendor(vendor), published)


async def keep_announced(cluster: Cluster, vendor: SimVendor, clock: Clock) -> None:
    """Announce new documents every day, until cancelled."""
    pause = AGAIN_SECONDS
    while True:
        await clock.sleep(pause)
        try:
            await announce_vendor(cluster, vendor, clock.now())
            pause = AGAIN_SECONDS
        except ApiError as error:
            _log.warning("simulator.unannounced", error=error, hint="It is tried again in a minute.")
            pause = RETRY_SECONDS
