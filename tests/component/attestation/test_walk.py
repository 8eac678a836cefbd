"""Enrol, challenge, evidence, verdict, secret: the whole walk over TLS, with every kind of simulated machine."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fastness.agent.boot.enrol import EnrolmentFailed
from fastness.agent.boot.prove import BrokerRefused
from fastness.apiserver import ServerOptions, open_apiserver
from fastness.app.product import PRODUCT
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.reference_values import REFERENCE_VALUE_SET
from fastness.kinds.fastness_dev.verdict import VERDICT
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import condition
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.port import PatchType
from fastness.sim.tee.images import changed, default_image
from tests.attesting import AttestingWorld, attesting_world, until
from tests.embedded.fixtures import Embedded

STATUS = "default/attestation-status/status"


@pytest.fixture
async def here(embedded_server: Embedded) -> AsyncIterator[AttestingWorld]:
    async with attesting_world(embedded_server.cluster) as world:
        yield world


async def verdicts(world: AttestingWorld) -> list[JsonObject]:
    return (await world.cluster.list(VERDICT.resource)).items


@pytest.mark.parametrize("tee", ["tpm", "snp", "tdx"])
async def test_a_machine_that_booted_an_approved_image_gets_its_secret(here: AttestingWorld, tee: str) -> None:
    await here.approve(tee)
    machine = await here.enrolled(tee)
    uid = (await here.machine_object(machine))["metadata"]["uid"]
    await here.keep(f"machine/{uid}/disk", b"a key for a disk")
    async with here.broker(machine) as broker:
        await broker.attest()
        assert (await broker.resource(STATUS)).reveal() == b"success"
        assert (await broker.resource(f"machine/{uid}/disk")).reveal() == b"a key for a disk"
    (verdict,) = await verdicts(here)
    assert (verdict["spec"]["result"], verdict["spec"]["simulated"]) == ("Affirmed", True)
    stored = await here.machine_object(machine)
    attested = condition(stored, "Attested")
    assert attested is not None
    assert (attested["status"], attested["reason"]) == ("True", "Affirmed")
    assert stored["status"]["lastVerdict"] == verdict["metadata"]["name"]


@pytest.mark.parametrize("tee", ["tpm", "snp", "tdx"])
async def test_a_machine_that_booted_something_else_is_refused_and_told_where_it_differs(
    here: AttestingWorld, tee: str
) -> None:
    await here.approve(tee)
    other = changed(default_image(), command_line="quiet init=/bin/sh")
    machine = await here.enrolled(tee, other)
    async with here.broker(machine) as broker:
        with pytest.raises(BrokerRefused) as refused:
            await broker.attest()
        assert refused.value.status == 403
        with pytest.raises(BrokerRefused) as nothing:
            await broker.resource(STATUS)
        assert nothing.value.status == 401
    (verdict,) = await verdicts(here)
    failed = [check for check in verdict["spec"]["checks"] if check["result"] == "Fail"]
    assert [check["name"] for check in failed][-1] == "policy"
    assert any(check["code"] == "value-differs" for check in failed)
    attested = condition(await here.machine_object(machine), "Attested")
    assert attested is not None
    assert attested["status"] == "False"


async def test_the_first_event_that_differs_is_named(here: AttestingWorld) -> None:
    await here.approve("tpm")
    machine = await here.enrolled("tpm", changed(default_image(), command_line="quiet init=/bin/sh"))
    async with here.broker(machine) as broker:
        with pytest.raises(BrokerRefused):
            await broker.attest()
    (verdict,) = await verdicts(here)
    hints = [check.get("hint", "") for check in verdict["spec"]["checks"] if check["code"] == "value-differs"]
    assert any("The first event that no approved image has is number" in hint for hint in hints), hints


async def test_without_published_values_a_machine_is_asked_to_come_back(here: AttestingWorld) -> None:
    machine = await here.enrolled("tpm")
    async with here.broker(machine) as broker:
        with pytest.raises(BrokerRefused) as refused:
            await broker.attest()
    assert (refused.value.status, refused.value.reason) == (503, "values-not-published")
    assert refused.value.retry_after > 0


async def test_taking_an_approval_away_counts_at_the_next_attestation(here: AttestingWorld) -> None:
    name = await here.approve("tpm")
    await here.approve("tpm", changed(default_image(), command_line="other"), "values-other")
    machine = await here.enrolled("tpm")
    async with here.broker(machine) as broker:
        await broker.attest()
        await here.cluster.delete(REFERENCE_VALUE_SET.resource, name)
        sets = here.informers.of(REFERENCE_VALUE_SET.resource)
        await until(lambda: _gone(sets.get("", name)))
        with pytest.raises(BrokerRefused) as refused:
            await broker.attest()
    assert refused.value.status == 403


async def _gone(stored: object) -> bool:
    return stored is None


async def test_a_stranger_without_enrolment_is_refused_and_leaves_no_object(here: AttestingWorld) -> None:
    await here.approve("snp")
    async with here.broker(here.machine("snp")) as broker:
        with pytest.raises(BrokerRefused) as refused:
            await broker.attest()
    assert (refused.value.status, refused.value.reason) == (403, "not-enrolled")
    assert await verdicts(here) == []
    assert (await here.cluster.list(MACHINE.resource)).items == []


async def test_a_quarantine_stops_a_session_that_is_already_open(here: AttestingWorld) -> None:
    await here.approve("tpm")
    machine = await here.enrolled("tpm")
    async with here.broker(machine) as broker:
        await broker.attest()
        name = (await here.machine_object(machine))["metadata"]["name"]
        patch = {"spec": {"approval": "Quarantined"}}
        await here.cluster.patch(MACHINE.resource, name, patch, PatchType.MERGE, NAMESPACE)

        async def refused() -> bool:
            try:
                await broker.resource(STATUS)
            except BrokerRefused as error:
                return error.reason == "revoked"
            return False

        await until(refused)
        with pytest.raises(BrokerRefused) as no:
            await broker.attest()
        assert (no.value.status, no.value.reason) == (403, "quarantined")


async def test_the_same_state_attested_again_costs_no_second_verdict(here: AttestingWorld) -> None:
    await here.approve("tpm")
    machine = await here.enrolled("tpm")
    async with here.broker(machine) as broker:
        for _ in range(3):
            await broker.attest()
    assert len(await verdicts(here)) == 1


async def test_machine_a_never_reads_what_is_machine_bs(here: AttestingWorld) -> None:
    await here.approve("tpm")
    machines = [await here.enrolled("tpm"), await here.enrolled("tpm")]
    uids = [(await here.machine_object(guest))["metadata"]["uid"] for guest in machines]
    for uid in uids:
        await here.keep(f"machine/{uid}/disk", uid.encode())
    for own, other in ((0, 1), (1, 0)):
        async with here.broker(machines[own]) as broker:
            await broker.attest()
            assert (await broker.resource(f"machine/{uids[own]}/disk")).reveal() == uids[own].encode()
            with pytest.raises(BrokerRefused) as refused:
                await broker.resource(f"machine/{uids[other]}/disk")
            assert refused.value.status == 403


async def test_a_real_cluster_refuses_simulated_machines(tmp_path: Path) -> None:
    async with (
        open_apiserver(ServerOptions(tmp_path / "state", simulated=False), PRODUCT) as server,
        attesting_world(server.cluster, {"mode": "Enforce"}) as world,
    ):
        with pytest.raises(EnrolmentFailed) as no:
            await world.enrolled("tpm")
        assert no.value.reason == "endorsement-refused"
        for tee in ("snp", "tdx"):
            await world.approve(tee)
            machine = await world.enrolled(tee)
            async with world.broker(machine) as broker:
                with pytest.raises(BrokerRefused) as refused:
                    await broker.attest()
            assert refused.value.status == 403
        assert await verdicts(world) == []
