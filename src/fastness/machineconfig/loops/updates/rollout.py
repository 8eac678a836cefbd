"""The rollout of a pool: who goes next, and what the pool reports.

For one pool at a time: `pool_members.py` has its nodes, the policy says how many may go, `rollout/rollout.py` chooses them, and
each gets the name of its next config as an annotation. The agent on the node does the rest. Rules:

* A paused or deleted pool only reports. A pool without a rendered config waits.
* What was chosen is counted at once, before the informer shows it, so that two reconciles in a row never exceed the budget.
* A machine that tries for longer than its RolloutPolicy allows stays with what it has, and is not told the same again.
* Waves of a RolloutPolicy survive a restart in an annotation of the pool.
* Taking a bad config back retargets every node that failed on it: undo always recovers.
* In a pool that enforces attestation a node whose machine is not attested is left where it is. It uses up no budget, unless it
  was on its way to the goal, and the pool names it. What a Machine is sent to is written on it first: the doors give it that and
  nothing else.
* What a node goes to is the config of its pool with the NodeOverlays for its machine: a change of these is one more update, under
  the same budget, in the same waves. Where they cannot be merged the node stays where it is.
* A pool with a MachineOSConfig goes to the image that was built for its config, and nowhere before there is one.
* Of masters, the node that runs a machine-config operator goes last. Where an arbiter shares the quorum, masters and arbiter are
  never unavailable together.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from fastness.formats import json
from fastness.formats.errors import FormatError
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.kubernetes.core import NODE, POD
from fastness.kinds.machineconfiguration import names
from fastness.kinds.machineconfiguration.pinned_images import OS_IMAGE_STREAM
from fastness.kinds.machineconfiguration.pool import MACHINE_CONFIG_POOL
from fastness.kinds.objects import ObjectName, annotations_of, is_being_deleted, object_name
from fastness.kinds.openshift.config import INFRASTRUCTURE
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.admission import Allowed, Denied
from fastness.kube.controllers.controller import GONE, Done, Object, Source
from fastness.kube.controllers.statuses import write_status
from fastness.kube.errors import Conflict, NotFound
from fastness.kube.events import EVENTS, Recorder
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster, PatchType, Scope, WriteOptions
from fastness.machineconfig.loops.timing import FIELD, Timing
from fastness.machineconfig.loops.updates.built_images import BuiltImages, ImageModes
from fastness.machineconfig.loops.updates.holds import ImageGate, Proofs, node_name_of
from fastness.machineconfig.loops.updates.overlay_targets import OverlayTargets
from fastness.machineconfig.loops.updates.policies import POLICIES, PolicyReports
from fastness.machineconfig.loops.updates.pool_members import Memberships, PoolMembers
from fastness.machineconfig.render.errors import BadMaxUnavailable, BadPolicy
from fastness.machineconfig.render.inputs import stream_of_image
from fastness.machineconfig.rollout import rollout, try_for, waves
from fastness.machineconfig.rollout.built import Built, pool_of_build
from fastness.machineconfig.rollout.nodes import (
    Goal,
    NodeFacts,
    facts,
    first_pool,
    selector_labels,
    taint_change,
    unmarked_taints,
)
from fastness.machineconfig.rollout.status import Observed, all_updated, pool_status
from fastness.machineconfig.rollout.wave_status import PoolProgress
from fastness.pools.membership import selects_all
from fastness.runtime.clock import Clock

OPERATOR_PODS = "k8s-app=machine-config-operator"
WAVES = "fastness.dev/rollout-waves"
EVERY = ObjectName("", "*")
_QUORUM = {names.MASTER, names.ARBITER}
ABREAST = 32
_AS = WriteOptions(manager="machine-config-rollout")
_STATUS = WriteOptions(manager="machine-config-rollout", subresource="status")


def _all_pools(_obj: Object) -> Iterable[ObjectName]:
    return (EVERY,)


def _pool_of_build(obj: Object) -> Iterable[ObjectName]:
    return (ObjectName("", pool_of_build(obj)),)


class Rollout:
    """Brings the nodes of every pool to its config, a few at a time."""

    name = "machine-config-rollout"
    writes: Sequence[Resource] = (MACHINE_CONFIG_POOL.resource, NODE.resource, POLICIES, MACHINE.resource, EVENTS)

    def __init__(self, cluster: Cluster, informers: Informers, clock: Clock, timing: Timing = FIELD) -> None:
        self.sources: Sequence[Source] = (
            Source(MACHINE_CONFIG_POOL.resource, delay=timing.rollout_delay),
            Source(NODE.resource, keys=self._pools_of, delay=timing.rollout_delay),
            Source(POLICIES, keys=_all_pools, delay=timing.rollout_delay),
            Source(INFRASTRUCTURE.resource, keys=_all_pools, delay=timing.rollout_delay),
            Source(OS_IMAGE_STREAM.resource, keys=_all_pools, delay=timing.rollout_delay),
            *(Source(read_kind, keys=_all_pools, delay=timing.rollout_delay) for read_kind in ImageGate.reads),
            *(Source(read_kind, keys=_all_pools, delay=timing.rollout_delay) for read_kind in OverlayTargets.reads),
            *(Source(read_kind, keys=_pool_of_build, delay=timing.rollout_delay) for read_kind in BuiltImages.reads),
            *(Source(read_kind, keys=_all_pools, delay=timing.rollout_delay) for read_kind in ImageModes.reads),
            Source(MACHINE.resource, keys=self._pools_of_machine, delay=timing.rollout_delay),
            Source(CONFIDENTIAL_CLUSTER.resource, keys=self._pools_asked, delay=timing.rollout_delay),
        )
        self._cluster = cluster
        self._clock = clock
        self._recorder = Recorder(cluster, self.name, clock)
        self._pools = informers.of(MACHINE_CONFIG_POOL.resource)
        self._policies = informers.of(POLICIES)
        self._infrastructures = informers.of(INFRASTRUCTURE.resource)
        self._streams = informers.of(OS_IMAGE_STREAM.resource)
        self._images = ImageGate(informers, clock)
        self._built = BuiltImages(informers)
        self._proofs = Proofs(informers, clock)
        self._overlays = OverlayTargets(informers)
        self._held: dict[str, str] = {}
        self._unassigned: set[str] = set()
        self._demands: object = None
        self._reports = PolicyReports(cluster, self._policies, clock)
        self._memberships = Memberships(self._proofs.pool, self._proofs.enforces)
        self._concerned: dict[str, set[str]] = {}
        self._moved: dict[str, set[str]] = {}
        informers.of(MACHINE_CONFIG_POOL.resource).subscribe(
            lambda _old, _new: self._memberships.pools_changed(self._pools.list())
        )
        informers.of(NODE.resource).subscribe(self._node_changed)
        informers.of(MACHINE.resource).subscribe(self._machine_changed)

    def _node_changed(self, old: JsonObject | None, new: JsonObject | None) -> None:
        concerned = self._memberships.node_changed(old, new)
        name = object_name(new or old or {}).name
        if new is None:
            self._concerned.pop(name, None)
            self._held.pop(name, None)
            self._proofs.forget(name)
        else:
            self._concerned[name] = concerned
        self._compare(name)

    def _machine_changed(self, old: JsonObject | None, new: JsonObject | None) -> None:
        for name in {node_name_of(machine) for machine in (old, new) if machine is not None} - {""}:
            moved = self._memberships.machine_changed(name)
            if len(moved) > 1:
                self._moved[name] = moved
            self._compare(name)

    def _compare(self, name: str) -> None:
        """Remember a node whose Machine does not say yet what the node was told."""
        node = facts(self._memberships.node(name) or {})
        astray = bool(node.desired) and not self._proofs.is_assigned(node)
        (self._unassigned.add if astray else self._unassigned.discard)(name)

    def _pools_of_machine(self, machine: Object) -> Iterable[ObjectName]:
        """The pool of a Machine's node, when that may go now and could not before, or goes to other overlays."""
        name = node_name_of(dict(machine))
        if name in self._moved:
            return [ObjectName("", pool) for pool in sorted(self._moved.pop(name))]
        pool = self._memberships.pool_of(name)
        if not pool:
            return ()
        why = self._proofs.unproved(name) if self._proofs.enforces(pool) else None
        overlay = self._memberships.members(pool).goal.overlays.get(name, "")
        same = why == self._held.get(name) and overlay == self._overlays.digest(name)
        if same and name not in self._unassigned:
            return ()
        return (ObjectName("", pool),)

    def _pools_asked(self, _cluster: Object) -> Iterable[ObjectName]:
        """All pools when the cluster asks for something else."""
        asks = self._proofs.asks()
        if asks == self._demands:
            return ()
        self._demands = asks
        self._memberships.demands_changed()
        return (EVERY,)

    def _pools_of(self, node: Object) -> Iterable[ObjectName]:
        """The pools that the last change of a node concerns: where it was, where it is, all that claim it."""
        name = object_name(node).name
        conflict = self._memberships.conflicts.get(name)
        pools = {*self._concerned.get(name, ()), *(conflict.pools if conflict is not None else ())}
        if pools & _QUORUM and self._topology() == names.HIGHLY_AVAILABLE_ARBITER:
            pools |= _QUORUM  # one waits for the other
        return [ObjectName("", pool) for pool in sorted(pools)] or (EVERY,)

    async def reconcile(self, key: ObjectName) -> Done:
        """One step for one pool."""
        if key == EVERY:
            again = [await self._sync(pool) for pool in self._pools.list()]
            waits = [done.again_after for done in again if done.again_after is not None]
            return Done(again_after=min(waits) if waits else None)
        pool = self._pools.get("", key.name)
        if pool is None:
            await self._reports.tell(key.name, "", None)
            return GONE
        return await self._sync(pool)

    async def _sync(self, pool: JsonObject) -> Done:
        name = object_name(pool).name
        self._memberships.pools_changed(self._pools.list())
        members = self._memberships.members(name)
        goal, built = self._goal(pool, members), self._built.of(pool)
        members.aim(goal)
        if selects_all(pool):
            await self._recorder.warning(
                pool, names.Event.SELECTING_ALL, "the node selector is empty and would take every node"
            )
            return Done()
        await self._tell_conflicts(pool)
        waiting, until = "", None
        policy = waves.policy_of(pool, self._policies.list())
        progress: PoolProgress | None = None
        held = (
            is_being_deleted(pool) or (pool.get("spec") or {}).get("paused") or (built is not None and not built.ready)
        )
        if goal.config and not held:
            progress = await self._advance(pool, members, goal, policy)
            waiting, until = progress.why, progress.look_again
        await self._report(pool, members, goal, built, waiting)
        await self._reports.tell(name, object_name(policy).name if policy else "", progress)
        return Done(again_after=max(0.0, (until - self._clock.now()).total_seconds()) if until else None)

    def _goal(self, pool: JsonObject, members: PoolMembers) -> Goal:
        """What the nodes of a pool should have: the config of the pool, each with its own overlays."""
        config = ((pool.get("spec") or {}).get("configuration") or {}).get("name") or ""
        built = self._built.of(pool)
        return Goal(config, built.image if built is not None else "", self._overlays.of(members.nodes))

    async def _tell_conflicts(self, pool: JsonObject) -> None:
        """Say which nodes no pool can have because several claim them."""
        name = object_name(pool).name
        for conflict in self._memberships.conflicts.values():
            if name in conflict.pools:
                text = f"{conflict.message} ({conflict.hint})"
                await self._recorder.warning(pool, names.Event.POOL_CONFLICT, text)
        for node in sorted(node for node, labelled in self._memberships.astray.items() if labelled == name):
            text = f"labels put node {node} here, and its machine belongs to pool {self._memberships.pool_of(node) or 'none'}"
            hint = "take the labels away, or move the machine with `fastness machine move`"
            await self._recorder.warning(pool, names.Event.POOL_CONFLICT, f"{text} ({hint})")

    async def _advance(self, pool: JsonObject, members: PoolMembers, goal: Goal, policy: Object | None) -> PoolProgress:
        """Tell the next nodes where to go; how far the pool is, and why the others wait."""
        unproved = self._unproved(object_name(pool).name, members)
        try:
            budget = rollout.max_unavailable(pool, len(members.nodes))
            patience = try_for.patience_of(policy)
            until = await self._give_up(members, goal, patience)
            moving = tuple(node for node in members.nodes.values() if node.name not in unproved)
            held = waves.hold(policy, moving, goal, self._clock.now(), _state_of(pool))
        except (BadMaxUnavailable, BadPolicy) as error:
            return PoolProgress(problem=str(error), why=str(error))
        await self._mark(members, goal)
        await self._assign_late(pool, members, goal)
        # One that was sent to the goal and does not prove itself there keeps its place: a second one would fare no better.
        out = {name for name in unproved if not (members.nodes[name].moving and members.nodes[name].targets(goal))}
        behind = [node for node in members.behind() if node.name not in out and not self._is_elsewhere(node.name)]
        last = await self._operator_node(pool, len(behind))
        choice = rollout.candidates(
            behind, goal, budget, operator_node=last,
            unavailable=members.counts.unavailable - sum(members.nodes[name].unavailable for name in out),
            hold=try_for.not_again(goal, rollout.mergeable(goal, self._images.hold(object_name(pool).name, goal))),
        )  # fmt: skip
        choice = held.limit(choice)
        if choice.deferred:
            text = f"{choice.deferred} runs the operator and goes last"
            await self._recorder.normal(pool, names.Event.DEFERRING_OPERATOR_NODE, text)
        access = self._quorum(object_name(pool).name)
        if isinstance(access, Denied):
            # Who is called back only stops trying, which takes nothing from a quorum.
            back = tuple(node for node in choice.nodes if rollout.called_back(node, goal))
            choice = replace(choice, nodes=back, why=access.message)
        await self._remember(pool, held.state)
        await _abreast([self._target(pool, members, node, goal, timed=patience is not None) for node in choice.nodes])
        if patience is not None and choice.nodes:
            until = min(until or self._clock.now() + patience, self._clock.now() + patience)
        complete = members.counts.updated == members.counts.total
        why = held.stopped or held.waiting or ("" if unproved and not behind else choice.why)
        why = "; ".join(text for text in (why, rollout.held_text(unproved)) if text)
        return PoolProgress(held, complete, why=why, deadline=until)

    def _unproved(self, pool: str, members: PoolMembers) -> dict[str, str]:
        """The nodes that stay where they are because nobody knows what runs there, and why."""
        for name in [name for name in self._held if self._memberships.pool_of(name) == pool]:
            del self._held[name]
        if not self._proofs.enforces(pool):
            return {}
        reasons = ((node.name, self._proofs.unproved(node.name)) for node in members.unsettled())
        blocked = {name: why for name, why in reasons if why is not None}
        self._held |= blocked
        return blocked

    async def _assign(self, pool: JsonObject, node: NodeFacts, goal: Goal) -> bool:
        """Say on the Machine of a node where it is sent to, before the node hears of it; False when the Machine is gone."""
        spec, status = pool.get("spec") or {}, pool.get("status") or {}
        served = {str((part.get("configuration") or {}).get("name") or "") for part in (spec, status)}
        change = self._proofs.assigned(node, goal, served)
        if change is None:
            return True
        machine, patch = change
        written = await self._patch(MACHINE.resource, object_name(machine).name, patch, _STATUS, NAMESPACE)
        return written is not None

    async def _assign_late(self, pool: JsonObject, members: PoolMembers, goal: Goal) -> None:
        """Machines whose nodes came with the goal from their first boot: nobody had to tell them."""
        late = [members.nodes[name] for name in sorted(self._unassigned) if name in members.nodes]
        await _abreast([self._assign(pool, node, goal) for node in late if node.targets(goal)])

    async def _give_up(self, members: PoolMembers, goal: Goal, patience: timedelta | None) -> datetime | None:
        """Tell who has tried for too long to stay with what it has; when the next one will have."""
        now = self._clock.now()
        trials = try_for.trying(members.nodes.values(), goal, patience, now)
        stamps = [(node, {"metadata": {"annotations": try_for.timing(node, goal, now)}}) for node in trials.untimed]
        await _abreast([self._patch(NODE.resource, node.name, stamp, _AS) for node, stamp in stamps])
        for node in trials.overdue:
            written = await self._patch(NODE.resource, node.name, try_for.back_patch(node, goal), _AS)
            if written is not None:
                members.put(
                    replace(
                        members.nodes.get(node.name, node), desired=node.current, desired_image=node.current_image,
                        desired_overlay=node.current_overlay, gave_up=goal.target(node),
                    )
                )  # fmt: skip
                text = f"{node.name} did not reach {goal.target(node)} in time and stays with {node.current}"
                await self._recorder.warning({"apiVersion": "v1", "kind": "Node", **written}, names.Event.GAVE_UP, text)
        return trials.until

    def _is_elsewhere(self, name: str) -> bool:
        """Whether a node booted into a custom pool whose labels it is about to get (`nodes/labels.py`)."""
        pool = self._pools.get("", first_pool(self._memberships.node(name) or {}))
        return pool is not None and selector_labels(pool) is not None

    def _topology(self) -> str:
        infrastructure = self._infrastructures.get("", "cluster") or {}
        return str((infrastructure.get("status") or {}).get("controlPlaneTopology") or "")

    def _quorum(self, name: str) -> Allowed | Denied:
        """Whether a pool may go on that shares the quorum with another; without an arbiter none does."""
        if self._topology() != names.HIGHLY_AVAILABLE_ARBITER or name not in _QUORUM:
            return Allowed()
        master = self._pools.get("", names.MASTER) or {}
        goal = self._goal(master, self._memberships.members(names.MASTER))
        masters, arbiters = (
            self._memberships.members(pool_name).nodes.values() for pool_name in (names.MASTER, names.ARBITER)
        )
        paused = bool((master.get("spec") or {}).get("paused"))
        return rollout.quorum_allows(name, rollout.Quorum(tuple(masters), tuple(arbiters), goal, paused))

    async def _operator_node(self, pool: JsonObject, waiting: int) -> str:
        """The master that runs an operator; asked for only where it makes a difference."""
        if object_name(pool).name != names.MASTER or waiting < 2:
            return ""
        pods = (await self._cluster.list(POD.resource, Scope(labels=OPERATOR_PODS))).items
        return next((str(pod["spec"]["nodeName"]) for pod in pods if (pod.get("spec") or {}).get("nodeName")), "")

    async def _remember(self, pool: JsonObject, state: waves.WaveState) -> None:
        """Keep the place in the waves where a restart finds it."""
        if state == _state_of(pool) or (state.wave == 0 and WAVES not in annotations_of(pool)):
            return
        since = state.complete_since.isoformat() if state.complete_since else ""
        text = json.encode({"goal": state.goal, "wave": state.wave, "since": since}).decode() if state.wave else None
        await self._patch(
            MACHINE_CONFIG_POOL.resource, object_name(pool).name, {"metadata": {"annotations": {WAVES: text}}}, _AS
        )

    async def _mark(self, members: PoolMembers, goal: Goal) -> None:
        """Ask the scheduler to avoid nodes that will be disturbed soon."""
        patches: list[tuple[str, JsonObject]] = []
        for name in members.mismarked():
            node = self._memberships.node(name)
            taints = taint_change(node, goal) if node is not None else None
            if node is not None and taints is not None:
                version = node["metadata"]["resourceVersion"]
                patches.append((name, {"metadata": {"resourceVersion": version}, "spec": {"taints": taints or None}}))
        await _abreast([self._taint(name, patch) for name, patch in patches])

    async def _taint(self, name: str, patch: JsonObject) -> None:
        """A node that moved on in between is seen again, so a mark may wait."""
        with suppress(Conflict):
            await self._patch(NODE.resource, name, patch, _AS)

    async def _target(
        self, pool: JsonObject, members: PoolMembers, node: NodeFacts, goal: Goal, *, timed: bool
    ) -> None:
        if not await self._assign(pool, node, goal):
            return
        patch = rollout.target_patch(node, goal)
        if timed:
            patch["metadata"]["annotations"] |= try_for.timing(node, goal, self._clock.now())
        if topology := self._topology():
            patch["metadata"]["annotations"][names.CONTROL_PLANE_TOPOLOGY] = topology
        written = await self._send(node.name, patch)
        if written is None:
            return
        overlay = goal.overlay(node)
        # Over what is known by now: while this was written its agent may have reported, and nobody would say that twice.
        latest = members.nodes.get(node.name, node)
        members.put(replace(latest, desired=goal.config, desired_image=goal.image or None, desired_overlay=overlay))
        about = {"apiVersion": "v1", "kind": "Node", **written}
        with_overlays = f" with overlays {overlay}" if overlay else ""
        of_image = f" and image {goal.image}" if goal.image else ""
        event = names.Event.SET_DESIRED_CONFIG_AND_IMAGE if goal.image else names.Event.SET_DESIRED_CONFIG
        await self._recorder.normal(about, event, f"Set {node.name} to use {goal.config}{with_overlays}{of_image}")

    async def _send(self, name: str, patch: JsonObject) -> JsonObject | None:
        """Tell a node where to go; the mark that it waits goes with the same write, unless somebody wrote the node meanwhile."""
        node = self._memberships.node(name)
        taints = unmarked_taints(node) if node is not None else None
        if node is not None and taints is not None:
            meta = {**patch["metadata"], "resourceVersion": node["metadata"]["resourceVersion"]}
            with suppress(Conflict):
                return await self._patch(
                    NODE.resource, name, {**patch, "metadata": meta, "spec": {"taints": taints or None}}, _AS
                )
        return await self._patch(NODE.resource, name, patch, _AS)

    async def _report(
        self, pool: JsonObject, members: PoolMembers, goal: Goal, built: Built | None, waiting: str
    ) -> None:
        phase, reason, problem = (
            (built.phase, built.reason, built.problem) if built is not None else (None, *self._built.problem(pool))
        )
        stream = stream_of_image(goal.image or self._images.image(goal.config), self._streams.get("", "cluster"))
        observed = Observed(members.counts, members.degraded(), goal, phase, waiting, stream, reason, problem)
        now, before = self._clock.now(), pool.get("status") or {}

        def change(current: JsonObject) -> JsonObject:
            status, present = pool_status(current, observed, now), current.get("status") or {}
            return {name: value for name, value in status.items() if present.get(name) != value}

        if not change(pool):
            return
        await write_status(self._cluster, MACHINE_CONFIG_POOL.resource, pool, change, _STATUS)
        if all_updated(observed) and (before.get("configuration") or {}).get("name") != goal.config and goal.config:
            await self._recorder.normal(
                pool, names.Event.COMPLETED, f"pool {object_name(pool).name} has completed update to {goal.config}"
            )

    async def _patch(
        self, resource: Resource, name: str, patch: JsonObject, options: WriteOptions, namespace: str = ""
    ) -> JsonObject | None:
        """Patch an object; None when it is gone."""
        try:
            return await self._cluster.patch(resource, name, patch, PatchType.MERGE, namespace, options)
        except NotFound:
            return None


async def _abreast(works: Sequence[Coroutine[Any, Any, object]]) -> None:
    """Do many writes, some at a time: they share commits and waits. Raises the first failure of a batch when it is over."""
    for first in range(0, len(works), ABREAST):
        results = await asyncio.gather(*works[first : first + ABREAST], return_exceptions=True)
        for failure in results:
            if isinstance(failure, BaseException):
                for rest in works[first + ABREAST :]:
                    rest.close()
                raise failure


def _state_of(pool: JsonObject) -> waves.WaveState:
    """Where the waves of a pool are; the beginning when the annotation is missing or nonsense."""
    text = annotations_of(pool).get(WAVES, "")
    if not text:
        return waves.WaveState()
    try:
        stored = json.decode(text.encode())
        since = datetime.fromisoformat(stored["since"]) if stored.get("since") else None
        return waves.WaveState(str(stored["goal"]), int(stored["wave"]), since)
    except (FormatError, ValueError, KeyError, TypeError):
        return waves.WaveState()
