"""Enrolment against a real kube-apiserver with two doors: what depends on the server's own guarantees."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from fastness.enrolment.loops.machines import Machines
from fastness.kinds.crd import manifests
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.objects import ObjectName, condition
from fastness.kinds.trusted_execution.approvals import ATTESTATION_KEY
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.errors import Invalid
from fastness.kube.port import PatchType, WriteOptions
from fastness.record.live.record import ClusterRecord
from fastness.sim.tee.attester import SimAttester
from tests.contract.worlds import https, served
from tests.enrolling import ENTROPY, World, code, doors, forget
from tests.patience import PATIENCE
from tests.realkube import RealKube

GROUPS = ("fastness.dev", "trusted-execution-clusters.io")


@pytest.fixture(scope="module")
def kube(real_kube_binaries: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealKube]:
    """A server of its own: the ConfidentialCluster is a singleton."""
    with RealKube.start(tmp_path_factory.mktemp("enrol"), real_kube_binaries, unsafe_no_fsync=True) as server:
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        definitions = [manifest for manifest in manifests() if manifest["spec"]["group"] in GROUPS]
        with server.client() as admin:
            for manifest in definitions:
                assert admin.post(path, json=manifest).status_code == 201, manifest["metadata"]["name"]
            for manifest in definitions:
                for _ in range(600):
                    if served(admin, f"{path}/{manifest['metadata']['name']}"):
                        break
        yield server


@asynccontextmanager
async def two_doors(kube: RealKube) -> AsyncIterator[tuple[World, World]]:
    """Two doors with connections of their own, and one vendor."""
    async with https(kube.kubeconfig) as near, https(kube.kubeconfig) as other:  # noqa: SIM117  # the second needs the first
        async with doors(near) as first, doors(other, vendor=first.vendor) as second:
            yield first, second


async def heard_of_tickets(world: World, count: int) -> None:
    """Wait until a door has heard of as many tickets as the other."""
    async with asyncio.timeout(PATIENCE):
        while len(world.door.enrolments.sources.tickets.list()) < count:  # noqa: ASYNC110  # caches tell handlers
            await asyncio.sleep(0.01)


async def test_of_many_machines_at_two_doors_exactly_as_many_get_in_as_the_ticket_says(kube: RealKube) -> None:
    async with two_doors(kube) as (first, other):
        ticket = await first.ticket(uses=3)
        await heard_of_tickets(other, len(first.door.enrolments.sources.tickets.list()))
        machines = [first.machine("tpm") for _ in range(12)]
        begun = [await first.begin(machine, ticket) for machine in machines]
        pairs = zip(machines, begun, (first, other) * 6, strict=True)
        answers = await asyncio.gather(*(door.complete(machine, offer) for machine, offer, door in pairs))
        statuses = sorted(answer.status_code for answer in answers)
        assert statuses == [201] * 3 + [401] * 9
        assert {code(answer)[1] for answer in answers if answer.status_code == 401} == {"ticket-used-up"}
        status = (await first.ticket_object(ticket))["status"]
        assert (status["used"], len(status["usedBy"])) == (3, 3)
        inside = {a.json()["name"] for a in answers if a.status_code == 201}
        assert set(status["usedBy"]) == inside


async def test_one_machine_at_two_doors_at_once_is_one_machine_and_one_use(kube: RealKube) -> None:
    async with two_doors(kube) as (first, other):
        ticket, machine = await first.ticket(uses=2), first.machine("tpm")
        proof = await first.proof(machine, await first.begin(machine, ticket))
        answers = await asyncio.gather(*(door.post("/v1/enrol/complete", proof) for door in (first, other) * 3))
        assert {answer.status_code for answer in answers} <= {200, 201}
        assert [answer.status_code for answer in answers].count(201) == 1
        assert len({answer.json()["machine"] for answer in answers}) == 1
        assert (await first.ticket_object(ticket))["status"]["used"] == 1


async def test_identity_cannot_be_changed_or_taken_away(kube: RealKube) -> None:
    async with two_doors(kube) as (first, _):
        enrolled = await first.enrol(first.machine("tpm"), await first.ticket())
        status = WriteOptions(subresource="status")
        for change in (
            {"nodeName": "worker-other"}, {"keyThumbprint": "sha256:" + "0" * 64}, {"pool": "infra"},
            {"nodeName": None}, {"endorsement": None}, {"endorsedBy": "evidence"}, {"endorsedBy": None}, {"tee": "snp"},
        ):  # fmt: skip
            with pytest.raises(Invalid):
                await first.cluster.patch(
                    MACHINE.resource, enrolled.name, {"status": change}, PatchType.MERGE, NAMESPACE, status
                )
        await held_to_its_chip(first, enrolled.name)
        key = enrolled.name.replace("machine-", "ak-")
        for spec in ({"uuid": ENTROPY.uid()}, {"publicKey": "another"}, {"uuid": None}):
            with pytest.raises(Invalid):
                await first.cluster.patch(ATTESTATION_KEY.resource, key, {"spec": spec}, PatchType.MERGE, NAMESPACE)


async def held_to_its_chip(world: World, name: str) -> None:
    """A chip is written once, and changes only to the one that the spec names."""
    mine, other = (f"snp:{digit * 128}" for digit in "ab")
    status = WriteOptions(subresource="status")

    async def write(chip: str | None) -> None:
        patch = {"status": {"chip": chip}}
        await world.cluster.patch(MACHINE.resource, name, patch, PatchType.MERGE, NAMESPACE, status)

    await write(mine)
    for chip in (other, None, "hidden"):
        with pytest.raises(Invalid):
            await write(chip)
    await world.cluster.patch(MACHINE.resource, name, {"spec": {"chip": other}}, PatchType.MERGE, NAMESPACE)
    await write(other)


async def test_a_machine_that_was_deleted_takes_its_key_along_and_may_enrol_anew(kube: RealKube) -> None:
    async with two_doors(kube) as (door, _):
        machine, ticket = door.machine("tpm"), await door.ticket()
        first = await door.enrol(machine, ticket)
        await forget(door.cluster, first.name)
        again = await door.enrol(machine, ticket, seconds=60)
        assert again.name == first.name
        assert again.machine != first.machine
        stored = await door.cluster.get(MACHINE.resource, again.name, NAMESPACE)
        key = await door.cluster.get(ATTESTATION_KEY.resource, again.name.replace("machine-", "ak-"), NAMESPACE)
        assert key["spec"]["uuid"] == stored["spec"]["id"]


async def test_the_loop_and_the_record_work_on_a_real_server(kube: RealKube) -> None:
    async with two_doors(kube) as (first, _):
        chip = first.vendor.chip("tpm", serial=901)
        ticket = await first.ticket()
        old = await first.enrol(SimAttester(chip.boot()), ticket)
        renewed = first.vendor.chip("tpm", serial=901)
        renewed.__dict__["ak"] = first.vendor.chip("tpm", serial=902).ak
        new = await first.enrol(SimAttester(renewed.boot()), ticket)
        record = ClusterRecord(first.cluster, first.clock, ENTROPY, "controllers")
        loop = Machines(first.cluster, first.informers, record, first.clock)
        for name in (old.name, new.name):
            await loop.reconcile(ObjectName(NAMESPACE, name))
        machines = [await first.cluster.get(MACHINE.resource, name, NAMESPACE) for name in (old.name, new.name)]
        revoked = [condition(machine, "Revoked") for machine in machines]
        assert sorted(entry["reason"] if entry else "" for entry in revoked) == ["", "Superseded"]
