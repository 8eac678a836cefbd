"""Pools: how far each is, what it waits for, what is wrong, and the plan of a change that is under way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from fastness.domain.machineconfig.diff import text_of
from fastness.domain.machineconfig.disruption import Decision
from fastness.domain.machineconfig.nodes import NodeFacts
from fastness.model.kind import JsonObject
from fastness.model.objects import condition
from fastness.services.web.markup import Child, Markup, tag
from fastness.services.web.pages.layout import Frame, badge, conditions, facts, page, section, table

MAX_CHANGES: Final = 50
MAX_NODES: Final = 50
MAX_DIFF: Final = 4000


@dataclass(frozen=True, slots=True)
class PoolStory:
    """One pool, and the change that is under way; `change` is None when there is none or it may not be seen."""

    pool: JsonObject
    change: Decision | None = None
    nodes: Sequence[NodeFacts] = ()


def pools_page(frame: Frame, stories: Sequence[PoolStory], rollouts: Sequence[JsonObject] = ()) -> bytes:
    """The whole view."""
    pools = [_pool(story, frame) for story in stories] or "No pools."
    return page(frame, "Pools", "/pools", "pools machines", pools, [_rollout(one, frame) for one in rollouts])


def _rollout(policy: JsonObject, frame: Frame) -> Markup:
    """A policy by which changes travel: the wave under way, and whether it goes on, waits or has stopped."""
    status = policy.get("status") or {}
    wave = int(status.get("wave") or 0)
    under_way = f"wave {wave} is under way" if wave else "no wave is under way"
    return section(
        f"Rollout policy {policy['metadata']['name']}",
        tag("p", under_way, "."), conditions(status.get("conditions") or (), frame.now),
    )  # fmt: skip


def _pool(story: PoolStory, frame: Frame) -> Markup:
    pool = story.pool
    spec, status = pool.get("spec") or {}, pool.get("status") or {}
    total, done = int(status.get("machineCount") or 0), int(status.get("updatedMachineCount") or 0)
    wanted = str((spec.get("configuration") or {}).get("name", ""))
    name = str(pool["metadata"]["name"])
    progress: Child = (
        tag("progress", f"{done} of {total}", max=total, value=done, aria_label=f"updated machines of {name}")
        if total else None
    )  # fmt: skip
    return section(
        name,
        tag("p", badge(_state(pool)), f" {done} of {total} machines have {wanted or 'nothing yet'} ", progress),
        facts([
            ("Degraded", _degraded(pool)), ("Unavailable", str(status.get("unavailableMachineCount") or "")),
            ("Paused", "yes: nothing changes until it is resumed" if spec.get("paused") else ""),
            ("At most at a time", str(spec.get("maxUnavailable", 1))),
            ("All machines had", str((status.get("configuration") or {}).get("name", ""))),
        ]),
        _plan(story),
        tag("details", tag("summary", "Conditions"), conditions(status.get("conditions") or (), frame.now)),
    )  # fmt: skip


def _plan(story: PoolStory) -> Markup | None:
    if story.change is None:
        return None
    drain = " after a drain" if story.change.drain else ""
    changes = [
        tag(
            "details", tag("summary", str(cause.change), " → ", ", ".join(map(str, cause.actions)) or "nothing"),
            tag("pre", text_of(cause.change)[:MAX_DIFF]),
        )
        for cause in story.change.causes[:MAX_CHANGES]
    ]  # fmt: skip
    waiting = table(
        "Machines that are not there yet, in their order", ("Node", "Has", "Goes to", "Agent says"),
        ((node.name, node.current, node.desired, node.reason or node.state) for node in story.nodes[:MAX_NODES]),
    )  # fmt: skip
    return tag(
        "div", tag("h3", "The change under way"), tag("p", f"Each machine: {story.change.headline}{drain}."),
        changes, waiting,
    )  # fmt: skip


def _state(pool: JsonObject) -> str:
    if _holds(pool, "Degraded"):
        return "degraded"
    return "updating" if _holds(pool, "Updating") else "updated"


def _degraded(pool: JsonObject) -> str:
    found: list[Any] = [
        one.get("message") or one.get("reason")
        for one in (pool.get("status") or {}).get("conditions") or ()
        if one.get("status") == "True" and str(one.get("type", "")).endswith("Degraded")
    ]
    return "; ".join(dict.fromkeys(str(one) for one in found if one))


def _holds(pool: JsonObject, kind: str) -> bool:
    return (condition(pool, kind) or {}).get("status") == "True"
