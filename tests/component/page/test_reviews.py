"""The page in front of any Kubernetes: reviews say who somebody is and may, and decisions go out with the token of the login."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path

import pytest

from fastness.apiserver import ServerOptions, open_apiserver
from fastness.app.product import PRODUCT
from fastness.app.replica import as_bearer
from fastness.crypto.secret import SecretText
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.client.client import KubeCluster, connect
from fastness.kube.client.config import Surroundings, find
from fastness.kube.errors import Unavailable
from fastness.kube.port import WRITE, Cluster, PatchType, WriteOptions
from fastness.page.admission import ACCESS_REVIEWS, KEPT_FOR, ReviewDoor
from fastness.page.sessions import Credential
from tests.attesting import until
from tests.component.page.scan import shows
from tests.component.page.served_page import ROLES, Browser, ServedPage, served_page
from tests.embedded.fixtures import Embedded
from tests.enrolling import MovedClock


@dataclass
class Reviewing:
    """The API as the page asks it; counts reviews, and can stop to answer them."""

    api: KubeCluster
    questions: int = 0
    mute: bool = False

    async def create(self, resource: Resource, obj: JsonObject, options: WriteOptions = WRITE) -> JsonObject:
        """The answer to a review."""
        self.questions += 1
        if self.mute and resource == ACCESS_REVIEWS:
            raise Unavailable("connection refused")
        return await self.api.create(resource, obj, options)


@pytest.fixture
async def kube(tmp_path: Path) -> AsyncIterator[tuple[ServedPage, Reviewing]]:
    directory, clock = tmp_path / "state", MovedClock()
    async with open_apiserver(ServerOptions(directory), PRODUCT, clock) as server:
        embedded = Embedded(server, directory)
        connection = find(Surroundings({}, tmp_path), kubeconfig=embedded.kubeconfig)

        def connected(token: SecretText) -> AbstractAsyncContextManager[Cluster]:
            return connect(as_bearer(connection, token))

        async with connect(connection) as api:
            asking = Reviewing(api)
            async with served_page(embedded, clock, virtual=False, door=ReviewDoor(asking, connected, clock)) as web:
                yield web, asking


async def logged_in(web: ServedPage, name: str, role: str = "") -> Browser:
    browser = web.browser()
    assert (await browser.log_in(await web.account(name, role))).status_code == 303
    return browser


async def test_an_administrator_decides_with_the_own_token(kube: tuple[ServedPage, Reviewing]) -> None:
    web, _ = kube
    await web.machine()
    admin = await logged_in(web, "boss", "cluster-admin")
    await shows(admin, "/machines/machine-one", "Decide")
    assert (await admin.decide("machine-one", "approve", "seen in the rack")).status_code == 303
    stored = await web.cluster.get(MACHINE.resource, "machine-one", NAMESPACE)
    assert stored["spec"]["approvalReason"] == "seen in the rack"
    assert web.deeds == [("system:serviceaccount:default:boss", "machine-one", 200)]


@pytest.mark.parametrize("token", ["x", "a.b.c", "ü"])
async def test_what_the_api_does_not_know_does_not_log_in(kube: tuple[ServedPage, Reviewing], token: str) -> None:
    web, _ = kube
    browser = web.browser()
    assert (await browser.log_in(token)).status_code == 401
    assert (await browser.get("/")).status_code == 303


async def test_a_certificate_opens_nothing(kube: tuple[ServedPage, Reviewing]) -> None:
    web, _ = kube
    key = web.page.sessions.link(Credential(certificate=b"a certificate that no review asks about"))
    assert (await web.browser().follow_link(f"{web.page.url}/login?key={key}")).status_code == 401


async def test_somebody_who_looks_cannot_decide_and_somebody_without_rights_sees_nothing(
    kube: tuple[ServedPage, Reviewing],
) -> None:
    web, _ = kube
    await web.machine()
    viewer = await web.viewer()
    html = await shows(viewer, "/machines/machine-one", "waits for approval")
    assert "/decision" not in html
    assert (await viewer.decide("machine-one", "approve")).status_code == 403
    assert (await viewer.get("/pools")).status_code == 403
    nobody = await logged_in(web, "nobody")
    assert (await nobody.get("/")).status_code == 403


async def test_a_right_on_one_machine_counts_for_that_machine(kube: tuple[ServedPage, Reviewing]) -> None:
    web, _ = kube
    await web.machine("machine-mine")
    await web.machine("machine-other")
    rule = {
        "apiGroups": [MACHINE.group],
        "resources": [MACHINE.plural],
        "verbs": ["get", "patch"],
        "resourceNames": ["machine-mine"],
    }
    await web.cluster.create(ROLES, {"metadata": {"name": "one-machine"}, "rules": [rule]})
    keeper = await logged_in(web, "keeper", "one-machine")
    await shows(keeper, "/machines/machine-mine", "Decide")
    assert (await keeper.get("/machines/machine-other")).status_code == 403
    assert (await keeper.get("/")).status_code == 403


async def test_answers_are_kept_for_a_moment_and_a_right_that_is_taken_ends_with_it(
    kube: tuple[ServedPage, Reviewing],
) -> None:
    web, asking = kube
    viewer = await web.viewer()
    assert (await viewer.get("/")).status_code == 200
    before = asking.questions
    assert (await viewer.get("/")).status_code == 200
    assert asking.questions == before
    await web.cluster.patch(ROLES, "machine-viewer", {"rules": []}, PatchType.MERGE)
    web.clock.ahead += KEPT_FOR

    async def refused() -> bool:
        return (await viewer.get("/")).status_code == 403

    await until(refused)


async def test_an_api_that_does_not_answer_reviews_is_never_a_yes(kube: tuple[ServedPage, Reviewing]) -> None:
    web, asking = kube
    await web.machine()
    admin = await logged_in(web, "boss", "cluster-admin")
    await shows(admin, "/machines/machine-one", "Decide")
    asking.mute = True
    web.clock.ahead += KEPT_FOR
    answer = await admin.get("/machines/machine-one")
    assert answer.status_code == 503
    assert "does not say what you may" in answer.text
    assert "waits for approval" not in answer.text
