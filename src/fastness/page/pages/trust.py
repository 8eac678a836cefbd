"""What this cluster trusts: images and their values, policies with their cases, what is distrusted, and the record.

`TrustStory` is what the application found for the user; kinds that the user may not list are named, not shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from fastness.formats.words import counted
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
        [_cluster(cluster, frame) for cluster in story.clusters],
    )  # fmt: skip


def _cluster(cluster: JsonObject, frame: Frame) -> Markup:
    return section("Cluster", conditions((cluster.get("status") or {}).get("conditions") or (), frame.now))


def _witnessed(story: TrustStory) -> str:
    """How many witnesses cosigned, in the words of the cluster's condition."""
    stored = [condition(cluster, "Witnessed") for cluster in story.clusters]
    return next((str(witnessed.get("message", "")) for witnessed in stored if witnessed is not None), "")


def _images(story: TrustStory) -> Markup:
    states = {
        str(obj["spec"].get("image", "")): str((obj.get("status") or {}).get("state", "Unknown"))
        for obj in story.value_sets
    }

    def row(obj: JsonObject) -> tuple[Child, ...]:
        reference = str(obj["spec"].get("image", ""))
        committed, message = _condition(obj, "Committed")
        state = states.get(reference) or ("Unknown" if committed == "True" else "not computed yet")
        machines = story.booted.get(reference.rpartition("@")[2], 0)
        return _name(obj), image(reference), badge(state), str(machines), message or "–"

    return section("Images", table(
        "Approved images", ("Name", "Image", "Values", "Machines that booted it", "Says"), map(row, story.images)
    ), id_="images")  # fmt: skip


def _values(story: TrustStory) -> Markup:
    none = tag("p", "No reference values yet: approve an image.", class_="none")
    return section("Values", [_value_set(value_set) for value_set in story.value_sets] or none, id_="values")


def _value_set(value_set: JsonObject) -> Markup:
    spec, status = value_set["spec"], value_set.get("status") or {}
    values = spec.get("values") or []
    rows = table(
        f"Values of {_name(value_set)}", ("Name", "Register", "Value", "State", "What it is"),
        (
            (str(value.get("name", "")), str(value.get("register", "")) or "–", short(str(value.get("value", ""))),
             badge(str(value.get("state", "Current"))), str(value.get("note", "")) or "–")
            for value in values[:MAX_VALUES]
        ),
    )  # fmt: skip
    more = tag("p", f"and {len(values) - MAX_VALUES} more", class_="hint") if len(values) > MAX_VALUES else None
    withdrawn = spec.get("withdrawn") or {}
    ended = f" withdrawn {withdrawn.get('at')}: {withdrawn.get('reason', '')}" if withdrawn else ""
    summary = tag(
        "span", badge(str(status.get("state", "Unknown"))), " ", _name(value_set),
        tag("small", f" {counted(len(values), 'value')}, from {spec.get('source')}{ended}"),
    )  # fmt: skip
    origin = facts(
        [
            ("Image", tag("code", str(spec["image"])) if spec.get("image") else ""),
            ("Version", str(status.get("version", ""))),
        ]
    )
    return folded(summary, origin, rows, more)


def _roots(story: TrustStory, *, simulated: bool) -> Markup:
    """The roots that somebody added; those of the vendors are pinned in the program and not shown."""
    added = [
        root
        for cluster in story.clusters
        for root in ((cluster.get("spec") or {}).get("attestation") or {}).get("extraRoots") or ()
    ]
    none = tag("p", "None: only the roots of the vendors count, which are pinned in the program.", class_="none")
    rows = table(
        "Roots beside the vendors'", ("SHA-256", "Vouches for", "Trusted because"),
        ((short(str(root.get("sha256", ""))), str(root.get("for", "")), str(root.get("reason", ""))) for root in added),
    )  # fmt: skip
    hint = tag(
        "p", "This cluster is simulated: the root of the simulated vendor counts like one of them.", class_="hint"
    )
    return section("Roots beside the vendors'", hint if simulated else None, rows if added else none, id_="roots")


def _policies(story: TrustStory) -> Markup:
    hint = tag(
        "p", "Where none judges, the built-in policy of the evidence does. A policy can only take away.", class_="hint"
    )
    return section("Policies", hint, [_policy(policy) for policy in story.policies], id_="policies")


def _policy(policy: JsonObject) -> Markup:
    spec, status = policy["spec"], policy.get("status") or {}
    failed = {str(name) for name in status.get("failedCases") or ()}
    tried = bool(status.get("cases"))
    cases = table("Cases", ("Case", "Expects", "Result"), (
        (str(case.get("name", "")), str(case.get("expect", "")),
         badge("fails" if str(case.get("name", "")) in failed else "passes" if tried else "not tried yet"))
        for case in spec.get("cases") or ()
    ))  # fmt: skip
    active = "Active" if _condition(policy, "Active")[0] == "True" else "inactive"
    summary = tag(
        "span", badge(active), " ", _name(policy), f" for {spec.get('for', '')} ",
        tag("small", f"{status.get('cases', 'no')} cases pass"),
    )  # fmt: skip
    says = _condition(policy, "Active")[1] or _condition(policy, "Parsed")[1]
    return folded(
        summary, facts([("Version", str(status.get("version", ""))), ("Says", says)]), cases,
        tag("pre", str(spec.get("rego", ""))[:MAX_REGO], tabindex=0), open_=bool(failed),
    )  # fmt: skip


def _condition(obj: JsonObject, kind: str) -> tuple[str, str]:
    stored = condition(obj, kind) or {}
    return str(stored.get("status", "Unknown")), str(stored.get("message", ""))


def _name(obj: JsonObject) -> str:
    return str(obj["metadata"]["name"])
