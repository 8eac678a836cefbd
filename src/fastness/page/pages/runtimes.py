"""Runtimes: how far the installation is, which nodes have it and which classes there are, and why others do not and are not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fastness.formats.words import counted
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import condition
from fastness.page.markup import Child, Markup, tag
from fastness.page.pages.layout import Frame, PageFrame, page
from fastness.page.pages.parts import advice, badge, conditions, facts, folded, progress, section, table
from fastness.workloads.kata.eligibility import NodeChoice
from fastness.workloads.kata.status import LISTS

_WORDS: Mapping[str, str] = {
    "installed": "installed", "installing": "installing", "waitingToInstall": "waiting", "failedToInstall": "failed",
    "uninstalling": "removing", "waitingToUninstall": "waiting to be removed", "failedToUninstall": "failed",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class RuntimeStory:
    """The KataConfig, if there is one; every worker with the decision about it; the classes, and why others are not made."""

    config: JsonObject | None
    choices: Sequence[NodeChoice] = ()
    classes: Sequence[JsonObject] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)
    problem: str | None = None


def runtimes_page(frame: Frame, story: RuntimeStory) -> bytes:
    """The whole view."""
    able = sum(choice.chosen for choice in story.choices)
    verb = "get" if story.config is not None else "could get"
    lead = f"{able} of {counted(len(story.choices), 'worker')} {verb} the runtime for confidential containers."
    return page(
        frame, PageFrame("Runtimes", "/runtimes", "runtimes machines pools", lead=lead),
        _config(story.config, frame), _nodes(story), _classes(story),
    )  # fmt: skip


def _config(config: JsonObject | None, frame: Frame) -> Markup:
    if config is None:
        hint = "fastness enable tdx --plan    # shows what would change and restart; snp instead of tdx for AMD"
        return section("Nothing is installed", tag("p", "There is no KataConfig."), advice([hint]))
    status = config.get("status") or {}
    nodes, installing = status.get("kataNodes") or {}, condition(config, "InProgress") or {}
    ready, total = int(nodes.get("readyNodeCount") or 0), int(nodes.get("nodeCount") or 0)
    log_level = str((config.get("spec") or {}).get("logLevel") or "")
    word = str(installing.get("reason") or ("installed" if installing.get("status") == "False" else "begins"))
    return section(
        str(config["metadata"]["name"]),
        tag("p", badge(word.lower()), f" {ready} of {counted(total, 'node')} have the runtime."),
        progress(ready, total, f"{ready} of {counted(total, 'node')} have the runtime"),
        facts([("Says", str(installing.get("message") or "")), ("Log level", log_level)]),
        folded("Conditions", conditions(status.get("conditions") or (), frame.now)),
        id_="kataconfig",
    )  # fmt: skip


def _nodes(story: RuntimeStory) -> Markup:
    lists = ((story.config or {}).get("status") or {}).get("kataNodes") or {}
    where = {node: _WORDS[name] for name in LISTS for node in lists.get(name) or ()}
    rows = [
        (choice.node, badge(where.get(choice.node, "able" if choice.chosen else "left out")), _why(choice))
        for choice in story.choices
    ]
    return section(
        "Workers", table("Workers", ("Node", "Runtime", "Why not, and what would change it"), rows), id_="eligibility"
    )


def _why(choice: NodeChoice) -> Child:
    if choice.against is None:
        return "–"
    return f"{choice.message}" + (f"; {choice.hint}" if choice.hint else "")


def _classes(story: RuntimeStory) -> Markup:
    made = [
        (str(obj["metadata"]["name"]), tag("code", str(obj.get("handler", ""))),
         _pairs((obj.get("overhead") or {}).get("podFixed")), _pairs((obj.get("scheduling") or {}).get("nodeSelector")))
        for obj in story.classes
    ]  # fmt: skip
    missing = sorted(story.left_out.items())
    return section(
        "Runtime classes",
        tag("p", tag("strong", story.problem, class_="bad")) if story.problem is not None else None,
        table("Runtime classes", ("Class", "Handler", "Charged to every pod", "Runs on nodes with"), made),
        table("Not made", ("Class", "Why not"), missing) if missing else None,
        id_="classes",
    )


def _pairs(values: Mapping[str, str] | None) -> Child:
    return ", ".join(f"{key}={value}" if value else key for key, value in sorted((values or {}).items())) or "–"
