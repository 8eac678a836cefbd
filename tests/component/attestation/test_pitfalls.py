"""Mistakes that key brokers have made, tried at the doors as the product composes them; numbers are those of the threat model."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest

from fastness.agent.boot.attester import Attester
from fastness.agent.boot.prove import PREFIX, BrokerClient, BrokerRefused
from fastness.attestation.policy.policy import built_in_text
from fastness.formats import json
from fastness.kinds.fastness_dev.appraisal_policy import APPRAISAL_POLICY
from fastness.kinds.fastness_dev.audit import AUDIT_BATCH
from fastness.kinds.fastness_dev.evidence import SPENT_CHALLENGE
from fastness.kinds.fastness_dev.reference_values import REFERENCE_VALUE_SET
from fastness.kinds.fastness_dev.verdict import VERDICT
from fastness.kinds.kind import JsonObject
from fastness.kube.port import PatchType, WriteOptions
from fastness.protocol import kbs
from fastness.sim.tee.attester import SimAttester
from fastness.sim.tee.images import changed, default_image
from fastness.sim.tee.tamper import with_certificates_of
from tests.attesting import ENTROPY, AttestingWorld, attesting_world, until
from tests.embedded.fixtures import Embedded

STATUS = "default/attestation-status/status"


@pytest.fixture
async def here(embedded_server: Embedded) -> AsyncIterator[AttestingWorld]:
    async with attesting_world(embedded_server.cluster) as world:
        yield world


class StepByStep(BrokerClient):
    """A machine that takes each step of the handshake by itself."""

    async def challenged(self, tee: str = "") -> str:
        """A nonce of the broker."""
        opened = await self._call("POST", f"{PREFIX}/auth", kbs.request_message(tee or self._attester.tee))
        return str(json.decode(opened)["nonce"])

    async def answer_to(self, nonce: str) -> kbs.KbsAttestation:
        """A good answer."""
        return await self._answer(nonce, {}, show_identity=True)

    async def outcome(self, answer: kbs.KbsAttestation) -> tuple[int, str]:
        """What the broker says to an answer."""
        try:
            await self._call("POST", f"{PREFIX}/attest", kbs.attestation_message(answer))
        except BrokerRefused as error:
            return error.status, error.reason
        return 200, ""


def client(world: AttestingWorld, machine: Attester) -> StepByStep:
    return StepByStep(f"https://127.0.0.1:{world.doors.broker.port}", world.trust, machine, ENTROPY)


def with_evidence(answer: kbs.KbsAttestation, evidence: JsonObject) -> kbs.KbsAttestation:
    return kbs.KbsAttestation(answer.nonce, answer.tee_pubkey, evidence, answer.additional, answer.init_data)


async def left_behind(world: AttestingWorld) -> int:
    """How many objects attempts have left."""
    lists = [await world.cluster.list(kind.resource) for kind in (VERDICT, SPENT_CHALLENGE)]
    return sum(len(listing.items) for listing in lists)


@pytest.mark.parametrize("tee", ["snp", "tdx"])
async def test_pitfall_10_a_machine_that_can_be_debugged_gets_nothing(here: AttestingWorld, tee: str) -> None:
    await here.approve(tee)
    machine = SimAttester(here.vendor.chip(tee).boot(default_image(), debug=True))  # type: ignore[call-arg]
    await here.enrol(machine, await here.ticket())
    async with here.broker(machine) as broker:
        with pytest.raises(BrokerRefused) as refused:
            await broker.attest()
        assert (refused.value.status, refused.value.reason) == (403, "debug-allowed")
        with pytest.raises(BrokerRefused) as nothing:
            await broker.resource(STATUS)
        assert nothing.value.status == 401


def without_demand(tee: str, demand: str) -> JsonObject:
    """The built-in policy without one of its demands."""
    text = built_in_text(tee)
    assert demand in text
    return {
        "apiVersion": APPRAISAL_POLICY.api_version, "kind": APPRAISAL_POLICY.kind, "metadata": {"name": f"lenient-{tee}"},
        "spec": {"for": tee, "rego": text.replace(demand, ""), "active": True},
    }  # fmt: skip


LENIENT = {"snp": "input.snp.policy_debug_allowed == false", "tdx": "input.tdx.td_attributes.debug == false"}


@pytest.mark.parametrize("tee", LENIENT)
async def test_in_a_simulated_cluster_a_policy_may_allow_debugging_and_the_verdict_warns(
    here: AttestingWorld, tee: str
) -> None:
    await here.approve(tee)
    policy = without_demand(tee, LENIENT[tee])
    await here.cluster.create(APPRAISAL_POLICY.resource, policy)
    # What a person confirmed: beside the built-in policy, which goes on to demand it, the text could not allow anything.
    active = {"for": tee, "rego": policy["spec"]["rego"], "version": "1", "replacesBuiltIn": True}
    patch = {"status": {"active": active}}
    status = WriteOptions(subresource="status")
    await here.cluster.patch(
        APPRAISAL_POLICY.resource, policy["metadata"]["name"], patch, PatchType.MERGE, options=status
    )
    policies = here.informers.of(APPRAISAL_POLICY.resource)

    async def heard() -> bool:
        return any((policy.get("status") or {}).get("active") for policy in policies.list())

    await until(heard)
    machine = SimAttester(here.vendor.chip(tee).boot(default_image(), debug=True))  # type: ignore[call-arg]
    await here.enrol(machine, await here.ticket())
    async with here.broker(machine) as broker:
        await broker.attest()
        assert (await broker.resource(STATUS)).reveal() == b"success"
    (verdict,) = (await here.cluster.list(VERDICT.resource)).items
    (check,) = [check for check in verdict["spec"]["checks"] if check["name"] == "debug"]
    assert (check["result"], check["code"], verdict["spec"]["simulated"]) == ("Warn", "debug-allowed", True)


@pytest.mark.parametrize("tee", ["tpm", "snp", "tdx"])
async def test_pitfall_12_evidence_that_is_bound_to_nothing_is_refused_and_leaves_nothing(
    here: AttestingWorld, tee: str
) -> None:
    await here.approve(tee)
    machine = await here.enrolled(tee)
    async with client(here, machine) as broker:
        answer = await broker.answer_to(await broker.challenged())
        unbound = await machine.evidence(bytes(32 if tee == "tpm" else 64))
        assert await broker.outcome(with_evidence(answer, unbound)) == (403, "nonce-differs")
    assert await left_behind(here) == 0


async def test_pitfall_12_an_answer_without_runtime_data_is_malformed(here: AttestingWorld) -> None:
    machine = await here.enrolled("tpm")
    async with client(here, machine) as broker:
        answer = await broker.answer_to(await broker.challenged())
        body = json.decode(kbs.attestation_message(answer))
        del body["runtime-data"]
        with pytest.raises(BrokerRefused) as refused:
            await broker._call("POST", f"{PREFIX}/attest", json.encode(body))
        assert refused.value.status == 400


async def test_pitfall_13_a_challenge_is_spent_by_an_answer_that_was_refused(here: AttestingWorld) -> None:
    await here.approve("tpm")
    machine = await here.enrolled("tpm", changed(default_image(), command_line="init=/bin/sh"))
    async with client(here, machine) as broker:
        nonce = await broker.challenged()
        assert (await broker.outcome(await broker.answer_to(nonce)))[0] == 403
        assert await broker.outcome(await broker.answer_to(nonce)) == (401, "challenge-replayed")


@pytest.mark.parametrize("tee", ["tpm", "snp", "tdx"])
async def test_pitfall_14_evidence_of_another_challenge_is_not_fresh_although_nobody_saw_it(
    here: AttestingWorld, tee: str
) -> None:
    await here.approve(tee)
    machine = await here.enrolled(tee)
    async with client(here, machine) as broker:
        unseen = await broker.answer_to(await broker.challenged())
        nonce = await broker.challenged()
        assert (await broker.outcome(unseen))[0] == 401
        answer = await broker.answer_to(nonce)
        assert await broker.outcome(with_evidence(answer, dict(unseen.evidence))) == (403, "nonce-differs")
        assert await broker.outcome(answer) == (200, "")


@pytest.mark.parametrize("tee", ["tpm", "snp", "tdx"])
async def test_pitfall_15_a_genuine_machine_does_not_answer_for_another(here: AttestingWorld, tee: str) -> None:
    await here.approve(tee)
    ours, stranger = await here.enrolled(tee), here.machine(tee)
    async with client(here, ours) as broker, client(here, stranger) as other:
        nonce = await broker.challenged()
        own = await broker.answer_to(nonce)
        # The stranger's evidence covers our nonce and its own key; we pass it on as ours.
        relayed = await other.answer_to(nonce)
        status, reason = await broker.outcome(relayed)
        assert (status, reason) == (403, "not-enrolled")
        mixed = with_evidence(own, dict(relayed.evidence))
        assert (await broker.outcome(mixed))[0] == 403
        papers = with_certificates_of(dict(relayed.evidence), dict(own.evidence))
        assert (await broker.outcome(with_evidence(own, papers)))[0] == 403
    assert await left_behind(here) == 0


async def test_pitfall_25_no_door_speaks_without_tls(here: AttestingWorld) -> None:
    for port in (here.doors.broker.port, here.doors.enrolment.port):
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=5) as plain:
            with pytest.raises(httpx.HTTPError):
                await plain.get("/healthz")


async def test_pitfall_27_a_challenge_for_one_kind_of_evidence_is_not_answered_by_another(here: AttestingWorld) -> None:
    await here.approve("snp")
    machine = await here.enrolled("snp")
    async with client(here, machine) as broker:
        answer = await broker.answer_to(await broker.challenged("tpm"))
        assert (await broker.outcome(answer))[0] in (400, 403)
    assert await left_behind(here) == 0


def chips_of_a_site() -> JsonObject:
    """The built-in policy, and two demands more: a chip that the site lists, and memory that was looked at."""
    clause = "input.snp.vmpl == 0"
    more = 'input.snp.chip_id in query_reference_value("site_chips")\n\tinput.snp.platform_alias_check_complete == true'
    text = built_in_text("snp")
    assert clause in text
    rego = text.replace(clause, f"{clause}\n\t{more}")
    return {
        "apiVersion": APPRAISAL_POLICY.api_version, "kind": APPRAISAL_POLICY.kind, "metadata": {"name": "site"},
        "spec": {"for": "snp", "rego": rego, "active": True},
    }  # fmt: skip


async def test_pitfall_26_a_site_admits_the_chips_that_it_lists_and_no_other_genuine_one(here: AttestingWorld) -> None:
    await here.approve("snp")
    chips = [here.vendor.chip("snp", serial=serial) for serial in (101, 102)]
    listed, other = (SimAttester(chip.boot(default_image())) for chip in chips)
    policy = chips_of_a_site()
    await here.cluster.create(APPRAISAL_POLICY.resource, policy)
    active = {"for": "snp", "rego": policy["spec"]["rego"], "version": "1"}
    status = WriteOptions(subresource="status")
    await here.cluster.patch(
        APPRAISAL_POLICY.resource, "site", {"status": {"active": active}}, PatchType.MERGE, options=status
    )
    values = [{"name": "site_chips", "value": chips[0].chip_id.hex(), "type": "Text", "state": "Current"}]
    await here.cluster.create(
        REFERENCE_VALUE_SET.resource,
        {
            "apiVersion": REFERENCE_VALUE_SET.api_version, "kind": REFERENCE_VALUE_SET.kind, "metadata": {"name": "site"},
            "spec": {"source": "manual", "values": values},
        },
    )  # fmt: skip
    policies, sets = here.informers.of(APPRAISAL_POLICY.resource), here.informers.of(REFERENCE_VALUE_SET.resource)

    async def heard() -> bool:
        judges = (policies.get("", "site") or {}).get("status")
        return bool(judges) and sets.get("", "site") is not None

    await until(heard)
    for machine in (listed, other):
        await here.enrol(machine, await here.ticket())
    async with here.broker(listed) as broker:
        await broker.attest()
    async with here.broker(other) as broker:
        with pytest.raises(BrokerRefused) as refused:
            await broker.attest()
    assert refused.value.status == 403


async def test_a_challenge_gives_strangers_no_way_to_fill_the_record(here: AttestingWorld) -> None:
    await here.approve("tpm")
    machine = SimAttester(here.vendor.chip("tpm").boot(default_image()))
    await here.enrol(machine, await here.ticket())
    before = len(await refusals_on_record(here))
    async with client(here, machine) as caller:
        for _ in range(12):
            answer = await caller.answer_to(await caller.challenged())
            quote = {**answer.evidence["tpm_quote"], "pcrs": ["00" * 32] * 24}
            forged = with_evidence(answer, {**answer.evidence, "tpm_quote": quote})
            assert await caller.outcome(forged) == (403, "register-digest-differs")
    written = (await refusals_on_record(here))[before:]
    assert [entry["detail"] for entry in written] == [{"code": "register-digest-differs"}]


async def refusals_on_record(world: AttestingWorld) -> list[JsonObject]:
    """The entries about refusals, in no order."""
    batches = (await world.cluster.list(AUDIT_BATCH.resource)).items
    return [entry for batch in batches for entry in batch["spec"]["entries"] if entry["what"] == "refusal"]
