"""Decisions about machines: as the user, in the right order of states, and with a line about each."""

from __future__ import annotations

import pytest

from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.kind import JsonObject
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.port import PatchType
from fastness.page.view_scope import MACHINES
from tests.attesting import until
from tests.component.page.served_page import ServedPage, condition


async def stored(web: ServedPage, name: str = "machine-one") -> JsonObject:
    return await web.cluster.get(MACHINE.resource, name, NAMESPACE)


async def caught_up(web: ServedPage, name: str = "machine-one") -> None:
    """Wait until the page has seen what is stored."""
    version = (await stored(web, name))["metadata"]["resourceVersion"]

    async def cached() -> bool:
        machine = web.informers.of(MACHINES).get(NAMESPACE, name)
        return machine is not None and machine["metadata"]["resourceVersion"] == version

    await until(cached)


async def test_an_administrator_approves_quarantines_and_releases(web: ServedPage) -> None:
    await web.machine()
    await caught_up(web)
    admin = await web.administrator()
    answer = await admin.decide("machine-one", "approve", "seen in the rack")
    assert (answer.status_code, answer.headers["location"]) == (303, "/machines/machine-one")
    assert (await stored(web))["spec"]["approvalReason"] == "seen in the rack"
    await caught_up(web)
    assert (await admin.decide("machine-one", "quarantine", "stolen")).status_code == 303
    assert (await stored(web))["spec"]["approval"] == "Quarantined"
    await caught_up(web)
    assert (await admin.decide("machine-one", "release")).status_code == 303
    done = await stored(web)
    assert (done["spec"]["approval"], "approvalReason" in done["spec"]) == ("Approved", False)
    managers = {entry["manager"] for entry in done["metadata"].get("managedFields") or []}
    assert not managers or "fastness-page" in managers
    assert web.deeds == [("fastness-admin", "machine-one", 200)] * 3


async def test_a_viewer_cannot_decide_even_with_a_form_made_by_hand(web: ServedPage) -> None:
    await web.machine()
    await caught_up(web)
    viewer = await web.viewer()
    answer = await viewer.decide("machine-one", "approve")
    assert answer.status_code == 403
    assert "cannot patch resource" in answer.text
    assert (await stored(web))["spec"]["approval"] == "Pending"
    assert web.deeds == [("system:serviceaccount:default:viewer", "machine-one", 403)]


@pytest.mark.parametrize(
    ("decision", "reason", "code"),
    [("release", "", 409), ("quarantine", "", 400), ("delete", "", 400), ("", "", 400), ("approve", "x" * 1025, 400)],
)
async def test_a_decision_that_makes_no_sense_changes_nothing(
    web: ServedPage, decision: str, reason: str, code: int
) -> None:
    made = await web.machine()
    await caught_up(web)
    answer = await (await web.administrator()).decide("machine-one", decision, reason)
    assert answer.status_code == code
    assert (await stored(web))["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


async def test_an_approval_does_not_undo_a_quarantine_that_came_in_between(web: ServedPage) -> None:
    await web.machine()
    await caught_up(web)
    admin = await web.administrator()
    token = await admin.token()
    informer = web.informers.of(MACHINES)
    old = informer.get(NAMESPACE, "machine-one")
    assert old is not None
    patch = {"spec": {"approval": "Quarantined"}}
    await web.cluster.patch(MACHINE.resource, "machine-one", patch, PatchType.MERGE, NAMESPACE)
    await caught_up(web)
    informer._cache.put(old)  # a page whose cache is behind
    assert (await admin.decide("machine-one", "approve", token=token)).status_code == 409
    assert (await stored(web))["spec"]["approval"] == "Quarantined"


async def test_what_is_not_there_is_not_found(web: ServedPage) -> None:
    admin = await web.administrator()
    assert (await admin.decide("nothing", "approve")).status_code == 404


async def test_the_page_offers_only_what_can_be_decided(web: ServedPage) -> None:
    await web.machine("machine-new")
    await web.machine("machine-in", "Approved", conditions=[condition("Approved", "True")])
    await caught_up(web, "machine-new")
    await caught_up(web, "machine-in")
    admin = await web.administrator()
    for name, offered in (("machine-new", ["approve", "quarantine"]), ("machine-in", ["quarantine"])):
        html = (await admin.get(f"/machines/{name}")).text
        verbs = [verb for verb in ("approve", "release", "quarantine") if f'name="decision" value="{verb}"' in html]
        assert verbs == offered
