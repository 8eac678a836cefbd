"""Keys of disks, asked for by everybody who should not have them.

The attackers have what a host has (the machine's disk with its uid, other guests on the same chip, the messages of before) or
what root on a running machine has (its session, its guest key, its TEE). Everything goes over HTTPS.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from itertools import count
from typing import Any

import httpx
import pytest
import pytest_asyncio

from fastness.agent.boot.prove import BrokerRefused
from fastness.attestation.live.launches import MOST
from fastness.attestation.live.verifier import ClusterVerifier
from fastness.crypto.keys import PrivateKey
from fastness.disks.keyring import secret_name
from fastness.formats import json
from fastness.keys.authorities import SECRETS
from fastness.kinds.fastness_dev.verdict import VERDICT
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import view
from fastness.kinds.trusted_execution.machine import MACHINE, Machine
from fastness.kube.places import DISKS
from fastness.protocol import kbs
from fastness.protocol.disk_report import DiskReport
from fastness.protocol.user_data_event import PCR, logged
from fastness.sim.hardware import tampered_image
from fastness.sim.tee.attester import SimAttester
from tests.attesting import ENTROPY
from tests.unlocking import HEADER, VOLUME, DiskClient, DiskSite, Members, disk_site, leave_initrd, report

TEES = ["tpm", "snp", "tdx"]


pytestmark = pytest.mark.asyncio(loop_scope="module")
_numbers = count(1)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[DiskSite]:
    async with disk_site(tmp_path_factory.mktemp("disks")) as site:
        yield site


@pytest.fixture
def site(shared: DiskSite) -> DiskSite:
    return shared.apart(next(_numbers))


async def uid_of(site: DiskSite, machine: SimAttester) -> str:
    return str((await site.machine(machine))["metadata"]["uid"])


async def refused(site: DiskSite, machine: SimAttester, members: Members) -> tuple[int, str]:
    """Status and code of the broker's refusal; fails when it gives the key."""
    with pytest.raises(BrokerRefused) as refusal:
        await site.unlocked(machine, members)
    return refusal.value.status, refusal.value.reason


def _nonce(content: bytes) -> str:
    return str(json.decode(content)["nonce"])


def standing(machine: JsonObject) -> JsonObject:
    return {name: value for name, value in machine["status"].items() if name != "signed"}


@pytest.mark.parametrize("tee", TEES)
async def test_root_on_a_running_machine_does_not_get_the_key_of_its_disk_again(site: DiskSite, tee: Any) -> None:
    machine = await site.first_boot(tee)
    uid, before = await uid_of(site, machine), standing(await site.machine(machine))
    # With its ordinary session, which counts for everything else that is its own.
    async with site.session(machine, Members(reports=(report(1),))) as session:
        for path in (f"machine/{uid}/disk-{VOLUME}", f"default/{uid}/root"):
            with pytest.raises(BrokerRefused) as refusal:
                await session.resource(path)
            assert (refusal.value.status, refusal.value.reason) == (403, "unlock-required")
        assert (await session.resource("default/attestation-status/status")).reveal() == b"success"
    # With an unlock session of its own making: root has the TEE, the guest key, and any unlock key it likes.
    code = {"snp": "launch-already-used"}.get(tee, "initrd-left")
    assert await refused(site, machine, Members(uid)) == (403, code)
    assert await refused(site, machine, Members(uid, identity=False)) == (403, code)
    after = standing(await site.machine(machine))
    assert after["disks"][0]["unlockedAt"] == before["disks"][0]["unlockedAt"]
    assert after["standing"] == before["standing"]


@pytest.mark.parametrize("tee", TEES)
async def test_a_token_of_an_unlock_opens_nothing_but_the_disk_at_any_door(site: DiskSite, tee: Any) -> None:
    machine = site.boot(tee)
    await site.enrolled(machine)
    uid = await uid_of(site, machine)
    async with site.session(machine, Members(uid)) as session:
        for path in (
            "pool/worker/secret", "pool/worker/config", "default/attestation-status/status", f"machine/{uid}/key",
            f"machine/{uid}/bootstrap-token",
        ):  # fmt: skip
            with pytest.raises(BrokerRefused) as refusal:
                await session.resource(path, "key=sha256:" + "0" * 64 if path.endswith("token") else "")
            assert (refusal.value.status, refusal.value.reason) == (403, "unlock-only"), path
        assert session.reattest is None or session.reattest.total_seconds() == 0
        token = session.token.reveal()
        gate = site.fortress.gate
        trust = ssl.create_default_context(cadata=gate.doors.bundle)
        url = f"https://127.0.0.1:{gate.port}"
        async with httpx.AsyncClient(base_url=url, verify=trust, trust_env=False) as http:
            answer = await http.get("/config/worker", headers={"authorization": f"DPoP {token}"})
        assert (answer.status_code, answer.json()["code"]) == (401, "bad-token")
        enrol = f"https://127.0.0.1:{site.world.doors.enrolment.port}"
        async with httpx.AsyncClient(base_url=enrol, verify=site.world.trust, trust_env=False) as http:
            answer = await http.post("/v1/enrol", content=b"{}", headers={"authorization": f"Bearer {token}"})
        assert answer.status_code in (400, 401)
    assert site.fortress.shelf.requests == []
    status = (await site.machine(machine))["status"]
    assert "nodeKeys" not in status
    assert "lastAttested" not in status


async def test_an_unlock_session_names_no_keys_of_a_node(site: DiskSite) -> None:
    machine = site.boot("tpm")
    await site.enrolled(machine)
    named = {"fastness-node-keys": {"client": "sha256:" + "ab" * 32}}
    await site.unlocked(machine, Members(await uid_of(site, machine), more=named))
    assert "nodeKeys" not in (await site.machine(machine))["status"]


@pytest.mark.parametrize("tee", TEES)
async def test_the_uid_of_another_machine_is_worth_nothing(site: DiskSite, tee: Any) -> None:
    victim = await site.first_boot(tee, serial=1)
    thief = site.boot(tee, serial=2)
    await site.enrolled(thief)
    uid, before = await uid_of(site, victim), standing(await site.machine(victim))
    assert await refused(site, thief, Members(uid)) == (403, "other-machine")
    if tee != "tpm":  # without the guest key, which need not be shown, the chip decides
        assert await refused(site, thief, Members(uid, identity=False)) == (403, "other-chip")
    # Its own session does not open the other one's disk either.
    async with site.session(site.boot(tee, 2, serial=2), Members(await uid_of(site, thief))) as session:
        with pytest.raises(BrokerRefused) as refusal:
            await session.resource(f"machine/{uid}/disk-{VOLUME}")
    assert (refusal.value.status, refusal.value.reason) == (403, "other-machine")
    assert standing(await site.machine(victim)) == before


async def test_a_neighbour_on_the_same_chip_that_runs_gets_nothing(site: DiskSite) -> None:
    """Equal image, same chip, the uid read from the disk: only that its launch was seen before tells it apart."""
    victim = await site.first_boot("snp", guest=0)
    neighbour = await site.first_boot("snp", guest=1)
    uid = await uid_of(site, victim)
    assert await refused(site, neighbour, Members(uid, identity=False)) == (403, "launch-already-used")


async def test_a_neighbour_that_never_unlocked_anything_cannot_begin_once_it_was_seen(site: DiskSite) -> None:
    victim = await site.first_boot("snp", guest=0)
    neighbour = site.boot("snp", guest=1)
    await site.enrolled(neighbour)
    await site.attested(neighbour)
    members = Members(await uid_of(site, victim), identity=False)
    assert await refused(site, neighbour, members) == (403, "launch-already-used")
    # Also after everything that its own Machine remembered of the launch is gone.
    await site.patch(neighbour, metadata={"finalizers": None})
    stored = await site.machine(neighbour)
    await site.world.cluster.delete(MACHINE.resource, stored["metadata"]["name"], stored["metadata"]["namespace"])
    assert await refused(site, neighbour, members) == (403, "launch-already-used")


async def test_a_launch_is_bound_to_one_machine_and_one_unlock_key(site: DiskSite) -> None:
    victim = await site.first_boot("snp", guest=0)
    other = await site.first_boot("snp", guest=1)
    again, key = site.boot("snp", 2, guest=0), PrivateKey.generate(ENTROPY)
    await site.unlocked(again, Members(await uid_of(site, victim), key=key, identity=False))
    assert await refused(site, again, Members(await uid_of(site, victim), identity=False)) == (
        403,
        "launch-already-used",
    )
    taken = Members(await uid_of(site, other), key=key, identity=False)
    assert await refused(site, again, taken) == (403, "launch-already-used")


@pytest.mark.parametrize("tee", ["snp", "tdx"])
async def test_a_machine_without_a_chip_must_show_its_own_key(site: DiskSite, tee: Any) -> None:
    machine = site.boot(tee)
    await site.enrolled(machine)
    uid = await uid_of(site, machine)
    assert await refused(site, machine, Members(uid, identity=False)) == (403, "identity-missing")
    assert await refused(site, site.boot(tee, serial=2), Members(uid)) == (403, "other-machine")


@pytest.mark.parametrize("tee", TEES)
async def test_an_unlock_key_that_did_not_sign_opens_nothing(site: DiskSite, tee: Any) -> None:
    machine = site.boot(tee)
    await site.enrolled(machine)
    members = Members(await uid_of(site, machine), signer=PrivateKey.generate(ENTROPY))
    assert await refused(site, machine, members) == (403, "unlock-unproved")


@pytest.mark.parametrize("tee", TEES)
async def test_an_image_that_does_not_count_for_the_pool_opens_no_disk(site: DiskSite, tee: Any) -> None:
    machine = await site.first_boot(tee)
    changed = site.boot(tee, 2, image=tampered_image(tee))
    status, _ = await refused(site, changed, Members(await uid_of(site, machine), identity=False))
    assert status == 403
    stands = await site.machine(machine)
    assert stands["status"]["standing"].startswith("Proved"), "who only names a uid changes nothing about the machine"


@pytest.mark.parametrize("approval", ["Quarantined", "Pending"])
async def test_keys_are_withheld_from_a_machine_that_people_took_out(site: DiskSite, approval: str) -> None:
    machine = await site.first_boot("tpm")
    await site.patch(machine, spec={"approval": approval})
    again = site.boot("tpm", 2)
    expected = (403, "quarantined") if approval == "Quarantined" else (503, "approval-pending")
    assert await refused(site, again, Members(await uid_of(site, machine))) == expected


async def test_a_quarantine_between_proof_and_question_withholds_the_key(site: DiskSite) -> None:
    machine = await site.first_boot("tpm")
    uid = await uid_of(site, machine)
    async with site.session(site.boot("tpm", 2), Members(uid)) as session:
        await site.patch(machine, spec={"approval": "Quarantined"})
        with pytest.raises(BrokerRefused) as refusal:
            await session.resource(f"machine/{uid}/disk-{VOLUME}")
    assert (refusal.value.status, refusal.value.reason) == (403, "revoked")


async def test_a_key_that_was_destroyed_is_gone(site: DiskSite) -> None:
    machine = await site.first_boot("tpm")
    uid = await uid_of(site, machine)
    await site.world.cluster.delete(SECRETS, secret_name(uid), DISKS)
    assert await refused(site, site.boot("tpm", 2), Members(uid)) == (404, "disk-key-destroyed")


class Recorded(DiskClient):
    """Somebody on the way who recorded the answer to a challenge and sends it a second time."""

    async def replayed(self) -> None:
        opened = await self._call("POST", "/kbs/v0/auth", kbs.request_message(self._attester.tee))
        challenge, nonce = self._session, _nonce(opened)
        answer = kbs.attestation_message(await self._answer(nonce, {}, show_identity=True))
        await self._call("POST", "/kbs/v0/attest", answer)
        self._session = challenge
        await self._call("POST", "/kbs/v0/attest", answer)


@pytest.mark.parametrize("tee", ["tpm", "snp"])
async def test_an_answer_that_was_recorded_is_no_second_unlock(site: DiskSite, tee: Any) -> None:
    machine = site.boot(tee)
    await site.enrolled(machine)
    url = f"https://127.0.0.1:{site.world.doors.broker.port}"
    async with Recorded(url, site.world.trust, machine, ENTROPY) as client:
        client.members = Members(await uid_of(site, machine))
        with pytest.raises(BrokerRefused) as refusal:
            await client.replayed()
    assert refusal.value.status == 401


async def test_a_log_that_hides_the_phase_is_found_out(site: DiskSite) -> None:
    """Root adds an event to its log so that the log ends in the register as it is now."""
    machine = await site.first_boot("tpm")
    booted: Any = machine.machine
    booted.event_log = logged(booted.event_log, PCR.phase, [b"leave-initrd"])
    assert await refused(site, machine, Members(await uid_of(site, machine))) == (403, "initrd-left")


async def test_a_member_that_cannot_be_read_is_refused_and_not_ignored(site: DiskSite) -> None:
    machine = site.boot("tpm")
    await site.enrolled(machine)
    members: tuple[Any, ...] = (
        {}, {"machine": "x"}, [], None, {"machine": "a" * 36, "key": {}, "signature": "", "more": 1},
    )  # fmt: skip
    for member in members:
        with pytest.raises(BrokerRefused) as refusal:
            async with site.session(machine, Members(more={"fastness-unlock": member})):
                pass
        assert (refusal.value.status, refusal.value.reason) == (403, "unlock-unreadable"), member


async def test_launches_are_bounded_for_each_machine(site: DiskSite, monkeypatch: pytest.MonkeyPatch) -> None:
    assert MOST > 1000
    monkeypatch.setattr("fastness.attestation.live.launches.MOST", 1)
    machine = await site.first_boot("snp")
    members = Members(await uid_of(site, machine), identity=False)
    assert await refused(site, site.boot("snp", 2), members) == (403, "launch-already-used")


async def test_a_report_of_a_key_that_was_never_released_makes_no_identity(site: DiskSite) -> None:
    machine = site.boot("snp")
    await site.enrolled(machine)
    stands = await site.attested(machine, report(7))
    assert stands["status"]["identity"] == "OpenDisk"
    assert stands["status"]["disks"][0].get("generation") is None
    leave_initrd(machine)


@pytest.mark.parametrize("tee", TEES)
async def test_a_guest_key_that_was_copied_to_an_open_disk_gives_no_standing(site: DiskSite, tee: Any) -> None:
    """Own chip, own key, an image that counts, the next boot: everything but the disk, of which nothing is reported."""
    machine = await site.first_boot(tee)
    uid = await uid_of(site, machine)
    copied = site.boot(tee, 2)
    for reports in ((), (report(2, "k9"),), (DiskReport("root", 2, 1, "k1", HEADER),)):
        with pytest.raises(BrokerRefused) as refusal:
            await site.attested(copied, *reports)
        assert (refusal.value.status, refusal.value.reason) == (403, "disk-not-opened")
    stands = await site.machine(machine)
    assert stands["status"]["standing"].startswith("Refused")
    verdict = await site.world.cluster.get(VERDICT.resource, stands["status"]["lastVerdict"])
    (check,) = [check for check in verdict["spec"]["checks"] if check["code"] == "disk-not-opened"]
    assert "replace the node" in check["hint"]
    # The machine itself, from its own disk, has its place again.
    again = site.boot(tee, 3)
    await site.unlocked(again, Members(uid, identity=False))
    leave_initrd(again)
    assert (await site.attested(again, report(2)))["status"]["standing"].startswith("Proved")


@pytest.mark.parametrize("tee", ["tpm", "tdx"])
async def test_a_machine_that_never_measures_that_it_left_its_initrd_does_not_stand(site: DiskSite, tee: Any) -> None:
    """Root on it would be taken for its initrd, and get the key of the disk again."""
    machine = await site.first_boot(tee)
    uid = await uid_of(site, machine)
    again = site.boot(tee, 2)
    await site.unlocked(again, Members(uid, identity=False))
    with pytest.raises(BrokerRefused) as refusal:
        await site.attested(again, report(2))
    assert (refusal.value.status, refusal.value.reason) == (403, "phase-not-measured")
    assert (await site.machine(again))["status"]["disks"][0]["state"] == "PhaseNotMeasured"
    leave_initrd(again)
    assert (await site.attested(again, report(2)))["status"]["standing"].startswith("Proved")


async def test_an_old_copy_does_not_pass_while_a_cache_is_behind(
    site: DiskSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A door that has not heard of the last boot judges by the number of the one before: what is written counts."""
    await site.first_boot("tpm")
    machine, copied = site.boot("tpm", 2), site.boot("tpm", 3)
    for boot in (machine, copied):
        await site.unlocked(boot, Members(identity=False))
        leave_initrd(boot)
    behind = view(await site.machine(machine), Machine)
    await site.attested(machine, report(2))

    async def cached(self: ClusterVerifier, tee: str, thumbprint: str) -> Machine:
        return behind

    monkeypatch.setattr(ClusterVerifier, "_machine", cached)
    with pytest.raises(BrokerRefused) as refusal:
        await site.attested(copied, report(3, after=1))
    assert refusal.value.status == 503, "it is asked again, and then judged by what is true"
    monkeypatch.undo()
    with pytest.raises(BrokerRefused) as refusal:
        await site.attested(copied, report(3, after=1))
    assert (refusal.value.status, refusal.value.reason) == (403, "disk-rolled-back")
    assert await site.count(machine, (await site.machine(machine))["status"]["disks"][0]["generation"]) == 2
