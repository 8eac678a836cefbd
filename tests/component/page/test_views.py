"""The views: what they say, whom they say it to, and that nobody's text becomes more than text."""

from __future__ import annotations

import re

import httpx
import pytest

from fastness.apiserver import LocalCluster
from fastness.attestation.verdict.machine_standing import MachineStanding
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.kind import JsonObject
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.page import fleet
from fastness.page.admission import GuardDoor
from fastness.page.server import PageOptions, web_server
from tests.attesting import until
from tests.component.page.fleets import attested
from tests.component.page.scan import harmless, shows
from tests.component.page.served_page import Browser, ServedPage, condition
from tests.enrolling import ENTROPY

CHECK = {
    "name": "PCR 4", "result": "Fail", "code": "value-differs", "seen": "aaaa", "expected": "bbbb",
    "source": "the set values-tpm", "hint": "the boot loader is not the one of the approved image",
}  # fmt: skip


async def test_the_fleet_shows_every_machine_and_those_that_need_somebody(web: ServedPage) -> None:
    await web.machine("machine-new")
    refused = [condition("Approved", "True"), condition("Attested", "False", "value-differs", "PCR 4 differs")]
    await web.machine("machine-bad", "Approved", conditions=refused)
    admin = await web.administrator()
    html = await shows(admin, "/", "PCR 4 differs")
    assert "Needs a decision (2)" in html
    assert "somebody to approve it" in html
    assert "2 of 2 machines" in html
    only = await shows(admin, "/?state=refused", "1 of 2 machines")
    assert "node-machine-bad" in only
    assert "node-machine-bad" in await shows(admin, "/?q=BAD", "1 of 2 machines")


async def test_a_machine_says_what_differs_and_what_fixes_it(web: ServedPage) -> None:
    conditions = [condition("Approved", "True"), condition("Attested", "False", "value-differs", "PCR 4 differs")]
    refused = await web.machine("machine-bad", "Approved", conditions=conditions, lastVerdict="verdict-one")
    await web.verdict("verdict-one", refused, [{**CHECK, "name": "signature", "result": "Pass", "code": "ok"}, CHECK])
    html = await shows(await web.administrator(), "/machines/machine-bad", "The first difference")
    assert "the boot loader is not the one of the approved image" in html
    assert "is refused: value-differs" in html
    assert "fastness image approve" in html
    first = html[html.index("The first difference") :]
    assert first.index("bbbb") < first.index("aaaa") < first.index("the set values-tpm")
    assert "verdict Refused" in html


async def test_what_does_not_exist_is_not_found(web: ServedPage) -> None:
    admin = await web.administrator()
    for path in ("/machines/nothing", "/nothing", "/assets/page.js", f"/machines/{'a' * 254}"):
        answer = await admin.get(path)
        assert answer.status_code == 404
        harmless(answer.text)


async def test_every_answer_lets_a_browser_run_nothing_else(web: ServedPage) -> None:
    admin, stranger = await web.administrator(), web.browser()
    script = re.search(r'src="(/assets/page[^"]*)"', (await stranger.get("/login")).text)
    assert script is not None
    for browser, path in ((admin, "/"), (stranger, "/"), (stranger, "/login"), (stranger, script[1]), (admin, "/x")):
        headers = (await browser.get(path)).headers
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
    assert "immutable" in (await stranger.get(script[1])).headers["cache-control"]
    assert (await admin.get("/")).headers["cache-control"] == "no-store"


async def test_a_simulated_cluster_says_so_on_every_page(web: ServedPage) -> None:
    await web.machine()
    admin = await web.administrator()
    await shows(admin, "/", "node-machine-one")
    for path in ("/", "/machines/machine-one", "/pools", "/trust", "/login", "/nothing"):
        assert "Simulated. " in (await admin.get(path)).text


async def test_pages_are_whole_without_a_script(web: ServedPage) -> None:
    await web.machine()
    html = await shows(await web.administrator(), "/machines/machine-one", "Decide")
    assert 'method="post" action="/machines/machine-one/decision"' in html
    assert "<noscript" not in html


async def test_a_viewer_sees_machines_and_no_way_to_decide(web: ServedPage) -> None:
    await web.machine()
    viewer = await web.viewer()
    html = await shows(viewer, "/machines/machine-one", "waits for approval")
    assert "/decision" not in html
    refused = await viewer.get("/pools")
    assert refused.status_code == 403
    assert "cannot list resource" in refused.text
    assert "system:serviceaccount:default:viewer" in refused.text
    trust = await viewer.get("/trust")
    assert "You may not list:" in trust.text
    harmless(trust.text)


async def test_somebody_without_rights_sees_nothing(web: ServedPage) -> None:
    await web.machine()
    browser = web.browser()
    await browser.log_in(await web.account("nobody"))
    for path in ("/", "/machines/machine-one", "/pools"):
        answer = await browser.get(path)
        assert answer.status_code == 403
        assert "waits for approval" not in answer.text


async def test_five_thousand_machines_in_150_kilobytes(web: ServedPage) -> None:
    for number in range(5000):
        web.informers.of(MACHINE.resource)._cache.put(attested(number))
    admin = await web.administrator()
    answer = await admin.get("/")
    assert "5000 of 5000 machines" in answer.text
    weight = len(answer.content) + sum(len(asset.content) for asset in await _assets(admin, answer.text))
    assert weight < 150_000


async def _assets(browser: Browser, html: str) -> list[httpx.Response]:
    return [await browser.get(path) for path in re.findall(r'(?:src|href)="(/assets/[^"]+)"', html)]


async def test_the_first_answer_finds_its_rows_made(web: ServedPage, monkeypatch: pytest.MonkeyPatch) -> None:
    await web.machine("machine-new")
    made: list[str] = []
    make = fleet.row_of

    def counted(machine: JsonObject, node: JsonObject | None, standing: MachineStanding) -> fleet.Row:
        made.append(machine["metadata"]["name"])
        return make(machine, node, standing)

    monkeypatch.setattr(fleet, "row_of", counted)
    server = web.embedded.server
    door = GuardDoor(server.guard, lambda user: LocalCluster(server.api, user))
    options = PageOptions(administrator=lambda: server.pki.admin.certificate.der)
    await until(lambda: _known(web, "machine-new"))
    async with web_server(web.cluster, web.informers, door, web.clock, ENTROPY, options) as page:
        assert made == ["machine-new"], "before anybody asked"
        browser = Browser(page)
        await browser.follow_link(page.link())
        assert "node-machine-new" in (await browser.get("/")).text
        await browser.http.aclose()
    assert made == ["machine-new"]


async def _known(web: ServedPage, name: str) -> bool:
    machine = web.informers.of(MACHINE.resource).get(NAMESPACE, name)
    return machine is not None and "status" in machine
