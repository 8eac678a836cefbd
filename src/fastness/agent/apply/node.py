"""The loop of one node: recover, follow the desired config, report.

    run ─ recover ─ sync ─┬─ settled: validate, uncordon, Done, watch for drift
                          ├─ update: see update.py ─ reboot or settled
                          └─ failure: Degraded with the reason, again after a pause or at once when something changes

- Before the first word to the cluster the journal is clean: an interrupted update was undone or is completed.
- The disk says what is current; the node's annotation says what is desired.
- Our cache of the node may be behind: a watch that reconnects replays what was desired before. Before anything is touched, the
  API itself says that the config is still desired, at a moment at which the rollout already counts this node as working; and
  once more when the drain is over.
- `run` returns when the machine goes down; whoever runs a virtual machine starts it again. On a real machine the process ends
  with it.
- Stopping waits for the step that is under way: half an update is never left behind on purpose.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from fastness.agent.apply import disk
from fastness.agent.apply.apply import Applier
from fastness.agent.apply.boots import After, Boots, Resumed
from fastness.agent.apply.built_image import with_image
from fastness.agent.apply.cluster import ApiConfigs, OwnNode, RenderedConfigs, desired_overlay, desires
from fastness.agent.apply.desired import Desired
from fastness.agent.apply.disk_check import DRIFT_POLICY, DiskCheck
from fastness.agent.apply.drift import DriftMonitor
from fastness.agent.apply.journal import Phase
from fastness.agent.apply.node_trust import NodeTrustKeeper
from fastness.agent.apply.pins.loop import PinnedImages
from fastness.agent.apply.pins.plan import Pace
from fastness.agent.apply.ports import Host
from fastness.agent.apply.progress import FALSE, TRUE, UNKNOWN, Mark
from fastness.agent.apply.report import Persistent, Reporter
from fastness.agent.apply.trial import WINDOW, Trial, require_kubelet
from fastness.agent.apply.trust_writer import TrustWriter
from fastness.agent.apply.update import Goal, Update, applied, run_actions
from fastness.agent.errors import (
    AgentError,
    BootFailed,
    DrainTimeout,
    Irreconcilable,
    SetAside,
    Superseded,
)
from fastness.agent.host.errors import DriverError
from fastness.formats.image_reference import same_image
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.machineconfiguration.names import Progress
from fastness.kinds.objects import annotations_of
from fastness.kinds.operator_openshift.machine_configuration import MACHINE_CONFIGURATION
from fastness.kinds.trusted_execution.machine import MOVED, NOTE
from fastness.kube.client.pool import certificate_problem
from fastness.kube.errors import ApiError, NotFound
from fastness.kube.port import Cluster
from fastness.machineconfig.rollout.nodes import drain_request
from fastness.observe.logs import logger
from fastness.runtime.clock import Clock, Entropy
from fastness.runtime.retries import Backoff
from fastness.runtime.tasks import uninterrupted

# The annotation is for many to write, and each proof is work for the broker and an entry of the record.
PROOF_GAP: Final = 60.0
_RETRY: Final = Backoff(first=1.0, most=60.0)
_PINS: Final = Pace()
_WATCHED: Final = (
    names.DESIRED_CONFIG, names.DESIRED_OVERLAY, names.DESIRED_IMAGE, names.DESIRED_TRUST, names.LAST_APPLIED_DRAIN,
    names.OS_DRIVER_RULE, DRIFT_POLICY, NOTE,
)  # fmt: skip
_EMPTY: Final = Goal({}, Desired())
_log = logger("agent")


@dataclass(frozen=True, slots=True)
class Settings:
    """How long an agent waits for what, in seconds. The defaults are those that users of machine configuration know."""

    drain_timeout: float = 3600.0
    uncordon_timeout: float = 600.0
    retry: Backoff = _RETRY
    resync: float = 600.0
    drift_settle: float = 0.2
    kubelet_window: float = 300.0
    trial: float = WINDOW
    pins: Pace = _PINS


FAST: Final = Settings(
    drain_timeout=120.0, uncordon_timeout=60.0, retry=Backoff(0.2, 5.0), resync=60.0, drift_settle=0.02, kubelet_window=5.0,
    pins=Pace(timeout=60.0, pause=0.05, between=Backoff(0.1, 1.0), again=Backoff(0.5, 10.0), resync=60.0),
)  # fmt: skip
"""For simulations."""


class Agent:
    """The agent of one node."""

    def __init__(
        self,
        cluster: Cluster,
        host: Host,
        node: str,
        clock: Clock,
        entropy: Entropy,
        settings: Settings = Settings(),  # noqa: B008
        *,
        configs: RenderedConfigs | None = None,
        prove: Callable[[], Awaitable[None]] | None = None,
        driver: Callable[[str], str] | None = None,
    ) -> None:
        """Look after one host; without `configs` rendered configs are read from the API. `prove` proves the machine anew.

        `driver` follows a rule of the cluster and says what deploys the operating system of the host, and why.
        """
        self.node = node
        self._cluster = cluster
        self._host = host
        self._clock = clock
        self._entropy = entropy
        self._settings = settings
        self._applier = Applier(host)
        self._reporter = Reporter(cluster, node, clock, entropy)
        self._persistent = Persistent(clock)
        self._configs = configs or ApiConfigs(cluster, clock)
        self._writer = TrustWriter(host)
        self._trust = NodeTrustKeeper(
            node, self._writer, self._configs, self._reporter, uninterrupted, clock, settings.kubelet_window
        )
        self._own = OwnNode(cluster, node, clock, entropy, _WATCHED)
        self._pins = PinnedImages(cluster, host.images, node, clock, entropy, settings.pins)
        self._own.subscribe(self._pins.noticed)
        self._drift = DriftMonitor(host.watcher, clock, settings.drift_settle, self._own.changed.set)
        self._boots = Boots(host, self._applier)
        self._disk = DiskCheck(host, self._applier, self._boots, self._reporter, self._drift)
        self._current = _EMPTY
        self._recovered = False
        self._set_aside: SetAside | None = None
        self._bootstrapped = False
        self._prove = prove
        self._follow_rule = driver
        self._driver = ""
        self._proved_at: float | None = None
        self._moved = False
        self._trial = Trial(host, prove, clock, settings.trial)

    async def run(self) -> None:
        """Do all of it until the machine goes down, or until cancelled."""
        try:
            # Before the first word to the cluster: a node that reported "Done" over half an update would be counted as updated.
            await uninterrupted(self._writer.resume)
            await uninterrupted(self._recover_if_needed)
        except (AgentError, DriverError) as error:
            # The first sync meets it again or raises it, and by then there is somebody to tell.
            _log.warning("agent.degraded", node=self.node, code=error.code, error=error.message)
            self._set_aside = error if isinstance(error, SetAside) else None
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(each.run()) for each in (self._own, self._drift, self._pins)]
            tasks.append(group.create_task(self._trial.watch()))
            try:
                await self._own.synced()
                await self._follow()
            finally:
                for task in tasks:
                    task.cancel()

    async def _follow(self) -> None:
        """Sync until the machine goes down."""
        failures = 0
        while True:
            self._own.changed.clear()
            try:
                if await self._sync():
                    return
                failures = failures + 1 if self._trust.behind else 0
                pause = self._pause(failures - 1) if failures else self._trust.turn or self._settings.resync
            except Superseded:
                continue
            except (AgentError, DriverError) as error:
                await self._failed(error)
                pause, failures = self._pause(failures), failures + 1
            except ApiError as error:
                _log.warning("agent.interrupted", node=self.node, reason=error.reason, error=error)
                pause, failures = self._pause(failures), failures + 1
            if not await self._own.wait(pause):
                self._disk.forget()  # a quiet time is over: look at everything again, whatever the watcher missed
                await self._miss_authority()

    async def _miss_authority(self) -> None:
        """See whether the API cannot be heard because it shows a certificate that the machine does not believe."""
        if self._own.in_touch:
            return
        try:
            await self._own.live()
        except ApiError as error:
            if certificate_problem(error) is not None:
                await self._trust.distrusted()

    def _pause(self, failures: int) -> float:
        return self._settings.retry.delay(failures, self._entropy.fraction())

    async def _sync(self) -> bool:
        """One look at where the machine is and should be; True when it goes down."""
        node = self._own.cached()
        if node is None:
            return False
        self._reporter.observe(node)
        if (untold := self._set_aside) is not None:
            self._set_aside = None
            raise untold
        await self._choose_driver(node)
        await self._prove_if_moved(node)
        if why := await self._trial.ended():
            await self._reporter.event(names.Event.BOOT_FAILED, f"back to the system before: {why}", warning=True)
            await uninterrupted(lambda: self._host.power.reboot(f"back to the system before: {why}"))
            return True
        await uninterrupted(self._recover_if_needed)
        if self._applier.journal.phase is not Phase.IDLE and await self._resume():
            return True
        notes = annotations_of(node)
        current = await self._load(notes.get(names.CURRENT_CONFIG, ""))
        # Before any config is looked at: neither a paused pool nor a degraded node keeps certificates from being renewed.
        await self._trust.keep(node, current.desired.paths)
        overlay = desired_overlay(notes, current.overlay)
        named = notes.get(names.DESIRED_CONFIG, "")
        image = notes.get(names.DESIRED_IMAGE, "") if named else current.image
        desired = names.target_of(named or current.name, overlay, image)
        forced = disk.is_forced(self._host.root)
        if not forced and desired == current.target:
            await self._settle(current, node)
            return False
        return await self._update(current, desired, node, forced=forced)

    async def _choose_driver(self, node: JsonObject) -> None:
        """Let the operating system be deployed by what the cluster asks for, where the machine can."""
        follow, rule = self._follow_rule, annotations_of(node).get(names.OS_DRIVER_RULE, "")
        if follow is not None:
            self._driver = await uninterrupted(lambda: follow(rule))

    async def _prove_if_moved(self, node: JsonObject) -> None:
        """Prove the machine at once when somebody moved it: until then it gets nothing of its new pool.

        The note is a request and nothing more, and many may write it: one proof a minute at most.
        """
        moved = annotations_of(node).get(NOTE) == MOVED
        now = self._clock.monotonic()
        recent = self._proved_at is not None and now - self._proved_at < PROOF_GAP
        if moved and not self._moved and self._prove is not None and not recent:
            self._proved_at = now
            try:
                await self._prove()
            except ApiError:
                self._proved_at = None  # nobody could judge: it is tried again with the rest
                raise
            except (AgentError, DriverError) as error:
                # What refuses the machine is for its next regular round to tell; the config that it has is no worse for it.
                _log.warning("agent.unproved", node=self.node, code=error.code, error=error)
        self._moved = moved and (self._moved or not recent)

    def _recover_if_needed(self) -> None:
        if not self._recovered or self._applier.journal.must_revert:
            self._applier.recover()
            self._recovered = True

    async def _resume(self) -> bool:
        """Complete what was committed before the agent or the machine went down; True when it goes down (again)."""
        journal = self._applier.journal
        begin = journal.begin
        if not begin.reboots:
            await uninterrupted(lambda: run_actions(self._applier, self._host, list(journal.remaining)))
            return False
        resumed = await self._resumed()
        match resumed.after:
            case After.REBOOT:
                await self._reboot(begin.target)
                return True
            case After.FAILED:
                await self._reporter.event(names.Event.BOOT_FAILED, resumed.reason, warning=True)
                # It was pulled, and that is all: what the boot did not bring is not applied.
                booted = await uninterrupted(self._host.system.booted)
                image = bool(begin.image) and not same_image(begin.image, booted.image)
                undone = applied(FALSE, resumed.reason, image=image, pulled=TRUE)
                await self._reporter.progress(undone, current=begin.source, desired=begin.target)
                raise BootFailed(resumed.reason)
            case After.ARRIVED:
                done = Mark(Progress.UPDATE_POST_ACTION_COMPLETE, TRUE, "booted", {Progress.REBOOTED_NODE: TRUE})
                await self._reporter.progress(done, current=begin.source, desired=begin.target)
        return False

    async def _resumed(self) -> Resumed:
        """What follows for an update that ends with a reboot; an image counts when the machine has proved that it booted it."""
        if self._prove is not None and self._boots.on_trial:
            try:
                await self._prove()
            except AgentError as error:
                # A refusal, and no door that is away: that one would be asked again, with the old image as far as before.
                refusal = error.message
                return Resumed(After.FAILED, await uninterrupted(lambda: self._boots.unproved(refusal)))
        return await uninterrupted(self._boots.resume)

    async def _load(self, reported: str) -> Goal:
        """What holds on this machine: the record on disk, else what the first boot wrote, else nothing."""
        config = disk.read_current(self._host.root)
        if config is None:
            first = disk.read_first_boot(self._host.root)
            name = str((first or {}).get(names.CURRENT_CONFIG) or reported)
            if not name:
                return _EMPTY
            laid, served = disk.read_overlays(self._host.root), disk.read_served(self._host.root, name)
            whole = laid.over(served) if served is not None else await self._configs.fetch(name, laid.digest)
            await uninterrupted(lambda: disk.adopt_first_boot(self._host.root, whole))
            config = whole
        if config != self._current.config:
            loaded = config
            await uninterrupted(lambda: disk.record_base_image(self._host.root, self._host.system, loaded))
            self._current = disk.goal(self._host.root, config)
            self._disk.forget()
        return self._current

    async def _settle(self, current: Goal, node: JsonObject) -> None:
        """The machine is where it should be: prove it, put the node back to work, say so."""
        if current is _EMPTY:
            return
        await self._disk.check(current, node)
        notes = annotations_of(node)
        if notes.get(names.CURRENT_CONFIG) != current.name:
            # A machine has arrived when its kubelet runs with what it came to: "Done" would lead the rollout on to the next one.
            # Only then: a kubelet that is restarted later is no news about the config.
            await uninterrupted(lambda: require_kubelet(self._host, current.name))
        marked = self._progress(current.name, current.name)
        if names.drain_verb(notes.get(names.DESIRED_DRAIN, "")) == names.DRAIN:
            await marked(
                Mark(Progress.UPDATE_COMPLETE, UNKNOWN, "putting the node back to work", {Progress.UNCORDONED: UNKNOWN})
            )
            await self._uncordon(current)
            await marked(Mark(Progress.UPDATE_COMPLETE, TRUE, "the node is back at work", {Progress.UNCORDONED: TRUE}))
            await marked(Mark(Progress.RESUMED, TRUE, "the node takes pods again"))
        await self._reporter.annotate(
            current=current.name, state=names.NodeState.DONE, reason="", action=None,
            overlays=" ".join(current.overlays) or None, overlay=current.overlay or None,
            booted=self._disk.images.booted or None, base=self._disk.images.base or None, image=current.image or None,
            driver=self._driver or None,
        )  # fmt: skip
        await marked(Mark(Progress.NODE_DEGRADED, FALSE, "the node is well"))
        await marked(Mark(Progress.UPDATED, TRUE, f"the node has {current.title}"))
        await self._disk.settled(current)
        if not self._bootstrapped:
            await uninterrupted(lambda: disk.note_bootstrapped(self._host.root))
            self._bootstrapped = True

    async def _update(self, current: Goal, target: str, node: JsonObject, *, forced: bool) -> bool:
        """Bring the machine to another config, or to other overlays; True when it goes down."""
        config = with_image(
            await self._configs.fetch(*names.split_target(target)), names.image_in_target(target),
            brings_arguments=self._host.system.brings_arguments,
        )  # fmt: skip
        goal = disk.goal(self._host.root, config)
        # A machine that differs from its own config would be brought to a state that nobody planned from.
        drifted = await self._disk.before_update(current, goal, node) if not forced and current is not _EMPTY else ()
        self._disk.stop_watching()
        # The answer to a write is the API's newest state; a cache behind a broken watch may still say what was withdrawn.
        if not desires(await self._begin(node), target):
            return False  # withdrawn already: the watch is about to say so, and wakes us
        await uninterrupted(lambda: self._boots.refuse(goal, forced=forced))
        single = annotations_of(node).get(names.CONTROL_PLANE_TOPOLOGY) == names.SINGLE_REPLICA
        update = Update(
            current, goal, await self._configuration(), host=self._host, applier=self._applier, reporter=self._reporter,
            drains=self, blocking=uninterrupted, single_node=single, force=forced, drifted=drifted,
        )  # fmt: skip
        down = await update.run()
        if forced:
            await uninterrupted(lambda: disk.consume_force(self._host.root))
        if down:
            await self._reboot(goal.name)
            return True
        self._own.changed.set()
        return False

    async def _begin(self, node: JsonObject) -> JsonObject:
        """Say that the work begins, unless something failed before; the node as the API has it from then on."""
        failed = annotations_of(node).get(names.STATE) in (names.NodeState.DEGRADED, names.NodeState.UNRECONCILABLE)
        answer = None if failed else await self._reporter.state(names.NodeState.WORKING)
        return answer or await self._own.live()

    async def _configuration(self) -> JsonObject | None:
        try:
            return await self._persistent.ask(lambda: self._cluster.get(MACHINE_CONFIGURATION.resource, "cluster"))
        except NotFound:
            return None

    async def _reboot(self, target: str) -> None:
        await self._reporter.annotate(action=names.REBOOTING)
        reboot = Mark(Progress.UPDATE_POST_ACTION_COMPLETE, UNKNOWN, "rebooting", {Progress.REBOOTED_NODE: UNKNOWN})
        await self._reporter.progress(reboot, current=self._applier.journal.begin.source, desired=target)
        await self._reporter.event(names.Event.REBOOT, f"the node reboots into {target}")
        await self._disk.before_reboot(self._current)
        # On disk before the reboot is asked for: after it, nobody is left who could write down that it was.
        await uninterrupted(self._applier.booting)
        await uninterrupted(lambda: self._host.power.reboot(f"update to {target}"))

    async def drained(self, request: str, target: str) -> bool:
        """Until the drain controller carried out a request; False when it took too long; raises Superseded."""

        def carried_out(node: JsonObject) -> bool:
            return annotations_of(node).get(names.LAST_APPLIED_DRAIN) == request

        # The cache may show an earlier drain for the same config, which somebody took back since: only the API counts.
        return await self._own.until(carried_out, self._settings.drain_timeout, target, confirm=True)

    async def _uncordon(self, current: Goal) -> None:
        request = drain_request(current.name, uncordon=True)
        await self._reporter.annotate(drain=request)
        done = await self._own.until(
            lambda node: annotations_of(node).get(names.LAST_APPLIED_DRAIN) == request,
            self._settings.uncordon_timeout,
            current.target,
        )
        if not done:
            await self._reporter.event(names.Event.FAILED_TO_UNCORDON, f"{request} took too long", warning=True)
            raise DrainTimeout(f"failed to uncordon the node with {current.name}: nobody answered {request}")

    async def _failed(self, error: AgentError | DriverError) -> None:
        """Say that the machine is not where it should be, and why."""
        _log.warning("agent.degraded", node=self.node, code=error.code, error=error.message)
        irreconcilable = isinstance(error, Irreconcilable)
        state = names.NodeState.UNRECONCILABLE if irreconcilable else names.NodeState.DEGRADED
        try:
            if irreconcilable:
                await self._reporter.event(names.Event.FAILED_TO_RECONCILE, error.message, warning=True)
            if isinstance(error, SetAside):
                await self._reporter.event(names.Event.JOURNAL_SET_ASIDE, error.message, warning=True)
            # Whatever it was about to do, it is not doing it now.
            await self._reporter.annotate(state=state, reason=error.message[: names.MAX_REASON_CHARS], action=None)
            mark = Mark(Progress.NODE_DEGRADED, TRUE, error.message)
            await self._progress(self._current.name, self._own.desired)(mark)
        except ApiError as refused:
            _log.warning("agent.interrupted", node=self.node, reason=refused.reason, error=refused)

    def _progress(self, current: str, target: str) -> Callable[[Mark], Any]:
        return lambda mark: self._reporter.progress(mark, current=current, desired=target)
