"""A machine that runs asks for a rendered config by name: it gets the one that the controllers wrote on its Machine, no other."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from fastness.crypto.eddsa import Ed25519Verifier
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.port import PatchType, WriteOptions
from fastness.protocol.config_proof import HEADER, BadConfigProof, Served, check
from tests.component.release.gate.test_gate import BODY, Machine, World, gate_world, proved
from tests.embedded.fixtures import Embedded
from tests.enrolling import code

NEW, OLD, FOREIGN = (f"rendered-worker-{letter * 32}" for letter in "abc")
STATUS = WriteOptions(subresource="status")


@pytest.fixture
async def here(embedded_server: Embedded) -> AsyncIterator[World]:
    async with gate_world(embedded_server) as world:
        await world.attesting.approve("tpm")
        yield world


async def assigned(world: World, desired: str = "", current: str = "") -> Machine:
    """An attested machine of its own chip, which the controllers sent somewhere."""
    attester = await world.attesting.enrolled("tpm")
    name = (await world.attesting.machine_object(attester))["metadata"]["name"]
    patch = {"status": {"desiredConfig": desired or None, "currentConfig": current or None}}
    await world.attesting.cluster.patch(MACHINE.resource, name, patch, PatchType.MERGE, NAMESPACE, STATUS)
    return await (await proved(world, attester)).ready()


async def test_the_desired_and_the_current_config_are_given_signed_by_name_and_recorded(here: World) -> None:
    machine = await assigned(here, NEW, OLD)
    keys = {jwk["kid"]: Ed25519Verifier.from_jwk(jwk) for jwk in here.served.signer.jwks()}
    for name in (NEW, OLD):
        answer = await machine.get(query=f"?rendered={name}", jti="mine")
        assert (answer.status_code, answer.content) == (200, BODY)
        now = here.attesting.clock.now()
        check(answer.headers[HEADER], Served(BODY, "worker", machine.uid, "mine", name, machine.thumbprint), keys, now)
        for other in ("", FOREIGN):
            with pytest.raises(BadConfigProof):
                check(
                    answer.headers[HEADER],
                    Served(BODY, "worker", machine.uid, "mine", other, machine.thumbprint),
                    keys,
                    now,
                )
        entry = here.record.entries[-1]
        assert (entry.what, entry.resource, entry.detail["config"]) == ("release", "pool/worker/config", name)
        assert entry.grant
    assert here.shelf.rendered == [NEW, OLD]


async def test_any_other_rendered_config_is_refused_and_recorded(here: World) -> None:
    first, second = await assigned(here, NEW, OLD), await assigned(here)
    for machine, name in ((first, FOREIGN), (first, f"rendered-master-{'a' * 32}"), (second, NEW)):
        answer = await machine.get(query=f"?rendered={name}")
        assert code(answer) == (403, "not-assigned")
        assert here.record.entries[-1].what == "refusal"
    assert here.shelf.requests == []


async def test_a_config_that_was_taken_back_is_refused_at_once(here: World) -> None:
    machine = await assigned(here, NEW, OLD)
    name = (await here.attesting.cluster.list(MACHINE.resource)).items[0]["metadata"]["name"]
    patch = {"status": {"desiredConfig": OLD}}
    await here.attesting.cluster.patch(MACHINE.resource, name, patch, PatchType.MERGE, NAMESPACE, STATUS)
    answer = await machine.get(query=f"?rendered={NEW}")
    assert code(answer) == (403, "not-assigned")


async def test_another_pools_door_stays_shut_for_a_token_of_this_one(here: World) -> None:
    machine = await assigned(here, NEW)
    answer = await machine.get("/config/master", query=f"?rendered={NEW}")
    assert code(answer) == (403, "wrong-pool")


@pytest.mark.parametrize(
    "query", ["?rendered=99-mine", "?rendered=", f"?rendered={NEW}%2f..", "?rendered=rendered-" + "x" * 300]
)
async def test_a_name_that_no_rendered_config_has_is_malformed(here: World, query: str) -> None:
    machine = await assigned(here, NEW)
    answer = await machine.get(query=query)
    assert code(answer) == (400, "bad-rendered")


@pytest.mark.row("000-48")
async def test_a_machine_in_quarantine_gets_its_desired_config_no_more(here: World) -> None:
    machine = await assigned(here, NEW)
    name = (await here.attesting.cluster.list(MACHINE.resource)).items[0]["metadata"]["name"]
    patch = {"spec": {"approval": "Quarantined"}}
    await here.attesting.cluster.patch(MACHINE.resource, name, patch, PatchType.MERGE, NAMESPACE)
    informer = here.attesting.informers.of(MACHINE.resource)
    while (informer.get(NAMESPACE, name) or {})["spec"]["approval"] != "Quarantined":
        await here.attesting.clock.sleep(0.01)
    answer = await machine.get(query=f"?rendered={NEW}")
    assert code(answer) == (403, "revoked")
    assert here.shelf.requests == []
