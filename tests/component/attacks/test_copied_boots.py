"""A machine that runs twice: a copied TPM, an old state of one that is put back, two guests with one key on one chip.

The attacker has what a host has: the state of its guest's TPM, or its guest key and the chip that it runs on; and the approved
image. Everything goes over HTTPS.
"""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from fastness.attestation.machine.decisions import settle_patch
from fastness.attestation.verdict.dispute import BOOT_CODE, CLOCK_SLACK_MS, told_disputes
from fastness.enrolment.live.tpm_makers import CONFIG_MAPS, NAME
from fastness.enrolment.loops.machines import Machines
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.verdict import VERDICT
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import condition, object_name, view
from fastness.kinds.trusted_execution.machine import MACHINE, Machine
from fastness.kube.events import EVENTS
from fastness.kube.port import PatchType
from fastness.protocol.guest_key import SignedByBoot
from fastness.sim.hardware import AS_IT_SHOULD, tampered_image
from fastness.sim.swtpm import TpmMaker
from fastness.sim.tee.attester import SimAttester
from fastness.sim.tee.images import BootImage
from fastness.sim.tee.tpm import TpmMachine
from tests.attesting import until
from tests.component.attacks.outsider import SECRET, Fortress, fortress
from tests.component.attacks.test_copied_keys import proved, standing
from tests.component.attestation.test_distrust import Kept, caches_caught_up

OVER = (403, BOOT_CODE)
WORDS = {
    "tpm": ("TPM boot of 1 resets", "TPM boot of 2 resets"), "snp": ("SNP launch ",) * 2, "tdx": ("TDX launch ",) * 2,
}  # fmt: skip
TEES = ["tpm", "snp", "tdx"]


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Fortress]:
    async with fortress(tmp_path, simulated=True) as site:
        yield site


def boot(site: Fortress, tee: Any, number: int, image: BootImage | None = None) -> SimAttester:
    """That boot of machine 1. Chips of one serial number are copies of each other: each counts for itself."""
    chip: Any = site.site.world.vendor.chip(tee, serial=1)
    chip.boots = number - 1
    return SimAttester(chip.boot(image, **({} if tee == "tpm" else {"guest": 0})))


async def entries(site: Fortress) -> list[JsonObject]:
    """What the record has of disputes."""
    return [entry for entry in await site.record() if entry["what"] == "disputed"]


@pytest.mark.parametrize("tee", TEES)
async def test_a_copy_that_boots_is_told_when_the_original_comes_back(site: Fortress, tee: Any) -> None:
    world = site.site.world
    original = boot(site, tee, 1)
    assert (await site.enrol(original)).status_code == 201
    await proved(site, original)
    async with world.broker(boot(site, tee, 2)) as later:
        await later.attest()
        await caches_caught_up(world)
        before = await world.machine_object(original)
        assert "disputes" not in before["status"]  # a reboot looks like that, too
        for _ in range(2):
            assert await site.attest(original) == OVER
            await caches_caught_up(world)
        after = await world.machine_object(original)
        assert standing(after) == standing(before)
        assert (await later.resource("pool/worker/secret")).reveal() == SECRET
    (entry,) = after["status"]["disputes"]
    words = WORDS[tee]
    assert (entry["over"], entry["shows"].startswith(words[0]), entry["against"].startswith(words[1])) == (
        "Boot", True, True,
    )  # fmt: skip
    assert [(alarm["who"], alarm["detail"]["shows"], alarm["detail"]["against"]) for alarm in await entries(site)] == [
        (original.machine.thumbprint, entry["shows"], entry["against"])
    ] * 2
    verdict = await world.cluster.get(VERDICT.resource, entry["verdict"])
    assert (verdict["spec"]["result"], verdict["spec"]["reason"]) == ("Refused", BOOT_CODE)
    (dispute,) = told_disputes(view(after, Machine))
    assert entry["shows"] in dispute
    assert entry["against"] in dispute


@pytest.mark.parametrize("tee", TEES)
async def test_an_old_state_does_not_put_a_changed_machine_back(site: Fortress, tee: Any) -> None:
    """The machine booted a changed boot loader; its host goes on to quote from the boot before."""
    world = site.site.world
    before_change = boot(site, tee, 1)
    assert (await site.enrol(before_change)).status_code == 201
    await proved(site, before_change)
    status, _ = await site.attest(boot(site, tee, 2, tampered_image(tee)))
    assert status == 403
    await caches_caught_up(world)
    before = await world.machine_object(before_change)
    assert before["status"]["standing"].startswith("Refused")
    assert await site.attest(before_change) == OVER
    await caches_caught_up(world)
    assert standing(await world.machine_object(before_change)) == standing(before)
    # A later boot of what was approved puts it back, as before.
    after = await proved(site, boot(site, tee, 3))
    assert after["status"]["standing"].startswith("Proved")


async def test_two_tpms_that_were_booted_equally_often_are_told_apart_by_their_clocks(site: Fortress) -> None:
    world = site.site.world
    original, copy = boot(site, "tpm", 1), boot(site, "tpm", 1)
    assert isinstance(original.machine, TpmMachine)
    original.machine.quotes = CLOCK_SLACK_MS * 2  # a while after its boot
    assert (await site.enrol(original)).status_code == 201
    before = await proved(site, original)
    assert await site.attest(copy) == OVER
    await caches_caught_up(world)
    assert standing(await world.machine_object(original)) == standing(before)


@pytest.mark.parametrize("tee", TEES)
async def test_proofs_of_one_boot_and_of_later_ones_are_silent(site: Fortress, tee: Any) -> None:
    assert (await site.enrol(boot(site, tee, 1))).status_code == 201
    for number in (1, 2, 5):
        machine = boot(site, tee, number)
        for _ in range(3):
            proven = await proved(site, machine)
    assert "disputes" not in proven["status"]
    assert condition(proven, "Disputed") is None
    assert await entries(site) == []


class PassesForAnotherBoot(SimAttester):
    """A changed trust domain that names the key of the boot before it, which every quote of that boot showed."""

    def __init__(self, own: SimAttester, before: SimAttester) -> None:
        super().__init__(own.machine)
        self._before = before

    async def sign_as_boot(self, message: bytes) -> SignedByBoot | None:
        """The other's public half, and a signature of its own."""
        own, other = await super().sign_as_boot(message), await self._before.sign_as_boot(message)
        assert own is not None
        assert other is not None
        return SignedByBoot(other.public, own.signature)


class NamesNoBoot(SimAttester):
    """A changed trust domain that keeps silent about its boot."""

    async def sign_as_boot(self, message: bytes) -> None:
        """Nothing."""


async def test_a_changed_domain_cannot_pass_for_a_boot_that_is_not_its_own(site: Fortress) -> None:
    """Nothing but the agent says which boot a quote of TDX is of; what booted something else says what it likes."""
    world = site.site.world
    original = boot(site, "tdx", 1)
    assert (await site.enrol(original)).status_code == 201
    before = await proved(site, original)
    changed = boot(site, "tdx", 2, tampered_image("tdx"))
    assert await site.attest(PassesForAnotherBoot(changed, original)) == (403, "boot-unproved")
    assert await site.attest(NamesNoBoot(changed.machine)) == (403, "boot-missing")
    await caches_caught_up(world)
    after = await world.machine_object(original)
    assert (standing(after), after["status"]["boot"]) == (standing(before), before["status"]["boot"])


async def test_an_alarm_is_told_and_stays_until_a_person_settles_it(site: Fortress) -> None:
    world = site.site.world
    loop = Machines(world.cluster, world.informers, Kept(), world.clock)
    original = boot(site, "snp", 1)
    assert (await site.enrol(original)).status_code == 201
    await proved(site, original)
    key = object_name(await proved(site, boot(site, "snp", 2)))
    assert await site.attest(original) == OVER
    await proved(site, boot(site, "snp", 3))
    await loop.reconcile(key)
    stored = await world.cluster.get(MACHINE.resource, key.name, NAMESPACE)
    assert (condition(stored, "Disputed") or {}).get("reason") == "EarlierBoot"
    events = (await world.cluster.list(EVENTS)).items
    assert [event["reason"] for event in events if event["involvedObject"]["name"] == key.name].count(
        "EarlierBoot"
    ) == 1
    patch = settle_patch(stored, "the host was restored from a backup")
    assert patch is not None
    await world.cluster.patch(MACHINE.resource, key.name, patch, PatchType.MERGE, NAMESPACE)
    await loop.reconcile(key)
    stored = await world.cluster.get(MACHINE.resource, key.name, NAMESPACE)
    assert ("disputes" in stored["status"], (condition(stored, "Disputed") or {}).get("status")) == (False, "False")
    # Looking at it lets nobody in.
    assert await site.attest(original) == OVER


async def test_a_real_tpm_whose_state_was_copied_is_told(tmp_path: Path) -> None:
    maker = TpmMaker(tmp_path / "maker")
    try:
        await maker.open()
        root = {"sha256": maker.certificates[-1].fingerprint.hex, "for": "tpm", "reason": "our own machines"}
        async with fortress(tmp_path, simulated=True, attestation={"extraRoots": [root]}) as site:
            await _copied(site, maker, tmp_path)
    finally:
        maker.close()


async def _copied(site: Fortress, maker: TpmMaker, place: Path) -> None:
    world = site.site.world
    pem = b"".join(entry.pem for entry in maker.certificates).decode()
    body = {
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME, "namespace": NAMESPACE}, "data": {"swtpm": pem},
    }  # fmt: skip
    await world.cluster.create(CONFIG_MAPS, body)
    board, copy = maker.board("one", place / "one"), maker.board("copy", place / "copy")
    try:
        original = await board.power_on(AS_IT_SHOULD)

        async def enrolled() -> bool:
            return (await site.enrol(original)).status_code == 201

        await until(enrolled)  # as soon as the door has heard of the maker
        async with world.broker(original) as broker:
            await broker.attest()
        shutil.copytree(place / "one", place / "copy")
        async with world.broker(await copy.power_on(AS_IT_SHOULD)) as broker:
            await broker.attest()
        await caches_caught_up(world)
        assert await site.attest(original) == OVER
        rebooted = await board.power_on(AS_IT_SHOULD)  # now as often as the copy: no count tells them apart
        async with world.broker(rebooted) as broker:
            await broker.attest()
        (machine,) = (await world.cluster.list(MACHINE.resource)).items
        assert [dispute["over"] for dispute in machine["status"]["disputes"]] == ["Boot"]
    finally:
        await copy.power_off()
        await board.power_off()
