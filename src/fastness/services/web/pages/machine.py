"""One machine: where it stands and why, what fixes it, its evidence, its history, and what can be decided.

`Story` is what the application found for the user; what the user may not see is simply not in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from fastness.domain.attestation.decisions import MAX_REASON, Decision
from fastness.domain.attestation.explain import Explanation
from fastness.domain.machineconfig.blame import Origin
from fastness.domain.machineconfig.nodes import NodeFacts
from fastness.model.fastness_dev.verdict import Check
from fastness.model.kind import JsonObject
from fastness.services.web.fleet import Row
from fastness.services.web.markup import Child, Markup, tag
from fastness.services.web.pages.layout import (
    Frame,
    badge,
    conditions,
    facts,
    hidden,
    machine_path,
    page,
    section,
    short,
    table,
    when,
)

MAX_EVENTS: Final = 40
MAX_PARTS: Final = 200


@dataclass(frozen=True, slots=True)
class Moment:
    """Something that happened to a machine."""

    time: str
    what: str
    detail: str = ""


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
    decisions: Sequence[Decision] = ()


def machine_page(frame: Frame, story: Story) -> bytes:
    """The whole view."""
    return page(
        frame, story.row.node or story.row.name, "/", "machines",
        _standing(story, frame), _decisions(story, frame), _difference(story), _evidence(story),
        _configuration(story), _grants(story, frame.now), _timeline(story, frame.now),
        section("Conditions", conditions((story.machine.get("status") or {}).get("conditions") or (), frame.now)),
    )  # fmt: skip


def _standing(story: Story, frame: Frame) -> Markup:
    status = story.machine.get("status") or {}
    row, endorsement = story.row, status.get("endorsement") or {}
    how = [tag("li", tag("code", action)) for action in story.explained.actions]
    return tag(
        "section",
        tag("p", badge(row.state), " The machine ", tag("strong", story.explained.answer), "."),
        (tag("p", "What to do:"), tag("ul", how, class_="actions")) if how else None,
        facts([
            ("Machine", row.name), ("Node", row.node), ("Pool", row.pool), ("Evidence", row.tee),
            ("Waits for", row.waits), ("Image", short(row.image) if row.image else ""),
            ("Last proof", when(row.last_proof, frame.now)), ("Verdict", story.explained.verdict),
            ("Key", short(str(status.get("keyThumbprint", "")))), ("Ticket", str(status.get("ticket", ""))),
            ("Endorsed by", short(str(endorsement.get("root", ""))) if endorsement.get("root") else ""),
            ("Reason", str((story.machine.get("spec") or {}).get("approvalReason", ""))),
            *((f"Proved: {name}", str(value)) for name, value in sorted((status.get("properties") or {}).items())),
        ]),
    )  # fmt: skip


def _decisions(story: Story, frame: Frame) -> Markup | None:
    if not story.decisions:
        return None
    forms = [
        tag(
            "form", hidden("token", frame.form_token), hidden("decision", one.verb),
            tag("label", f"{one.label}: why ", tag(
                "input", type="text", name="reason", maxlength=MAX_REASON, required=one.reason_required,
            )),
            tag("button", one.label, type="submit", class_=one.verb),
            method="post", action=f"{machine_path(story.row.name)}/decision",
        )
        for one in story.decisions
    ]  # fmt: skip
    return section("Decide", tag("div", forms, class_="decisions"))


def _difference(story: Story) -> Markup | None:
    first = first_difference(story.explained)
    if first is None:
        return None
    said: Child = first.hint or f"{first.name} is not what was expected"
    return section(
        "The first difference",
        tag("p", tag("strong", first.name), ": ", said),
        facts([("Seen", tag("pre", first.seen)), ("Expected", tag("pre", first.expected)), ("By", first.source)]),
    )


def first_difference(explained: Explanation) -> Check | None:
    """The check that decided against a machine: the first that failed, or else the first that could not be made."""
    if explained.attested:
        return None
    failed = (check for check in explained.why if check.result == "Fail")
    return next(failed, explained.why[0] if explained.why else None)


def _evidence(story: Story) -> Markup | None:
    checks = (*story.explained.why, *story.explained.others)
    if not checks:
        return None
    listed = table("Checks of the last verdict", ("Check", "Result", "Seen", "Expected", "By"), map(_check, checks))
    return section(
        "Evidence", tag("details", tag("summary", f"{len(checks)} checks"), listed, open=not story.explained.attested)
    )


def _check(check: Check) -> tuple[Child, ...]:
    same = check.seen == check.expected
    return (
        check.name, badge(check.result, check.code), tag("code", check.seen),
        "the same" if same and check.seen else tag("code", check.expected), check.source,
    )  # fmt: skip


def _configuration(story: Story) -> Markup | None:
    node = story.node
    if node is None:
        return None
    drift = node.reason if node.degraded else "none"
    parts = table(
        "Where its parts come from", ("Part", "Name", "From", "Overrode"),
        ((str(one.kind), one.name, one.source, ", ".join(one.overridden)) for one in story.origins[:MAX_PARTS]),
    )  # fmt: skip
    return section(
        "Configuration",
        facts([("Has", node.current), ("Should have", node.desired), ("Agent says", node.state), ("Drift", drift)]),
        tag("details", tag("summary", f"{len(story.origins)} parts and who set them"), parts)
        if story.origins
        else None,
    )


def _grants(story: Story, now: datetime) -> Markup:
    return section("Grants", table(
        "What was released to it", ("When", "Resource", "Because of", "Entry"),
        (
            (when(str(one.get("time", "")), now), str(one.get("resource", "")), str(one.get("verdict", "")),
             tag("code", f"fastness audit prove {one['index']}"))
            for one in story.grants
        ),
    ))  # fmt: skip


def _timeline(story: Story, now: datetime) -> Markup:
    newest = sorted(story.moments, key=lambda one: one.time, reverse=True)[:MAX_EVENTS]
    return section("Timeline", tag(
        "ol", [tag("li", when(one.time, now), " ", tag("strong", one.what), " ", one.detail) for one in newest],
        class_="timeline",
    ))  # fmt: skip
