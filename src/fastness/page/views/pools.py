"""What the page of pools reads: pools and their machines, the plan of changes under way, and the policies they follow."""

from __future__ import annotations

from typing import Final

from fastness.kinds.kind import JsonObject
from fastness.kinds.kubernetes.core import POD, POD_DISRUPTION_BUDGET
from fastness.kube.port import EVERYWHERE
from fastness.machineconfig.rollout.nodes import NodeFacts, facts
from fastness.machineconfig.rollout.plan import Plan, State, under_way
from fastness.machineconfig.rollout.waves import policy_of, schedule_of
from fastness.page.pages.pools import PoolStory, pools_page
from fastness.page.view_scope import CLUSTERS, CONFIGS, CONFIGURATIONS, MACHINES, NODES, POOLS, ROLLOUTS, ViewScope
from fastness.page.views.view_request import ViewRequest
from fastness.pools.membership import MemberPools, SeveralPools, pools_of_nodes

BUDGETS: Final = POD_DISRUPTION_BUDGET.resource
PODS: Final = POD.resource


async def pools_view(request: ViewRequest) -> bytes:
    """All pools."""
    scope = request.scope
    pools, rollouts = scope.all(POOLS), scope.those(ROLLOUTS)
    own = pools_of_nodes(scope.those(MACHINES))
    members = _members(MemberPools(pools, own, _cluster(scope)), scope.those(NODES))
    planned = {pool_plan.pool: pool_plan for pool_plan in (await _plan(request, scope, pools, rollouts)).pools}
    stories = []
    for pool in pools:
        name = str(pool["metadata"]["name"])
        mine = members.get(name, {})
        policy = policy_of(pool, rollouts)
        wave = int((policy.get("status") or {}).get("wave") or 0) if policy else 0
        stories.append(PoolStory(pool, planned.get(name), mine, schedule_of(pool, rollouts, len(mine)), wave))
    # Where something happens comes first, pools without machines last.
    stories.sort(key=lambda story: (story.planned is None, not story.members, story.pool["metadata"]["name"]))
    return pools_page(request.frame, stories, rollouts)


async def _plan(request: ViewRequest, scope: ViewScope, pools: list[JsonObject], rollouts: list[JsonObject]) -> Plan:
    """What is left of changes; pods are asked for only where a budget could hold one up."""
    changing = [pool for pool in pools if _wanted(pool, "spec") != _wanted(pool, "status")]
    if not changing:
        return Plan()
    budgets = await request.ask(BUDGETS, EVERYWHERE)
    return under_way(State(
        pools, scope.those(CONFIGS), scope.those(NODES), await request.ask(PODS, EVERYWHERE) if budgets else (), budgets,
        _cluster(scope), next(iter(scope.those(CONFIGURATIONS)), None), policies=rollouts, machines=scope.those(MACHINES),
    ))  # fmt: skip


def _wanted(pool: JsonObject, part: str) -> str:
    return str(((pool.get(part) or {}).get("configuration") or {}).get("name") or "")


def _cluster(scope: ViewScope) -> JsonObject | None:
    return next(iter(scope.those(CLUSTERS)), None)


def _members(pools: MemberPools, nodes: list[JsonObject]) -> dict[str, dict[str, NodeFacts]]:
    members: dict[str, dict[str, NodeFacts]] = {}
    for node in nodes:
        try:
            node_facts = facts(node)
            members.setdefault(pools.of(node).primary, {})[node_facts.name] = node_facts
        except SeveralPools:
            continue
    return members
