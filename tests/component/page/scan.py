"""What a page must never contain, and waiting until it says something."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from fastness.page.markup import ELEMENTS
from tests.attesting import until
from tests.component.page.served_page import Browser


class Scan(HTMLParser):
    """Everything in a page that could run or load something."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.scripts: list[dict[str, str | None]] = []
        self.handlers: list[str] = []
        self.foreign: list[str] = []
        self.unknown: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ELEMENTS:
            self.unknown.append(tag)
        if tag == "script":
            self.scripts.append(dict(attrs))
        for name, value in attrs:
            if name.startswith("on") or name == "style":
                self.handlers.append(name)
            if name in ("href", "src", "action") and not re.match(r"[/?#](?!/)", f"{value} "):
                self.foreign.append(str(value))


def harmless(html: str) -> None:
    """Nothing in the page runs but our script, and nothing is loaded from elsewhere."""
    scan = Scan(html)
    assert (scan.handlers, scan.foreign, scan.unknown) == ([], [], [])
    assert len(scan.scripts) == 1
    assert str(scan.scripts[0]["src"]).startswith("/assets/page.")
    assert "alert(1)</script>" not in html


async def shows(browser: Browser, path: str, text: str) -> str:
    """The page, once it says that."""
    html = ""

    async def shown_now() -> bool:
        nonlocal html
        answer = await browser.get(path)
        html = answer.text
        return answer.status_code == 200 and text in html

    await until(shown_now)
    harmless(html)
    return html
