"""The fleet: how many machines are in which state, those that need a decision, and a page of all."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from urllib.parse import urlencode

from fastness.services.web.fleet import STATES, Filter, Fleet, Row
from fastness.services.web.markup import Child, Markup, join, tag
from fastness.services.web.pages.layout import Frame, badge, machine_path, page, section, short, table, when

_HEADS = ("Machine", "State", "Waits for", "Pool", "Verdict", "Image", "Last proof")


def fleet_page(frame: Frame, fleet: Fleet, wanted: Filter) -> bytes:
    """The whole view."""
    inbox = section(
        f"Needs a decision ({fleet.needing})",
        table(
            "Machines that wait for a person", ("Machine", "State", "Waits for"),
            ((_link(row), badge(row.state), row.waits) for row in fleet.inbox),
        ),
        tag("p", tag("a", f"All {fleet.needing}", href="/?state=inbox")) if fleet.needing > len(fleet.inbox) else None,
    ) if fleet.needing else tag("p", "No machine needs a decision.", class_="none")  # fmt: skip
    rows = table(f"{fleet.found} of {fleet.total} machines", _HEADS, (_row(row, frame.now) for row in fleet.rows))
    listed = section("Machines", _filters(fleet, wanted), rows, _pages(fleet, wanted))
    return page(frame, "Fleet", "/", "machines", _counts(fleet), inbox, listed)


def _counts(fleet: Fleet) -> Markup:
    shown = [(state, fleet.counts[state]) for state in reversed(STATES) if fleet.counts[state]]
    return tag(
        "ul", [tag("li", tag("a", tag("strong", number), " ", state, href=f"/?state={state}")) for state, number in shown],
        class_="counts",
    )  # fmt: skip


def _row(row: Row, now: datetime) -> tuple[Child, ...]:
    return (
        _link(row), badge(row.state), row.waits or "–", row.pool or "–",
        join(row.verdict, tag("small", " simulated") if row.simulated else None),
        short(row.image) if row.image else "–", when(row.last_proof, now),
    )  # fmt: skip


def _link(row: Row) -> Markup:
    return tag("a", row.node or row.name, href=machine_path(row.name), title=row.name)


def _filters(fleet: Fleet, wanted: Filter) -> Markup:
    return tag(
        "form",
        tag("label", "Find ", tag("input", type="text", name="q", value=wanted.words, id="q", maxlength=100)),
        _choice("State", "state", ("inbox", *STATES), wanted.state),
        _choice("Pool", "pool", fleet.pools, wanted.pool),
        tag("button", "Show", type="submit"), method="get", action="/", class_="filters",
    )  # fmt: skip


def _choice(label: str, name: str, values: Iterable[str], chosen: str) -> Markup:
    options = [tag("option", value, value=value, selected=value == chosen) for value in values]
    return tag("label", f"{label} ", tag("select", tag("option", "all", value=""), options, name=name, id=name))


def _pages(fleet: Fleet, wanted: Filter) -> Markup | None:
    if fleet.pages == 1:
        return None

    def to(number: int, text: str) -> Markup:
        query = {"state": wanted.state, "pool": wanted.pool, "q": wanted.words, "page": number}
        return tag("a", text, href=f"/?{urlencode({name: value for name, value in query.items() if value})}")

    return tag(
        "nav", to(fleet.page - 1, "Previous") if fleet.page > 1 else None, f" page {fleet.page} of {fleet.pages} ",
        to(fleet.page + 1, "Next") if fleet.page < fleet.pages else None, aria_label="Pages", class_="pages",
    )  # fmt: skip
