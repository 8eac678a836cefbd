"""The plan of a change that is under way: what changes, what each machine does about it, in which order, and what holds it up.

The plan is made by `machineconfig/rollout/plan`, which the command line shows beforehand and the controllers act by.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fastness.formats.words import counted
from fastness.machineconfig.rollout.diff import text_of
from fastness.machineconfig.rollout.nodes import NodeFacts
from fastness.machineconfig.rollout.plan import NodePlan, PoolPlan, Step
from fastness.machineconfig.rollout.waves import Schedule
from fastness.page.markup import Child, Markup, tag
from fastness.page.pages.parts import badge, difference, folded, lasting, progress, table

MAX_CHANGES: Final = 50
MAX_NODES: Final = 50
MAX_DIFF: Final = 4000
_HEADS: Final = ("Order", "Node", "Does", "Now", "Waits for")


def plan_part(planned: PoolPlan, members: Mapping[str, NodeFacts]) -> Markup:
    """The change under way of one pool; `members` are its machines as they are now."""
    nodes = planned.nodes or ()
    drain = ", after a drain" if planned.decision.drain else ""
    unshown = len(planned.steps) - MAX_CHANGES
    more = f" and {len(nodes) - MAX_NODES} more" if len(nodes) > MAX_NODES else ""
    caption = f"{counted(len(nodes), 'machine')} to go, in their order{':' if more else ''}{more}"
    return tag(
        "div",
        tag("h3", "The change under way"),
        tag("p", "From ", tag("code", planned.before), " to ", tag("code", planned.after), class_="hint"),
        tag("p", "Each machine: ", tag("strong", planned.decision.headline), drain, "."),
        [tag("p", stuck.field, ": ", stuck.reason, class_="problem") for stuck in planned.irreconcilable],
        [_step(step) for step in planned.steps[:MAX_CHANGES]],
        tag("p", f"and {unshown} changes more", class_="hint") if unshown > 0 else None,
        table(caption, _HEADS, (_node(node, planned, members.get(node.name)) for node in nodes[:MAX_NODES]), "turns"),
        class_="plan",
    )  # fmt: skip


def waves_part(schedule: Schedule, done: int, under_way: int) -> Markup:
    """The waves of a policy with how far each is."""
    if schedule.problem is not None:
        return tag(
            "p", "The rollout policy ", schedule.policy, " cannot be followed: ", schedule.problem, class_="problem"
        )
    rows: list[tuple[Child, ...]] = []
    start = 0
    for number, wave in enumerate(schedule.waves, 1):
        size, here = wave.bound - start, max(0, min(done, wave.bound) - start)
        state = "updated" if size == here else "updating" if number == under_way else "waits"
        soak = lasting(wave.soak.total_seconds()) if wave.soak else "–"
        bar = progress(here, size, f"wave {number}: {here} of {counted(size, 'machine')}")
        rows.append((f"Wave {number}", badge(state), tag("span", bar, f" {here} of {size}"), soak))
        start = wave.bound
    only = f"Only {schedule.window}." if schedule.window else None
    return tag(
        "div",
        table(f"Waves of {schedule.policy}", ("Wave", "State", "Machines", "Then watched for"), rows),
        tag("p", f"Stops by itself at {schedule.stop_at} degraded. ", only, class_="hint"),
    )  # fmt: skip


def _step(step: Step) -> Markup:
    does = ", ".join(map(str, step.cause.actions)) or "nothing"
    summary = tag(
        "span",
        tag("code", str(step.change)),
        " → ",
        does,
        tag("small", f" from {step.source}") if step.source else None,
    )
    return folded(summary, difference(text_of(step.change)[:MAX_DIFF]))


def _node(node: NodePlan, planned: PoolPlan, now: NodeFacts | None) -> tuple[Child, ...]:
    place = (
        "paused"
        if planned.paused
        else f"wave {node.wave}, turn {node.batch}"
        if planned.waves
        else f"turn {node.batch}"
    )
    drain = " after a drain" if node.decision.drain else ""
    return (
        place,
        tag("code", node.name),
        f"{node.decision.headline}{drain}",
        _now(now, planned.after),
        _waits(node, planned, now),
    )


def _now(node: NodeFacts | None, goal: str) -> Child:
    if node is None:
        return "–"
    if node.degraded:
        return badge("degraded", node.reason)
    return badge("working", node.state) if node.desired == goal else badge("waits")


def _waits(node: NodePlan, planned: PoolPlan, now: NodeFacts | None) -> str:
    """What holds a machine up, in the order in which it would meet it."""
    if planned.paused:
        return "the pool to be resumed"
    held = [f"budget {blocker.budget} (pod {blocker.pod})" for blocker in node.blockers]
    if now is not None and now.degraded:
        held.insert(0, now.reason or "its agent reports a problem")
    if now is not None and now.desired != planned.after and node.batch > 1:
        held.append("those before it")
    return "; ".join([*held, *([node.note] if node.note else [])]) or "–"
