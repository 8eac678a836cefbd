"""Break-glass by two people means two: one person with the right to write the ConfidentialCluster, and two keys of their own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import httpx
import pytest

from fastness.agent.boot.prove import BrokerRefused
from fastness.attestation.loops.approvers import KEY, Approvers
from fastness.attestation.loops.confidential import KEY as STATUS
from fastness.attestation.loops.confidential import LOOK_SECONDS, Confidential
from fastness.attestation.verdict.approvers import CHANGE, LOST, read_appointments
from fastness.attestation.verdict.approvers import CONFIG_MAP as APPOINTMENTS
from fastness.attestation.verdict.breakglass import ANNOTATION
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER, CONFIRM_LOWER
from fastness.kinds.kubernetes.core import CONFIG_MAP
from fastness.kinds.objects import condition
from fastness.kube.events import EVENTS
from fastness.sim.tee.images import changed, default_image
from tests.attesting import SIMULATED, AttestingWorld, attesting_world, until
from tests.breakglass import APPROVERS, appointed, approver, override, people, signed_change
from tests.component.attacks.people import CLUSTER, person
from tests.embedded.fixtures import Embedded
from tests.enrolling import MemoryRecord

Object = dict[str, Any]
PATH = f"{CLUSTER}/cluster"
MERGE = {"content-type": "application/merge-patch+json"}
RIGHTS = ("fastness.dev", ("confidentialclusters",), ("get", "patch", "update"))
MAPS = f"/api/v1/namespaces/{NAMESPACE}/configmaps/{APPOINTMENTS}"


class Site:
    """An attesting cluster, its loop of approvers, and mallory, who may write the ConfidentialCluster."""

    def __init__(self, world: AttestingWorld, mallory: httpx.AsyncClient) -> None:
        self.world, self.mallory, self.record = world, mallory, MemoryRecord()
        self.loop = Approvers(world.cluster, world.informers, self.record, world.clock)

    async def write(self, spec: Object, notes: Object) -> httpx.Response:
        """A patch, with the word that the refusal prints if it is one that only needs confirming."""
        change = {"metadata": {"annotations": notes}, "spec": spec}
        answer = await self.mallory.patch(PATH, json=change, headers=MERGE)
        word = answer.json().get("message", "").partition(f"{CONFIRM_LOWER}=")[2].split()
        if answer.status_code == 403 and word:
            change["metadata"]["annotations"] = {**notes, CONFIRM_LOWER: word[0]}
            answer = await self.mallory.patch(PATH, json=change, headers=MERGE)
        return answer

    async def settle(self) -> Object:
        """Let the loop see what there is; who counts afterwards."""
        clusters = self.world.informers.of(CONFIDENTIAL_CLUSTER.resource)
        stored = await self.cluster()

        async def heard() -> bool:
            return clusters.get("", "cluster") == stored

        await until(heard)
        await self.loop.reconcile(KEY)
        return dict(
            read_appointments(await self.world.cluster.get(CONFIG_MAP.resource, APPOINTMENTS, NAMESPACE)).counting
        )

    async def cluster(self) -> Object:
        return await self.world.cluster.get(CONFIDENTIAL_CLUSTER.resource, "cluster")

    async def override(self, *names: str) -> httpx.Response:
        uid = (await self.cluster())["metadata"]["uid"]
        return await self.write({}, {ANNOTATION: override(uid, self.world.clock.now(), names)})


@pytest.fixture
async def site(embedded_server: Embedded) -> AsyncIterator[Site]:
    async with (
        attesting_world(embedded_server.cluster, SIMULATED) as world,
        person(embedded_server, "mallory", RIGHTS) as mallory,
    ):
        yield Site(world, mallory)


async def test_one_patch_cannot_appoint_two_keys_and_use_them(site: Site) -> None:
    uid = (await site.cluster())["metadata"]["uid"]
    both = {ANNOTATION: override(uid, site.world.clock.now(), ("ada", "grace"))}
    refused = await site.write({"breakGlass": {"approvers": APPROVERS, "delay": "1s"}}, both)
    assert refused.status_code == 403
    assert "0 of 2 approvers signed this statement" in refused.json()["message"]


async def test_keys_of_ones_own_open_nothing_before_everybody_was_told(site: Site) -> None:
    world = site.world
    await world.approve("tpm")
    machine = await world.enrolled("tpm", changed(default_image(), command_line="of mallory"))
    assert (await site.write({"breakGlass": {"approvers": APPROVERS}}, {})).status_code == 200
    assert await site.settle() == {}
    assert [entry.what for entry in site.record.entries] == ["approvers-pending"]
    events = [event for event in (await world.cluster.list(EVENTS)).items if event["reason"] == "ApproversPending"]
    assert [(event["type"], "ada, grace" in event["message"]) for event in events] == [("Warning", True)]
    # Admission cannot know the time; the verifier asks who counts.
    assert (await site.override("ada", "grace")).status_code == 200
    async with world.broker(machine) as broker:
        with pytest.raises(BrokerRefused):
            await broker.attest()
    status = Confidential(world.cluster, world.informers, world.clock)
    while (again := (await status.reconcile(STATUS)).again_after) is not None and again != LOOK_SECONDS:
        pass
    statuses = {
        kind: (condition(await site.cluster(), kind) or {}).get("status") for kind in ("ApproversPending", "Overridden")
    }
    assert statuses == {"ApproversPending": "True", "Overridden": "False"}
    world.clock.ahead = timedelta(minutes=61)
    assert await site.settle() == people("ada", "grace")
    assert [entry.what for entry in site.record.entries] == ["approvers-pending", "approvers-in-effect"]


async def test_a_present_approver_is_not_outvoted_by_one_person(site: Site) -> None:
    await appointed(site.world.cluster)
    await site.write({"breakGlass": {"approvers": APPROVERS}}, {})
    assert await site.settle() == people("ada", "grace")
    mine = {"breakGlass": {"approvers": [approver("eve"), approver("ada", "eve")]}}
    refused = await site.write(mine, {})
    assert refused.status_code == 403
    assert "two of the present approvers must sign" in refused.json()["message"]
    gone = await site.write({"breakGlass": {"approvers": []}}, {})
    assert gone.status_code == 403, "to empty the list first is no way to be the first"
    assert (await site.write(mine, {LOST: "they have left"})).status_code == 200
    assert await site.settle() == people("ada", "grace"), "those who count go on counting for a day"
    assert (await site.override("ada", "grace")).status_code == 200, "and can still agree to an override"
    assert (await site.override("ada", "eve")).status_code == 403
    site.world.clock.ahead = timedelta(hours=23)
    assert await site.settle() == people("ada", "grace")
    site.world.clock.ahead = timedelta(hours=25)
    assert set(await site.settle()) == {"eve", "ada"}
    assert [entry.what for entry in site.record.entries] == ["approvers-pending", "approvers-in-effect"]


async def test_approvers_change_themselves_with_two_signatures(site: Site) -> None:
    await appointed(site.world.cluster)
    await site.write({"breakGlass": {"approvers": APPROVERS}}, {})
    change = {"breakGlass": {"approvers": [approver("ada"), approver("eve")]}}
    signed_once = signed_change(await site.cluster(), people("ada", "grace"), people("ada", "eve"), ("ada",))
    assert (await site.write(change, {CHANGE: signed_once})).status_code == 403
    two = signed_change(await site.cluster(), people("ada", "grace"), people("ada", "eve"), ("ada", "grace"))
    answer = await site.write(change, {CHANGE: two})
    assert answer.status_code == 200, answer.text
    assert await site.settle() == people("ada", "eve")
    assert [entry.what for entry in site.record.entries] == ["approvers-changed"]


async def test_even_an_administrator_does_not_write_who_counts(site: Site, embedded_server: Embedded) -> None:
    await appointed(site.world.cluster, {})
    async with embedded_server.client() as admin:
        for answer in (
            await admin.patch(MAPS, json={"data": {"approvers.json": "{}"}}, headers=MERGE),
            await admin.delete(MAPS),
        ):
            assert answer.status_code == 403
            assert "the memory of the control plane" in answer.json()["message"]
