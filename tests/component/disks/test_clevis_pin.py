"""Images of trusted-execution clusters: config, key and disk key of their Clevis pin, over the wire."""

from __future__ import annotations

import asyncio
import base64
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import asdict
from pathlib import Path

import pytest
import pytest_asyncio

from fastness.cli.support.cluster_health import disks as open_disks
from fastness.cli.support.cluster_health import pinned_disks
from fastness.disks.told import told_volumes
from fastness.formats import json
from fastness.keys.authorities import SECRETS
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.objects import condition, view
from fastness.kinds.trusted_execution.approvals import ATTESTATION_KEY
from fastness.kinds.trusted_execution.machine import HOLDS_KEYS, MACHINE, REKEY, Machine
from fastness.kube.places import DISKS
from fastness.protocol.machine_names import key_name
from tests.attesting import until
from tests.pinning import CONFIG, PinnedMachine, PinSite, pin_site
from tests.standins.trustee_attester import AttesterRefused

pytestmark = pytest.mark.asyncio(loop_scope="module")
ROOT = Path(__file__).parents[3]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[PinSite]:
    async with pin_site(tmp_path_factory.mktemp("pins")) as shared:
        yield shared


async def entries(site: PinSite, what: str, machine: PinnedMachine) -> list[dict[str, str]]:
    """What the record says of a machine under a word."""
    stored = await site.machine(machine)
    ids = (stored["metadata"]["uid"], stored["metadata"]["name"], machine.identity)
    of_kind = [entry for entry in await site.fortress.record() if entry["what"] == what]
    return [entry["detail"] for entry in of_kind if any(name in entry.get("resource", "") for name in ids)]


async def test_a_machine_is_told_its_pin_registers_a_key_and_gets_the_key_of_its_root(site: PinSite) -> None:
    machine = await site.enrolled()
    key = await site.key(machine)
    assert key.keys() == {"key_type", "key"}
    assert (key["key_type"], len(key["key"].encode())) == ("oct", 32)
    assert len(base64.urlsafe_b64decode(key["key"])) == 24
    assert await site.key(machine) == key, "at every boot the same"
    stored = await site.machine(machine)
    assert stored["metadata"]["finalizers"] == [HOLDS_KEYS]
    assert stored["spec"]["id"] == machine.identity
    assert (stored["status"]["pin"], stored["status"]["endorsedBy"]) == ("Clevis", "trust-on-first-use")
    assert (stored["status"]["disks"][0]["volume"], stored["status"]["disks"][0]["state"]) == ("root", "Made")
    # The name of the contract, by the uid of the object, is the same resource.
    assert json.decode(await site.fetch(machine, f"default/{stored['metadata']['uid']}/root")) == key
    (enrolled,) = await entries(site, "enrol", machine)
    assert (enrolled["pin"], enrolled["endorsedBy"]) == ("Clevis", "trust-on-first-use")
    released = await entries(site, "disk-unlocked", machine)
    assert {(entry["pin"], entry["volume"], entry["keys"]) for entry in released} == {("Clevis", "root", "k1")}
    ak = await site.world.cluster.get(ATTESTATION_KEY.resource, key_name(machine.tpm.machine().thumbprint), NAMESPACE)
    assert ak["spec"]["uuid"] == machine.identity
    approved = condition(ak, "Approved")
    assert approved is not None
    assert "on its own word" in approved["message"]


async def test_ignition_gets_a_root_that_is_made_anew_under_the_pin(site: PinSite) -> None:
    config = (await site.ask("GET", CONFIG)).json()
    assert config["ignition"] == {"version": "3.6.0"}
    (luks,), (filesystem,) = config["storage"]["luks"], config["storage"]["filesystems"]
    assert (luks["name"], luks["device"], luks["wipeVolume"]) == ("root", "/dev/disk/by-partlabel/root", True)
    assert (filesystem["device"], filesystem["wipeFilesystem"]) == ("/dev/mapper/root", True)
    custom = luks["clevis"]["custom"]
    assert (custom["pin"], custom["needsNetwork"]) == ("trustee", True)
    pin = json.decode(custom["config"].encode())
    (server,) = pin["servers"]
    assert server["url"] == site.broker
    assert server["cert"] == site.world.doors.broker.doors.bundle
    registration = pin["attestation_key"]["registration"]
    assert registration["cert"] == server["cert"]
    assert pin["path"] == f"default/{registration['uuid']}/root"
    assert site.fortress.ticket.reveal() not in json.encode(config).decode()


async def test_a_config_makes_nothing_and_a_key_makes_one_machine_however_often_it_comes(site: PinSite) -> None:
    before = len((await site.world.cluster.list(MACHINE.resource)).items)
    pins = [await site.invited() for _ in range(3)]
    assert len({pin["path"] for pin in pins}) == 3
    assert len((await site.world.cluster.list(MACHINE.resource)).items) == before
    tpm = site.tpm()
    assert [(await site.register(pins[0], tpm)).status_code for _ in range(3)] == [201, 200, 200]
    assert len((await site.world.cluster.list(MACHINE.resource)).items) == before + 1
    # A new installation of the machine has the same key: it would ask for a disk key that is not its own.
    again = await site.register(pins[1], tpm)
    assert (again.status_code, again.json()["code"]) == (403, "identity-conflict")
    assert "delete that Machine" in again.json()["detail"]


async def test_a_ticket_for_one_machine_takes_one(site: PinSite) -> None:
    ticket = await site.world.ticket(uses=1)
    pins = [await site.invited(ticket.reveal()) for _ in range(2)]
    tpms = [site.tpm(), site.tpm()]
    first = await site.register(pins[0], tpms[0])
    assert first.status_code == 201
    second = await site.register(pins[1], tpms[1])
    assert (second.status_code, second.json()["code"]) == (401, "ticket-used-up")
    assert (await site.register(pins[0], tpms[0])).status_code == 200, "its own user comes again at no cost"

    async def refused() -> bool:
        return (await site.ask("GET", CONFIG, ticket.reveal())).status_code == 401

    await until(refused)


async def test_every_machine_has_a_key_of_its_own(site: PinSite) -> None:
    machines = [await site.enrolled(), await site.enrolled()]
    assert len({(await site.key(machine))["key"] for machine in machines}) == 2


async def test_the_program_that_the_pin_runs_prints_the_key(site: PinSite, tmp_path: Path) -> None:
    machine = await site.enrolled()
    bundle = tmp_path / "doors.pem"
    bundle.write_text(machine.pin["servers"][0]["cert"])
    state = {**asdict(machine.tpm), "boot": 50}
    command = (sys.executable, "-m", "tests.standins.trustee_attester", "--url", machine.pin["servers"][0]["url"])
    environment = {**os.environ, "STANDIN_TPM": json.encode(state).decode(), "SSL_CERT_FILE": str(bundle)}

    def run(path: str) -> subprocess.CompletedProcess[str]:
        full = [*command, "get-resource", "--path", path]
        return subprocess.run(full, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)

    ran = await asyncio.to_thread(run, machine.path)
    assert ran.returncode == 0, ran.stderr
    assert json.decode(base64.b64decode(ran.stdout)).keys() == {"key_type", "key"}


async def test_every_view_says_that_this_way_is_weaker(site: PinSite) -> None:
    machine = await site.enrolled()
    await site.key(machine)

    async def is_told() -> bool:
        return (condition(await site.machine(machine), "DisksEncrypted") or {}).get("reason") == "ClevisPin"

    await until(is_told)
    stored = await site.machine(machine)
    encrypted, enrolled = condition(stored, "DisksEncrypted"), condition(stored, "Enrolled")
    assert encrypted is not None
    assert enrolled is not None
    assert encrypted["status"] == "Unknown", "nobody reports which disk was opened"
    for words in ("server and path from the disk", "text", "prints", "first use", "gets the key again"):
        assert words in encrypted["message"]
    assert enrolled["reason"] == "TrustOnFirstUse"
    assert "trusted on first use" in stored["status"]["standing"]
    typed = view(stored, Machine)
    assert any("weaker than the agent" in line for line in told_volumes(typed))
    (finding,) = await pinned_disks(site.world.cluster)
    assert "worker" in finding.found
    assert (await open_disks(site.world.cluster)).state == "ok"


async def test_the_pin_has_one_key_for_the_life_of_its_disk(site: PinSite) -> None:
    machine = await site.enrolled()
    key = await site.key(machine)
    await site.patch(machine, metadata={"annotations": {REKEY: "root"}})

    async def taken_off() -> bool:
        return REKEY not in ((await site.machine(machine))["metadata"].get("annotations") or {})

    await until(taken_off)
    assert await site.key(machine) == key
    assert "nextKeyId" not in (await site.machine(machine))["status"]["disks"][0]


async def test_deleting_the_machine_destroys_its_key(site: PinSite) -> None:
    machine = await site.enrolled()
    stored = await site.machine(machine)
    secret = f"disks-{stored['metadata']['uid']}"
    assert await site.world.cluster.get(SECRETS, secret, DISKS)
    await site.world.cluster.delete(MACHINE.resource, machine.name, NAMESPACE)

    async def gone() -> bool:
        names = {entry["metadata"]["name"] for entry in (await site.world.cluster.list(SECRETS)).items}
        return secret not in names

    await until(gone)
    with pytest.raises(AttesterRefused) as refusal:
        await site.fetch(machine)
    assert (refusal.value.status, refusal.value.code) == (403, "not-enrolled")


async def test_a_machine_that_proves_itself_before_its_key_is_made_still_gets_one(site: PinSite) -> None:
    machine = PinnedMachine(site.tpm(), await site.invited())
    assert (await site.register(machine.pin, machine.tpm)).status_code == 201

    refusals = set()

    async def fetched() -> bool:
        try:
            return bool(await site.fetch(machine))
        except AttesterRefused as refused:
            refusals.add((refused.status, refused.code))
            return False

    await until(fetched)
    assert refusals <= {(503, "disk-key-pending")}


async def test_a_pool_that_goes_back_to_the_agent_gives_the_key_to_nobody_and_says_so(site: PinSite) -> None:
    machine = await site.enrolled()
    await site.key(machine)
    await site.pool(pin="Agent", volume="root")
    try:
        with pytest.raises(AttesterRefused) as refusal:
            await site.fetch(machine)
        assert (refusal.value.status, refusal.value.code) == (403, "unlock-required")

        async def is_told() -> bool:
            return (condition(await site.machine(machine), "DisksEncrypted") or {}).get("reason") == "PinNotServed"

        await until(is_told)
    finally:
        await site.pool(pin="Clevis", volume="root")
    assert (await site.key(machine))["key_type"] == "oct"
