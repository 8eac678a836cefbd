"""From a request to a view: what each one reads, as the user.

Views that are about a kind ask for it and say in the API's words when the user may not see it; what only adds to a view (a
node, a verdict, the record) is left out instead.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

from fastness.cluster.errors import NotFound
from fastness.domain.attestation.decisions import open_decisions
from fastness.domain.attestation.explain import explain
from fastness.domain.machineconfig.blame import Blame, Origin
from fastness.domain.machineconfig.diff import compare
from fastness.domain.machineconfig.disruption import Decision, decide, policies_of
from fastness.domain.machineconfig.errors import SeveralPools
from fastness.domain.machineconfig.nodes import Goal, NodeFacts, PoolSelectors, facts
from fastness.domain.machineconfig.render import sources_of
from fastness.domain.machineconfig.rollout import order
from fastness.formats import json
from fastness.formats.errors import FormatError
from fastness.formats.tlog import TlogError
from fastness.model.kind import JsonObject, Resource
from fastness.model.objects import view
from fastness.model.trusted_execution.machine import Machine
from fastness.services.web.fleet import Filter, Rows, row_of, survey
from fastness.services.web.pages.fleet import fleet_page
from fastness.services.web.pages.layout import Frame
from fastness.services.web.pages.machine import Moment, Story, machine_page
from fastness.services.web.pages.pools import PoolStory, pools_page
from fastness.services.web.pages.trust import TrustStory, trust_page
from fastness.services.web.sight import (
    CHECKPOINTS,
    CLUSTERS,
    CONFIGS,
    CONFIGURATIONS,
    DISTRUSTS,
    IMAGES,
    MACHINES,
    NODES,
    POLICIES,
    POOLS,
    ROLLOUTS,
    VALUE_SETS,
    VERDICTS,
    Sight,
)
from fastness.trust.log import LogView
from fastness.trust.tiles import TileStore

NEWEST: Final = 40
LOOK_BACK: Final = 2000


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads the record; without tiles there is none to read."""

    tiles: TileStore | None = None

    async def newest(self, checkpoint: JsonObject | None, last: int) -> list[JsonObject]:
        """The last entries under a checkpoint, newest first; none when they cannot be read now."""
        if self.tiles is None or checkpoint is None:
            return []
        size = int(checkpoint["spec"]["size"])
        found: list[JsonObject] = []
        try:
            async for index, data in LogView(self.tiles, size).entries(max(0, size - last)):
                found.append({"index": index, **json.decode(data)})
        except (TlogError, FormatError, OSError):
            return []
        return found[::-1]


@dataclass(frozen=True, slots=True)
class Shown:
    """One request for a view."""

    sight: Sight
    frame: Frame
    name: str
    query: Mapping[str, str]
    reader: Reader
    rows: Rows


async def fleet_view(shown: Shown) -> bytes:
    """All machines."""
    wanted = Filter.of(shown.query)
    rows = shown.rows.of(shown.sight.all(MACHINES), shown.sight.those(NODES))
    return fleet_page(shown.frame, survey(rows, wanted), wanted)


async def machine_view(shown: Shown) -> bytes:
    """One machine."""
    sight, name = shown.sight, shown.name
    machine = sight.one(MACHINES, name)
    if machine is None:
        raise NotFound(f'machines "{name}" not found', group=MACHINES.group, kind=MACHINES.plural, name=name)
    status = machine.get("status") or {}
    node = sight.glimpse(NODES, str(status.get("nodeName") or ""))
    verdict = sight.glimpse(VERDICTS, str(status.get("lastVerdict") or ""))
    thumbprint = str(status.get("keyThumbprint") or "")
    entries = await shown.reader.newest(newest_checkpoint(sight), LOOK_BACK)
    mine = [one for one in entries if thumbprint and one.get("who") == thumbprint]
    may_decide = sight.may("patch", MACHINES, name)
    return machine_page(shown.frame, Story(
        machine, row_of(machine, node), explain(machine, verdict), facts(node) if node else None,
        moments_of(machine, sight.verdicts_of(machine["metadata"]["uid"]), mine),
        [one for one in mine if one.get("what") == "release"][:NEWEST],
        _origins(sight, str(status.get("pool") or "")),
        open_decisions(view(machine, Machine)) if may_decide else (),
    ))  # fmt: skip


async def pools_view(shown: Shown) -> bytes:
    """All pools."""
    sight = shown.sight
    pools = sight.all(POOLS)
    configs = {one["metadata"]["name"]: one for one in sight.those(CONFIGS)}
    settings = next(iter(sight.those(CONFIGURATIONS)), None)
    members = _members(pools, sight.those(NODES))
    return pools_page(shown.frame, [
        PoolStory(pool, *_change(pool, configs, settings, members.get(pool["metadata"]["name"], [])))
        for pool in pools
    ], sight.those(ROLLOUTS))  # fmt: skip


async def trust_view(shown: Shown) -> bytes:
    """What is trusted, and the record."""
    sight = shown.sight
    kinds: tuple[Resource, ...] = (CLUSTERS, IMAGES, VALUE_SETS, POLICIES, DISTRUSTS, CHECKPOINTS)
    hidden = [kind.plural for kind in kinds if not sight.may("list", kind)]
    checkpoint = newest_checkpoint(sight)
    return trust_page(shown.frame, TrustStory(
        sight.those(CLUSTERS), sight.those(IMAGES), sight.those(VALUE_SETS), sight.those(POLICIES),
        sight.those(DISTRUSTS), checkpoint, await shown.reader.newest(checkpoint, NEWEST), hidden,
    ))  # fmt: skip


VIEWS: Final[Mapping[str, Callable[[Shown], Awaitable[bytes]]]] = {
    "fleet": fleet_view, "machine": machine_view, "pools": pools_view, "trust": trust_view,
}  # fmt: skip


def newest_checkpoint(sight: Sight) -> JsonObject | None:
    """The longest signed record that the user may see."""
    return max(sight.those(CHECKPOINTS), key=lambda one: int(one["spec"]["size"]), default=None)


def moments_of(machine: JsonObject, verdicts: list[JsonObject], entries: list[JsonObject]) -> list[Moment]:
    """What happened to a machine: its conditions, its verdicts, and what the record says about its key."""
    found = [
        Moment(str(one.get("lastTransitionTime", "")), f"{one.get('type')} is {one.get('status')}", str(one.get("message", "")))
        for one in (machine.get("status") or {}).get("conditions") or ()
    ]  # fmt: skip
    found += [
        Moment(
            str(one["metadata"].get("creationTimestamp", "")), f"verdict {one['spec'].get('result', '')}",
            str(one["spec"].get("reason", "")),
        )
        for one in verdicts
    ]  # fmt: skip
    found += [
        Moment(str(one.get("time", "")), f"record: {one.get('what', '')}", str(one.get("resource", "")))
        for one in entries
    ]
    return found


def _origins(sight: Sight, pool: str) -> tuple[Origin, ...]:
    found = sight.glimpse(POOLS, pool)
    configs = sight.those(CONFIGS)
    return tuple(Blame(sources_of(found, configs)).origins) if found is not None and configs else ()


def _members(pools: list[JsonObject], nodes: list[JsonObject]) -> dict[str, list[NodeFacts]]:
    selectors = PoolSelectors(pools)
    members: dict[str, list[NodeFacts]] = {}
    for node in nodes:
        try:
            members.setdefault(selectors.of(node).primary, []).append(facts(node))
        except SeveralPools:
            continue
    return members


def _change(
    pool: JsonObject, configs: Mapping[str, JsonObject], settings: JsonObject | None, members: list[NodeFacts]
) -> tuple[Decision | None, tuple[NodeFacts, ...]]:
    """What each machine does to get from the config that all had to the one that is wanted, and who is not there yet."""
    wanted, had = (
        str(((pool.get(part) or {}).get("configuration") or {}).get("name") or "") for part in ("spec", "status")
    )
    before, after = configs.get(had), configs.get(wanted)
    if wanted == had or before is None or after is None:
        return None, ()
    return decide(compare(before["spec"], after["spec"]), policies_of(settings)), order(members, Goal(wanted))
