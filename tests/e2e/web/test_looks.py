"""The pages in a real browser, in a cluster where everything happens at once: accessible, small, whole, and deaf to strangers.

The page runs in this process in front of a fresh API, so that its objects can be what a test wants; the browser is a real one.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from fastness.apiserver import ServerOptions, open_apiserver
from fastness.app.product import PRODUCT
from fastness.kinds.trusted_execution.machine import MACHINE
from tests.component.page import hostile, showcase
from tests.component.page.fleets import attested
from tests.component.page.scan import shows
from tests.component.page.served_page import ServedPage, served_page
from tests.e2e.web.browsing import PHONE, SOON, tab
from tests.embedded.fixtures import Embedded
from tests.enrolling import MovedClock

REFUSED = "/machines/machine-3c1f09b2aa417e65d0c8"
DRIFTED = "/machines/machine-77e2a4d1905bb3f8c641"
PAGES = (
    "/",
    REFUSED,
    DRIFTED,
    "/pools",
    "/runtimes",
    "/trust?distrust=chipGeneration:Genoa",
    "/record/7",
    "/simulator",
    "/nothing",
)
MOST_BYTES = 150_000
MOST_ELEMENTS = 1500


@asynccontextmanager
async def world(tmp_path: Path) -> AsyncIterator[ServedPage]:
    """A page in front of a fresh API."""
    directory, clock = tmp_path / "state", MovedClock()
    async with (
        open_apiserver(ServerOptions(directory), PRODUCT, clock) as server,
        served_page(Embedded(server, directory), clock) as web,
    ):
        yield web


def axe() -> Any:
    """The rules of accessibility; without them the test is skipped by name, or fails where CI=true."""
    try:
        return importlib.import_module("axe_playwright_python.async_playwright").Axe()
    except ModuleNotFoundError:
        text = "axe is missing: pip install axe-playwright-python"
        if os.environ.get("CI", "").lower() == "true":
            pytest.fail(text, pytrace=False)
        pytest.skip(text)


async def test_no_page_breaks_a_rule_of_accessibility_light_or_dark(tmp_path: Path) -> None:
    rules, broken = axe(), []
    async with world(tmp_path) as web:
        await showcase.stage(web)
        await shows(await web.administrator(), "/trust", "Older entries")
        async with tab(web.page.link()) as (page, _):
            for path in (*PAGES, "/login"):
                await page.goto(web.page.url + path)
                for scheme in ("light", "dark"):
                    await page.emulate_media(color_scheme=scheme)
                    violations = (await rules.run(page)).response["violations"]
                    broken += [
                        (path, scheme, violation["id"], violation["impact"], violation["nodes"][0]["html"][:200])
                        for violation in violations
                    ]
    assert broken == []


async def test_every_view_fits_a_phone_and_is_whole_without_a_script(tmp_path: Path) -> None:
    async with world(tmp_path) as web:
        await showcase.stage(web)
        await shows(await web.administrator(), "/trust", "Older entries")
        async with tab(web.page.link(), java_script_enabled=False) as (page, complaints):
            await page.set_viewport_size(PHONE)
            for path, words in (
                ("/", "Needs a decision (3)"), (REFUSED, "The first difference"), (DRIFTED, "server evil.example"),
                ("/pools", "The change under way"), ("/trust", "old-chips"), ("/record/7", "verified"), ("/simulator", "cut off"),
            ):  # fmt: skip
                await page.goto(web.page.url + path)
                assert await page.get_by_text(words).count() or words in await page.content(), path
                box = await page.locator("main").bounding_box()
                assert box["width"] <= PHONE["width"], path
                last = await page.locator("main section").last.bounding_box()
                assert last["x"] + last["width"] <= PHONE["width"], path
            await page.goto(f"{web.page.url}/simulator")
            await page.get_by_role("button", name="Reboot worker-1").press("Enter")
            await page.get_by_text("worker-1 boots again").wait_for(timeout=SOON)
            await page.goto(f"{web.page.url}/?state=refused")
            assert await page.locator("main table a").count() == 1
            assert complaints == []


async def test_text_of_strangers_runs_nowhere(tmp_path: Path) -> None:
    async with world(tmp_path) as web:
        await hostile.stage(web)
        await shows(await web.administrator(), f"/machines/{hostile.MACHINE}", "check-hint")
        async with tab(web.page.link()) as (page, complaints):
            ran: list[str] = []
            page.on("dialog", lambda dialog: ran.append(dialog.message))
            for path in hostile.FIELDS:
                await page.goto(web.page.url + path)
                assert await page.locator("main img, main svg:not(.bar), main iframe, main script").count() == 0, path
                for summary in await page.locator("summary").all():
                    await summary.click()
            await page.goto(f"{web.page.url}/machines/{hostile.MACHINE}")
            for button in await page.locator("button.copy").all():
                await button.click()
            assert ran == []
            assert [text for text in complaints if "Content Security Policy" in text] == []


async def test_five_thousand_machines_are_a_small_page(tmp_path: Path) -> None:
    async with world(tmp_path) as web:
        for number in range(5000):
            web.informers.of(MACHINE.resource)._cache.put(attested(number))
        async with tab(web.page.link()) as (page, _):
            await page.get_by_text("5000 of 5000 machines", exact=True).wait_for(timeout=SOON)
            answers = [await page.request.get(web.page.url + path) for path in ["/", *await _assets(page)]]
            weight = sum([len(await answer.body()) for answer in answers])
            assert len(answers) == 3  # the page, its stylesheet, its script
            assert weight < MOST_BYTES
            assert await page.evaluate("document.querySelectorAll('*').length") < MOST_ELEMENTS
            assert await page.locator("main table tbody tr").count() == 50
            await page.get_by_role("link", name="Next").press("Enter")
            await page.get_by_text("page 2 of 100").wait_for(timeout=SOON)
            await page.locator("#q").fill("worker-00000000000000000abc")
            await page.keyboard.press("Enter")
            await page.get_by_text("1 of 5000 machines", exact=True).wait_for(timeout=SOON)


async def _assets(page: Any) -> list[str]:
    script = "[...document.querySelectorAll('link, script')].map((one) => one.getAttribute('href') || one.getAttribute('src'))"
    return list(await page.evaluate(script))
