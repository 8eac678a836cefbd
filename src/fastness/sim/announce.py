"""Telling the doors of a simulated cluster about its vendor."""

from __future__ import annotations

from datetime import datetime

from fastness.cluster.port import Cluster
from fastness.domain.attestation.anchors import Anchors
from fastness.sim.tee.tdx import pem
from fastness.sim.tee.vendor import SimVendor
from fastness.trust.simulated import SOURCE, announce


def anchors_of_vendor(vendor: SimVendor) -> Anchors:
    """The roots of a simulated vendor."""
    return Anchors(vendor.roots.amd, vendor.roots.intel, vendor.roots.tpm, SOURCE, simulated=True)


async def announce_vendor(cluster: Cluster, vendor: SimVendor, now: datetime) -> None:
    """Announce roots, certificates and documents of a vendor; its documents are as of `now` and last a month."""
    works = vendor.tpm
    certificates = pem(works.authority.certificate, works.root.certificate)
    await announce(cluster, anchors_of_vendor(vendor), certificates, vendor.collateral(now).raw.encode())
