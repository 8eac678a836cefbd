"""What the page of pools reads: pools and their machines, the plan of changes under way, and the policies they follow."""

from __future__ import annotations

from typing import Final

from fastness.cluster.port import EVERYWHERE
from fastness.domain.machineconfig.members import MemberPools, SeveralPools, pools_of_nodes
from fastness.domain.machineconfig.nodes import NodeFacts, facts
from fastness.domain.machineconfig.plan import Plan, State, under_way
from fastness.domain.machineconfig.waves import policy_of, schedule_of
from fastness.model.kind import JsonObject
from fastness.model.kubernetes.core import POD
from fastness.model.kubernetes.policy import POD_DISRUPTION_BUDGET
from fastness.services.web.pages.pools import PoolStory, pools_page
from fastness.services.web.sight import CLUSTERS, CONFIGS, CONFIGURATIONS, MACHINES, NODES, POOLS, ROLLOUTS, Sight
from fastness.services.web.views.shown import Shown

BUDGETS: Final = POD_DISRUPTION_BUDGET.resource
PODS: Final = POD.resource


async def pools_view(shown: Shown) -> bytes:
    """All pools."""
    sight = shown.sight
    pools, rollouts = sight.all(POOLS), sight.those(ROLLOUTS)
    own = pools_of_nodes(sight.those(MACHINES))
    members = _members(MemberPools(pools, own, _cluster(sight)), sight.those(NODES))
    planned = {one.pool: one for one in (await _plan(shown, sight, pools, rollouts)).pools}
    stories = []
    for pool in pools:
        name = str(pool["metadata"]["name"])
        mine = members.get(name, {})
        policy = policy_of(pool, rollouts)
        wave = int((policy.get("status") or {}).get("wave") or 0) if policy else 0
        stories.append(PoolStory(pool, planned.get(name), mine, schedule_of(pool, rollouts, len(mine)), wave))
    # Where something happens comes first, pools without machines last.
    stories.sort(key=lambda story: (story.planned is None, not story.members, story.pool["metadata"]["name"]))
    return pools_page(shown.frame, stories, rollouts)


async def _plan(shown: Shown, sight: Sight, pools: list[JsonObject], rollouts: list[JsonObject]) -> Plan:
    """What is left of changes; pods are asked for only where a budget could hold one up."""
    changing = [pool for pool in pools if _wanted(pool, "spec") != _wanted(pool, "status")]
    if not changing:
        return Plan()
    budgets = await shown.ask(BUDGETS, EVERYWHERE)
    return under_way(State(
        pools, sight.those(CONFIGS), sight.those(NODES), await shown.ask(PODS, EVERYWHERE) if budgets else (), budgets,
        _cluster(sight), next(iter(sight.those(CONFIGURATIONS)), None), policies=rollouts, machines=sight.those(MACHINES),
    ))  # fmt: skip


def _wanted(pool: JsonObject, part: str) -> str:
    return str(((pool.get(part) or {}).get("configuration") or {}).get("name") or "")


def _cluster(sight: Sight) -> JsonObject | None:
    return next(iter(sight.those(CLUSTERS)), None)


def _members(pools: MemberPools, nodes: list[JsonObject]) -> dict[str, dict[str, NodeFacts]]:
    members: dict[str, dict[str, NodeFacts]] = {}
    for node in nodes:
        try:
            known = facts(node)
            members.setdefault(pools.of(node).primary, {})[known.name] = known
        except SeveralPools:
            continue
    return members
