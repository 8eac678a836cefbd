"""What a pool reports: counts and conditions.

* `Updated` when every node has the config, is ready and none is unavailable; only then does `status.configuration` follow the
  spec, and `status.osImageStream` names the stream that nodes run. Otherwise `Updating`, unless the pool is paused.
* `RenderDegraded` is written by rendering (`render_condition`), `RegistriesDegraded` by the loop of registries
  (`registries_condition`), `UserDataDegraded` by that of user-data (`user_data_condition`); all are only read here. `Degraded` is
  the fold of the others.
* A pool with an image of its own also waits for the build; `BuildPhase` says how far it is.
* The transition time of a condition moves only when its status does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, NamedTuple

from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration.names import PoolCondition
from fastness.kinds.objects import condition, metadata, with_condition
from fastness.machineconfig.boot_images.pointer_version import ALL_WELL, PointerVersion
from fastness.machineconfig.rollout.nodes import Counts, Goal, NodeFacts

Object = Mapping[str, Any]

_FOLDED: Final = (
    PoolCondition.NODE_DEGRADED,
    PoolCondition.RENDER_DEGRADED,
    PoolCondition.REGISTRIES_DEGRADED,
    PoolCondition.IMAGE_BUILD_DEGRADED,
    PoolCondition.PINNED_IMAGE_SETS_DEGRADED,
    PoolCondition.USER_DATA_DEGRADED,
)
_STOPS_BUILDS: Final = (
    PoolCondition.RENDER_DEGRADED,
    PoolCondition.NODE_DEGRADED,
    PoolCondition.PINNED_IMAGE_SETS_DEGRADED,
)
BUILD_FAILED: Final = "the build of the pool's operating system image failed"


class BuildPhase(StrEnum):
    """How far the build of a pool's image is."""

    INITIAL = "Initial"
    PREPARED = "Prepared"
    BUILDING = "Building"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    INTERRUPTED = "Interrupted"

    @property
    def under_way(self) -> bool:
        """Whether the image is still to come."""
        return self in (BuildPhase.INITIAL, BuildPhase.PREPARED, BuildPhase.BUILDING)


class ConditionState(NamedTuple):
    """One condition: what holds, why as one word, why as a sentence."""

    status: bool
    reason: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class Observed:
    """What the status is made of; `build` is None where the pool has no image of its own.

    `stream` is the stream that has the image of the goal; empty where none has it.
    `build_problem` says what keeps an image from being built, or why a build failed, and `build_reason` says it in one word.
    """

    counts: Counts
    degraded: Sequence[NodeFacts]
    goal: Goal
    build: BuildPhase | None = None
    waiting: str = ""
    stream: str = ""
    build_reason: str = ""
    build_problem: str = ""


def pool_status(pool: Object, observed: Observed, now: datetime) -> JsonObject:
    """The whole status of a pool; unknown fields and the conditions of others stay."""
    before = dict(pool.get("status") or {})
    conditions = list(before.get("conditions") or ())
    for kind, statement in said_of(pool, observed):
        conditions = with_condition(
            conditions,
            kind=kind,
            status="True" if statement.status else "False",
            reason=statement.reason,
            message=statement.message,
            now=now,
        )
    counts = observed.counts
    status = {
        **before,
        "observedGeneration": metadata(pool).get("generation") or 0,
        "machineCount": counts.total,
        "updatedMachineCount": counts.updated,
        "readyMachineCount": counts.ready,
        "unavailableMachineCount": counts.unavailable,
        "degradedMachineCount": counts.degraded,
        "conditions": conditions,
    }
    # Only now: until a machine has proved the new config, those that boot for the first time are given the one that the status
    # names.
    if all_updated(observed):
        status["configuration"] = dict((pool.get("spec") or {}).get("configuration") or {})
    # What nodes run, not what they are to run: nothing is said while some run another image, or nobody knows what they run.
    runs = observed.stream if all_updated(observed) and not _is_degraded(conditions) else ""
    if runs or "osImageStream" in before:
        status["osImageStream"] = {"name": runs} if runs else None
    return status


def _is_degraded(conditions: Iterable[Object]) -> bool:
    return any(entry.get("type") == PoolCondition.DEGRADED and entry.get("status") == "True" for entry in conditions)


def all_updated(observed: Observed) -> bool:
    """Whether nothing is left to do."""
    counts = observed.counts
    built = observed.build is None or (observed.build is BuildPhase.SUCCEEDED and bool(observed.goal.image))
    # `ready` as well: a machine that has the config and does not come back is the failure that a rollout must show.
    # Without a rendered config there is nothing that a node could have: a new pool that cannot be rendered is not up to date.
    return (
        bool(observed.goal.config)
        and counts.updated == counts.total == counts.ready
        and not counts.unavailable
        and built
    )


def said_of(pool: Object, observed: Observed) -> list[tuple[str, ConditionState]]:
    """The conditions that a rollout writes, in order."""
    node = _node_degraded(observed.degraded)
    build = ConditionState(False)
    if observed.build is BuildPhase.FAILED:
        build = ConditionState(True, "BuildFailed", observed.build_problem or BUILD_FAILED)
    elif observed.build_problem:
        build = ConditionState(True, observed.build_reason, observed.build_problem)
    held = {kind for kind in _FOLDED if _holds(pool, kind)} - {
        PoolCondition.NODE_DEGRADED,
        PoolCondition.IMAGE_BUILD_DEGRADED,
    }
    degraded = ConditionState(bool(held) or node.status or build.status, "", node.message or build.message)
    stopped = bool(held & set(_STOPS_BUILDS)) or node.status
    updated, updating = _progress(pool, observed, stopped)
    return [
        (PoolCondition.UPDATED, updated),
        (PoolCondition.UPDATING, updating),
        (PoolCondition.NODE_DEGRADED, node),
        (PoolCondition.IMAGE_BUILD_DEGRADED, build),
        (PoolCondition.DEGRADED, degraded),
    ]


def render_condition(pool: Object, failure: str, now: datetime) -> list[JsonObject]:
    """All conditions of the pool with `RenderDegraded` set by the outcome of rendering; an empty failure clears it.

    `Degraded` is folded at once, so that a pool without nodes or without a rollout shows it too.
    """
    return folded(pool, PoolCondition.RENDER_DEGRADED, "", failure, now)


def registries_condition(pool: Object, failure: str, now: datetime) -> list[JsonObject]:
    """All conditions of the pool with `RegistriesDegraded` set; a pool that never had the condition gets none to say so."""
    if not failure and condition(pool, PoolCondition.REGISTRIES_DEGRADED) is None:
        return list((pool.get("status") or {}).get("conditions") or ())
    reason = "RegistriesRefused" if failure else "AsExpected"
    return folded(pool, PoolCondition.REGISTRIES_DEGRADED, reason, failure, now)


def user_data_condition(pool: Object, chosen: PointerVersion, now: datetime) -> list[JsonObject]:
    """All conditions of the pool with `UserDataDegraded` set; a pool of which nobody asks anything gets none to say so."""
    silent = chosen.reason == ALL_WELL and not chosen.note
    if silent and condition(pool, PoolCondition.USER_DATA_DEGRADED) is None:
        return list((pool.get("status") or {}).get("conditions") or ())
    return folded(pool, PoolCondition.USER_DATA_DEGRADED, chosen.reason, chosen.problem, now, chosen.note)


def folded(
    pool: Object, kind: PoolCondition, reason: str, failure: str, now: datetime, note: str = ""
) -> list[JsonObject]:
    """All conditions of the pool with one of them set, True where something failed, and `Degraded` in step with it."""
    conditions = list((pool.get("status") or {}).get("conditions") or ())
    status = "True" if failure else "False"
    conditions = with_condition(conditions, kind=kind, status=status, reason=reason, message=failure or note, now=now)
    others = any(
        entry.get("type") in _FOLDED and entry.get("status") == "True"
        for entry in conditions
        if entry.get("type") != kind
    )
    old = next((entry for entry in conditions if entry.get("type") == PoolCondition.DEGRADED), {})
    return with_condition(
        conditions,
        kind=PoolCondition.DEGRADED,
        status="True" if failure or others else "False",
        reason="",
        message=str(old.get("message", "")) if others else "",
        now=now,
    )


def _progress(pool: Object, observed: Observed, stopped: bool) -> tuple[ConditionState, ConditionState]:
    goal = _described(observed.goal)
    if all_updated(observed):
        return ConditionState(True, "", f"All nodes are updated with {goal}"), ConditionState(False)
    updated = ConditionState(False)
    if not observed.goal.config:
        return ConditionState(False, "", "No configuration is rendered yet"), ConditionState(False)
    paused = bool((pool.get("spec") or {}).get("paused"))
    if observed.build is not None:
        return updated, _building(observed, goal, paused=paused, stopped=stopped)
    if paused:
        return updated, ConditionState(False, "", f"Pool is paused; will not update to {goal}")
    held = f"; waiting: {observed.waiting}" if observed.waiting else ""
    return updated, ConditionState(True, "", f"All nodes are updating to {goal}{held}")


def _building(observed: Observed, goal: str, *, paused: bool, stopped: bool) -> ConditionState:
    """`Updating` of a pool with an image of its own; a paused one still says that it builds."""
    build = observed.build or BuildPhase.INITIAL
    if paused:
        if build.under_way:
            return ConditionState(True, "", f"Pool is paused; its image for {goal} is being built and will wait")
        return ConditionState(False, "", f"Pool is paused; will not update to {goal}")
    if observed.build_problem:
        return ConditionState(False, "", f"The image for {goal} was not built: {observed.build_problem}")
    if stopped:
        return ConditionState(False, "", f"Pool is held because it is degraded; will not update to {goal}")
    if build.under_way:
        return ConditionState(True, "", f"Waiting for the image of the pool ({build}) before nodes update to {goal}")
    if build is BuildPhase.SUCCEEDED:
        held = f"; waiting: {observed.waiting}" if observed.waiting else ""
        return ConditionState(True, "", f"All nodes are updating to {goal}{held}")
    return ConditionState(False, "", f"The image for {goal} was not built ({build})")


def _node_degraded(degraded: Iterable[NodeFacts]) -> ConditionState:
    nodes = sorted(degraded, key=lambda node: node.name)
    if not nodes:
        return ConditionState(False)
    message = ", ".join(f'Node {node.name} is reporting: "{node.reason}"' for node in nodes)
    return ConditionState(True, f"{len(nodes)} nodes are reporting degraded status on sync", message)


def _described(goal: Goal) -> str:
    return f"MachineConfig {goal.config}" + (f" and image {goal.image}" if goal.image else "")


def _holds(pool: Object, kind: str) -> bool:
    conditions = (pool.get("status") or {}).get("conditions") or ()
    return any(entry.get("type") == kind and entry.get("status") == "True" for entry in conditions)
