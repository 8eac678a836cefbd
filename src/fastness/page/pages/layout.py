"""What all pages share: head, navigation, banners.

Order on every page: a way to skip to the content, the navigation, what holds for the whole cluster (simulated; protection that
was lowered past admission; the API does not answer), then the content. `main` names the topics that make it stale, for the
script.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from fastness.kinds.objects import rfc3339
from fastness.page.markup import Child, Markup, document, join, tag
from fastness.page.pages.parts import hidden

VIEWS: Final = (
    ("/", "Fleet"),
    ("/pools", "Pools"),
    ("/builds", "Builds"),
    ("/runtimes", "Runtimes"),
    ("/trust", "Trust"),
)
SIMULATOR: Final = ("/simulator", "Simulator")


@dataclass(frozen=True, slots=True)
class Frame:
    """What a page stands in: who looks, at what time, and what holds for the whole cluster."""

    now: datetime
    user: str = ""
    form_token: str = ""
    simulated: bool = False
    silent_since: datetime | None = None
    stylesheet: str = ""
    script: str = ""
    simulator: bool = False
    alerts: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class PageFrame:
    """Where a page stands: its title, the view that it belongs to, what makes it stale, and where it leads back to."""

    title: str
    here: str = ""
    topics: str = ""
    back: tuple[str, str] | None = None
    lead: Child = None


def page(frame: Frame, place: PageFrame, *content: Child) -> bytes:
    """A whole page."""
    head = join(
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", f"{place.title} · Fastness"),
        tag("link", rel="stylesheet", href=frame.stylesheet),
        tag("script", src=frame.script, defer=True),
    )
    body = tag(
        "body",
        tag("a", "Skip to the content", class_="skip", href="#main"),
        _header(frame, place.here),
        tag("section", _banners(frame), id="banners", aria_label="Notices"),
        tag("p", class_="live", id="live", role="status"),
        tag("main", _title(place), *content, id="main", tabindex=-1, data_topics=f"api {place.topics}".strip()),
    )
    return document(head, body)


def _title(place: PageFrame) -> Markup:
    back = tag("p", tag("a", f"← {place.back[1]}", href=place.back[0]), class_="back") if place.back else None
    lead = tag("p", place.lead, class_="lead") if place.lead else None
    return tag("div", back, tag("h1", place.title), lead, class_="title")


def _header(frame: Frame, here: str) -> Markup:
    views = (*VIEWS, SIMULATOR) if frame.simulator else VIEWS
    links = [
        tag("a", name, href=path, aria_current="page" if path == here else None) for path, name in views if frame.user
    ]
    leave = tag(
        "form", tag("span", frame.user, class_="user", title="Logged in as"), hidden("token", frame.form_token),
        tag("button", "Log out", type="submit", class_="quiet"), method="post", action="/logout",
    )  # fmt: skip
    return tag(
        "header", tag("div", tag("strong", "Fastness", class_="brand"), tag("nav", links, aria_label="Views"),
        leave if frame.user else None, class_="bounds"),
    )  # fmt: skip


def _banners(frame: Frame) -> Iterable[Markup]:
    if frame.simulated:
        yield tag("div", tag(
            "p", tag("strong", "Simulated. "),
            "This cluster believes evidence of software machines. It proves nothing about real hardware.", class_="bounds",
        ), class_="banner simulated")  # fmt: skip
    for title, text in frame.alerts if frame.user else ():
        yield tag(
            "div", tag("p", tag("strong", f"{title} "), text, class_="bounds"), class_="banner silent", role="alert"
        )
    if frame.silent_since is not None:
        yield tag("div", tag(
            "p", tag("strong", "The API does not answer "), f"since {rfc3339(frame.silent_since)}. ",
            "What you see may be old; the page tries again by itself.", class_="bounds",
        ), class_="banner silent", role="alert")  # fmt: skip
