"""The page in a real browser: Debian's Chromium, driven by Playwright, with the content security policy in force.

What only a browser can show: that the script runs under the policy and nothing else does, that a page changes without a reload
and keeps the focus, that it says when the control plane is gone and comes back, that it reads on a phone and without a script.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.components import require_program
from tests.e2e.live import Live
from tests.e2e.web.browsing import CHROMIUM, DESK, PHONE, SOON, link_of, tab

# Every control has a name, every page a language, one heading, one main part, and nothing is wider than the screen.
AUDIT = """() => {
  const named = (one) => one.labels?.length || one.getAttribute("aria-label") || one.textContent.trim() || one.title;
  const controls = [...document.querySelectorAll("a, button, select, textarea, summary, progress, input:not([type=hidden])")];
  return {
    unnamed: controls.filter((one) => !named(one)).map((one) => one.outerHTML.slice(0, 120)),
    language: document.documentElement.lang, headings: document.querySelectorAll("h1").length,
    mains: document.querySelectorAll("main").length,
    wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    headless: [...document.querySelectorAll("table")].filter((one) => !one.querySelector("th[scope], caption")).length,
  };
}"""


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    require_program(CHROMIUM, "chromium")
    with Live.start(tmp_path_factory.mktemp("browser"), "--machines", "4") as running:
        arrived = "--for=jsonpath={.status.readyMachineCount}=4"
        assert running.kubectl("wait", "mcp/worker", arrived, "--timeout=90s").code == 0
        yield running


@pytest.fixture(scope="module")
def login(live: Live) -> tuple[str, str]:
    """The form, and a token for it: the link works once, and several tests log in."""
    assert live.kubectl("create", "serviceaccount", "looker").code == 0
    role = ("--clusterrole=cluster-admin", "--serviceaccount=default:looker")
    assert live.kubectl("create", "clusterrolebinding", "looker", *role).code == 0
    return link_of(live).partition("?")[0], live.kubectl("create", "token", "looker").out.strip()


async def audit(page: Any) -> None:
    report = await page.evaluate(AUDIT)
    assert report == {"unnamed": [], "language": "en", "headings": 1, "mains": 1, "wide": 0, "headless": 0}, page.url


async def test_every_view_reads_on_a_desk_and_on_a_phone_light_and_dark(login: tuple[str, str]) -> None:
    async with tab(*login) as (page, complaints):
        machine = await page.locator("main a[href^='/machines/']").first.get_attribute("href")
        for path in ("/", machine, "/pools", "/trust", "/simulator", "/nothing"):
            for size in (DESK, PHONE):
                for scheme in ("light", "dark"):
                    await page.set_viewport_size(size)
                    await page.emulate_media(color_scheme=scheme)
                    await page.goto(page.url.split("/", 3)[0] + "//" + page.url.split("/")[2] + path)
                    await audit(page)
        assert [text for text in complaints if "404" not in text] == []


async def test_an_open_page_changes_by_itself_and_keeps_the_focus(live: Live, login: tuple[str, str]) -> None:
    async with tab(*login) as (page, complaints):
        link = page.locator("main a[href^='/machines/']").first
        await link.focus()
        name = str(await link.get_attribute("href")).rpartition("/")[2]
        patch = '{"spec":{"approval":"Quarantined","approvalReason":"<img src=x onerror=alert(1)>"}}'
        patched = live.kubectl(
            "patch",
            "machines.trusted-execution-clusters.io",
            name,
            "-n",
            "fastness-system",
            "--type=merge",
            "-p",
            patch,
        )
        assert patched.code == 0, patched.err
        await page.get_by_text("<img src=x onerror=alert(1)>").first.wait_for(timeout=SOON)
        focused = await page.evaluate("document.activeElement.getAttribute('href')")
        assert str(focused).endswith(name)
        assert await page.locator("main img").count() == 0
        assert complaints == []


async def test_a_person_quarantines_with_the_keyboard(login: tuple[str, str]) -> None:
    async with tab(*login) as (page, complaints):
        await page.keyboard.press("/")
        assert await page.evaluate("document.activeElement.id") == "q"
        await page.locator("main tr", has_text="proved").locator("a[href^='/machines/']").first.press("Enter")
        await page.get_by_role("heading", name="Decide").wait_for(timeout=SOON)
        await page.get_by_label(re.compile("Quarantine: why")).fill("seen in another rack")
        await page.keyboard.press("Enter")
        await page.get_by_text("is quarantined: nothing is released to it").first.wait_for(timeout=SOON)
        assert complaints == []


async def test_a_control_plane_that_restarts_is_said_and_leads_to_the_form(tmp_path: Path) -> None:
    require_program(CHROMIUM, "chromium")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    with Live.start(tmp_path, "--page-port", port) as first:
        async with tab(link_of(first)) as (page, _):
            assert await page.locator("#live").text_content() == ""
            first.stop()
            await page.get_by_text("The connection to the control plane is lost").wait_for(timeout=SOON)
            assert await page.get_by_text("No machine enrolled yet.").count() == 1  # what was seen stays
            with Live.start(tmp_path, "--page-port", port):
                await page.get_by_text("Your login has ended").wait_for(timeout=SOON)
                await page.reload()
                await page.get_by_label("Bearer token of the API").wait_for(timeout=SOON)


async def test_without_a_script_everything_is_there(login: tuple[str, str]) -> None:
    async with tab(*login, java_script_enabled=False) as (page, _):
        await page.get_by_text("4 of 4 machines", exact=True).wait_for(timeout=SOON)
        await page.locator("main a[href^='/machines/']").first.press("Enter")
        await page.get_by_role("heading", name="Timeline").wait_for(timeout=SOON)
        await page.get_by_role("link", name="Trust").press("Enter")
        await page.get_by_role("heading", name="Record").wait_for(timeout=SOON)
