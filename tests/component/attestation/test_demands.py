"""What a cluster demands of hardware beside authenticity: what the vendor revoked must be known, and versions must be new enough.

The simulated vendor stands in for a real one here: the cluster is not simulated and trusts its root by `extraRoots`, so that
everything that holds for AMD holds for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from fastness.agent.boot.prove import BrokerRefused
from fastness.apiserver import ServerOptions, open_apiserver
from fastness.app.product import PRODUCT
from fastness.attestation.live.collateral_files import authorities_file, crl_file
from fastness.attestation.live.simulated_vendor import SimulatedVendor
from fastness.formats.evidence.snp.tcb import Generation
from fastness.kinds.fastness_dev.verdict import VERDICT
from fastness.kinds.kind import JsonObject
from fastness.kube.port import Cluster
from fastness.sim.announce import AGAIN_SECONDS, announce_vendor, keep_announced
from fastness.sim.tee import SimVendor
from fastness.sim.tee.attester import SimAttester
from fastness.sim.tee.tdx import pem
from tests.attesting import ENTROPY, AttestingWorld, attesting_world, until
from tests.embedded.fixtures import Embedded
from tests.enrolling import MovedClock
from tests.virtual import START, VirtualClock

GENOA = Generation.GENOA
STATUS = "default/attestation-status/status"


@pytest.fixture(scope="module")
def vendor() -> SimVendor:
    return SimVendor(ENTROPY)


@pytest.fixture
async def real(tmp_path: Path) -> AsyncIterator[Cluster]:
    """A cluster that is not simulated."""
    async with open_apiserver(ServerOptions(tmp_path / "state", simulated=False), PRODUCT) as server:
        yield server.cluster


def demanding(vendor: SimVendor, mode: str = "Enforce", **attestation: Any) -> JsonObject:
    root = {"sha256": vendor.roots.amd[GENOA], "for": "snp", "reason": "stands in for AMD"}
    return {"mode": mode, "simulated": False, "attestation": {"extraRoots": [root], **attestation}}


def documents(directory: Path, vendor: SimVendor, *, revoked: tuple[int, ...] = ()) -> Path:
    """What an operator would import."""
    chain = pem(vendor.snp.signer(GENOA).certificate, vendor.snp.root(GENOA).certificate)
    written = {authorities_file(GENOA): chain.encode()}
    written[crl_file(GENOA)] = vendor.revocations(GENOA, MovedClock().now(), revoked)
    for name, data in written.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_bytes(data)
    return directory


async def outcome(world: AttestingWorld, machine: SimAttester | None = None) -> tuple[int, str]:
    """How an attestation ends."""
    machine = machine or await world.enrolled("snp")
    async with world.broker(machine) as broker:
        try:
            await broker.attest()
            assert (await broker.resource(STATUS)).reveal() == b"success"
        except BrokerRefused as error:
            return error.status, error.reason
    return 200, ""


async def test_without_the_list_of_what_was_revoked_a_machine_is_not_assessed_and_asked_to_come_again(
    real: Cluster, vendor: SimVendor
) -> None:
    async with attesting_world(real, demanding(vendor), vendor) as world:
        await world.approve("snp")
        assert await outcome(world) == (503, "crl-missing")
        (verdict,) = (await world.cluster.list(VERDICT.resource)).items
        assert (verdict["spec"]["result"], verdict["spec"]["reason"]) == ("NotAssessed", "crl-missing")


async def test_an_imported_list_is_enough(real: Cluster, vendor: SimVendor, tmp_path: Path) -> None:
    spec, imported = demanding(vendor), documents(tmp_path / "imported", vendor)
    async with attesting_world(real, spec, vendor, imported) as world:
        await world.approve("snp")
        assert await outcome(world) == (200, "")
        (verdict,) = (await world.cluster.list(VERDICT.resource)).items
        assert not verdict["spec"]["simulated"]
        assert {"revocation-list", "revocation"} <= {check["name"] for check in verdict["spec"]["checks"]}


async def test_a_revoked_authority_refuses_for_good(real: Cluster, vendor: SimVendor, tmp_path: Path) -> None:
    imported = documents(tmp_path / "imported", vendor, revoked=(0x10001,))
    async with attesting_world(real, demanding(vendor), vendor, imported) as world:
        await world.approve("snp")
        assert await outcome(world) == (403, "certificate-revoked")


async def test_versions_below_the_minimum_of_the_cluster_are_refused(
    real: Cluster, vendor: SimVendor, tmp_path: Path
) -> None:
    least = {"snp": {"microcode": 255}}
    spec, imported = demanding(vendor, minimumTcb=least), documents(tmp_path / "imported", vendor)
    async with attesting_world(real, spec, vendor, imported) as world:
        await world.approve("snp")
        assert await outcome(world) == (403, "tcb-behind")


async def test_evidence_without_its_authorities_is_completed_from_the_directory(
    real: Cluster, vendor: SimVendor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, imported = demanding(vendor), documents(tmp_path / "imported", vendor)
    async with attesting_world(real, spec, vendor, imported) as world:
        await world.approve("snp")
        machine = await world.enrolled("snp")
        whole = machine.evidence

        async def bare(report_data: bytes) -> JsonObject:
            evidence = await whole(report_data)
            leaf = [certificate for certificate in evidence["cert_chain"] if certificate["cert_type"] == "VCEK"]
            assert 0 < len(leaf) < len(evidence["cert_chain"])
            return {**evidence, "cert_chain": leaf}

        monkeypatch.setattr(machine, "evidence", bare)
        assert await outcome(world, machine) == (200, "")


async def test_a_simulated_vendor_announces_what_it_revoked_and_new_documents_every_day(
    embedded_server: Embedded, vendor: SimVendor
) -> None:
    clock = VirtualClock()
    async with attesting_world(embedded_server.cluster, vendor=vendor) as world:
        heard = SimulatedVendor(world.informers)
        await announce_vendor(world.cluster, vendor, clock.now())

        async def is_of(day: datetime) -> bool:
            simulated = heard.anchors
            revocations = await heard.snp_crl(GENOA, simulated) if simulated else None
            return (
                revocations is not None
                and revocations.current(day)
                and not revocations.current(day - timedelta(days=2))
            )

        await until(lambda: is_of(START))
        announcing = asyncio.create_task(keep_announced(world.cluster, vendor, clock))
        await clock.advance(AGAIN_SECONDS + 1)
        await until(lambda: is_of(START + timedelta(seconds=AGAIN_SECONDS)))
        announcing.cancel()
