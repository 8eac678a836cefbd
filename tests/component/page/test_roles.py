"""The roles that come with a cluster, through the page: who looks, who reads everything, who decides."""

from __future__ import annotations

from fastness.kinds.crd.roles import DECIDER, READER
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER
from fastness.kube.port import PatchType, WriteOptions
from tests.component.page.scan import shows
from tests.component.page.served_page import Browser, ServedPage

PAGES = ("/", "/machines/machine-new", "/pools", "/trust")


async def _as(web: ServedPage, role: str) -> Browser:
    browser = web.browser()
    assert (await browser.log_in(await web.account(f"a-{role}", role))).status_code == 303
    return browser


async def test_kubernetes_own_view_role_sees_the_fleet_and_no_contents_of_files(web: ServedPage) -> None:
    await web.machine("machine-new")
    viewer = await _as(web, "view")
    html = await shows(viewer, "/", "node-machine-new")
    assert "Approve" not in html
    assert "You may not list" not in (await viewer.get("/trust")).text
    async with web.embedded.client() as client:
        for kind, allowed in (
            ("verdicts.fastness.dev", True),
            ("machineconfigs.machineconfiguration.openshift.io", False),
        ):
            plural, _, group = kind.partition(".")
            body = {
                "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
                "spec": {
                    "user": "system:serviceaccount:default:a-view",
                    "resourceAttributes": {"verb": "list", "group": group, "resource": plural},
                },
            }  # fmt: skip
            answer = await client.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", json=body)
            assert answer.json()["status"]["allowed"] is allowed, kind


async def test_a_reader_sees_every_page_and_decides_nothing(web: ServedPage) -> None:
    await web.machine("machine-new")
    reader = await _as(web, READER)
    for path in PAGES:
        answer = await reader.get(path)
        assert answer.status_code == 200, path
        assert "You may not" not in answer.text, path
    html = (await reader.get("/machines/machine-new")).text
    assert 'value="approve"' not in html
    assert (await reader.decide("machine-new", "approve")).status_code == 403


async def test_a_decider_approves(web: ServedPage) -> None:
    await web.machine("machine-new")
    decider = await _as(web, DECIDER)
    await shows(decider, "/machines/machine-new", "Approve")
    assert (await decider.decide("machine-new", "approve", "seen in the rack")).status_code == 303


async def test_a_lowering_past_admission_and_coming_approvers_are_a_banner_for_whoever_logs_in(web: ServedPage) -> None:
    states = {
        "Guarded": ("False", "mode goes from Enforce to Audit"),
        "ApproversPending": ("True", "approvers will be eve"),
    }
    conditions = [
        {"type": kind, "status": status, "reason": "R", "message": text, "lastTransitionTime": "2026-01-01T00:00:00Z"}
        for kind, (status, text) in states.items()
    ]
    await web.cluster.patch(
        CONFIDENTIAL_CLUSTER.resource, "cluster", {"status": {"conditions": conditions}}, PatchType.MERGE, "",
        WriteOptions(subresource="status"),
    )  # fmt: skip

    viewer = await _as(web, "view")
    for _, text in states.values():
        await shows(viewer, "/", text)
    stranger = (await web.browser().get("/login")).text
    assert not any(text in stranger for _, text in states.values())
