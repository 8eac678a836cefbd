"""Pools: how far each is, what it waits for, what is wrong, and the plan of a change that is under way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fastness.formats.words import counted
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import condition
from fastness.machineconfig.rollout.nodes import NodeFacts
from fastness.machineconfig.rollout.plan import PoolPlan
from fastness.machineconfig.rollout.waves import Schedule
from fastness.page.markup import Markup, tag
from fastness.page.pages.layout import Frame, PageFrame, page
from fastness.page.pages.parts import badge, bar, conditions, facts, folded, section
from fastness.page.pages.plans import plan_part, waves_part


@dataclass(frozen=True, slots=True)
class PoolStory:
    """One pool, the change that is under way, and how its policy splits it; None where there is none or it may not be seen."""

    pool: JsonObject
    planned: PoolPlan | None = None
    members: Mapping[str, NodeFacts] = field(default_factory=dict)
    schedule: Schedule | None = None
    wave: int = 0


def pools_page(frame: Frame, stories: Sequence[PoolStory], rollouts: Sequence[JsonObject] = ()) -> bytes:
    """The whole view."""
    changing = sum(story.planned is not None for story in stories)
    lead = f"{counted(len(stories), 'pool')}; {changing or 'none'} with a change under way."
    return page(
        frame, PageFrame("Pools", "/pools", "pools machines", lead=lead),
        [_pool(story, frame) for story in stories] or tag("p", "No pools.", class_="none"),
        [_rollout(rollout, frame) for rollout in rollouts],
    )  # fmt: skip


def _rollout(policy: JsonObject, frame: Frame) -> Markup:
    """A policy by which changes travel: the wave under way, and whether it goes on, waits or has stopped."""
    status = policy.get("status") or {}
    wave = int(status.get("wave") or 0)
    under_way = f"Wave {wave} is under way." if wave else "No wave is under way."
    return section(
        f"Rollout policy {policy['metadata']['name']}",
        tag("p", under_way), conditions(status.get("conditions") or (), frame.now),
    )  # fmt: skip


def _pool(story: PoolStory, frame: Frame) -> Markup:
    pool = story.pool
    spec, status = pool.get("spec") or {}, pool.get("status") or {}
    total, done = int(status.get("machineCount") or 0), int(status.get("updatedMachineCount") or 0)
    target = str((spec.get("configuration") or {}).get("name", ""))
    return section(
        str(pool["metadata"]["name"]),
        tag("p", badge(_state(pool)),
            f" {done} of {counted(total, 'machine')} have " if total else " No machines yet; they would get ",
            tag("code", target) if target else "nothing yet"),
        _bar(pool, total, done),
        facts([
            ("Degraded", tag("strong", _degraded(pool), class_="bad") if _degraded(pool) else ""),
            ("Waits for", _waits(pool)),
            ("Unavailable", str(status.get("unavailableMachineCount") or "")),
            ("Paused", "yes: nothing changes until it is resumed" if spec.get("paused") else ""),
            ("At most at a time", str(spec.get("maxUnavailable", 1))),
            ("All machines had", _had(status, target)),
        ]),
        waves_part(story.schedule, done, story.wave) if story.schedule else None,
        plan_part(story.planned, story.members) if story.planned else None,
        folded("Conditions", conditions(status.get("conditions") or (), frame.now)),
        id_=f"pool-{pool['metadata']['name']}",
    )  # fmt: skip


def _had(status: JsonObject, target: str) -> str:
    had = str((status.get("configuration") or {}).get("name", ""))
    return had if had != target else ""


def _bar(pool: JsonObject, total: int, done: int) -> Markup | None:
    """Updated, degraded, and those that are still to come."""
    bad = min(int((pool.get("status") or {}).get("degradedMachineCount") or 0), max(0, total - done))
    parts = [("state-attested", done), ("state-degraded", bad), ("state-waiting", max(0, total - done - bad))]
    return bar(
        parts, f"{done} of {counted(total, 'machine')} of {pool['metadata']['name']} are updated, {bad} degraded"
    )


def _state(pool: JsonObject) -> str:
    if _holds(pool, "Degraded"):
        return "degraded"
    if (pool.get("spec") or {}).get("paused"):
        return "paused"
    return "updating" if _holds(pool, "Updating") else "updated"


def _waits(pool: JsonObject) -> str:
    """What the pool says that it waits for, while it changes."""
    updating = condition(pool, "Updating") or {}
    return str(updating.get("message") or "") if updating.get("status") == "True" else ""


def _degraded(pool: JsonObject) -> str:
    reasons: list[Any] = [
        condition.get("message") or condition.get("reason")
        for condition in (pool.get("status") or {}).get("conditions") or ()
        if condition.get("status") == "True" and str(condition.get("type", "")).endswith("Degraded")
    ]
    return "; ".join(dict.fromkeys(str(condition) for condition in reasons if condition))


def _holds(pool: JsonObject, kind: str) -> bool:
    return (condition(pool, kind) or {}).get("status") == "True"
