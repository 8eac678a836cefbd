"""The small parts that views are made of: badges, tables, times, commands, bars, differences.

All are pure functions to `Markup`. Rules:

* Colour never says anything alone: a badge is a word, a bar has the numbers beside it, a line of a difference has its sign.
* A table names the column in every cell, so that a narrow screen can show rows as cards.
* What is long (a digest, an image) is shown as people compare it, with all of it behind.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import quote

from fastness.page.markup import Child, Markup, join, tag

GOOD: Final = frozenset({
    "proved", "updated", "Pass", "Affirmed", "True", "Current", "Active", "passes", "running", "approved", "verified",
})  # fmt: skip
BAD: Final = frozenset({
    "refused", "degraded", "revoked", "stale", "overridden", "not proved", "Fail", "Refused", "Withdrawn", "fails", "stopped",
    "Degraded", "Unreconcilable", "cut off", "distrusted", "not verified",
})  # fmt: skip
CALM: Final = frozenset(
    {"working", "Working", "updating", "Transition", "NotAssessed", "inactive", "Unknown", "paused"}
)
_COMMAND: Final = re.compile(r"(?:fastness|kubectl) ")
_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def hidden(name: str, value: str) -> Markup:
    """A field that a form carries along."""
    return tag("input", type="hidden", name=name, value=value)


def tone_of(word: str) -> str:
    """What a word means: good, bad, calm (under way) or plain."""
    return "good" if word in GOOD else "bad" if word in BAD else "calm" if word in CALM else "plain"


def badge(word: str, title: str = "") -> Markup:
    """A state as a word, coloured by what it means; the colour is never the only sign."""
    return tag("span", word, class_=f"badge {tone_of(word)}", title=title or None)


def table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[Child]], kind: str = "") -> Markup:
    """A table whose cells name their column; `kind` is a class of the stylesheet."""
    body = [
        tag("tr", [tag("td", cell, data_label=head) for head, cell in zip(heads, row, strict=True)]) for row in rows
    ]
    if not body:
        return tag("p", f"{caption}: none.", class_="none")
    head = tag("thead", tag("tr", [tag("th", name, scope="col") for name in heads]))
    inside = tag("table", tag("caption", caption), head, tag("tbody", body), class_=kind or None)
    # What can be scrolled must be reachable with the keyboard.
    return tag("div", inside, class_="wide", tabindex=0, role="group", aria_label=caption)


def facts(pairs: Iterable[tuple[str, Child]]) -> Markup:
    """Names and values; those without a value are left out."""
    return tag("dl", [(tag("dt", name), tag("dd", value)) for name, value in pairs if value not in ("", None)])


def section(title: str, *content: Child, id_: str = "", kind: str = "") -> Markup:
    """A part of a page with a heading."""
    return tag("section", tag("h2", title), *content, id=id_ or None, class_=f"card {kind}".strip())


def folded(summary: Child, *content: Child, open_: bool = False) -> Markup:
    """Something that is there and out of the way."""
    return tag("details", tag("summary", summary), tag("div", *content, class_="inside"), open=open_)


def conditions(listed: Iterable[Mapping[str, Any]], now: datetime) -> Markup:
    """The conditions of a status."""
    return table(
        "Conditions", ("Condition", "Status", "Reason", "Message", "Since"),
        (
            (str(condition.get("type", "")), str(condition.get("status", "")), str(condition.get("reason", "")),
             str(condition.get("message", "")) or "–", when(str(condition.get("lastTransitionTime", "")), now))
            for condition in listed
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


def lasting(seconds: float) -> str:
    """How long something takes, as people say it."""
    for unit, name in ((_DAY, "days"), (_HOUR, "h"), (_MINUTE, "min")):
        if seconds >= unit and seconds % unit == 0:
            return f"{int(seconds // unit)} {name}"
    return f"{seconds:g} s"


def machine_path(name: str) -> str:
    """The address of a machine's page."""
    return f"/machines/{quote(name, safe='')}"


def short(value: str, length: int = 20) -> Markup:
    """A digest or an image as people compare it, with all of it behind."""
    name, mark, digest = value.rpartition("sha256:")
    text = f"{name}{mark}{digest[:12]}…" if mark and len(digest) > 12 else value
    return tag("code", text if mark or len(value) <= length else f"{value[:length]}…", title=value)


def image(reference: str) -> Markup:
    """An image as people tell two apart: the last part of its name and the beginning of its digest."""
    name, mark, digest = reference.rpartition("@sha256:")
    if not mark or not name:
        return short(reference)
    return tag("code", f"{name.rpartition('/')[2]}@{digest[:8]}", title=reference)


def advice(lines: Iterable[str]) -> Markup:
    """What to do: sentences, and commands that can be copied."""
    return tag("ul", [tag("li", command(line)) for line in lines], class_="actions")


def command(line: str) -> Child:
    """A command with its remark, or a sentence as it is."""
    if not _COMMAND.match(line):
        return line
    words, _, remark = line.partition("    # ")
    copy = tag("button", "Copy", type="button", class_="copy", data_copy=words, aria_label=f"Copy: {words}")
    return join(
        tag("small", f"{remark[0].upper()}{remark[1:]}:", class_="remark") if remark else None,
        tag("span", tag("code", words), copy, class_="command"),
    )


def bar(parts: Sequence[tuple[str, int]], label: str) -> Markup | None:
    """Shares of a whole as one bar; each part is a class of the stylesheet and a number."""
    total, at = sum(number for _, number in parts), 0.0
    if not total:
        return None
    segments: list[Markup] = []
    for kind, number in parts:
        width = 100 * number / total
        if number:
            segments.append(tag("rect", x=f"{at:.2f}%", y=0, width=f"{width:.2f}%", height="100%", class_=kind))
        at += width
    return tag("svg", segments, class_="bar", role="img", aria_label=label, width="100%", height=10)


def progress(done: int, total: int, label: str) -> Markup | None:
    """How far something is."""
    return tag("progress", f"{done} of {total}", max=total, value=done, aria_label=label) if total else None


def difference(text: str) -> Markup:
    """A unified difference, each line by its sign."""
    return tag(
        "pre", [tag("span", f"{line}\n", class_=_sign(line)) for line in text.splitlines()], class_="diff", tabindex=0
    )


def side_by_side(expected: str, actual: str) -> Markup:
    """What was expected and what was seen, with the place from which they differ marked."""
    choices = [choice for choice in expected.split(" or ") if choice] or ["nothing"]
    expected_marks = [_marked(choice, _shared(choice, actual), "wanted") for choice in choices]
    shared = max((_shared(choice, actual) for choice in choices), default=0)
    return tag(
        "div",
        tag("figure", tag("figcaption", "Expected"), tag("pre", expected_marks)),
        tag("figure", tag("figcaption", "Seen"), tag("pre", _marked(actual or "nothing", shared, "found"))),
        class_="sides",
    )  # fmt: skip


def _shared(left: str, right: str) -> int:
    return next((at for at, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))


def _marked(value: str, shared: int, kind: str) -> Markup:
    return tag("span", value[:shared], tag("mark", value[shared:], class_=kind) if value[shared:] else None, "\n")


def _sign(line: str) -> str | None:
    if line.startswith(("+++", "---", "@@")):
        return "place"
    return {"+": "more", "-": "less"}.get(line[:1])
