"""Builds: the image of every pool on its way from A to B, all builds with their log, and which node boots what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

from fastness.builds.life import image_of
from fastness.formats.words import counted
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import annotations_of, condition, labels_of, metadata, object_name
from fastness.machineconfig.rollout.built import phase_of, pool_of_build
from fastness.machineconfig.rollout.status import BuildPhase
from fastness.page.markup import Child, Markup, tag
from fastness.page.pages.layout import Frame, PageFrame, page
from fastness.page.pages.parts import advice, conditions, facts, folded, image, section, table, tone_of, when

_WORDS: Final = {
    BuildPhase.INITIAL: "waits", BuildPhase.PREPARED: "waits", BuildPhase.BUILDING: "working",
    BuildPhase.SUCCEEDED: "Current", BuildPhase.FAILED: "fails", BuildPhase.INTERRUPTED: "inactive",
}  # fmt: skip

HEADS: Final = ("Build", "Pool", "State", "Image", "Began", "Says")


def build_path(name: str) -> str:
    """The address of a build's page."""
    return f"/builds/{quote(name, safe='')}"


def builds_page(
    frame: Frame, configs: Sequence[JsonObject], builds: Sequence[JsonObject], pools: Sequence[JsonObject],
    nodes: Sequence[JsonObject], values: Sequence[JsonObject],
) -> bytes:  # fmt: skip
    """The whole view."""
    running = sum(phase_of(build) is BuildPhase.BUILDING for build in builds)
    lead = f"{counted(len(configs), 'pool')} with an image of its own; {running or 'no'} build under way."
    newest = sorted(builds, key=lambda each: str(metadata(each).get("creationTimestamp") or ""), reverse=True)
    return page(
        frame, PageFrame("Builds", "/builds", "builds pools machines trust", lead=lead),
        [_way(config, builds, pools, nodes) for config in configs],
        section("Builds", table("Builds", HEADS, (_row(each, frame) for each in newest))),
        section("What nodes boot", _booted(nodes, builds, values)),
    )  # fmt: skip


def _way(
    config: JsonObject, builds: Iterable[JsonObject], pools: Iterable[JsonObject], nodes: Iterable[JsonObject]
) -> Markup:
    """From A to B: described, built, approved, rolled out; and what each step waits for."""
    name = pool_of_build(config)
    status = config.get("status") or {}
    current = str((status.get("machineOSBuild") or {}).get("name") or "")
    build = next((each for each in builds if object_name(each).name == current), None)
    pool = next((each for each in pools if object_name(each).name == name), {})
    target = image_of(build) if build else ""
    there = [node for node in nodes if target and annotations_of(node).get(names.BOOTED_IMAGE) == target]
    refused, updating = condition(config, names.BUILDABLE) or {}, condition(pool, "Updating") or {}
    ordered = sum(annotations_of(node).get(names.DESIRED_IMAGE) == target for node in nodes) if target else 0
    return section(
        f"Pool {name}",
        facts([
            ("Described", _described(refused)),
            ("Built", _link(build) if build else "not yet: no build was ordered"),
            ("Image", image(target) if target else _said(build)),
            ("Sent there", counted(ordered, "node") if target else ""),
            ("Run it now", counted(len(there), "node") if target else ""),
            ("Waits for", str(updating.get("message") or "") if updating.get("status") == "True" else ""),
        ]),
        advice([f"fastness image log {object_name(config).name}"]) if build and phase_of(build) is BuildPhase.FAILED else None,
        id_=f"image-{name}",
    )  # fmt: skip


def _described(refused: Mapping[str, Any]) -> Child:
    if refused.get("status") != "False":
        return "yes, and all that it names is there"
    return tag("strong", f"{refused.get('reason')}: {refused.get('message')}", class_="bad")


def _said(build: JsonObject | None) -> str:
    return str((condition(build, phase_of(build)) or {}).get("message") or "") if build else ""


def _link(build: JsonObject) -> Markup:
    name = object_name(build).name
    return tag(
        "span",
        tag("a", name, href=build_path(name)),
        " ",
        _state(build),
    )


def _state(build: JsonObject) -> Markup:
    """The phase of a build in its own word, coloured as states elsewhere that mean the same."""
    phase = phase_of(build)
    return tag("span", str(phase), class_=f"badge {tone_of(_WORDS[phase])}")


def _row(build: JsonObject, frame: Frame) -> tuple[Child, ...]:
    status = build.get("status") or {}
    name = object_name(build).name
    message = _said(build).strip()
    return (
        tag("a", name, href=build_path(name)), labels_of(build).get(names.BUILD_POOL_LABEL, ""),
        _state(build),
        image(image_of(build)) if image_of(build) else "–", when(str(status.get("buildStart") or ""), frame.now),
        message.splitlines()[0][:160] if message else "–",
    )  # fmt: skip


def _booted(nodes: Sequence[JsonObject], builds: Iterable[JsonObject], values: Iterable[JsonObject]) -> Markup:
    """Every image that a node boots: how many do, from which build, and whether values of it are known."""
    made = {image_of(build): object_name(build).name for build in builds if image_of(build)}
    sets = {str((each.get("spec") or {}).get("image") or ""): object_name(each).name for each in values}
    count = Counter(annotations_of(node).get(names.BOOTED_IMAGE, "") for node in nodes)
    by_image = {
        each: [object_name(node).name for node in nodes if annotations_of(node).get(names.BOOTED_IMAGE) == each]
        for each in count
    }
    return table(
        "Images", ("Image", "Nodes", "Which", "From build", "Values"),
        (
            (image(each), str(number), ", ".join(sorted(by_image[each])[:20]),
             tag("a", made[each], href=build_path(made[each])) if each in made else "built elsewhere",
             sets.get(each) or "no values known")
            for each, number in count.most_common() if each
        ),
    )  # fmt: skip


def build_page(frame: Frame, build: JsonObject, log: str, refusal: str) -> bytes:
    """One build: how far it is, and what it prints."""
    name, phase, status = object_name(build).name, phase_of(build), build.get("status") or {}
    live = phase.under_way
    return page(
        frame, PageFrame(name, "/builds", "builds", ("/builds", "Builds"), _said(build) if live else None),
        section(
            "Build",
            tag("p", _state(build)),
            facts([
                ("Pool", labels_of(build).get(names.BUILD_POOL_LABEL, "")),
                ("For", tag("code", str(((build.get("spec") or {}).get("machineConfig") or {}).get("name") or ""))),
                ("Pushed to", tag("code", str((build.get("spec") or {}).get("renderedImagePushSpec") or ""))),
                ("Image", image(image_of(build)) if image_of(build) else ""),
                ("Began", when(str(status.get("buildStart") or ""), frame.now) if status.get("buildStart") else ""),
                ("Ended", when(str(status.get("buildEnd") or ""), frame.now) if status.get("buildEnd") else ""),
            ]),
            folded("Conditions", conditions(status.get("conditions") or (), frame.now)),
        ),
        section(
            "Log", tag("p", refusal, class_="none") if refusal else None,
            tag("pre", log, class_="log", tabindex=0, aria_label="Log of the build") if log else None,
            # The script asks again while this is here: a log grows between two words of the API.
            tag("p", "It grows while the build runs.", data_live="1") if live else None,
            advice([f"fastness image log {name} --follow"]),
        ),
    )  # fmt: skip
