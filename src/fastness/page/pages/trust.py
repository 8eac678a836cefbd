"""What this cluster trusts: images and their values, policies with their cases, what is distrusted, and the record.

`TrustStory` is what the application found for the user; kinds that the user may not list are named, not shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import condition
from fastness.page.markup import Child, Markup, tag
from fastness.page.pages.distrusts import Doubts, distrust_section
from fastness.page.pages.layout import Frame, PageFrame, page
from fastness.page.pages.parts import badge, conditions, facts, folded, image, section, short, table
from fastness.page.pages.record import record_section

MAX_VALUES: Final = 60
MAX_REGO: Final = 20_000
_PARTS: Final = (
    ("images", "Images"),
    ("values", "Values"),
    ("policies", "Policies"),
    ("roots", "Roots"),
    ("distrust", "Distrust"),
    ("record", "Record"),
)


@dataclass(frozen=True, slots=True)
class TrustStory:
    """What the user may see of what this cluster trusts; `booted` counts machines by the digest of the image that they proved."""

    clusters: Sequence[JsonObject] = ()
    images: Sequence[JsonObject] = ()
    value_sets: Sequence[JsonObject] = ()
    policies: Sequence[JsonObject] = ()
    doubts: Doubts = field(default_factory=Doubts)
    checkpoint: JsonObject | None = None
    entries: Sequence[JsonObject] = ()
    hidden: Sequence[str] = ()
    booted: Mapping[str, int] = field(default_factory=dict)


def trust_page(frame: Frame, story: TrustStory) -> bytes:
    """The whole view."""
    hidden = tag("p", f"You may not list: {', '.join(story.hidden)}.", class_="hint") if story.hidden else None
    parts = tag("nav", [tag("a", name, href=f"#{part}") for part, name in _PARTS], aria_label="Parts", class_="parts")
    return page(
        frame, PageFrame("Trust", "/trust", "trust", lead="What machines may boot, who judges it, and what was released."),
        parts, hidden, _images(story), _values(story), _policies(story), _roots(story, simulated=frame.simulated),
        distrust_section(story.doubts), record_section(story.checkpoint, story.entries, frame.now, _witnessed(story)),
        [section("Cluster", conditions((one.get("status") or {}).get("conditions") or (), frame.now)) for one in story.clusters],
    )  # fmt: skip


def _witnessed(story: TrustStory) -> str:
    """How many witnesses cosigned, in the words of the cluster's condition."""
    found = [condition(cluster, "Witnessed") for cluster in story.clusters]
    return next((str(one.get("message", "")) for one in found if one is not None), "")


def _images(story: TrustStory) -> Markup:
    states = {
        str(one["spec"].get("image", "")): str((one.get("status") or {}).get("state", "Unknown"))
        for one in story.value_sets
    }

    def row(one: JsonObject) -> tuple[Child, ...]:
        reference = str(one["spec"].get("image", ""))
        committed, said = _condition(one, "Committed")
        state = states.get(reference) or ("Unknown" if committed == "True" else "not computed yet")
        machines = story.booted.get(reference.rpartition("@")[2], 0)
        return _name(one), image(reference), badge(state), str(machines), said or "–"

    return section("Images", table(
        "Approved images", ("Name", "Image", "Values", "Machines that booted it", "Says"), map(row, story.images)
    ), id_="images")  # fmt: skip


def _values(story: TrustStory) -> Markup:
    none = tag("p", "No reference values yet: approve an image.", class_="none")
    return section("Values", [_value_set(one) for one in story.value_sets] or none, id_="values")


def _value_set(found: JsonObject) -> Markup:
    spec, status = found["spec"], found.get("status") or {}
    values = spec.get("values") or []
    shown = table(
        f"Values of {_name(found)}", ("Name", "Register", "Value", "State", "What it is"),
        (
            (str(one.get("name", "")), str(one.get("register", "")) or "–", short(str(one.get("value", ""))),
             badge(str(one.get("state", "Current"))), str(one.get("note", "")) or "–")
            for one in values[:MAX_VALUES]
        ),
    )  # fmt: skip
    more = tag("p", f"and {len(values) - MAX_VALUES} more", class_="hint") if len(values) > MAX_VALUES else None
    withdrawn = spec.get("withdrawn") or {}
    ended = f" withdrawn {withdrawn.get('at')}: {withdrawn.get('reason', '')}" if withdrawn else ""
    summary = tag(
        "span", badge(str(status.get("state", "Unknown"))), " ", _name(found),
        tag("small", f" {len(values)} values, from {spec.get('source')}{ended}"),
    )  # fmt: skip
    origin = facts(
        [
            ("Image", tag("code", str(spec["image"])) if spec.get("image") else ""),
            ("Version", str(status.get("version", ""))),
        ]
    )
    return folded(summary, origin, shown, more)


def _roots(story: TrustStory, *, simulated: bool) -> Markup:
    """The roots that somebody added; those of the vendors are pinned in the program and not shown."""
    added = [
        one
        for found in story.clusters
        for one in ((found.get("spec") or {}).get("attestation") or {}).get("extraRoots") or ()
    ]
    none = tag("p", "None: only the roots of the vendors count, which are pinned in the program.", class_="none")
    shown = table(
        "Roots beside the vendors'", ("SHA-256", "Vouches for", "Trusted because"),
        ((short(str(one.get("sha256", ""))), str(one.get("for", "")), str(one.get("reason", ""))) for one in added),
    )  # fmt: skip
    hint = tag(
        "p", "This cluster is simulated: the root of the simulated vendor counts like one of them.", class_="hint"
    )
    return section("Roots beside the vendors'", hint if simulated else None, shown if added else none, id_="roots")


def _policies(story: TrustStory) -> Markup:
    hint = tag(
        "p", "Where none judges, the built-in policy of the evidence does. A policy can only take away.", class_="hint"
    )
    return section("Policies", hint, [_policy(one) for one in story.policies], id_="policies")


def _policy(one: JsonObject) -> Markup:
    spec, status = one["spec"], one.get("status") or {}
    failed = {str(name) for name in status.get("failedCases") or ()}
    tried = bool(status.get("cases"))
    cases = table("Cases", ("Case", "Expects", "Result"), (
        (str(case.get("name", "")), str(case.get("expect", "")),
         badge("fails" if str(case.get("name", "")) in failed else "passes" if tried else "not tried yet"))
        for case in spec.get("cases") or ()
    ))  # fmt: skip
    active = "Active" if _condition(one, "Active")[0] == "True" else "inactive"
    summary = tag(
        "span", badge(active), " ", _name(one), f" for {spec.get('for', '')} ",
        tag("small", f"{status.get('cases', 'no')} cases pass"),
    )  # fmt: skip
    says = _condition(one, "Active")[1] or _condition(one, "Parsed")[1]
    return folded(
        summary, facts([("Version", str(status.get("version", ""))), ("Says", says)]), cases,
        tag("pre", str(spec.get("rego", ""))[:MAX_REGO], tabindex=0), open_=bool(failed),
    )  # fmt: skip


def _condition(found: JsonObject, kind: str) -> tuple[str, str]:
    one = condition(found, kind) or {}
    return str(one.get("status", "Unknown")), str(one.get("message", ""))


def _name(found: JsonObject) -> str:
    return str(found["metadata"]["name"])
