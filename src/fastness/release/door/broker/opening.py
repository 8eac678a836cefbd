"""The broker with the verifier of its cluster behind it, as every process opens it.

    async with broker_door(cluster, informers, clock, entropy, options, cipher=vault) as (door, verifier):
        door.port

All state is in the cluster, so any number of replicas may run.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastness.attestation.live.appraisers import CollateralSource
from fastness.attestation.live.collateral_report import CollateralNews
from fastness.attestation.live.policy_workers import PolicyWorkers
from fastness.attestation.live.simulated_vendor import SimulatedVendor
from fastness.attestation.live.verifier import ClusterVerifier
from fastness.enrolment.live.guest_tickets import Admissions
from fastness.keys.shared_cipher import Cipher
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster
from fastness.record.live.record import ClusterRecord
from fastness.release.configs import ConfigService
from fastness.release.door.broker.server import BrokerDoor, BrokerOptions, broker
from fastness.release.live.revocations import MachineRevocations
from fastness.release.live.vault_secret import SharedVault
from fastness.release.live.vault_turning import VaultTurning
from fastness.runtime.clock import Clock, Entropy
from fastness.runtime.tasks import background


@asynccontextmanager
async def broker_door(
    cluster: Cluster,
    informers: Informers,
    clock: Clock,
    entropy: Entropy,
    options: BrokerOptions = BrokerOptions(),  # noqa: B008  # frozen
    *,
    cipher: Cipher,
    collateral: CollateralSource | None = None,
    configs: ConfigService | None = None,
) -> AsyncIterator[tuple[BrokerDoor, ClusterVerifier]]:
    """A broker that listens for the time of the block, and its verifier; raises ApiError, OSError, TrustError.

    `cipher` seals what it keeps, `collateral` has the documents of vendors, `configs` are the configurations that it delivers.
    """
    vendor = SimulatedVendor(informers, collateral)
    await vendor.synced()
    record = ClusterRecord(cluster, clock, entropy, "broker")
    workers = PolicyWorkers(clock)
    admissions = Admissions(cluster, clock)
    verifier = ClusterVerifier(cluster, informers, record, clock, workers, admissions, vendor)
    await verifier.synced()
    revocations = MachineRevocations(cluster, informers, clock)
    await revocations.synced()
    news = CollateralNews(cluster, clock, f"broker-{entropy.token(6).hex()}", vendor.state)
    turning = {}
    if isinstance(cipher, SharedVault):
        turning = {"vault": VaultTurning(cluster, cipher, record, clock, entropy).run}
    async with (
        broker(
            cluster,
            informers,
            clock,
            entropy,
            options,
            verifier=verifier,
            record=record,
            revocations=revocations,
            cipher=cipher,
            configs=configs,
            workers=workers,
        ) as door,
        background("broker", collateral=news.run, uses=admissions.uses.run, **turning),
    ):
        try:
            yield door, verifier
        finally:
            await admissions.uses.close()
