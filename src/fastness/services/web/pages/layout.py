"""What all pages share: head, navigation, banners, and the small parts that views are made of.

Order on every page: a way to skip to the content, the navigation, what holds for the whole cluster (simulated; the API does not
answer), then the content. `main` names the topics that make it stale, for the script.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from urllib.parse import quote

from fastness.model.objects import rfc3339
from fastness.services.web.markup import Child, Markup, document, join, tag

VIEWS: Final = (("/", "Fleet"), ("/pools", "Pools"), ("/trust", "Trust"))
GOOD: Final = frozenset({"attested", "updated", "Pass", "Affirmed", "True", "Current", "Active"})
BAD: Final = frozenset({"refused", "degraded", "barred", "Fail", "Refused", "Withdrawn"})
_MINUTE, _HOUR, _DAY = 60, 3600, 86400


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


def page(frame: Frame, title: str, here: str, topics: str, *content: Child) -> bytes:
    """A whole page; `here` is the view that it belongs to, `topics` what makes it stale."""
    head = join(
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", f"{title} · Fastness"),
        tag("link", rel="stylesheet", href=frame.stylesheet),
        tag("script", src=frame.script, defer=True),
    )
    body = tag(
        "body",
        tag("a", "Skip to the content", class_="skip", href="#main"),
        _header(frame, here),
        tag("div", _banners(frame), id="banners"),
        tag("p", class_="live", id="live", aria_live="polite"),
        tag("main", tag("h1", title), *content, id="main", tabindex=-1, data_topics=f"api {topics}".strip()),
    )
    return document(head, body)


def _header(frame: Frame, here: str) -> Markup:
    links = [
        tag("a", name, href=path, aria_current="page" if path == here else None) for path, name in VIEWS if frame.user
    ]
    leave = tag(
        "form", tag("span", frame.user, class_="user"), hidden("token", frame.form_token),
        tag("button", "Log out", type="submit"), method="post", action="/logout",
    )  # fmt: skip
    return tag(
        "header", tag("strong", "Fastness", class_="brand"), tag("nav", links, aria_label="Views"),
        leave if frame.user else None,
    )  # fmt: skip


def _banners(frame: Frame) -> Iterable[Markup]:
    if frame.simulated:
        yield tag(
            "p", tag("strong", "Simulated. "),
            "This cluster believes evidence of software machines. It proves nothing about real hardware.",
            class_="banner simulated",
        )  # fmt: skip
    if frame.silent_since is not None:
        yield tag(
            "p", tag("strong", "The API does not answer "), f"since {rfc3339(frame.silent_since)}. ",
            "What you see may be old; the page tries again by itself.", class_="banner silent",
        )  # fmt: skip


def hidden(name: str, value: str) -> Markup:
    """A field that a form carries along."""
    return tag("input", type="hidden", name=name, value=value)


def badge(word: str, title: str = "") -> Markup:
    """A state as a word, coloured by what it means; the colour is never the only sign."""
    tone = "good" if word in GOOD else "bad" if word in BAD else "plain"
    return tag("span", word, class_=f"badge {tone}", title=title or None)


def table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[Child]]) -> Markup:
    """A table whose cells name their column, so that a narrow screen can show rows as cards."""
    body = [
        tag("tr", [tag("td", cell, data_label=head) for head, cell in zip(heads, row, strict=True)]) for row in rows
    ]
    if not body:
        return tag("p", f"{caption}: none.", class_="none")
    head = tag("thead", tag("tr", [tag("th", name, scope="col") for name in heads]))
    return tag("div", tag("table", tag("caption", caption), head, tag("tbody", body)), class_="wide")


def facts(pairs: Iterable[tuple[str, Child]]) -> Markup:
    """Names and values; those without a value are left out."""
    return tag("dl", [(tag("dt", name), tag("dd", value)) for name, value in pairs if value not in ("", None)])


def section(title: str, *content: Child) -> Markup:
    """A part of a page with a heading."""
    return tag("section", tag("h2", title), *content)


def conditions(found: Iterable[dict[str, object]], now: datetime) -> Markup:
    """The conditions of a status."""
    return table(
        "Conditions", ("Condition", "Status", "Reason", "Message", "Since"),
        (
            (str(one.get("type", "")), str(one.get("status", "")), str(one.get("reason", "")),
             str(one.get("message", "")), when(str(one.get("lastTransitionTime", "")), now))
            for one in found
        ),
    )  # fmt: skip


def when(moment: str, now: datetime) -> Markup:
    """A time as people say it, with the exact one behind it."""
    try:
        then = datetime.fromisoformat(moment)
    except ValueError:
        return tag("span", moment or "never")
    if then.tzinfo is None:
        then = then.replace(tzinfo=UTC)
    return tag("time", ago((now - then).total_seconds()), datetime=moment, title=moment)


def ago(seconds: float) -> str:
    """A span as people say it."""
    if seconds < 0:
        return "in the future"
    if seconds < _MINUTE:
        return "just now"
    if seconds < _HOUR:
        return f"{int(seconds // _MINUTE)} min ago"
    return f"{int(seconds // _HOUR)} h ago" if seconds < 2 * _DAY else f"{int(seconds // _DAY)} days ago"


def machine_path(name: str) -> str:
    """The address of a machine's page."""
    return f"/machines/{quote(name, safe='')}"


def short(value: str, length: int = 20) -> Markup:
    """A digest or an image as people compare it, with all of it behind."""
    name, mark, digest = value.rpartition("sha256:")
    shown = f"{name}{mark}{digest[:12]}…" if mark and len(digest) > 12 else value
    return tag("code", shown if mark or len(value) <= length else f"{value[:length]}…", title=value)
