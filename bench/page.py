"""The page with five thousand machines, in a real browser: time to its first paint, its weight, and what an answer costs.

`python -m bench.page ROUNDS` prints values by name. Server and browser share the machine; the page is opened in a fresh tab each
time, with its stylesheet and script in the browser's cache from the second time on, as people have them.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import orjson

from bench.figures import Progress, Single, Spread

MACHINES = 5000
AIM_PAINT, AIM_WEIGHT = 500.0, 150.0
PAINT = f"first paint of the fleet with {MACHINES} machines"
ANSWER = f"the answer to that: time until its last byte, {MACHINES} machines"
WEIGHT = f"weight of the fleet with {MACHINES} machines, everything that it loads"
ROOT = Path(__file__).resolve().parent.parent
CHROMIUM = "/usr/bin/chromium"
POLLS = 500
_PAINTED = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? -1"
_WEIGHED = (
    "[...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]"
    ".reduce((sum, one) => sum + one.decodedBodySize, 0)"
)


def figures(say: Progress, rounds: int) -> list[Single]:
    """Every figure, measured in a process of its own; none where there is no browser."""
    if not Path(CHROMIUM).exists():
        say("the page: chromium is missing")
        return []
    say("the page in a browser")
    command = [sys.executable, "-m", "bench.page", str(max(5, rounds))]
    done = subprocess.run(command, check=True, capture_output=True, cwd=ROOT)
    spreads = {name: Spread.of(values) for name, values in orjson.loads(done.stdout).items()}
    return [
        Single(PAINT, spreads[PAINT], "ms", AIM_PAINT),
        Single(ANSWER, spreads[ANSWER], "ms"),
        Single(WEIGHT, spreads[WEIGHT], "kB", AIM_WEIGHT),
    ]


async def measure(rounds: int) -> dict[str, list[float]]:
    """Open the page again and again."""
    from playwright.async_api import async_playwright

    from fastness.apiserver import ServerOptions, open_apiserver
    from fastness.app.product import PRODUCT
    from fastness.kinds.trusted_execution.machine import MACHINE
    from tests.component.page.fleets import attested
    from tests.component.page.served_page import served_page
    from tests.embedded.fixtures import Embedded
    from tests.enrolling import MovedClock

    with tempfile.TemporaryDirectory() as directory:
        state, clock = Path(directory) / "state", MovedClock()
        async with (
            open_apiserver(ServerOptions(state), PRODUCT, clock) as server,
            served_page(Embedded(server, state), clock) as web,
            async_playwright() as driver,
        ):
            for number in range(MACHINES):
                web.informers.of(MACHINE.resource)._cache.put(attested(number))
            browser = await driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
            context = await browser.new_context(ignore_https_errors=True)
            first = await context.new_page()
            await first.goto(web.page.link())
            await first.get_by_role("button", name="Log in").press("Enter")
            await first.get_by_role("heading", name="Fleet").wait_for()
            await first.close()
            loads = [await _opened(context, web.page.url) for _ in range(rounds)]
            await browser.close()
    return {name: [load[name] for load in loads] for name in (PAINT, ANSWER, WEIGHT)}


async def _opened(context: Any, url: str) -> dict[str, float]:
    page = await context.new_page()
    started = time.perf_counter()
    await context.request.get(url, fail_on_status_code=True)
    answered = (time.perf_counter() - started) * 1000
    await page.goto(url)
    for _ in range(POLLS):  # the page's policy forbids what Playwright waits for conditions with
        if await page.evaluate(_PAINTED) >= 0:
            break
        await page.wait_for_timeout(20)
    load = {PAINT: await page.evaluate(_PAINTED), ANSWER: answered, WEIGHT: await page.evaluate(_WEIGHED) / 1000}
    await page.close()
    return load


if __name__ == "__main__":
    sys.stdout.buffer.write(orjson.dumps(asyncio.run(measure(int(sys.argv[1])))))
