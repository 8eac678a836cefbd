"""The page in a real browser: Debian's Chromium, driven by Playwright, with the content security policy in force.

What only a browser can show: that the script runs under the policy and nothing else does, that a page changes without a reload
and keeps the focus, that it says when the control plane is gone and comes back, that it reads on a phone and without a script.
"""

from __future__ import annotations

import re
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.components import require_program
from tests.e2e.live import Live

playwright = pytest.importorskip("playwright.async_api", reason="playwright is missing: pip install playwright")
CHROMIUM = Path("/usr/bin/chromium")
PHONE = {"width": 360, "height": 740}
DESK = {"width": 1280, "height": 900}
SOON = 20_000
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


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    require_program(CHROMIUM, "chromium")
    with Live.start(tmp_path, "--machines", "2") as running:
        arrived = "--for=jsonpath={.status.readyMachineCount}=2"
        assert running.kubectl("wait", "mcp/worker", arrived, "--timeout=60s").code == 0
        yield running


@asynccontextmanager
async def tab(live: Live, **context: Any) -> AsyncIterator[tuple[Any, list[str]]]:
    """A tab that followed the link, and what the browser complained about."""
    (line,) = [line for line in live.announced if line.startswith("  page ")]
    async with playwright.async_playwright() as driver:
        # As root a browser has no sandbox of its own; what it shows here is ours.
        browser = await driver.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox", "--disable-gpu"])
        try:
            opened = await browser.new_context(ignore_https_errors=True, viewport=DESK, **context)
            page = await opened.new_page()
            complaints: list[str] = []
            page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
            page.on("pageerror", lambda error: complaints.append(str(error)))
            await page.goto(line.split()[1])
            await page.get_by_role("button", name="Log in").press("Enter")
            await page.get_by_role("heading", name="Fleet").wait_for(timeout=SOON)
            yield page, complaints
        finally:
            await browser.close()


async def audit(page: Any) -> None:
    found = await page.evaluate(AUDIT)
    assert found == {"unnamed": [], "language": "en", "headings": 1, "mains": 1, "wide": 0, "headless": 0}, page.url


async def test_every_view_reads_on_a_desk_and_on_a_phone_light_and_dark(live: Live) -> None:
    async with tab(live) as (page, complaints):
        machine = await page.locator("main a[href^='/machines/']").first.get_attribute("href")
        for path in ("/", machine, "/pools", "/trust", "/nothing"):
            for size in (DESK, PHONE):
                for scheme in ("light", "dark"):
                    await page.set_viewport_size(size)
                    await page.emulate_media(color_scheme=scheme)
                    await page.goto(page.url.split("/", 3)[0] + "//" + page.url.split("/")[2] + path)
                    await audit(page)
        assert [text for text in complaints if "404" not in text] == []


async def test_an_open_page_changes_by_itself_and_keeps_the_focus(live: Live) -> None:
    async with tab(live) as (page, complaints):
        link = page.locator("main a[href^='/machines/']").first
        await link.focus()
        name = str(await link.get_attribute("href")).rpartition("/")[2]
        patch = '{"spec":{"approval":"Quarantined","approvalReason":"<img src=x onerror=alert(1)>"}}'
        said = live.kubectl(
            "patch",
            "machines.trusted-execution-clusters.io",
            name,
            "-n",
            "fastness-system",
            "--type=merge",
            "-p",
            patch,
        )
        assert said.code == 0, said.err
        await page.get_by_text("<img src=x onerror=alert(1)>").first.wait_for(timeout=SOON)
        focused = await page.evaluate("document.activeElement.getAttribute('href')")
        assert str(focused).endswith(name)
        assert await page.locator("main img").count() == 0
        assert complaints == []


async def test_a_person_quarantines_with_the_keyboard(live: Live) -> None:
    async with tab(live) as (page, complaints):
        await page.keyboard.press("/")
        assert await page.evaluate("document.activeElement.id") == "q"
        await page.locator("main table a[href^='/machines/']").first.press("Enter")
        await page.get_by_role("heading", name="Decide").wait_for(timeout=SOON)
        await page.get_by_label(re.compile("Quarantine: why")).fill("seen in another rack")
        await page.keyboard.press("Enter")
        await page.get_by_text("is quarantined: nothing is released to it").first.wait_for(timeout=SOON)
        assert complaints == []


async def test_a_control_plane_that_goes_is_said_and_what_was_seen_stays(live: Live) -> None:
    async with tab(live) as (page, _):
        assert await page.locator("#live").text_content() == ""
        live.stop()
        await page.get_by_text("The connection to the control plane is lost").wait_for(timeout=SOON)
        assert await page.get_by_text("2 of 2 machines").count() == 1


async def test_a_control_plane_that_comes_back_leads_to_the_form(tmp_path: Path) -> None:
    require_program(CHROMIUM, "chromium")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    with Live.start(tmp_path, "--page-port", port) as first:
        async with tab(first) as (page, _):
            first.stop()
            await page.get_by_text("The connection to the control plane is lost").wait_for(timeout=SOON)
            with Live.start(tmp_path, "--page-port", port):
                await page.get_by_text("Your login has ended").wait_for(timeout=SOON)
                await page.reload()
                await page.get_by_label("Bearer token of the API").wait_for(timeout=SOON)


async def test_without_a_script_everything_is_there(live: Live) -> None:
    async with tab(live, java_script_enabled=False) as (page, _):
        await page.get_by_text("2 of 2 machines").wait_for(timeout=SOON)
        await page.locator("main a[href^='/machines/']").first.press("Enter")
        await page.get_by_role("heading", name="Timeline").wait_for(timeout=SOON)
        await page.get_by_role("link", name="Trust").press("Enter")
        await page.get_by_role("heading", name="Record").wait_for(timeout=SOON)
