"""Telling the doors of a simulated cluster about its vendor, and telling them again before its documents run out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from fastness.attestation.evidence.roots import Anchors
from fastness.attestation.live.simulated_vendor import SOURCE, Published, announce
from fastness.crypto.x509 import Certificate
from fastness.formats.evidence.snp.tcb import Generation
from fastness.kube.errors import ApiError
from fastness.kube.port import Cluster
from fastness.observe import logs
from fastness.runtime.clock import Clock
from fastness.sim.tee.tdx import pem
from fastness.sim.tee.vendor import SimVendor

# Documents last a month; a day is also the age from which a newer one is looked for.
AGAIN_SECONDS: Final = 24 * 3600.0
RETRY_SECONDS: Final = 60.0
Makers = Sequence[Sequence[Certificate]]
_log = logs.logger("simulator")


def anchors_of_vendor(vendor: SimVendor) -> Anchors:
    """The roots of a simulated vendor."""
    return Anchors(vendor.roots.amd, vendor.roots.intel, vendor.roots.tpm, SOURCE, simulated=True)


async def announce_vendor(cluster: Cluster, vendor: SimVendor, now: datetime, makers: Makers = ()) -> None:
    """Announce roots, certificates and documents of a vendor; its documents are as of `now` and last a month.

    `makers` are chains of others whose TPMs count in this cluster, each ending in its root.
    """
    revocations = {generation: vendor.revocations(generation, now) for generation in Generation}
    await announce(
        cluster,
        _anchors(vendor, makers),
        Published(_papers(vendor, makers), vendor.collateral(now).raw.encode(), revocations),
    )


async def withdraw_documents(cluster: Cluster, vendor: SimVendor, makers: Makers = ()) -> None:
    """Announce the roots alone: nobody can be judged who needs a document."""
    await announce(cluster, _anchors(vendor, makers), Published(_papers(vendor, makers), b"", {}))


def _anchors(vendor: SimVendor, makers: Makers) -> Anchors:
    own = anchors_of_vendor(vendor)
    return replace(own, tpm=own.tpm | {chain[-1].fingerprint.hex for chain in makers})


def _papers(vendor: SimVendor, makers: Makers) -> str:
    works = vendor.tpm
    others = [link.der for chain in makers for link in chain]
    return pem(works.authority.certificate, works.root.certificate, *others)


class VendorDocuments:
    """Where a vendor publishes: again every day, unless its service is down."""

    def __init__(self, cluster: Cluster, vendor: SimVendor, clock: Clock, makers: Makers = ()) -> None:
        self.closed = False
        self._cluster = cluster
        self._vendor = vendor
        self._clock = clock
        self._makers = makers

    async def publish(self) -> None:
        """Announce everything, as of now; raises ApiError."""
        self.closed = False
        await announce_vendor(self._cluster, self._vendor, self._clock.now(), self._makers)

    async def withdraw(self) -> None:
        """The service is down from now on; raises ApiError."""
        self.closed = True
        await withdraw_documents(self._cluster, self._vendor, self._makers)

    async def open(self) -> None:
        """Announce what there is to announce at the start; raises ApiError."""
        await (self.withdraw() if self.closed else self.publish())

    async def run(self) -> None:
        """Announce new documents every day, until cancelled."""
        pause = AGAIN_SECONDS
        while True:
            await self._clock.sleep(pause)
            try:
                await self.open()
                pause = AGAIN_SECONDS
            except ApiError as error:
                _log.warning("simulator.unannounced", error=error, hint="It is tried again in a minute.")
                pause = RETRY_SECONDS


async def keep_announced(cluster: Cluster, vendor: SimVendor, clock: Clock) -> None:
    """Announce new documents every day, until cancelled."""
    await VendorDocuments(cluster, vendor, clock).run()
