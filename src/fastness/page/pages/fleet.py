"""The fleet: how many machines are in which state, those that need a decision, and a page of all.

Filters are a form that asks the server, so they work without a script; fifty rows make a page, whatever the size of the fleet.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from urllib.parse import urlencode

from fastness.formats.words import counted
from fastness.page.fleet import STATES, Filter, Fleet, Row
from fastness.page.markup import Child, Markup, join, tag
from fastness.page.pages.layout import Frame, PageFrame, page
from fastness.page.pages.parts import badge, bar, hidden, image, machine_path, section, table, when

MOST_NODES = 50
_HEADS = ("Machine", "State", "Waits for", "Pool", "Evidence", "Standing", "Image", "Last proof")


def fleet_page(
    frame: Frame, fleet: Fleet, chosen: Filter, deciding: Collection[str] = (), unproved: Sequence[str] = ()
) -> bytes:
    """The whole view; `deciding` are the machines of the inbox that the user may decide about, `unproved` nodes without proof."""
    lead = (
        f"{fleet.proved} of {counted(fleet.total, 'machine')} proved what they booted."
        if fleet.total
        else "No machine enrolled yet."
    )
    lead += f" {counted(len(unproved), 'node')} never attested." if unproved else ""
    rows = table(
        f"{fleet.matching} of {counted(fleet.total, 'machine')}",
        _HEADS,
        (_row(row, frame.now) for row in fleet.rows),
        "fleet",
    )
    listed = section("Machines", _filters(fleet, chosen), rows, _pages(fleet, chosen), id_="machines")
    place = PageFrame("Fleet", "/", "machines", lead=lead)
    return page(frame, place, _counts(fleet, chosen), _inbox(frame, fleet, deciding), _never(unproved), listed)


def _never(unproved: Sequence[str]) -> Markup | None:
    """Nodes that belong to no machine that ever proved anything: no row of a machine shows them."""
    if not unproved:
        return None
    names = tag("ul", [tag("li", tag("code", name)) for name in unproved[:MOST_NODES]])
    more = tag("p", f"{len(unproved) - MOST_NODES} more") if len(unproved) > MOST_NODES else None
    why = "They run in confidential pools and joined before attestation was asked for, or around it."
    return section(
        f"Nodes that never attested ({len(unproved)})", tag("p", why), names, more, kind="attention", id_="unproved"
    )


def _inbox(frame: Frame, fleet: Fleet, deciding: Collection[str]) -> Markup:
    if not fleet.needing:
        return tag("p", "No machine needs a decision.", class_="none calm-note")
    more = (
        tag("p", tag("a", f"All {fleet.needing}", href="/?state=inbox")) if fleet.needing > len(fleet.inbox) else None
    )
    items = [
        tag(
            "li", badge(row.state), tag("div", _link(row), tag("p", _sentence(row.waits))),
            _approve(row, frame) if row.state == "pending" and row.name in deciding
            else tag("a", "Look", class_="button", href=machine_path(row.name), aria_label=f"Look at {row.node or row.name}"),
        )
        for row in fleet.inbox
    ]  # fmt: skip
    return section(f"Needs a decision ({fleet.needing})", tag("ul", items, class_="inbox"), more, kind="attention")


def _approve(row: Row, frame: Frame) -> Markup:
    return tag(
        "form", hidden("token", frame.form_token), hidden("decision", "approve"), hidden("then", "fleet"),
        tag("button", "Approve", type="submit", aria_label=f"Approve {row.name}"),
        method="post", action=f"{machine_path(row.name)}/decision",
    )  # fmt: skip


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _counts(fleet: Fleet, chosen: Filter) -> Markup:
    present = [(state, fleet.counts[state]) for state in reversed(STATES) if fleet.counts[state]]
    chips = [
        tag("li", tag(
            "a", tag("strong", number), " ", state, href=f"/?state={state}", class_=f"state-{state}",
            aria_current="true" if chosen.state == state else None,
        ))
        for state, number in present
    ]  # fmt: skip
    label = ", ".join(f"{number} {state}" for state, number in present)
    return tag(
        "div",
        bar([(f"state-{state}", number) for state, number in present], label),
        tag("ul", chips, class_="counts") if chips else None,
        class_="health",
    )


def _row(row: Row, now: datetime) -> tuple[Child, ...]:
    return (
        _link(row), badge(row.state), row.waits or "–", row.pool or "–", row.tee or "–",
        join(row.standing.word, tag("small", f" {row.standing.reason}")),
        image(row.image) if row.image else "–", when(row.last_proof, now),
    )  # fmt: skip


def _link(row: Row) -> Markup:
    return tag("a", row.node or row.name, href=machine_path(row.name), title=row.name)


def _filters(fleet: Fleet, chosen: Filter) -> Markup:
    return tag(
        "form",
        tag(
            "label", tag("span", "Find"),
            tag("input", type="text", name="q", value=chosen.words, id="q", maxlength=100, placeholder="press / to find"),
        ),
        _choice("State", "state", ("inbox", *STATES), chosen.state),
        _choice("Pool", "pool", fleet.pools, chosen.pool),
        _choice("Evidence", "tee", fleet.tees, chosen.tee),
        tag("button", "Show", type="submit"),
        tag("a", "Show all", href="/") if chosen.narrows else None,
        method="get", action="/", class_="filters",
    )  # fmt: skip


def _choice(label: str, name: str, values: Iterable[str], chosen: str) -> Markup:
    options = [tag("option", value, value=value, selected=value == chosen) for value in values]
    choice = tag("select", tag("option", "all", value=""), options, name=name, id=name)
    return tag("label", tag("span", label), choice)


def _pages(fleet: Fleet, chosen: Filter) -> Markup | None:
    if fleet.pages == 1:
        return None

    def to(number: int, text: str) -> Markup:
        return tag("a", text, href=address(replace(chosen, page=number)), class_="button")

    return tag(
        "nav", to(fleet.page - 1, "Previous") if fleet.page > 1 else None,
        tag("span", f"page {fleet.page} of {fleet.pages}"),
        to(fleet.page + 1, "Next") if fleet.page < fleet.pages else None, aria_label="Pages", class_="pages",
    )  # fmt: skip


def address(chosen: Filter) -> str:
    """Where a filter leads."""
    query = {"state": chosen.state, "pool": chosen.pool, "tee": chosen.tee, "q": chosen.words, "page": chosen.page}
    return f"/?{urlencode({name: value for name, value in query.items() if value})}"
