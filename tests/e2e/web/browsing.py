"""A tab of Debian's Chromium that is logged in, and what the browser complained about."""

from __future__ import annotations

from collections.abc import AsyncIterator
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


def link_of(live: Live) -> str:
    """The link that a running control plane printed."""
    (line,) = [line for line in live.announced if line.startswith("  page ")]
    return line.split()[1]


@asynccontextmanager
async def tab(link: str, bearer: str = "", **context: Any) -> AsyncIterator[tuple[Any, list[str]]]:
    """A tab that followed a link, or logged in with a token, and what the browser complained about."""
    require_program(CHROMIUM, "chromium")
    async with playwright.async_playwright() as driver:
        # As root a browser has no sandbox of its own; what it shows here is ours.
        browser = await driver.chromium.launch(
            executable_path=str(CHROMIUM), args=["--no-sandbox", "--disable-gpu", "--disable-lcd-text"]
        )
        try:
            opened = await browser.new_context(ignore_https_errors=True, viewport=DESK, **context)
            page = await opened.new_page()
            complaints: list[str] = []
            page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
            page.on("pageerror", lambda error: complaints.append(str(error)))
            await page.goto(link)
            if bearer:
                await page.get_by_label("Bearer token of the API").fill(bearer)
            await page.get_by_role("button", name="Log in").press("Enter")
            await page.get_by_role("heading", name="Fleet").wait_for(timeout=SOON)
            yield page, complaints
        finally:
            await browser.close()
