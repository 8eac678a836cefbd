"""Managed user-data as its two stories tell it, step by step with machine sets: a fresh install, and an upgrade from spec 2."""

from __future__ import annotations

import base64

import pytest

from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kube.port import PatchType
from fastness.machineconfig import ignition
from tests.component.machineconfig.user_data_story import (
    CONFIDENTIAL,
    CONTROL_PLANE_SET,
    HERE,
    MACHINE_SET,
    NEW_CA,
    OLD_CA,
    SECRET,
    TICKET,
    Story,
    ca_of,
    machine_set,
    pointer,
    stub,
    ticket_of,
)
from tests.component.machineconfig.worker_pool import POOL, until
from tests.unit.machineconfig.boot_images.sets import OLD_RELEASE, gcp, maker


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
    assert after["spec"] == made["spec"]
    assert after["metadata"]["generation"] == made["metadata"]["generation"]


@pytest.mark.row("002-19")
@pytest.mark.row("002-20")
@pytest.mark.row("002-21")
@pytest.mark.row("002-25")
async def test_upgrade_the_old_stub_stays_as_it_is_beside_the_new_secret_until_a_person_says_so(story: Story) -> None:
    # 1. Everything is of spec 2: the stub, the machine sets that use it, and their boot images.
    old = await story.cluster.create(SECRET, stub())
    await story.cluster.create(MACHINE_SET, machine_set("workers-a", "worker-user-data"))
    await story.cluster.create(MACHINE_SET, machine_set("workers-b", "worker-user-data"))
    # 2. The new control plane makes the managed Secret and leaves the old one: it trusts somebody else.
    assert pointer(await story.managed())["ignition"]["version"] == "3.2.0"
    # 3. Neither a new authority of ours nor one of two machine sets changes a byte of it.
    annotated = {"metadata": {"annotations": {names.POINTER_VERSION: "3.4"}}}
    await story.cluster.patch(MACHINE_SET, "workers-a", annotated, PatchType.MERGE, HERE)
    await story.rotate(NEW_CA)

    async def refreshed() -> bool:
        return ca_of(await story.managed()) == NEW_CA

    assert await until(refreshed, "the CA does not reach the managed Secret")
    # Stubs are looked at in the order of their writes, so this one, which is ours, proves that the other was looked at too.
    await story.cluster.create(SECRET, stub("ours-user-data", ca=OLD_CA))
    await story.rotate(OLD_CA + NEW_CA)
    await story.event("CertificateAuthorityRefreshed")
    assert await story.secret("worker-user-data") == old
    # 4. The second follows with an older image: the stub becomes what both read, and lets machines in.
    annotated = {"metadata": {"annotations": {names.POINTER_VERSION: "3.1.0"}}}
    await story.cluster.patch(MACHINE_SET, "workers-b", annotated, PatchType.MERGE, HERE)
    await story.event("StubIgnitionUpgraded")
    new = await story.secret("worker-user-data")
    assert new is not None
    assert new["metadata"]["annotations"][names.STUB_UPGRADED_TO] == "3.1.0"
    assert new["metadata"]["annotations"][names.STUB_UPGRADED_AT].endswith("Z")
    body = pointer(new)
    assert [problem for problem in ignition.validate(body) if problem.severity == "error"] == []
    assert body["ignition"]["config"] == pointer(await story.managed())["ignition"]["config"]
    assert ca_of(new) == OLD_CA + NEW_CA
    assert new["data"]["disableTemplating"] == old["data"]["disableTemplating"]


async def test_a_stub_that_was_brought_to_spec_3_has_the_ticket_of_its_pool_also_tomorrow(story: Story) -> None:
    await story.cluster.create(MACHINE_SET, machine_set("workers-a", "worker-user-data", "3.2"))
    await story.cluster.create(SECRET, stub())
    await story.event("StubIgnitionUpgraded")
    first = await story.managed()
    await story.cluster.delete(SECRET, "worker-user-data-managed", HERE)

    async def follows() -> bool:
        managed, brought = await story.secret("worker-user-data-managed"), await story.secret("worker-user-data")
        return bool(
            managed and brought and ticket_of(managed) != ticket_of(first) and ticket_of(brought) == ticket_of(managed)
        )

    assert await until(follows, "the stub keeps a ticket that ends")


async def test_boot_images_that_read_spec_3_change_no_stub_that_leads_elsewhere(story: Story) -> None:
    """The table knows the image; nobody said that the stub may change."""
    value = gcp(OLD_RELEASE)
    await story.cluster.create(MACHINE_SET, maker(value))
    old = await story.cluster.create(SECRET, stub())
    left = await story.event("StubLeftAlone")
    assert "point them at worker-user-data-managed" in left["message"]
    assert await story.secret("worker-user-data") == old


@pytest.mark.row("002-26")
async def test_a_stub_of_ours_is_brought_to_spec_3_when_the_boot_images_read_it(story: Story) -> None:
    await story.cluster.create(SECRET, stub(ca=OLD_CA))
    await story.cluster.create(MACHINE_SET, maker(gcp(OLD_RELEASE)))
    await story.event("StubIgnitionUpgraded")
    new = await story.secret("worker-user-data")
    assert pointer(new)["ignition"]["version"] == "3.4.0"
    assert ticket_of(new or {}) == ticket_of(await story.managed())


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
    await story.managed("master")
    await story.cluster.create(SECRET, stub("master-user-data"))
    await story.event("StubIgnitionUpgraded")
    assert pointer(await story.secret("master-user-data"))["ignition"]["version"] == "3.2.0"
