"""A plan as JSON, for `-o json`, the page and the API: names are stable, absent means empty."""

from __future__ import annotations

from fastness.kinds.kind import JsonObject
from fastness.machineconfig.rollout.diff import text_of
from fastness.machineconfig.rollout.disruption import Decision
from fastness.machineconfig.rollout.plan import NodePlan, Plan, PoolPlan, Step
from fastness.machineconfig.rollout.waves import Schedule


def to_json(plan: Plan) -> JsonObject:
    """The whole plan."""
    return {
        "changes": bool(plan),
        "reboots": plan.reboots,
        "fails": plan.fails,
        "pools": [_pool(pool) for pool in plan.pools],
        "nodesInSeveralPools": list(plan.unclaimed),
    }


def _pool(pool: PoolPlan) -> JsonObject:
    return {
        "name": pool.pool,
        "trustModel": str(pool.trust),
        "from": pool.before,
        "to": pool.after,
        "failure": pool.failure,
        "guilty": list(pool.guilty),
        "paused": pool.paused,
        "maxUnavailable": pool.budget,
        "rolloutPolicy": _schedule(pool.waves) if pool.waves else None,
        "reboots": pool.reboots,
        **_decision(pool.decision),
        "changes": [_step(step) for step in pool.steps],
        "bootLoader": pool.boot_loader,
        "nodes": None if pool.nodes is None else [_node(node) for node in pool.nodes],
        "irreconcilable": [
            {
                "field": difference.field,
                "reason": difference.reason,
                "wayOut": difference.way_out,
                "tolerated": difference.overridden,
            }
            for difference in pool.irreconcilable
        ],
        "warnings": [warning.to_json() for warning in pool.warnings],
    }


def _schedule(schedule: Schedule) -> JsonObject:
    return {
        "name": schedule.policy,
        "waves": [{"upTo": wave.bound, "soakSeconds": wave.soak.total_seconds()} for wave in schedule.waves],
        "stopAtDegraded": schedule.stop_at,
        "window": schedule.window,
        "problem": schedule.problem or "",
    }


def _decision(decision: Decision) -> JsonObject:
    return {
        "action": decision.headline,
        "drain": decision.drain,
        "actions": [action.to_json() for action in decision.actions],
    }


def _step(step: Step) -> JsonObject:
    return {
        "part": str(step.change.part),
        "path": step.change.path,
        "how": str(step.change.how),
        "source": step.source,
        "actions": [action.to_json() for action in step.cause.actions],
        "diff": text_of(step.change),
    }


def _node(node: NodePlan) -> JsonObject:
    return {
        "name": node.name,
        "from": node.current,
        **_decision(node.decision),
        "causes": [str(cause.change) for cause in node.decision.causes if cause.actions],
        "wave": node.wave,
        "batch": node.batch,
        "blockedBy": [blocker.to_json() for blocker in node.blockers],
        "note": node.note,
    }
