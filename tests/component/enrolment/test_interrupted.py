"""Enrolment while something fails or is full: the record, the API, the door, a machine half made or half gone, a pool."""

from __future__ import annotations

from typing import Any

import pytest

from fastness.attestation.live.machines import find_machine
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kinds.trusted_execution.subject import KeyKind
from fastness.kube.errors import Unavailable
from fastness.kube.port import PatchType, WriteOptions
from tests.embedded.fixtures import Embedded
from tests.enrolling import ENTROPY, NOBODY, World, code, doors, until


async def test_nothing_is_made_when_the_record_cannot_be_written(embedded_server: Embedded) -> None:
    async with doors(embedded_server.cluster) as world:
        machine, ticket = world.machine(), await world.ticket(uses=1)
        begun = await world.begin(machine, ticket)
        world.record.broken = True
        answer = await world.complete(machine, begun)
        assert code(answer) == (503, "record-failed")
        assert int(answer.headers["retry-after"]) > 0
        assert await world.machines() == []
        world.record.broken = False
        assert (await world.complete(machine, begun)).status_code == 201
        assert (await world.ticket_object(ticket))["status"]["used"] == 1


async def test_a_cluster_that_does_not_answer_asks_machines_to_come_back(
    embedded_server: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with doors(embedded_server.cluster) as world:
        machine, ticket = world.machine(), await world.ticket()
        begun = await world.begin(machine, ticket)

        async def away(*_: Any, **__: Any) -> Any:
            raise Unavailable("etcd has no leader")

        with monkeypatch.context() as patch:
            patch.setattr(type(world.cluster), "create", away)
            answer = await world.complete(machine, begun)
        assert code(answer) == (503, "cluster-unavailable")
        assert "etcd" not in answer.text
        assert (await world.complete(machine, begun)).status_code == 201


async def test_a_defect_is_an_answer_with_a_correlation_and_nothing_else(
    embedded_server: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with doors(embedded_server.cluster) as world:

        def broken(_: Any) -> Any:
            raise ZeroDivisionError("canary")

        monkeypatch.setattr(world.door.enrolments, "admit", broken)
        answer = await world.begin(world.machine("snp"), NOBODY)
        assert code(answer) == (500, "internal")
        assert answer.headers["audit-id"] in answer.json()["detail"]
        assert "canary" not in answer.text


async def test_a_machine_that_died_half_made_is_completed_by_the_next_try(embedded_server: Embedded) -> None:
    async with doors(embedded_server.cluster) as world:
        machine, ticket = world.machine(), await world.ticket(uses=1)
        begun = await world.begin(machine, ticket)
        half = {
            "apiVersion": MACHINE.api_version, "kind": MACHINE.kind,
            "metadata": {
                "name": f"machine-{machine.machine.thumbprint[7:27]}", "namespace": "fastness-system",
                "labels": {"fastness.dev/pool": "worker"},
            },
            "spec": {"id": ENTROPY.uid(), "approval": "Approved"},
        }  # fmt: skip
        await world.cluster.create(MACHINE.resource, half)
        assert (await world.complete(machine, begun)).status_code == 200
        (found,) = await world.machines()
        assert found["status"]["keyThumbprint"] == machine.machine.thumbprint
        assert len(await world.keys()) == 1


async def test_a_machine_that_is_being_deleted_is_waited_for(embedded_server: Embedded) -> None:
    async with doors(embedded_server.cluster) as world:
        machine, ticket = world.machine(), await world.ticket(uses=1)
        enrolled = await world.enrol(machine, ticket)
        held = {"metadata": {"finalizers": ["example.com/held"]}}
        await world.cluster.patch(MACHINE.resource, enrolled.name, held, PatchType.MERGE, "fastness-system")
        await world.cluster.delete(MACHINE.resource, enrolled.name, "fastness-system")
        assert await find_machine(world.cluster, KeyKind.AK, machine.machine.thumbprint) is None
        answer = await world.complete(machine, await world.begin(machine, ticket))
        assert code(answer) == (503, "cluster-unavailable")


async def heard_of_all(world: World) -> None:
    """Wait until the door has heard of every Machine as it is."""
    versions = {found["metadata"]["resourceVersion"] for found in await world.machines()}
    machines = world.door.enrolments.sources.machines
    await until(lambda: versions == {found["metadata"]["resourceVersion"] for found in machines.list()})


async def test_at_the_bound_the_oldest_machine_that_proved_nothing_gives_way(embedded_server: Embedded) -> None:
    async with doors(embedded_server.cluster) as world:
        world.door.enrolments._most_waiting = 3
        ticket = await world.ticket()
        kept = await world.enrol(world.machine("tpm"), ticket)
        made_up = [await world.enrol(world.machine("snp"), ticket) for _ in range(2)]
        # Authentic evidence of the older one was refused: it gives way after those without any.
        await world.cluster.patch(
            MACHINE.resource, made_up[0].name, {"status": {"lastVerdict": "v"}}, PatchType.MERGE, NAMESPACE,
            WriteOptions(subresource="status"),
        )  # fmt: skip
        await heard_of_all(world)
        machine = await world.enrol(world.machine("snp"), ticket)
        names = {found["metadata"]["name"] for found in await world.machines()}
        assert names == {kept.name, made_up[0].name, machine.name}
        (entry,) = world.record.of("machine-gave-way")
        assert entry.resource == f"machine/{made_up[1].name}"
        assert (await world.enrol(world.machine("snp"), await world.ticket("infra"))).approved


async def test_tpms_do_not_give_way_and_close_the_pool_for_a_while(embedded_server: Embedded) -> None:
    """Each costs a certified endorsement key and a use of its ticket: there is nobody who could make thousands."""
    async with doors(embedded_server.cluster) as world:
        world.door.enrolments._most_waiting = 2
        ticket = await world.ticket()
        for _ in range(2):
            await world.enrol(world.machine("tpm"), ticket)
        await heard_of_all(world)
        machine = world.machine("snp")
        assert code(await world.complete(machine, await world.begin(machine, ticket))) == (503, "too-many-waiting")
        assert len(await world.machines()) == 2
