"""Break-glass through the real doors: what two people signed lets a pool in, says so everywhere, and ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from fastness.agent.boot.prove import BrokerRefused
from fastness.attestation.loops.confidential import KEY, LOOK_SECONDS, Confidential
from fastness.attestation.verdict.breakglass import ANNOTATION
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER
from fastness.kinds.fastness_dev.distrust import DISTRUST
from fastness.kinds.fastness_dev.verdict import VERDICT
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import condition
from fastness.kube.errors import Forbidden
from fastness.kube.port import PatchType
from fastness.record.entry import RecordEntry
from fastness.sim.tee.attester import SimAttester
from fastness.sim.tee.images import changed, default_image
from tests.attesting import SIMULATED, AttestingWorld, attesting_world, until
from tests.breakglass import APPROVERS, appointed, approver, override
from tests.embedded.fixtures import Embedded

STATUS = "default/attestation-status/status"
OPEN: JsonObject = {**SIMULATED, "breakGlass": {"approvers": APPROVERS}}


class Kept:
    """A record in memory."""

    def __init__(self) -> None:
        self.entries: list[RecordEntry] = []

    async def append(self, entry: RecordEntry) -> None:
        self.entries.append(entry)


@pytest.fixture
async def here(embedded_server: Embedded) -> AsyncIterator[AttestingWorld]:
    await appointed(embedded_server.cluster)
    async with attesting_world(embedded_server.cluster, OPEN) as world:
        yield world


async def uid(world: AttestingWorld) -> str:
    return str((await world.cluster.get(CONFIDENTIAL_CLUSTER.resource, "cluster"))["metadata"]["uid"])


async def reconciled(loop: Confidential) -> None:
    """One reconcile that was not put off: after a slow one the loop rests, and says for how long."""
    while (again := (await loop.reconcile(KEY)).again_after) is not None and again != LOOK_SECONDS:  # noqa: ASYNC110  # no event tells it
        await asyncio.sleep(again)


async def annotate(world: AttestingWorld, text: str | None) -> None:
    patch = {"metadata": {"annotations": {ANNOTATION: text}}}
    stored = await world.cluster.patch(CONFIDENTIAL_CLUSTER.resource, "cluster", patch, PatchType.MERGE)
    clusters = world.informers.of(CONFIDENTIAL_CLUSTER.resource)

    async def heard() -> bool:
        cluster = clusters.get("", "cluster") or {}
        return bool(cluster["metadata"]["resourceVersion"] == stored["metadata"]["resourceVersion"])

    await until(heard)


async def refused_machine(world: AttestingWorld, tee: str = "tpm") -> SimAttester:
    """A machine whose values nobody published as they are."""
    await world.approve(tee)
    return await world.enrolled(tee, changed(default_image(), command_line="a new kernel"))


async def outcome(world: AttestingWorld, machine: SimAttester) -> str:
    async with world.broker(machine) as broker:
        try:
            await broker.attest()
        except BrokerRefused as refused:
            return refused.reason
    return "accepted"


async def test_an_override_lets_the_pool_in_without_secrets_and_says_so(here: AttestingWorld) -> None:
    machine = await refused_machine(here)
    assert await outcome(here, machine) == "value-differs"
    await annotate(here, override(await uid(here), here.clock.now()))
    async with here.broker(machine) as broker:
        await broker.attest()
        with pytest.raises(BrokerRefused) as secret:
            await broker.resource(STATUS)
        assert secret.value.reason == "policy-denied"
    attested = condition(await here.machine_object(machine), "Attested")
    assert attested is not None
    assert (attested["status"], attested["reason"]) == ("False", "BreakGlass")
    assert "ada and grace" in attested["message"]
    results = [verdict["spec"]["result"] for verdict in (await here.cluster.list(VERDICT.resource)).items]
    assert sorted(results) == ["NotAssessed", "Refused"]


async def test_an_override_ends_by_itself_and_when_it_is_taken_away(here: AttestingWorld) -> None:
    machine = await refused_machine(here)
    await annotate(here, override(await uid(here), here.clock.now()))
    assert await outcome(here, machine) == "accepted"
    here.clock.ahead = timedelta(minutes=61)
    assert await outcome(here, machine) == "value-differs"
    await annotate(here, override(await uid(here), here.clock.now()))
    assert await outcome(here, machine) == "accepted"
    await annotate(here, None)
    assert await outcome(here, machine) == "value-differs"


async def test_an_override_of_another_pool_or_against_a_distrust_helps_nobody(here: AttestingWorld) -> None:
    machine = await refused_machine(here)
    await annotate(here, override(await uid(here), here.clock.now(), pool="infra"))
    assert await outcome(here, machine) == "value-differs"
    await annotate(here, override(await uid(here), here.clock.now()))
    body = {
        "apiVersion": DISTRUST.api_version, "kind": "Distrust", "metadata": {"name": "bad"},
        "spec": {"key": machine.machine.thumbprint, "reason": "a test"},
    }  # fmt: skip
    await here.cluster.create(DISTRUST.resource, body)
    distrusts = here.informers.of(DISTRUST.resource)

    async def heard() -> bool:
        return bool(distrusts.list())

    await until(heard)
    assert await outcome(here, machine) == "distrusted"


@pytest.mark.parametrize("by", [("ada",), ("ada", "ada"), ("ada", "eve")])
async def test_admission_refuses_what_two_approvers_did_not_sign(here: AttestingWorld, by: tuple[str, ...]) -> None:
    text = override(await uid(here), here.clock.now(), by)
    with pytest.raises(Forbidden, match="not-agreed"):
        await here.cluster.patch(
            CONFIDENTIAL_CLUSTER.resource, "cluster", {"metadata": {"annotations": {ANNOTATION: text}}}, PatchType.MERGE
        )


async def test_another_approver_lowers_protection_and_must_be_confirmed(here: AttestingWorld) -> None:
    more = {"spec": {"breakGlass": {"approvers": [*APPROVERS, approver("eve")]}}}
    with pytest.raises(Forbidden, match="eve may agree to overrides"):
        await here.cluster.patch(CONFIDENTIAL_CLUSTER.resource, "cluster", more, PatchType.MERGE)


async def test_the_status_and_the_record_show_an_override_from_beginning_to_end(here: AttestingWorld) -> None:
    record = Kept()
    loop = Confidential(here.cluster, here.informers, here.clock, record)

    async def override_state() -> tuple[str, str]:
        await reconciled(loop)
        stored = await here.cluster.get(CONFIDENTIAL_CLUSTER.resource, "cluster")
        clusters = here.informers.of(CONFIDENTIAL_CLUSTER.resource)

        async def heard() -> bool:
            return clusters.get("", "cluster") == stored

        await until(heard)
        overridden = condition(stored, "Overridden")
        assert overridden is not None
        return overridden["status"], overridden["reason"]

    assert await override_state() == ("False", "NoOverride")
    await annotate(here, override(await uid(here), here.clock.now()))
    assert await override_state() == ("True", "BreakGlass")
    assert await override_state() == ("True", "BreakGlass")
    here.clock.ahead = timedelta(hours=2)
    assert await override_state() == ("False", "Expired")
    assert [entry.what for entry in record.entries] == ["break-glass-begins", "break-glass-ends"]
    assert "ada and grace" in record.entries[0].detail["override"]


async def test_a_verifier_that_verifies_nobody_is_an_alarm(here: AttestingWorld) -> None:
    await here.approve("snp")
    machine = await here.enrolled("snp")
    assert await outcome(here, machine) == "accepted"
    loop = Confidential(here.cluster, here.informers, here.clock)

    async def verifying() -> tuple[str, str]:
        await reconciled(loop)
        reported = condition(await here.cluster.get(CONFIDENTIAL_CLUSTER.resource, "cluster"), "Verifying")
        assert reported is not None
        return reported["status"], reported["reason"]

    machines = here.informers.of

    async def heard() -> bool:
        from fastness.kinds.trusted_execution.machine import MACHINE

        return any((enrolled.get("status") or {}).get("lastAttested") for enrolled in machines(MACHINE.resource).list())

    await until(heard)
    assert await verifying() == ("True", "ProofsComeIn")
    here.clock.ahead = timedelta(minutes=46)
    assert await verifying() == ("False", "NothingVerified")
