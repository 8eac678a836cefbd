"""Trust: what machines may boot, which policies judge, what is distrusted, and the record of everything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from fastness.model.kind import JsonObject
from fastness.model.objects import condition
from fastness.services.web.markup import Child, Markup, join, tag
from fastness.services.web.pages.layout import Frame, badge, conditions, facts, page, section, short, table, when

MAX_VALUES: Final = 60


@dataclass(frozen=True, slots=True)
class TrustStory:
    """What the user may see of what this cluster trusts."""

    clusters: Sequence[JsonObject] = ()
    images: Sequence[JsonObject] = ()
    value_sets: Sequence[JsonObject] = ()
    policies: Sequence[JsonObject] = ()
    distrusts: Sequence[JsonObject] = ()
    checkpoint: JsonObject | None = None
    entries: Sequence[JsonObject] = ()
    hidden: Sequence[str] = ()


def trust_page(frame: Frame, story: TrustStory) -> bytes:
    """The whole view."""
    hidden = tag("p", f"You may not list: {', '.join(story.hidden)}.", class_="hint") if story.hidden else None
    return page(
        frame, "Trust", "/trust", "trust", hidden,
        [section("Cluster", conditions((one.get("status") or {}).get("conditions") or (), frame.now)) for one in story.clusters],
        _images(story), _policies(story), _distrusts(story), _record(story, frame.now),
    )  # fmt: skip


def _images(story: TrustStory) -> Markup:
    approved = table(
        "Approved images", ("Name", "Image", "Committed", "Says"),
        (
            (_name(one), short(str(one["spec"].get("image", "")), 60), badge(*_condition(one, "Committed")[:1]),
             _condition(one, "Committed")[1])
            for one in story.images
        ),
    )  # fmt: skip
    return section("Images and values", approved, [_values(one) for one in story.value_sets])


def _values(found: JsonObject) -> Markup:
    spec, status = found["spec"], found.get("status") or {}
    values = spec.get("values") or []
    shown = table(
        f"Values of {_name(found)}", ("Name", "Register", "Value", "State", "What it is"),
        (
            (str(one.get("name", "")), str(one.get("register", "")), short(str(one.get("value", ""))),
             badge(str(one.get("state", "Current"))), str(one.get("note", "")))
            for one in values[:MAX_VALUES]
        ),
    )  # fmt: skip
    more = tag("p", f"and {len(values) - MAX_VALUES} more", class_="hint") if len(values) > MAX_VALUES else None
    withdrawn = spec.get("withdrawn") or {}
    state: Child = badge(str(status.get("state", "unknown")))
    ended = f" withdrawn {withdrawn.get('at')}: {withdrawn.get('reason', '')}" if withdrawn else ""
    return tag(
        "details", tag("summary", _name(found), " ", state, f" {len(values)} values, from {spec.get('source')}{ended}"),
        shown, more,
    )  # fmt: skip


def _policies(story: TrustStory) -> Markup:
    return section("Policies", tag("p", "Where none judges, the built-in policy of the evidence does.", class_="hint"), [
        tag(
            "details",
            tag(
                "summary", _name(one), f" for {one['spec'].get('for', '')} ", badge(_judging(one)),
                f" {(one.get('status') or {}).get('cases', 'no')} cases pass",
            ),
            facts([
                ("Version", str((one.get("status") or {}).get("version", ""))),
                ("Failing cases", ", ".join(map(str, (one.get("status") or {}).get("failedCases") or ()))),
                ("Says", _condition(one, "Active")[1] or _condition(one, "Parsed")[1]),
            ]),
            table("Cases", ("Case", "Expects"), (
                (str(case.get("name", "")), str(case.get("expect", ""))) for case in one["spec"].get("cases") or ()
            )),
            tag("pre", str(one["spec"].get("rego", ""))[:20000]),
        )
        for one in story.policies
    ])  # fmt: skip


def _distrusts(story: TrustStory) -> Markup:
    return section("Distrust", table(
        "What is no longer trusted", ("Target", "Why", "Machines", "Grants", "Until"),
        (
            (str((one.get("status") or {}).get("target") or _name(one)), str(one["spec"].get("reason", "")),
             *(str(((one.get("status") or {}).get("affected") or {}).get(kind, "")) for kind in ("machines", "grants")),
             str(one["spec"].get("expires", "for ever")))
            for one in story.distrusts
        ),
    ))  # fmt: skip


def _record(story: TrustStory, now: datetime) -> Markup:
    if story.checkpoint is None:
        return section("Record", tag("p", "There is no checkpoint yet.", class_="none"))
    spec = story.checkpoint["spec"]
    newest = table(
        "Newest entries", ("Entry", "When", "What", "Who", "Resource", "Because of"),
        (
            (tag("code", one["index"]), when(str(one.get("time", "")), now), str(one.get("what", "")),
             short(str(one.get("who", ""))), str(one.get("resource", "")),
             str(one.get("verdict") or (one.get("detail") or {}).get("code", "")))
            for one in story.entries
        ),
    )  # fmt: skip
    return section(
        "Record",
        facts([
            ("Checkpoint", join(f"{spec.get('size')} entries, signed ", when(str(spec.get("time", "")), now))),
            ("Root", tag("code", str(spec.get("rootHash", "")))), ("Origin", str(spec.get("origin", ""))),
            ("Verify it yourself", tag("code", "fastness audit export DIR; fastness audit verify DIR --key KEY")),
        ]),
        tag("details", tag("summary", "The signed note"), tag("pre", str(spec.get("note", "")))),
        newest,
    )  # fmt: skip


def _judging(policy: JsonObject) -> str:
    return "Active" if _condition(policy, "Active")[0] == "True" else "inactive"


def _condition(found: JsonObject, kind: str) -> tuple[str, str]:
    one = condition(found, kind) or {}
    return str(one.get("status", "Unknown")), str(one.get("message", ""))


def _name(found: JsonObject) -> str:
    return str(found["metadata"]["name"])
