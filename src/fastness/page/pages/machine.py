"""One machine: where it stands and why, what fixes it, its evidence, its history, and what can be decided.

`Story` is what the application found for the user; what the user may not see is simply not in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from fastness.attestation.machine.decisions import MAX_REASON, Decision
from fastness.attestation.verdict.explain import Explanation
from fastness.formats.words import counted
from fastness.kinds.kind import JsonObject
from fastness.machineconfig.render.blame import Origin
from fastness.machineconfig.rollout.nodes import NodeFacts
from fastness.page.fleet import Row
from fastness.page.markup import Markup, tag
from fastness.page.pages.evidence import difference_section, evidence_section, first_difference
from fastness.page.pages.layout import Frame, PageFrame, page
from fastness.page.pages.parts import (
    advice,
    badge,
    conditions,
    facts,
    folded,
    hidden,
    image,
    machine_path,
    section,
    short,
    table,
    tone_of,
    when,
)

MAX_EVENTS: Final = 40
MAX_PARTS: Final = 200
_REPAIRS: Final = (
    "kubectl annotate node {} fastness.dev/drift-policy=repair    # let its agent put back what was changed",
    "Or restore the files by hand: the agent notices at once.",
)
FIRST_EVENTS: Final = 12
FIRST_GRANTS: Final = 6


@dataclass(frozen=True, slots=True)
class Moment:
    """Something that happened to a machine; `tone` is a word whose meaning colours it, `entry` a number of the record."""

    time: str
    what: str
    detail: str = ""
    tone: str = ""
    entry: int | None = None


@dataclass(frozen=True, slots=True)
class Drifted:
    """A part of a machine that is not as it should be; `source` is the config that set it."""

    part: str
    difference: str
    source: str = ""


@dataclass(frozen=True, slots=True)
class Story:
    """Everything that a page says about one machine."""

    machine: JsonObject
    row: Row
    explained: Explanation
    node: NodeFacts | None = None
    moments: Sequence[Moment] = ()
    grants: Sequence[JsonObject] = ()
    origins: Sequence[Origin] = ()
    drift: Sequence[Drifted] = ()
    decisions: Sequence[Decision] = ()
    booted: str = ""


def machine_page(frame: Frame, story: Story) -> bytes:
    """The whole view."""
    lead = tag("span", badge(story.row.state), " The machine ", tag("strong", story.explained.answer), ".")
    place = PageFrame(story.row.node or story.row.name, "/", "machines", back=("/", "Fleet"), lead=lead)
    first = tag("div", difference_section(story.explained), _actions(story), class_="first")
    side = tag("aside", _standing(story, frame), _decisions(story, frame), aria_label="About the machine")
    rest = tag(
        "div",
        evidence_section(story.explained),
        _configuration(story), _grants(story, frame.now), _timeline(story, frame.now),
        section("Conditions", conditions((story.machine.get("status") or {}).get("conditions") or (), frame.now)),
        class_="rest",
    )  # fmt: skip
    return page(frame, place, tag("div", first, side, rest, class_="two"))


def _actions(story: Story) -> Markup | None:
    """What helps, where no difference says it already."""
    if not story.explained.actions or first_difference(story.explained) is not None:
        return None
    return section("What to do", advice(story.explained.actions), kind="attention")


def _standing(story: Story, frame: Frame) -> Markup:
    status = story.machine.get("status") or {}
    row, endorsement = story.row, status.get("endorsement") or {}
    properties = sorted((status.get("properties") or {}).items())
    return section(
        "Identity",
        facts([
            ("Machine", row.name), ("Standing", f"{row.standing.word}: {row.standing.reason}"), ("Pool", row.pool),
            ("Evidence", row.tee),
            ("Waits for", row.waits), ("Image", image(row.image) if row.image else ""),
            ("Booted", tag("span", image(story.booted), ", as its node says") if story.booted else ""),
            ("Last proof", when(row.last_proof, frame.now)), ("Verdict", story.explained.verdict),
            ("Counts until", str(status.get("attestedUntil", "")) if story.explained.attested else ""),
            ("Chip", short(str(status["chip"])) if status.get("chip") else ""), ("Disputed", "; ".join(story.explained.disputes)),
            ("Note", "; ".join(story.explained.notes)), ("Disks", "; ".join(story.explained.disks)),
            ("Key", short(str(status.get("keyThumbprint", "")))), ("Ticket", str(status.get("ticket", ""))),
            ("Endorsed by", short(str(endorsement.get("root", ""))) if endorsement.get("root") else ""),
            ("Reason", str((story.machine.get("spec") or {}).get("approvalReason", ""))),
        ]),
        folded("What it proved", facts([(name, tag("code", str(value))) for name, value in properties]))
        if properties
        else None,
    )  # fmt: skip


def _decisions(story: Story, frame: Frame) -> Markup | None:
    if not story.decisions:
        return None
    forms = [
        tag(
            "form", hidden("token", frame.form_token), hidden("decision", decision.verb),
            tag("label", tag("span", f"{decision.label}: why"), tag(
                "input", type="text", name="reason", maxlength=MAX_REASON, required=decision.reason_required,
                autocomplete="off",
            )),
            tag("button", decision.label, type="submit", class_=decision.verb),
            method="post", action=f"{machine_path(story.row.name)}/decision",
        )
        for decision in story.decisions
    ]  # fmt: skip
    note = tag("p", "The decision and its reason go on the record.", class_="hint")
    return section("Decide", tag("div", forms, class_="decisions"), note)


def _configuration(story: Story) -> Markup | None:
    node = story.node
    if node is None:
        return None
    parts = table(
        "Where its parts come from", ("Part", "Name", "From", "Overrode"),
        (
            (str(origin.kind), tag("code", origin.name), origin.source, ", ".join(origin.overridden) or "–")
            for origin in story.origins[:MAX_PARTS]
        ),
    )  # fmt: skip
    drift = table(
        "Drift: what is not as it should be", ("Part", "Difference", "Set by"),
        ((tag("code", part.part), part.difference, part.source or "–") for part in story.drift),
    ) if story.drift else None  # fmt: skip
    return section(
        "Configuration",
        facts([
            ("Has", tag("code", node.current) if node.current else "nothing yet"),
            ("Should have", tag("code", node.desired) if node.desired != node.current else "the same"),
            ("Agent says", badge("updated" if node.state == "Done" else node.state or "Unknown")),
            ("Drift", "" if story.drift else node.reason if node.degraded else "none"),
        ]),
        drift, advice(command.format(node.name) for command in _REPAIRS) if drift else None,
        folded(f"{counted(len(story.origins), 'part')} and who set them", parts) if story.origins else None,
        id_="configuration",
    )  # fmt: skip


def _grants(story: Story, now: datetime) -> Markup:
    first, older = story.grants[:FIRST_GRANTS], story.grants[FIRST_GRANTS:]
    return section(
        "Grants", _released("What was released to it", first, now),
        folded(f"{len(older)} older", _released("What was released to it before", older, now)) if older else None, id_="grants",
    )  # fmt: skip


def _released(caption: str, grants: Sequence[JsonObject], now: datetime) -> Markup:
    return table(caption, ("When", "Resource", "Because of", "Proof"), (
        (when(str(grant.get("time", "")), now), tag("code", str(grant.get("resource", ""))),
         tag("code", str(grant.get("verdict", ""))),
         tag("a", f"entry {grant['index']}", href=f"/record/{int(grant['index'])}"))
        for grant in grants
    ))  # fmt: skip


def _timeline(story: Story, now: datetime) -> Markup:
    newest = sorted(story.moments, key=lambda moment: moment.time, reverse=True)[:MAX_EVENTS]
    first, older = newest[:FIRST_EVENTS], newest[FIRST_EVENTS:]
    return section(
        "Timeline", _moments(first, now),
        folded(f"{len(older)} older", _moments(older, now)) if older else None, id_="timeline",
    )  # fmt: skip


def _moments(moments: Sequence[Moment], now: datetime) -> Markup:
    listed = [
        tag(
            "li", when(moment.time, now), tag("strong", moment.what), tag("span", moment.detail) if moment.detail else None,
            tag("a", f"entry {moment.entry}", href=f"/record/{moment.entry}") if moment.entry is not None else None,
            class_=tone_of(moment.tone),
        )
        for moment in moments
    ]  # fmt: skip
    return tag("ol", listed, class_="timeline")
