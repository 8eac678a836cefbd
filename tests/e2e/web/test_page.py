"""The page of a real `fastness up`: the link that it prints, what a browser gets, a decision that arrives, and its end."""

from __future__ import annotations

import base64
import json
import re
import ssl
import time
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import httpx
import pytest

from tests.e2e.live import FASTNESS, Live, environment, run
from tests.patience import PATIENCE

WITHIN = f"--timeout={PATIENCE:.0f}s"


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with Live.start(tmp_path_factory.mktemp("page"), "--machines", "2") as running:
        waited = running.kubectl("wait", "mcp/worker", "--for=jsonpath={.status.readyMachineCount}=2", WITHIN)
        assert waited.code == 0, waited.err
        yield running


def link_of(live: Live) -> str:
    (line,) = [line for line in live.announced if line.startswith("  page ")]
    return line.split()[1]


def trusted(live: Live) -> ssl.SSLContext:
    """What a careful person believes: the authority of the doors, out of the cluster."""
    secret = live.kubectl("get", "secret", "-n", "fastness-system", "doors-ca", "-o", "json")
    assert secret.code == 0, secret.err
    return ssl.create_default_context(cadata=base64.b64decode(secret.json["data"]["ca.crt"]).decode())


def fields_of(html: str) -> dict[str, str]:
    inputs = re.findall(r'<input type="hidden" name="([a-z]+)" value="([^"]*)">', html)
    return {name: unescape(value) for name, value in inputs}


@pytest.fixture(scope="module")
def browser(live: Live) -> Iterator[httpx.Client]:
    """Somebody who followed the link."""
    link = link_of(live)
    base = link.partition("/login")[0]
    with httpx.Client(base_url=base, verify=trusted(live), headers={"origin": base}, trust_env=False) as client:
        assert client.get("/").headers["location"] == "/login?then=%2F"
        assert client.post("/login", data=fields_of(client.get(link).text)).status_code == 303
        yield client


def test_the_place_is_in_the_file_and_the_secret_is_not(live: Live) -> None:
    endpoints = (live.state / "endpoints.json").read_text()
    assert link_of(live).startswith(f"{json.loads(endpoints)['page']}/login?key=")
    assert "key=" not in endpoints


def test_the_link_works_once(live: Live, browser: httpx.Client) -> None:
    assert browser.get("/").status_code == 200
    assert "used already" in browser.get(link_of(live)).text


def test_a_person_sees_the_machines_of_the_cluster(live: Live, browser: httpx.Client) -> None:
    html = browser.get("/").text
    nodes = [row[0] for row in live.kubectl("get", "nodes", "--no-headers").rows]
    assert len(nodes) == 2
    for node in nodes:
        assert node in html
    assert "2 of 2 machines" in html
    assert "Simulated. " in html


def test_a_machine_tells_its_story_with_the_record(browser: httpx.Client) -> None:
    path = re.findall(r'href="(/machines/[^"]+)"', browser.get("/").text)[0]
    words = ("is attested", "record: enrol", "pool/worker/config", 'href="/record/', "Where its parts come from")
    # A page shows what stands under a signed checkpoint; the one over the release may come after the node is ready.
    deadline = time.monotonic() + PATIENCE
    while missing := [text for text in words if text not in browser.get(path).text]:
        assert time.monotonic() < deadline, missing
        time.sleep(0.2)


def test_trust_shows_the_newest_checkpoint(live: Live, browser: httpx.Client) -> None:
    html = browser.get("/trust").text
    assert "fastness.dev/record/" in html
    assert "attested" in html
    size = int(re.findall(r"(\d+) entries, signed", html)[0])
    stored = live.kubectl("get", "auditcheckpoints", "-o", "jsonpath={.items[*].spec.size}").out.split()
    assert 0 < size <= max(map(int, stored))


def test_a_quarantine_on_the_page_arrives_everywhere(live: Live, browser: httpx.Client) -> None:
    path = re.findall(r'href="(/machines/[^"]+)"', browser.get("/").text)[-1]
    name = path.rpartition("/")[2]
    token = fields_of(browser.get(path).text)["token"]
    form = {"token": token, "decision": "quarantine", "reason": "seen in another rack"}
    assert browser.post(f"{path}/decision", data=form).status_code == 303
    env = environment(live.home, KUBECONFIG=str(live.kubeconfig))
    outcome = run([FASTNESS, "machine", "show", name], env, cwd=live.home)
    assert "Quarantined" in outcome.out
    assert "seen in another rack" in outcome.out
    line = [json.loads(line) for line in (live.state / "audit.log").read_text().splitlines() if name in line][-1]
    assert (line["user"], line["verb"], line["resource"], line["code"]) == ("fastness-admin", "patch", "machines", 200)


def test_an_open_stream_does_not_keep_it_from_ending(tmp_path: Path) -> None:
    with Live.start(tmp_path) as running:
        link = link_of(running)
        base = link.partition("/login")[0]
        with httpx.Client(base_url=base, verify=False, headers={"origin": base}, trust_env=False) as client:
            client.post("/login", data=fields_of(client.get(link).text))
            with client.stream("GET", "/events") as answer:
                assert next(answer.iter_lines()) == "retry: 2000"
                outcome = running.stop()
    assert (outcome.code, outcome.err) == (0, "stopping\n")
