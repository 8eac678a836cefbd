"""Managed user-data as its two stories tell it, step by step with machine sets: a fresh install, and an upgrade from spec 2."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from fastness.enrolment.trusted_cluster import Doors
from fastness.formats import data_url as dataurl
from fastness.formats import json
from fastness.keys.doors import NAME, NAMESPACE, doors_authority
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.registry import find
from fastness.kube.errors import AlreadyExists, NotFound
from fastness.kube.port import PatchType
from fastness.machineconfig import ignition
from fastness.machineconfig.pointer import hosts_of
from fastness.runtime.clock import SystemClock, SystemEntropy
from tests.component.machineconfig.worker_pool import POOL, WorkerPool, open_worker_pool, until
from tests.embedded.fixtures import Embedded

SECRET = find("", "v1", "secrets").resource
SPACE = find("", "v1", "namespaces").resource
EVENT = find("", "v1", "events").resource
TICKET = find("fastness.dev", "v1alpha1", "jointickets").resource
CONFIDENTIAL = find("fastness.dev", "v1alpha1", "confidentialclusters").resource
MACHINE_SET = find("machine.openshift.io", "v1beta1", "machinesets").resource
CONTROL_PLANE_SET = find("machine.openshift.io", "v1", "controlplanemachinesets").resource
HERE = names.USER_DATA_NAMESPACE
OLD_CA, NEW_CA = "-----BEGIN CERTIFICATE----- old", "-----BEGIN CERTIFICATE----- new"


class Story:
    """The workers, and the doors as the test moves them."""

    def __init__(self, workers: WorkerPool) -> None:
        self.workers = workers
        self.cluster = workers.cluster
        self.doors = Doors("https://gate.example:22623", "https://config.example:22624", OLD_CA)

    async def secret(self, name: str) -> JsonObject | None:
        try:
            return await self.cluster.get(SECRET, name, HERE)
        except NotFound:
            return None

    async def managed(self, pool: str = "worker") -> JsonObject:
        async def secret_there() -> JsonObject | None:
            return await self.secret(f"{pool}-user-data-managed")

        return await until(secret_there, f"{pool} has no user-data")  # type: ignore[no-any-return]

    async def event(self, reason: str, count: int = 1) -> JsonObject:
        async def event_there() -> JsonObject | None:
            events = [event for event in (await self.cluster.list(EVENT)).items if event["reason"] == reason]
            return events[0] if sum(int(event.get("count") or 1) for event in events) >= count else None

        return await until(event_there, f"nobody says {reason}")  # type: ignore[no-any-return]

    async def events(self, reason: str) -> int:
        return sum(event["reason"] == reason for event in (await self.cluster.list(EVENT)).items)

    async def rotate(self, ca: str) -> None:
        """The doors show another authority; its Secret changes, as every rotation does."""
        self.doors = replace(self.doors, ca=ca)
        await doors_authority(self.cluster, SystemEntropy(), SystemClock().now())
        await self.cluster.patch(
            SECRET, NAME, {"metadata": {"annotations": {"rotated": ca}}}, PatchType.MERGE, NAMESPACE
        )

    async def edit(self, name: str, patch: JsonObject) -> None:
        await self.cluster.patch(SECRET, name, patch, PatchType.MERGE, HERE)


@pytest.fixture
async def story(embedded_server: Embedded) -> AsyncIterator[Story]:
    box: list[Story] = []
    async with open_worker_pool(embedded_server, lambda: box[0].doors if box else None) as workers:
        with suppress(AlreadyExists):
            await workers.cluster.create(SPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HERE}})
        box.append(Story(workers))
        # Pools that came before the doors are looked at again, as in a cluster whose doors open later.
        for pool in ("master", "worker"):
            await until(lambda pool=pool: exists(workers, pool), pool)  # type: ignore[misc]
            await workers.cluster.patch(POOL, pool, {"metadata": {"annotations": {"doors": "open"}}}, PatchType.MERGE)
        yield box[0]


async def exists(workers: WorkerPool, pool: str) -> bool:
    return any(entry["metadata"]["name"] == pool for entry in (await workers.cluster.list(POOL)).items)


def pointer(secret: JsonObject | None) -> Any:
    assert secret is not None
    return json.decode(base64.b64decode(secret["data"]["userData"]))


def ca_of(secret: JsonObject | None) -> str:
    [entry] = pointer(secret)["ignition"]["security"]["tls"]["certificateAuthorities"]
    return dataurl.decode(entry["source"]).decode()


def ticket_of(secret: JsonObject) -> str:
    return str(pointer(secret)["ignition"]["config"]["merge"][0]["httpHeaders"][0]["value"])


STUB_SOURCE = "https://api-int.example:22623/config/worker"


def stub(name: str = "worker-user-data", version: str = "2.2.0", source: str = STUB_SOURCE, **more: Any) -> JsonObject:
    """What an old installer left behind."""
    tls = {"certificateAuthorities": [{"source": dataurl.encode(b"of the installer"), "verification": {}}]}
    append = [{"source": source, "verification": {}}]
    body = {"ignition": {"version": version, "config": {"append": append}, "security": {"tls": tls}}, **more}
    data = {"userData": base64.b64encode(json.encode(body)).decode(), "disableTemplating": "dHJ1ZQo="}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": HERE}, "data": data}


def machine_set(name: str, user_data: str, version: str = "") -> JsonObject:
    value = {"userDataSecret": {"name": user_data}, "ami": {"id": "ami-1"}}
    notes = {names.POINTER_VERSION: version} if version else {}
    return {
        "apiVersion": "machine.openshift.io/v1beta1", "kind": "MachineSet",
        "metadata": {"name": name, "namespace": HERE, "annotations": notes},
        "spec": {"replicas": 1, "selector": {}, "template": {"spec": {"providerSpec": {"value": value}}}},
    }  # fmt: skip


@pytest.mark.row("002-01")
@pytest.mark.row("002-02")
@pytest.mark.row("002-03")
@pytest.mark.row("002-04")
@pytest.mark.row("002-12")
async def test_install_every_pool_gets_user_data_that_machine_sets_can_use(story: Story) -> None:
    # 1. The pools of an installation are there, and so is the user-data of each, of spec 3 from the start.
    for pool in ("master", "worker"):
        secret = await story.managed(pool)
        pointed = pointer(secret)
        assert ignition.parse(pointed).version == "3.2.0"
        assert pointed["ignition"]["config"]["merge"][0]["source"] == f"https://config.example:22624/config/{pool}"
        assert ca_of(secret) == OLD_CA
        assert secret["type"] == "Opaque"
        assert base64.b64decode(secret["data"]["disableTemplating"]) == b"true\n"
        assert names.MANAGED_CA_LABEL in secret["metadata"]["labels"]
    # 2. A machine set is made with it, and nothing that happens to the Secret touches the machine set.
    made = await story.cluster.create(MACHINE_SET, machine_set("workers-a", "worker-user-data-managed"))
    # 3. A custom pool gets its own, and loses it together with its tickets.
    selector = {"matchExpressions": [{"key": names.ROLE_LABEL, "operator": "In", "values": ["worker", "infra"]}]}
    custom = {"apiVersion": names.API_VERSION, "kind": "MachineConfigPool", "metadata": {"name": "infra"}}
    await story.cluster.create(POOL, {**custom, "spec": {"machineConfigSelector": selector}})
    assert pointer(await story.managed("infra"))["ignition"]["config"]["merge"][0]["source"].endswith("/config/infra")
    await story.cluster.delete(POOL, "infra")

    async def gone() -> bool:
        tickets = [ticket["spec"]["pool"] for ticket in (await story.cluster.list(TICKET)).items]
        return "infra" not in tickets and await story.secret("infra-user-data-managed") is None

    assert await until(gone, "user-data outlives its pool")
    # 4. One ticket for each pool, and the machine set is as its owner wrote it.
    assert sorted(entry["spec"]["pool"] for entry in (await story.cluster.list(TICKET)).items) == ["master", "worker"]
    after = await story.cluster.get(MACHINE_SET, "workers-a", HERE)
    assert after["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


@pytest.mark.row("002-19")
@pytest.mark.row("002-25")
async def test_upgrade_the_old_stub_stays_beside_the_new_secret_until_boot_images_read_spec_3(story: Story) -> None:
    # 1. Everything is of spec 2: the stub, the machine sets that use it, and their boot images.
    old = await story.cluster.create(SECRET, stub())
    await story.cluster.create(MACHINE_SET, machine_set("workers-a", "worker-user-data"))
    await story.cluster.create(MACHINE_SET, machine_set("workers-b", "worker-user-data"))
    # 2. The new control plane makes the managed Secret and leaves the old one where it is, with the CA of today.
    assert pointer(await story.managed())["ignition"]["version"] == "3.2.0"
    await story.event("CertificateAuthorityRefreshed")
    legacy = await story.secret("worker-user-data")
    assert ca_of(legacy) == OLD_CA
    assert pointer(legacy)["ignition"]["version"] == "2.2.0"
    assert pointer(legacy)["ignition"]["config"] == pointer(old)["ignition"]["config"]
    # 3. One of two machine sets gets a newer boot image: the other would not survive another version, so the stub stays.
    annotated = {"metadata": {"annotations": {names.POINTER_VERSION: "3.4"}}}
    await story.cluster.patch(MACHINE_SET, "workers-a", annotated, PatchType.MERGE, HERE)
    await story.rotate(NEW_CA)

    async def refreshed() -> bool:
        return ca_of(await story.secret("worker-user-data")) == NEW_CA

    assert await until(refreshed, "the CA does not reach the stub")
    assert pointer(await story.secret("worker-user-data"))["ignition"]["version"] == "2.2.0"
    # 4. The second follows with an older one: the stub becomes what both read, and says so.
    annotated = {"metadata": {"annotations": {names.POINTER_VERSION: "3.1.0"}}}
    await story.cluster.patch(MACHINE_SET, "workers-b", annotated, PatchType.MERGE, HERE)
    await story.event("StubIgnitionUpgraded")
    new = await story.secret("worker-user-data")
    assert new is not None
    assert new["metadata"]["annotations"][names.STUB_UPGRADED_TO] == "3.1.0"
    assert new["metadata"]["annotations"][names.STUB_UPGRADED_AT].endswith("Z")
    body = pointer(new)
    assert [problem for problem in ignition.validate(body) if problem.severity == "error"] == []
    assert body["ignition"]["config"] == {"merge": pointer(old)["ignition"]["config"]["append"]}
    assert ca_of(new) == NEW_CA
    assert new["data"]["disableTemplating"] == old["data"]["disableTemplating"]
    # 5. A machine set moves to the managed Secret: that is its owner's decision, nothing here makes or undoes it.
    moved = machine_set("workers-a", "worker-user-data-managed", "3.4")["spec"]
    await story.cluster.patch(MACHINE_SET, "workers-a", {"spec": moved}, PatchType.MERGE, HERE)
    assert pointer(await story.managed())["ignition"]["version"] == "3.2.0"


async def test_a_stub_whose_name_the_gate_answers_to_keeps_its_installers_authority(story: Story) -> None:
    """Under a legacy name the gate shows a certificate of that authority: with the doors' own the stub would believe nobody."""
    (host,) = hosts_of(stub())
    spec = {"mode": "Disabled", "simulated": True, "join": {"legacyStubs": [{"serverName": host, "pools": ["worker"]}]}}
    kind = {"apiVersion": "fastness.dev/v1alpha1", "kind": "ConfidentialCluster"}
    await story.cluster.create(CONFIDENTIAL, {**kind, "metadata": {"name": "cluster"}, "spec": spec})
    await story.event("LegacyStubsNotServed")  # the loops have heard of the name
    old = await story.cluster.create(SECRET, stub())
    await story.cluster.create(SECRET, stub("other-user-data", source="https://elsewhere.example:22623/config/worker"))

    async def refreshed() -> bool:
        return ca_of(await story.secret("other-user-data")) == OLD_CA

    assert await until(refreshed, "another stub does not get the authority of the doors")
    await story.rotate(NEW_CA)

    async def rotated() -> bool:
        return ca_of(await story.secret("other-user-data")) == NEW_CA

    assert await until(rotated, "another stub does not follow the authority of the doors")
    assert (await story.secret("worker-user-data") or {})["data"] == old["data"], "not one byte changed"


@pytest.mark.row("002-06")
@pytest.mark.row("002-07")
@pytest.mark.row("002-09")
async def test_a_managed_secret_that_an_installer_made_is_adopted_and_an_event_says_so(story: Story) -> None:
    made = stub("infra-user-data-managed", version="2.2.0")
    made["data"]["left-over"] = "eA=="
    await story.cluster.create(SECRET, made)
    selector = {"matchExpressions": [{"key": names.ROLE_LABEL, "operator": "In", "values": ["worker", "infra"]}]}
    custom = {"apiVersion": names.API_VERSION, "kind": "MachineConfigPool", "metadata": {"name": "infra"}}
    pool = await story.cluster.create(POOL, {**custom, "spec": {"machineConfigSelector": selector}})
    adopted = await story.event("UserDataAdopted")
    assert (adopted["type"], adopted["involvedObject"]["name"]) == ("Normal", "infra")
    secret = await story.managed("infra")
    assert pointer(secret)["ignition"]["version"] == "3.2.0"
    assert secret["metadata"]["ownerReferences"][0]["uid"] == pool["metadata"]["uid"]
    assert set(secret["data"]) == {"userData", "disableTemplating"}
    assert await story.events("UserDataRestored") == 0


async def test_one_that_cannot_be_changed_in_place_is_replaced(story: Story) -> None:
    await story.cluster.create(SECRET, {**stub("infra-user-data-managed"), "immutable": True})
    selector = {"matchExpressions": [{"key": names.ROLE_LABEL, "operator": "In", "values": ["worker", "infra"]}]}
    custom = {"apiVersion": names.API_VERSION, "kind": "MachineConfigPool", "metadata": {"name": "infra"}}
    await story.cluster.create(POOL, {**custom, "spec": {"machineConfigSelector": selector}})
    await story.event("UserDataAdopted")
    secret = await story.managed("infra")
    assert not secret.get("immutable")
    assert pointer(secret)["ignition"]["version"] == "3.2.0"


@pytest.mark.parametrize(
    "edit",
    [
        {"data": {"userData": base64.b64encode(b"mine").decode()}},
        {"data": {"extra": "eA=="}},
        {"data": {"disableTemplating": None}},
        {"metadata": {"labels": {names.MANAGED_CA_LABEL: None}}},
    ],
    ids=["content", "extra key", "missing key", "label"],
)
@pytest.mark.row("002-10")
async def test_a_hand_edit_is_put_back_and_an_event_says_so(story: Story, edit: JsonObject) -> None:
    before = await story.managed()
    await story.edit("worker-user-data-managed", edit)
    restored = await story.event("UserDataRestored")
    assert restored["type"] == "Warning"
    assert "worker-user-data-managed" in restored["message"]
    after = await story.managed()
    assert set(after["data"]) == set(before["data"])
    assert names.MANAGED_CA_LABEL in after["metadata"]["labels"]
    assert pointer(after)["ignition"]["config"]["merge"][0]["source"].endswith("/config/worker")


@pytest.mark.row("002-11")
async def test_a_deleted_secret_comes_back_with_a_new_ticket(story: Story) -> None:
    before = await story.managed()
    await story.cluster.delete(SECRET, "worker-user-data-managed", HERE)

    async def back() -> JsonObject | None:
        remade = await story.secret("worker-user-data-managed")
        return remade if remade and remade["metadata"]["uid"] != before["metadata"]["uid"] else None

    after = await until(back, "it stays away")
    assert ticket_of(after) != ticket_of(before), "the old one is kept as a hash only"


async def test_a_new_authority_rewrites_every_pointer_and_keeps_the_tickets(story: Story) -> None:
    before = {pool: ticket_of(await story.managed(pool)) for pool in ("master", "worker")}
    await story.rotate(NEW_CA)

    async def rewritten() -> bool:
        return all([ca_of(await story.managed(pool)) == NEW_CA for pool in ("master", "worker")])

    assert await until(rewritten, "the pointers keep the old CA")
    assert {pool: ticket_of(await story.managed(pool)) for pool in ("master", "worker")} == before
    await story.event("UserDataUpdated")
    assert await story.events("UserDataRestored") == 0, "nobody edited anything"


async def test_a_pool_that_becomes_confidential_points_to_the_forwarder_and_back(story: Story) -> None:
    await story.managed()
    meta = {"apiVersion": "fastness.dev/v1alpha1", "kind": "ConfidentialCluster", "metadata": {"name": "cluster"}}
    await story.cluster.create(CONFIDENTIAL, {**meta, "spec": {"mode": "Enforce", "simulated": True}})

    async def forwarded() -> bool:
        merge = pointer(await story.managed())["ignition"]["config"]["merge"][0]
        return bool(merge["source"] == "http://127.0.0.1:22625/config/worker")

    assert await until(forwarded, "machines would go around the gate")
    pointed = pointer(await story.managed())
    assert "security" not in pointed["ignition"], "the CA comes from the measured image"
    assert {header["name"] for header in pointed["ignition"]["config"]["merge"][0]["httpHeaders"]} == {
        "Authorization", "X-Fastness-Server",
    }  # fmt: skip
    assert await story.events("UserDataRestored") == 0


@pytest.mark.parametrize(
    ("secret", "version", "message"),
    [
        (stub(storage={"files": [{"path": "/a"}]}), "3.2", "not a plain spec 2 stub: section storage"),
        (stub(), "4.0", "boot image reads Ignition 4.0"),
    ],
    ids=["more than a stub", "no such version"],
)
async def test_what_cannot_be_upgraded_is_left_and_an_event_says_why(
    story: Story, secret: JsonObject, version: str, message: str
) -> None:
    await story.cluster.create(MACHINE_SET, machine_set("workers-a", "worker-user-data", version))
    await story.cluster.create(SECRET, secret)
    warning = await story.event("BadPointer")
    assert message in warning["message"]
    assert pointer(await story.secret("worker-user-data"))["ignition"]["version"] == "2.2.0"


async def test_the_set_of_the_control_plane_counts_as_a_user_of_its_stub(story: Story) -> None:
    value = {"providerSpec": {"value": {"userDataSecret": {"name": "master-user-data"}}}}
    template = {
        "machineType": "machines_v1beta1_machine_openshift_io",
        "machines_v1beta1_machine_openshift_io": {"spec": value},
    }
    made = {
        "apiVersion": "machine.openshift.io/v1", "kind": "ControlPlaneMachineSet",
        "metadata": {"name": "cluster", "namespace": HERE, "annotations": {names.POINTER_VERSION: "3.2"}},
        "spec": {"replicas": 3, "selector": {}, "template": template},
    }  # fmt: skip
    await story.cluster.create(CONTROL_PLANE_SET, made)
    await story.cluster.create(SECRET, stub("master-user-data"))
    await story.event("StubIgnitionUpgraded")
    assert pointer(await story.secret("master-user-data"))["ignition"]["version"] == "3.2.0"
