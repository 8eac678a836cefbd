"""A plan for people: per pool what changes, per node what happens, and what would go wrong.

The order is that of the questions somebody asks: will it work, what changes and why, who is disturbed and when, what could block.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Final

from fastness.formats.words import counted
from fastness.machineconfig.rollout.diff import text_of
from fastness.machineconfig.rollout.plan import NodePlan, Plan, PoolPlan
from fastness.machineconfig.rollout.waves import Schedule

MAX_NODES: Final = 20


def plan_text(plan: Plan, *, diffs: bool = True) -> str:
    """The plan as text."""
    if not plan:
        return "Nothing changes: every pool renders to the config that it has."
    lines: list[str] = []
    for pool in plan.pools:
        lines += [*_pool(pool, diffs), ""]
    if plan.unclaimed:
        lines += [f"Claimed by several custom pools, so nothing happens to: {', '.join(plan.unclaimed)}", ""]
    lines.append(_verdict(plan))
    return "\n".join(lines)


def _verdict(plan: Plan) -> str:
    count = sum(node.decision.reboot for pool in plan.pools for node in pool.nodes or () if not pool.paused)
    if plan.fails:
        return "Some pools would not render and would keep what they have."
    if not plan.reboots:
        return "Nothing reboots."
    return counted(count, "node reboots.", "nodes reboot.") if count else "Machines of these pools would reboot."


def _pool(pool: PoolPlan, diffs: bool) -> Iterator[str]:
    yield f"Pool {pool.pool}" + (f" ({pool.trust})" if pool.trust != "None" else "")
    if pool.failure:
        yield f"  will not render: {pool.failure}"
        return
    yield f"  {pool.before or '(nothing yet)'} -> {pool.after}"
    for step in pool.steps:
        actions = ", ".join(map(str, step.cause.actions)) or "None"
        by = f"  [{step.source}]" if step.source else ""
        yield f"  {step.change}{by} -> {actions}"
        if diffs:
            yield from (f"      {line}" for line in text_of(step.change).splitlines())
    if pool.boot_loader:
        yield f"  boot loader: {pool.boot_loader}"
    for obstacle in pool.irreconcilable:
        yield f"  cannot follow on running machines: {obstacle}"
    for warning in pool.warnings:
        yield f"  warning: {warning.short}"
    if pool.waves is not None:
        yield from _policy(pool.waves)
    yield from _nodes(pool)


def _nodes(pool: PoolPlan) -> Iterator[str]:
    if pool.nodes is None:
        yield f"  each node: {_action(pool)}"
        return
    if not pool.nodes:
        yield "  no nodes are affected"
        return
    paused = "; paused: nothing happens until it is resumed" if pool.paused else ""
    yield f"  {counted(len(pool.nodes), 'node')}, at most {pool.budget} at a time{paused}"
    for wave, members in groupby(pool.nodes[:MAX_NODES], key=lambda node: node.wave):
        if pool.waves is not None and pool.waves.waves and not pool.paused:
            yield _wave(pool.waves, wave)
        for node in members:
            yield f"    {node.batch or '-':>3}  {_node(node)}"
    if len(pool.nodes) > MAX_NODES:
        yield f"         and {len(pool.nodes) - MAX_NODES} more"


def _policy(schedule: Schedule) -> Iterator[str]:
    yield f"  follows RolloutPolicy {schedule.policy}; stops at {schedule.stop_at} degraded"
    if schedule.window:
        yield f"  machines are disturbed only {schedule.window}"
    if schedule.problem is not None:
        yield f"  nothing would start: {schedule.problem}"


def _wave(schedule: Schedule, number: int) -> str:
    wave = schedule.waves[number - 1]
    watched = f", watched for {wave.soak}" if wave.soak else ""
    reached = counted(wave.bound, "node has it", "nodes have it")
    return f"    wave {number} of {len(schedule.waves)}: until {reached}{watched}"


def _action(pool: PoolPlan) -> str:
    drain = " after a drain" if pool.decision.drain else ""
    return f"{pool.decision.headline}{drain}"


def _node(node: NodePlan) -> str:
    actions = ", ".join(map(str, node.decision.actions))
    drain = "drain, then " if node.decision.drain else ""
    text = f"{node.name}: {drain}{actions}" + (f" ({node.note})" if node.note else "")
    for blocker in node.blockers:
        text += f"\n         blocked by PodDisruptionBudget {blocker.budget} (pod {blocker.pod})"
    return text
