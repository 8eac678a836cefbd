"""The story of README and tutorial, in a real browser against a real `fastness up`: tamper, read why, undo; change, watch.

With FASTNESS_PICTURES=1 the same walk writes `docs/pictures/*.png`, so the pictures show what a test saw:

    FASTNESS_PICTURES=1 python -m pytest tests/e2e/web/test_tour.py
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.components import require_program
from tests.e2e.live import Live
from tests.e2e.web.browsing import CHROMIUM, SOON, link_of, tab

PICTURES = Path(__file__).parents[3] / "docs" / "pictures"
MOST_BYTES = 150_000
LATER = 60_000
CONFIG = """
apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfig
metadata:
  name: 50-time
  labels: {machineconfiguration.openshift.io/role: worker}
spec:
  config:
    ignition: {version: 3.4.0}
    storage:
      files:
      - path: /etc/chrony.conf
        contents: {source: "data:,server%20ntp.example%20iburst%0Amakestep%201%203%0A"}
"""


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    require_program(CHROMIUM, "chromium")
    with Live.start(tmp_path, "--machines", "5") as running:
        arrived = "--for=jsonpath={.status.readyMachineCount}=5"
        assert running.kubectl("wait", "mcp/worker", arrived, "--timeout=90s").code == 0
        yield running


async def picture(page: Any, name: str, height: int = 760) -> None:
    """A picture for the documentation, where one was asked for."""
    if os.environ.get("FASTNESS_PICTURES") != "1":
        return
    await page.set_viewport_size({"width": 1140, "height": height})
    await page.evaluate("window.scrollTo(0, 0); document.activeElement.blur()")
    path = PICTURES / f"{name}.png"
    await page.screenshot(path=str(path))
    assert path.stat().st_size < MOST_BYTES


async def show(page: Any, path: str) -> None:
    """Go to a view."""
    await page.goto(f"https://{page.url.split('/')[2]}{path}")


async def test_a_tampered_machine_is_refused_explained_and_comes_back(live: Live) -> None:
    async with tab(link_of(live)) as (page, complaints):
        await show(page, "/simulator")
        row = page.locator("tr", has=page.get_by_text("worker-2", exact=True))
        await row.get_by_label("What to do to worker-2").select_option(label="Changed boot loader")
        await page.get_by_role("button", name="Do it to worker-2").press("Enter")
        undo = row.get_by_role("button", name="Undo: Changed boot loader worker-2")
        await undo.wait_for(timeout=SOON)
        await row.get_by_text("refused").wait_for(timeout=LATER)
        await picture(page, "simulator")
        await row.locator("a").first.press("Enter")
        await page.get_by_role("heading", name="The first difference").wait_for(timeout=SOON)
        assert await page.locator("#difference mark.found").count() == 1
        assert "fastness image approve" in str(await page.locator("#difference").text_content())
        await picture(page, "machine")
        await page.get_by_role("link", name="Fleet").first.press("Enter")
        await page.get_by_role("heading", name="Needs a decision (1)").wait_for(timeout=SOON)
        await picture(page, "fleet")
        await show(page, "/simulator")
        await undo.press("Enter")
        await row.get_by_text("proved").wait_for(timeout=LATER)
        await page.get_by_text("no faults").wait_for(timeout=SOON)
        await _change(live, page)
        assert complaints == []


async def _change(live: Live, page: Any) -> None:
    """A config is applied, and the pool says what it does about it."""
    assert live.kubectl("apply", "-f", "-", stdin=CONFIG).code == 0
    await show(page, "/pools")
    await page.get_by_role("heading", name="The change under way").wait_for(timeout=LATER)
    await page.get_by_text("file /etc/chrony.conf added").click()
    await page.get_by_text("+server ntp.example iburst").wait_for(timeout=SOON)
    await picture(page, "pools", 900)
    await show(page, "/trust")
    await page.get_by_role("heading", name="Record").wait_for(timeout=SOON)
    await picture(page, "trust")
    await page.get_by_role("link", name="with its proof").first.press("Enter")
    await page.get_by_text("lead from the entry to the root").wait_for(timeout=SOON)
