"""What open pages are told: changes, the end of a login, and an API that does not answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from fastness.page import live_updates as news
from fastness.page.sessions import LIFETIME
from tests.attesting import until
from tests.component.page.served_page import Browser, ServedPage
from tests.patience import PATIENCE


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(news, "GATHER_SECONDS", 0.02)
    monkeypatch.setattr(news, "QUIET_SECONDS", 0.1)
    monkeypatch.setattr(news, "PULSE_SECONDS", 0.02)


@asynccontextmanager
async def events(browser: Browser) -> AsyncIterator[asyncio.Queue[tuple[str, str]]]:
    """The stream of a page, as (event, data)."""
    heard: asyncio.Queue[tuple[str, str]] = asyncio.Queue()

    async def listen() -> None:
        async with browser.http.stream("GET", "/events") as answer:
            assert answer.headers["content-type"] == "text/event-stream"
            name = ""
            async for line in answer.aiter_lines():
                if line.startswith("event: "):
                    name = line.removeprefix("event: ")
                if line.startswith("data: "):
                    heard.put_nowait((name, line.removeprefix("data: ")))
        heard.put_nowait(("end", ""))

    task = asyncio.create_task(listen())
    try:
        yield heard
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def heard_of(heard: asyncio.Queue[tuple[str, str]], event: str, topic: str) -> None:
    async with asyncio.timeout(PATIENCE):
        while True:
            name, data = await heard.get()
            if name == event and topic in data:
                return


async def test_an_open_page_hears_of_a_change_and_nothing_of_its_content(web: ServedPage) -> None:
    admin = await web.administrator()
    async with events(admin) as heard:
        assert await heard.get() == ("hello", "listening")
        await web.machine("machine-secret-name")
        async with asyncio.timeout(PATIENCE):
            name, data = await heard.get()
        assert name == "change"
        assert set(data.split()) <= {"machines", "pools", "trust", "api"}


async def test_a_page_whose_login_ends_is_told(web: ServedPage) -> None:
    admin = await web.administrator()
    async with events(admin) as heard:
        await heard_of(heard, "hello", "")
        web.clock.ahead += LIFETIME
        await heard_of(heard, "bye", "login")
        await heard_of(heard, "end", "")


async def test_a_page_that_goes_is_forgotten(web: ServedPage) -> None:
    admin = await web.administrator()
    async with events(admin) as heard:
        await heard_of(heard, "hello", "")
        assert len(web.page.news._listeners) == 1

    async def gone() -> bool:
        return not web.page.news._listeners

    await until(gone)


async def test_too_many_open_pages_are_asked_to_come_later(web: ServedPage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(news, "MAX_LISTENERS", 0)
    answer = await (await web.administrator()).get("/events")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "10")


async def test_an_api_that_does_not_answer_is_said_and_comes_back(web: ServedPage) -> None:
    admin = await web.administrator()
    async with events(admin) as heard:
        await heard_of(heard, "hello", "")
        web.cluster.down = True
        await heard_of(heard, "change", "api")
        answer = await admin.get("/")
        assert answer.status_code == 200
        assert "The API does not answer" in answer.text
        web.cluster.down = False
        await heard_of(heard, "change", "api")
        assert "The API does not answer" not in (await admin.get("/")).text
