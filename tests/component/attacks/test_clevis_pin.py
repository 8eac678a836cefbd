"""The Clevis pin's ways in, tried by everybody who should get nothing there.

The attackers have what a host has (user-data with a ticket that ran out, the disk with its token and so every id, a TPM of their
own, other images), what root on a running machine has (its TPM), or nothing. Everything goes over HTTPS.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio

from fastness.agent.boot.enrol import first_message
from fastness.agent.boot.prove import BrokerRefused
from fastness.crypto.secret import SecretBytes
from fastness.formats import json
from fastness.keys.authorities import SECRETS
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.resource_binding import RESOURCE_BINDING
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.errors import ApiError
from fastness.protocol.kbs_path import parse_path
from fastness.release.live.resources import SealedResources
from fastness.sim.tee.attester import SimAttester
from tests.pinning import CONFIG, POOL, PinnedMachine, PinSite, pin_site
from tests.standins.trustee_attester import AttesterRefused, Conversation

pytestmark = pytest.mark.asyncio(loop_scope="module")
NOBODY = "5f0c8f52-1d3b-4f6e-9c55-0a8f3f1b7a11"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[PinSite]:
    async with pin_site(tmp_path_factory.mktemp("pins")) as shared:
        yield shared


async def refused(site: PinSite, machine: PinnedMachine, path: str = "", **state: Any) -> tuple[int, str]:
    """Status and code of the broker's refusal; fails when it gives the key."""
    with pytest.raises(AttesterRefused) as refusal:
        await site.fetch(machine, path, **state)
    return refusal.value.status, refusal.value.code


async def uid_of(site: PinSite, machine: PinnedMachine) -> str:
    return str((await site.machine(machine))["metadata"]["uid"])


async def test_strangers_and_wrong_tickets_get_no_config(site: PinSite) -> None:
    machines = len((await site.world.cluster.list(MACHINE.resource)).items)
    answer = await site.ask("GET", CONFIG, "")
    assert (answer.status_code, answer.json()["code"]) == (403, "ticket-enrolment-only")
    answer = await site.ask("GET", CONFIG, "fst_" + "x" * 43)
    assert (answer.status_code, answer.json()["code"]) == (401, "ticket-required")
    other = await site.world.ticket(pool="infra")
    answer = await site.ask("GET", CONFIG, other.reveal())
    assert (answer.status_code, answer.json()["code"]) == (403, "ticket-enrolment-only")
    for method in ("POST", "PUT", "DELETE", "HEAD"):
        assert (await site.ask(method, CONFIG)).status_code == 405, method
    assert len((await site.world.cluster.list(MACHINE.resource)).items) == machines


async def test_a_key_without_an_invitation_of_this_door_is_not_registered(site: PinSite) -> None:
    tpm, pin = site.tpm(), await site.invited()
    machines = len((await site.world.cluster.list(MACHINE.resource)).items)
    body = {"public_key": tpm.public_key(), "uuid": pin["path"].split("/")[1]}
    answer = await site.ask("PUT", "/register-ak", None, body)
    assert (answer.status_code, answer.json()["code"]) == (403, "ticket-enrolment-only")
    url = pin["attestation_key"]["registration"]["url"]
    # A text that this door sealed for something else, one with another id in it, and one that is cut.
    begun = await site.ask(
        "POST", "/v1/enrol", None, json.decode(await first_message(SimAttester(site.world.vendor.chip("tpm").boot())))
    )
    sealed = url.rpartition("/")[2]
    raw = base64.urlsafe_b64decode(sealed + "==")
    forged = base64.urlsafe_b64encode(raw.replace(body["uuid"].encode(), NOBODY.encode())).decode().rstrip("=")
    assert forged != sealed
    for text in (begun.json()["enrolment"], forged, sealed[:-4], "x" * 3000, "x"):
        answer = await site.ask("PUT", f"/register-ak/{text}", "", body)
        assert (answer.status_code, answer.json()["code"]) == (401, "enrolment-invalid"), text[:40]
    answer = await site.register(pin, tpm, uuid=NOBODY)
    assert (answer.status_code, answer.json()["code"]) == (401, "enrolment-invalid")
    assert len((await site.world.cluster.list(MACHINE.resource)).items) == machines


async def test_an_invitation_is_for_one_key(site: PinSite) -> None:
    machine = await site.enrolled()
    answer = await site.register(machine.pin, site.tpm())
    assert (answer.status_code, answer.json()["code"]) == (403, "identity-conflict")


async def test_what_is_no_key_is_refused(site: PinSite) -> None:
    pin, tpm = await site.invited(), site.tpm()
    for body, code in (
        ({}, "bad-member"), ({"public_key": ""}, "bad-member"), ({"public_key": 5}, "bad-member"), ([], "bad-message"),
        ({"public_key": tpm.public_key(), "attestation_key": tpm.public_key()}, "bad-member"),
        ({"public_key": tpm.public_key(), "uuid": "../x"}, "bad-member"),
        ({"public_key": tpm.public_key(), "ek": "x"}, "unknown-member"),
        ({"public_key": "%%%"}, "bad-base64"), ({"public_key": "TUlJQg=="}, "bad-key"),
    ):  # fmt: skip
        answer = await site.ask("PUT", pin["attestation_key"]["registration"]["url"], "", body)
        assert (answer.status_code, answer.json()["code"]) == (400, code), body
    large = await site.ask("PUT", pin["attestation_key"]["registration"]["url"], "", {"public_key": "x" * 9000})
    assert large.status_code == 413


async def test_without_trust_on_first_use_the_pin_gets_nothing_at_any_step(site: PinSite) -> None:
    machine, pin = await site.enrolled(), await site.invited()
    await site.key(machine)
    await site.settings(join={"trustOnFirstUse": False})
    try:
        answer = await site.ask("GET", CONFIG)
        assert (answer.status_code, answer.json()["code"]) == (403, "first-use-not-allowed")
        assert "join.trustOnFirstUse" in answer.json()["detail"]
        answer = await site.register(pin, site.tpm())
        assert (answer.status_code, answer.json()["code"]) == (403, "first-use-not-allowed")
        assert await refused(site, machine) == (403, "first-use-not-allowed")
    finally:
        await site.settings(join={"trustOnFirstUse": True})


async def test_a_pool_that_accepts_no_tpm_has_no_pin(site: PinSite) -> None:
    await site.settings(pools=[{**POOL, "evidence": ["snp"]}])
    try:
        answer = await site.ask("GET", CONFIG)
        assert (answer.status_code, answer.json()["code"]) == (403, "evidence-not-accepted")
    finally:
        await site.settings(pools=[POOL])


async def test_the_id_of_another_machine_is_worth_nothing(site: PinSite) -> None:
    victim, thief = await site.enrolled(), await site.enrolled()
    for path in (victim.path, f"default/{await uid_of(site, victim)}/root"):
        assert await refused(site, thief, path) == (403, "other-machine")
    assert await refused(site, thief, f"default/{NOBODY}/root") == (403, "other-machine")
    # Somebody whose key nobody registered has no session at all.
    stranger = PinnedMachine(site.tpm(), victim.pin)
    assert await refused(site, stranger) == (403, "not-enrolled")
    assert "unlockedAt" not in (await site.machine(victim))["status"]["disks"][0]


async def test_a_session_that_proved_nothing_gets_no_key(site: PinSite) -> None:
    machine = await site.enrolled()

    def ask(*, challenged: bool) -> None:
        with closing(Conversation(site.broker, site.world.trust)) as conversation:
            if challenged:
                conversation.call("POST", "auth", {"version": "0.4.0", "tee": "tpm", "extra-params": ""})
            conversation.resource(machine.path)

    for challenged in (False, True):
        with pytest.raises(AttesterRefused) as refusal:
            await asyncio.to_thread(ask, challenged=challenged)
        assert refusal.value.status == 401


async def test_a_changed_image_gets_no_key(site: PinSite) -> None:
    machine = await site.enrolled()
    await site.key(machine)
    status, code = await refused(site, machine, image="tampered")
    assert (status, code) == (403, "value-differs")


async def test_a_machine_that_shows_that_it_left_its_initrd_gets_no_key(site: PinSite) -> None:
    machine = await site.enrolled()
    assert await refused(site, machine, phases=["enter-initrd", "leave-initrd"]) == (403, "initrd-left")
    assert await refused(site, machine, phases=["leave-initrd", "sysinit", "ready"]) == (403, "initrd-left")
    assert await refused(site, machine, phases=["leave-initrd"], log=True) == (403, "initrd-left")
    assert (await site.key(machine, phases=["enter-initrd"]))["key_type"] == "oct"


async def test_a_quarantined_machine_gets_no_key_also_between_proof_and_question(site: PinSite) -> None:
    machine = await site.enrolled()
    await site.key(machine)
    with closing(Conversation(site.broker, site.world.trust)) as conversation:
        await asyncio.to_thread(conversation.attest, machine.tpm)
        await site.patch(machine, spec={"approval": "Quarantined"})
        with pytest.raises(AttesterRefused) as refusal:
            await asyncio.to_thread(conversation.resource, machine.path)
    assert (refusal.value.status, refusal.value.code) == (403, "revoked")
    assert await refused(site, machine) == (403, "quarantined")


async def test_a_machine_of_the_agent_gets_no_disk_key_by_the_name_of_the_pin(site: PinSite) -> None:
    """Its pool uses the pin, and root on it has an ordinary session: its disk is still opened by unlock sessions alone."""
    agent = SimAttester(site.world.vendor.chip("tpm").boot())
    assert (await site.fortress.enrol(agent)).status_code == 201
    stored = await site.world.machine_object(agent)
    async with site.world.broker(agent) as broker:
        await broker.attest()
        for name in (stored["spec"]["id"], stored["metadata"]["uid"]):
            with pytest.raises(BrokerRefused) as refusal:
                await broker.resource(f"default/{name}/root")
            assert (refusal.value.status, refusal.value.reason) == (403, "unlock-required")
    snp = SimAttester(site.world.vendor.chip("snp").boot())
    assert (await site.fortress.enrol(snp)).status_code == 201
    identity = (await site.world.machine_object(snp))["spec"]["id"]
    async with site.world.broker(snp) as broker:
        await broker.attest()
        with pytest.raises(BrokerRefused) as refusal:
            await broker.resource(f"default/{identity}/root")
    assert (refusal.value.status, refusal.value.reason) == (403, "unlock-required")


async def test_a_key_that_the_agent_enrolled_is_not_taken_over_by_the_pin(site: PinSite) -> None:
    agent = SimAttester(site.world.vendor.chip("tpm").boot())
    assert (await site.fortress.enrol(agent)).status_code == 201
    key = base64.b64encode(agent.machine.identity_key.public_der()).decode()
    answer = await site.register(await site.invited(), site.tpm(), public_key=key)
    assert (answer.status_code, answer.json()["code"]) == (403, "identity-conflict")
    assert (await site.world.machine_object(agent))["status"]["endorsedBy"] == "ek-certificate"


async def test_the_key_has_no_other_name(site: PinSite) -> None:
    machine = await site.enrolled()
    uid = await uid_of(site, machine)
    for path in (f"machine/{uid}/disk-root", f"machine/{machine.identity}/disk-root"):
        assert await refused(site, machine, path) == (403, "unlock-required")
    for path in (f"default/{machine.identity}/key", f"default/{machine.identity.upper()}/root"):
        status, _ = await refused(site, machine, path)
        assert status in (400, 403), path


async def test_a_secret_or_a_binding_of_that_name_is_refused_and_changes_nothing(site: PinSite) -> None:
    machine, thief = await site.enrolled(), await site.enrolled()
    key = await site.key(machine)
    cluster = site.world.cluster
    fake = base64.b64encode(b'{"key_type":"oct","key":"the-key-that-the-host-would-choose"}').decode()
    secret = {
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": machine.identity, "namespace": NAMESPACE},
        "data": {"root": fake},
    }  # fmt: skip
    binding = {
        "apiVersion": RESOURCE_BINDING.api_version, "kind": RESOURCE_BINDING.kind, "metadata": {"name": "pin"},
        "spec": {"resource": machine.path, "subjects": {"machines": [await uid_of(site, thief)]}},
    }  # fmt: skip
    with pytest.raises(ApiError, match="disk key"):
        await cluster.create(SECRETS, secret)
    with pytest.raises(ApiError, match="disk key"):
        await cluster.create(RESOURCE_BINDING.resource, binding)
    # A star says less than it seems to: it may be written, and opens no disk.
    spec = {"resource": "default/*/*", "subjects": {"pools": ["worker"]}}
    await cluster.create(RESOURCE_BINDING.resource, {**binding, "metadata": {"name": "all"}, "spec": spec})
    # Where nobody refused it, it is a resource of the broker's store: the key of the disk is still what leaves.
    path = parse_path(machine.path)
    assert path is not None
    await SealedResources(cluster, site.world.cipher).write(path, SecretBytes(base64.b64decode(fake)))
    assert await site.key(machine) == key
    assert await refused(site, thief, machine.path) == (403, "other-machine")


async def test_another_boot_of_the_same_machine_with_another_key_is_another_machine(site: PinSite) -> None:
    """Who copies a disk has its token, and not the key of the TPM."""
    machine = await site.enrolled()
    copy = replace(machine, tpm=site.tpm())
    assert await refused(site, copy) == (403, "not-enrolled")
