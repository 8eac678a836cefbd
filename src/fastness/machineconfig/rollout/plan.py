"""What a change would do, before anything happens.

`plan` renders every pool twice, from the configs as they are and as they would be, and tells for each pool that differs: what
changes, by part and with content; what each node does about it and which change is the cause; in which order, in which wave of
the pool's RolloutPolicy and how many at a time; which disruption budgets would block; what cannot be reconciled. A change that
leads to the config that is there already gives an empty plan. `under_way` tells the same of a change that was accepted already.

A proposal may also bring KubeletConfigs and ContainerRuntimeConfigs: `generated.proposed` says which configs follow from them.

It is the same function for the command line, the page and the controllers, and uses only what those use to act: `render`, `diff`,
`disruption`, `rollout`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from fastness.kinds.fastness_dev.trust_model import TrustModel, trust_model
from fastness.kinds.objects import object_name
from fastness.machineconfig.overlay.merged import Laid
from fastness.machineconfig.overlay.targets import laid_on, overlay_targets
from fastness.machineconfig.render import reconcile
from fastness.machineconfig.render.blame import Blame
from fastness.machineconfig.render.errors import BadMaxUnavailable, Problem
from fastness.machineconfig.render.generated import Owners
from fastness.machineconfig.render.inputs import Defaults, with_stream
from fastness.machineconfig.render.registries.objects import RegistryObjects
from fastness.machineconfig.render.render import Rendered, RenderFailure, Setting, render, sources_of
from fastness.machineconfig.rollout.diff import ConfigChange, Part, compare
from fastness.machineconfig.rollout.disruption import REBOOT, Cause, Decision, Policies, decide, policies_of
from fastness.machineconfig.rollout.evictions import Blocker, blockers
from fastness.machineconfig.rollout.nodes import Goal, NodeFacts, facts
from fastness.machineconfig.rollout.rollout import max_unavailable
from fastness.machineconfig.rollout.waves import Schedule, schedule_of
from fastness.pools.membership import MemberPools, SeveralPools, pools_of_nodes

Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class State:
    """The cluster as it is; `nodes` is None where it is not known which machines there are."""

    pools: Sequence[Object]
    configs: Sequence[Object]
    nodes: Sequence[Object] | None = None
    pods: Sequence[Object] = ()
    budgets: Sequence[Object] = ()
    cluster: Object | None = None
    configuration: Object | None = None
    owners: Owners = field(default_factory=Owners)
    defaults: Defaults = field(default_factory=Defaults)
    policies: Sequence[Object] = ()
    streams: Object | None = None
    machines: Sequence[Object] = ()
    overlays: Sequence[Object] = ()
    registries: RegistryObjects = field(default_factory=RegistryObjects)
    os_configs: Sequence[Object] = ()
    os_builds: Sequence[Object] = ()


@dataclass(frozen=True, slots=True)
class Proposal:
    """MachineConfigs to apply and names of those to delete; `owners` are those after the change, None when they stay."""

    apply: Sequence[Object] = ()
    delete: Sequence[str] = ()
    owners: Owners | None = None

    def onto(self, configs: Iterable[Object]) -> list[Object]:
        """The configs as they would be."""
        gone = {*self.delete, *(object_name(config).name for config in self.apply)}
        return [*(config for config in configs if object_name(config).name not in gone), *self.apply]


@dataclass(frozen=True, slots=True)
class Step:
    """One change of a pool: where it comes from and what it asks of a machine."""

    change: ConfigChange
    source: str
    cause: Cause


@dataclass(frozen=True, slots=True)
class NodePlan:
    """What one node does: its decision, its batch and wave (from 1; 0 for a paused pool), and what would hold it up."""

    name: str
    current: str
    decision: Decision
    batch: int
    blockers: tuple[Blocker, ...] = ()
    note: str = ""
    wave: int = 1


@dataclass(frozen=True, slots=True)
class PoolPlan:
    """What changes for one pool. `failure` is set when nothing would be rendered."""

    pool: str
    trust: TrustModel
    before: str
    after: str = ""
    failure: str = ""
    guilty: tuple[str, ...] = ()
    steps: tuple[Step, ...] = ()
    decision: Decision = field(default_factory=Decision)
    nodes: tuple[NodePlan, ...] | None = None
    budget: int = 1
    paused: bool = False
    irreconcilable: tuple[reconcile.Irreconcilable, ...] = ()
    warnings: tuple[Problem, ...] = ()
    waves: Schedule | None = None

    @property
    def boot_loader(self) -> str:
        """What becomes of boot loaders with another image; empty where the image stays."""
        if not any(step.change.part is Part.OS_IMAGE for step in self.steps):
            return ""
        if self.trust is TrustModel.CONFIDENTIAL_CLUSTER:
            return "stays as it is: it is part of what these machines prove, and comes with their image alone"
        return "that of the new image comes too, as far as it can, on machines with Secure Boot"

    @property
    def reboots(self) -> bool:
        """Whether a machine goes down; where machines are not known, whether one would."""
        if self.failure or self.paused:
            return False
        return self.decision.reboot if self.nodes is None else any(node.decision.reboot for node in self.nodes)


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that a change would do; empty when it does nothing."""

    pools: tuple[PoolPlan, ...] = ()
    unclaimed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.pools)

    @property
    def reboots(self) -> bool:
        """Whether any machine goes down."""
        return any(pool.reboots for pool in self.pools)

    @property
    def fails(self) -> bool:
        """Whether some pool would not render."""
        return any(pool.failure for pool in self.pools)


def plan(state: State, proposal: Proposal, only: str = "") -> Plan:
    """What the proposal would do, for all pools or `only` one."""
    after = proposal.onto(state.configs)
    pools = [pool for pool in state.pools if only in ("", object_name(pool).name)]
    return _finished(state, (_pool_plan(pool, state, after, proposal.owners or state.owners) for pool in pools))


def under_way(state: State) -> Plan:
    """What is left of changes that were accepted: from the config that all machines of a pool had to the one it wants now."""
    configs = {object_name(config).name: config for config in state.configs}
    return _finished(state, (_accepted(pool, state, configs) for pool in state.pools))


def _finished(state: State, drafts: Iterable[_Draft | None]) -> Plan:
    members, unclaimed = _members(state)
    held: dict[str, tuple[Blocker, ...]] | None = None
    plans: list[PoolPlan] = []
    for planned in sorted(filter(None, drafts), key=lambda draft: draft.pool):
        mine = members.get(planned.pool, []) if members is not None else None
        if mine is not None and not planned.result_failed and held is None:
            held = blockers(state.pods, state.budgets)
        plans.append(planned.finish(mine, held or {}))
    return Plan(tuple(plans), unclaimed)


def _accepted(pool: Object, state: State, configs: Mapping[str, Object]) -> _Draft | None:
    """The pool if it wants another config than all its machines had, and both are there."""
    name = object_name(pool).name
    had, goes_to = (
        str(((pool.get(part) or {}).get("configuration") or {}).get("name") or "") for part in ("status", "spec")
    )
    if had == goes_to or had not in configs or goes_to not in configs:
        return None
    blame = Blame(sources_of(pool, state.configs))
    before, after = (
        Rendered(name, rendered, dict(_spec(configs[rendered])), (), blame, 0) for rendered in (had, goes_to)
    )
    return _Draft(pool, state, trust_model(state.cluster, name), before, after)


def _members(state: State) -> tuple[dict[str, list[NodeFacts]] | None, tuple[str, ...]]:
    """The nodes of every pool, and those that several custom pools claim, which therefore get nothing."""
    if state.nodes is None:
        return None, ()
    pools = MemberPools(state.pools, pools_of_nodes(state.machines), state.cluster)
    members: dict[str, list[NodeFacts]] = {}
    unclaimed: list[str] = []
    for node in state.nodes:
        try:
            primary = pools.of(node).primary
        except SeveralPools:
            unclaimed.append(object_name(node).name)
            continue
        members.setdefault(primary, []).append(facts(node))
    return members, tuple(sorted(unclaimed))


@dataclass(frozen=True, slots=True)
class _Draft:
    """A pool that changes, before its nodes are looked at."""

    pool_object: Object
    state: State
    trust: TrustModel
    before: Rendered | RenderFailure
    after: Rendered | RenderFailure

    @property
    def pool(self) -> str:
        return object_name(self.pool_object).name

    @property
    def result_failed(self) -> bool:
        return isinstance(self.after, RenderFailure)

    def finish(self, members: list[NodeFacts] | None, held: Mapping[str, tuple[Blocker, ...]]) -> PoolPlan:
        running = _running(self.pool_object, self.state.configs)
        before = self.before.name if isinstance(self.before, Rendered) else object_name(running or {}).name
        if isinstance(self.after, RenderFailure):
            stuck = tuple(
                reconcile.Irreconcilable(problem.field, problem.reason, problem.way_out)
                for problem in self.after.problems
                if problem.code == "irreconcilable"
            )
            return PoolPlan(
                self.pool,
                self.trust,
                before,
                failure=self.after.message,
                guilty=self.after.guilty,
                irreconcilable=stuck,
            )
        return self._rendered(self.after, before, _spec(running), members, held)

    def _rendered(
        self,
        after: Rendered,
        before: str,
        running: Object,
        members: list[NodeFacts] | None,
        held: Mapping[str, tuple[Blocker, ...]],
    ) -> PoolPlan:
        policies = policies_of(self.state.configuration)
        base = self.before.spec if isinstance(self.before, Rendered) else running
        decision = decide(compare(base, after.spec), policies)
        old_blame = self.before.blame if isinstance(self.before, Rendered) else after.blame
        steps = tuple(
            Step(cause.change, origin_of(cause.change, after.blame) or origin_of(cause.change, old_blame), cause)
            for cause in decision.causes
        )
        paused = bool(_spec(self.pool_object).get("paused"))
        budget = _budget(self.pool_object, len(members or ()))
        nodes, schedule = None, schedule_of(self.pool_object, self.state.policies, len(members or ()))
        if members is not None:
            # A node that has not reported yet is taken to have what its pool has.
            expected = {before: (base, decision), "": (base, decision), after.name: (after.spec, Decision())}
            deciding = _Deciding(self.state, after, policies, expected)
            goal = Goal(after.name, overlays=overlay_targets(self.state.machines, self.state.overlays))
            nodes = _nodes(members, goal, deciding, _Pace(budget, schedule, paused), held)
        return PoolPlan(
            self.pool,
            self.trust,
            before,
            after.name,
            steps=steps,
            decision=decision,
            nodes=nodes,
            budget=budget,
            paused=paused,
            irreconcilable=after.tolerated,
            warnings=after.warnings,
            waves=schedule,
        )


def _pool_plan(pool: Object, state: State, after: Sequence[Object], owners: Owners) -> _Draft | None:
    """The pool if the proposal changes what it renders to, or whether it renders."""
    trust = trust_model(state.cluster, object_name(pool).name)
    defaults, _, missing = with_stream(state.defaults, pool, state.pools, state.streams)
    setting = Setting(defaults=defaults, trust=trust, obstacle=missing)
    was = render(pool, state.configs, setting)
    current = _running(pool, state.configs)
    if current is None and isinstance(was, Rendered):
        # No machine has a config of this pool yet; what it would render to without the proposal is the nearest there is.
        current = {"metadata": {"name": was.name}, "spec": was.spec}
    overrides = reconcile.overrides_of(state.configuration)
    will = render(
        pool,
        after,
        Setting(defaults, trust, current, overrides, obstacle=missing),
    )
    if isinstance(was, Rendered) and isinstance(will, Rendered) and was.name == will.name:
        return None
    if isinstance(was, RenderFailure) and isinstance(will, RenderFailure) and was.message == will.message:
        return None
    return _Draft(pool, state, trust, was, will)


class _Deciding:
    """What a node on some config does to reach the new one; decided once per config and overlays, not per node.

    A machine has its overlays on top of both: what they cover up changes nothing there.
    """

    def __init__(
        self, state: State, after: Rendered, policies: Policies, expected: Mapping[str, tuple[Object, Decision]]
    ) -> None:
        """`expected` are the configs that nodes have as a rule, each with what one without overlays does."""
        self._state = state
        self._after = after
        self._policies = policies
        self._expected = expected
        self._laid = laid_on(state.machines, state.overlays)
        self._decided = {(name, ""): (decision, "") for name, (_, decision) in expected.items()}
        self._configs: dict[str, Object] | None = None

    def of(self, node: NodeFacts) -> tuple[Decision, str]:
        """The decision and a remark about it."""
        key = (node.current, self._laid[node.name].digest if node.name in self._laid else "")
        if key not in self._decided:
            self._decided[key] = self._decide(node.current, self._laid.get(node.name, Laid()))
        return self._decided[key]

    def _decide(self, current: str, laid: Laid) -> tuple[Decision, str]:
        spec, remark = self._expected[current][0] if current in self._expected else None, ""
        if spec is None:
            if self._configs is None:
                self._configs = {object_name(config).name: config for config in self._state.configs}
            if current not in self._configs:
                # The worst case: a plan that promised less than what happens would be worse than none.
                return Decision(REBOOT, True), f"its config {current} is not known here: a reboot is assumed"
            spec, remark = _spec(self._configs[current]), f"it has {current}"
        before, after = (laid.over({"spec": dict(side)})["spec"] for side in (spec, self._after.spec))
        named = ", ".join(version.partition("@")[0] for version in laid.versions)
        on_top = f"with overlay{'s' * (len(laid.versions) > 1)} {named} on top" if named else ""
        return decide(compare(before, after), self._policies), "; ".join(filter(None, (remark, on_top)))


@dataclass(frozen=True, slots=True)
class _Pace:
    """How fast a pool goes: so many at a time, in waves if it follows a policy, not at all while it is paused."""

    budget: int
    schedule: Schedule | None
    paused: bool

    def places(self, arrived: int, going: int) -> Iterator[tuple[int, int]]:
        """Wave and batch of each node that goes, in order; a batch never reaches into the next wave."""
        wave, batch, used = 1, 0, self.budget
        for index in range(going):
            if self.paused:
                yield 0, 0
                continue
            now = self.schedule.wave_of(arrived + index) if self.schedule else 1
            if now != wave or used >= self.budget:
                wave, batch, used = now, batch + 1, 0
            used += 1
            yield wave, batch


def _nodes(
    members: list[NodeFacts],
    goal: Goal,
    deciding: _Deciding,
    pace: _Pace,
    held: Mapping[str, tuple[Blocker, ...]],
) -> tuple[NodePlan, ...]:
    going = sorted((node for node in members if not node.updated(goal)), key=lambda node: node.age_order)
    plans: list[NodePlan] = []
    for node, (wave, batch) in zip(going, pace.places(len(members) - len(going), len(going)), strict=True):
        decision, note = deciding.of(node)
        waiting = held.get(node.name, ()) if decision.drain and not pace.paused else ()
        if not node.ready:
            note = "; ".join(filter(None, (note, "it is not ready and waits until it is")))
        plans.append(NodePlan(node.name, node.current, decision, batch, waiting, note, wave))
    return tuple(plans)


_ORIGIN_NAMES: Final = {Part.KERNEL_TYPE: "kernelType", Part.FIPS: "fips", Part.OS_IMAGE: "osImageURL"}


def origin_of(change: ConfigChange, blame: Blame) -> str:
    """The config that brought a change; for lists all who have something in them."""
    match change.part:
        case Part.KERNEL_ARGUMENTS | Part.EXTENSIONS:
            kind = "kernelArgument" if change.part is Part.KERNEL_ARGUMENTS else "extension"
            named = dict.fromkeys(origin.source for origin in blame.origins if origin.kind == kind)
            return ", ".join(named)
        case Part.KERNEL_TYPE | Part.FIPS | Part.OS_IMAGE:
            field = _ORIGIN_NAMES[change.part]
            return next((origin.source for origin in blame.origins if origin.name == field), "")
        case _:
            name = change.path.partition("/")[2] if change.part is Part.STORAGE else change.path
            return next((origin.source for origin in blame.of(name) if origin.name == name), "")


def _running(pool: Object, configs: Iterable[Object]) -> Object | None:
    """The rendered config that the machines have: the last that all of them had, or else the one that the pool points at."""
    parts = ((pool.get(part) or {}).get("configuration") or {} for part in ("status", "spec"))
    rendered = next((part["name"] for part in parts if part.get("name")), "")
    if not rendered:
        return None
    return next((config for config in configs if object_name(config).name == rendered), None)


def _budget(pool: Object, size: int) -> int:
    try:
        return max_unavailable(pool, size)
    # A plan still shows something: with an unreadable budget nothing starts, and the status of the pool says so.
    except BadMaxUnavailable:
        return 1


def _spec(obj: Object | None) -> Object:
    spec = (obj or {}).get("spec")
    return spec if isinstance(spec, Mapping) else {}
