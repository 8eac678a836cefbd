"""What is no longer trusted: each Distrust with whom it hits, and what another one would hit before anybody writes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from fastness.attestation.verdict.blast_radius import Radius
from fastness.formats.words import counted
from fastness.kinds.kind import JsonObject
from fastness.page.markup import Child, Markup, tag
from fastness.page.pages.parts import advice, badge, facts, folded, machine_path, section, table

MAX_HITS: Final = 30


@dataclass(frozen=True, slots=True)
class Doubt:
    """A Distrust that stands, and whom it hits now; `radius` is None where machines may not be seen."""

    distrust: JsonObject
    radius: Radius | None = None


@dataclass(frozen=True, slots=True)
class WhatIf:
    """What could be distrusted of what machines proved, what was asked, and whom that would hit."""

    targets: Sequence[tuple[str, str]] = ()
    question: str = ""
    radius: Radius | None = None
    command: str = ""


@dataclass(frozen=True, slots=True)
class Doubts:
    """All of it."""

    standing: Sequence[Doubt] = ()
    what_if: WhatIf = field(default_factory=WhatIf)


def distrust_section(doubts: Doubts) -> Markup:
    """The whole part of the view."""
    listed: Child = [_doubt(doubt) for doubt in doubts.standing] or tag(
        "p", "Everything that is approved is trusted.", class_="none"
    )
    return section("Distrust", listed, _what_if(doubts.what_if), id_="distrust")


def _doubt(doubt: Doubt) -> Markup:
    spec, status = doubt.distrust["spec"], doubt.distrust.get("status") or {}
    affected = status.get("affected") or {}
    target = str(status.get("target") or (doubt.radius.target if doubt.radius else doubt.distrust["metadata"]["name"]))
    summary = tag("span", badge("distrusted"), " ", tag("code", target), tag("small", f" {_count(affected)}"))
    return folded(
        summary,
        facts([
            ("Why", str(spec.get("reason", ""))), ("Until", str(spec.get("expires", "for ever"))),
            ("Machines refused", str(affected.get("machines", ""))), ("Grants taken back", str(affected.get("grants", ""))),
            ("Certificates revoked", str(affected.get("certificates", ""))),
        ]),
        radius_part(doubt.radius) if doubt.radius else None,
        advice([f"fastness distrust end {doubt.distrust['metadata']['name']}    # to trust it again"]), open_=True,
    )  # fmt: skip


def _count(affected: JsonObject) -> str:
    return counted(int(affected["machines"]), "machine") if affected.get("machines") is not None else ""


def radius_part(radius: Radius) -> Markup:
    """Whom it hits, and what is left of each pool."""
    pools = table(
        "What is left of the pools", ("Pool", "Attested machines now", "Left"),
        ((pool, str(before), tag("strong", after, class_="bad") if before and not after else str(after))
         for pool, (before, after) in sorted(radius.pools.items())),
    )  # fmt: skip
    hits = table(
        f"Hit: {counted(len(radius.hits), 'machine')}", ("Machine", "Pool", "State"),
        ((tag("a", hit.node or hit.machine, href=machine_path(hit.machine)), hit.pool,
          badge("proved" if hit.attested else "not proved")) for hit in radius.hits[:MAX_HITS]),
    )  # fmt: skip
    effect = (
        "They are revoked until it ends." if radius.revokes else "They are refused until they prove something better."
    )
    more = f" The first {MAX_HITS} are listed." if len(radius.hits) > MAX_HITS else ""
    return tag(
        "div", tag("p", effect, more) if radius.hits else None, pools if radius.hits else None, hits, class_="radius"
    )


def _what_if(what_if: WhatIf) -> Markup | None:
    if not what_if.targets:
        return None
    options = [
        tag("option", label, value=value, selected=value == what_if.question) for value, label in what_if.targets
    ]
    form = tag(
        "form", tag("label", tag("span", "What would it hit to distrust"), tag("select", options, name="distrust", id="target")),
        tag("button", "Show", type="submit"), method="get", action="/trust#distrust", class_="filters",
    )  # fmt: skip
    answer = (
        (tag("h3", f"If {what_if.radius.target} were distrusted"), radius_part(what_if.radius), advice([what_if.command]))
        if what_if.radius else None
    )  # fmt: skip
    return tag("div", form, answer)
