"""Enrolment with a real TPM: swtpm behind tpm2-tools, its maker's authority among the extra roots."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fastness.agent.host.errors import TpmFailure
from fastness.agent.host.tee.tpm import TpmAttester, TpmTools
from fastness.crypto.digests import sha256
from fastness.enrolment.live.tpm_makers import CONFIG_MAPS, NAME
from fastness.formats.evidence.tpm.public import parse_public
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.objects import condition
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.port import PatchType
from tests.embedded.fixtures import Embedded
from tests.enrolling import World, code, doors, until
from tests.swtpm import Maker, Swtpm


def spec(maker: Maker, **join: Any) -> dict[str, Any]:
    """A cluster that trusts this maker."""
    root = {"sha256": maker.root, "for": "tpm", "reason": "our own machines"}
    return {"mode": "Enforce", "simulated": True, "attestation": {"extraRoots": [root]}, "join": join}


async def publish(world: World, maker: Maker) -> None:
    """The maker's certificates, as an operator adds them."""
    pem = b"".join(entry.pem for entry in maker.certificates).decode()
    body = {
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME, "namespace": NAMESPACE},
        "data": {"swtpm": pem, "broken": "no certificate"},
    }  # fmt: skip
    await world.cluster.create(CONFIG_MAPS, body)
    await until(lambda: world.door.enrolments.sources.maps.get(NAMESPACE, NAME) is not None)


def attester(tpm: Swtpm, directory: Path) -> TpmAttester:
    """The TPM as the agent knows it."""
    return TpmAttester(TpmTools(tpm.tcti, event_log=directory / "none"), directory / "identity")


async def test_a_real_tpm_enrols_and_stays_the_same_machine_after_a_reboot(
    embedded_server: Embedded, swtpm: Swtpm, tpm_maker: Maker, tmp_path: Path
) -> None:
    async with doors(embedded_server.cluster, spec(tpm_maker)) as world:
        await publish(world, tpm_maker)
        machine, ticket = attester(swtpm, tmp_path), await world.ticket(uses=1)
        enrolled = await world.enrol(machine, ticket, seconds=60)
        thumbprint = str(sha256(parse_public(await machine.identity_public()).spki))
        (stored,) = await world.machines()
        assert stored["status"]["keyThumbprint"] == thumbprint
        assert stored["status"]["simulated"] is False
        assert stored["status"]["endorsement"]["root"] == f"sha256:{tpm_maker.root}"
        assert stored["status"]["endorsedBy"] == "ek-certificate"
        swtpm.reset()
        assert await world.enrol(attester(swtpm, tmp_path), ticket, seconds=60) == enrolled


async def test_a_real_tpm_opens_no_credential_that_was_made_for_another(
    embedded_server: Embedded, swtpm: Swtpm, other_swtpm: Swtpm, tpm_maker: Maker, tmp_path: Path
) -> None:
    async with doors(embedded_server.cluster, spec(tpm_maker)) as world:
        await publish(world, tpm_maker)
        (tmp_path / "other").mkdir()
        mine, theirs = attester(swtpm, tmp_path), attester(other_swtpm, tmp_path / "other")
        begun = await world.begin(mine, await world.ticket())
        with pytest.raises(TpmFailure):
            await world.proof(theirs, begun)
        assert await world.machines() == []


async def test_without_its_maker_a_tpm_is_refused_unless_first_use_is_trusted(
    embedded_server: Embedded, swtpm: Swtpm, tmp_path: Path
) -> None:
    settings = {"mode": "Enforce", "simulated": True, "join": {"trustOnFirstUse": True}}
    async with doors(embedded_server.cluster, settings) as world:
        machine, ticket = attester(swtpm, tmp_path), await world.ticket()
        assert code(await world.begin(machine, ticket)) == (403, "endorsement-refused")

        class Silent(TpmAttester):
            async def ek_certificates(self) -> list[bytes]:
                return []

        bare = Silent(TpmTools(swtpm.tcti, event_log=tmp_path / "none"), tmp_path / "identity")
        assert (await world.enrol(bare, ticket, seconds=60)).approved
        (stored,) = await world.machines()
        enrolled = condition(stored, "Enrolled")
        assert enrolled is not None
        assert enrolled["reason"] == "TrustOnFirstUse"


async def test_a_quarantined_tpm_that_makes_a_new_key_waits_for_a_person(
    embedded_server: Embedded, swtpm: Swtpm, tpm_maker: Maker, tmp_path: Path
) -> None:
    async with doors(embedded_server.cluster, spec(tpm_maker)) as world:
        await publish(world, tpm_maker)
        ticket = await world.ticket()
        enrolled = await world.enrol(attester(swtpm, tmp_path), ticket, seconds=60)
        patch = {"spec": {"approval": "Quarantined", "approvalReason": "odd traffic"}}
        await world.cluster.patch(MACHINE.resource, enrolled.name, patch, PatchType.MERGE, NAMESPACE)
        (tmp_path / "new").mkdir()
        again = await world.enrol(attester(swtpm, tmp_path / "new"), ticket, seconds=60)
        assert not again.approved
