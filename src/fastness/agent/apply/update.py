"""One update, from config to config: check, drain, apply, act.

The order, and what each failure leaves behind:

1. Compare the configs, ask what cannot be reconciled and what has to happen afterwards. Nothing was touched.
2. Plan the steps: a config that this machine cannot carry out, or not undo, fails here. Nothing was touched.
3. Ask for a drain where the actions need one, and wait for the drain controller. The node stays cordoned.
4. Apply the steps by the journal: all of them or none.
5. Run the actions. One that fails takes the steps back, and the actions run once more with the old files.

A reboot is left to the caller: after it, nothing of this object is there any more. When another config becomes desired while the
update waits, it ends with `Superseded` and the sync begins again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Protocol

from fastness.agent.apply import accounts
from fastness.agent.apply.apply import Applier
from fastness.agent.apply.built_image import image_in, require_usr, without_usr
from fastness.agent.apply.desired import Desired
from fastness.agent.apply.journal import Acted, Begin
from fastness.agent.apply.ports import Host
from fastness.agent.apply.progress import FALSE, TRUE, UNKNOWN, Mark
from fastness.agent.apply.report import Reporter
from fastness.agent.apply.steps import Disk, Stage, Step, plan_steps
from fastness.agent.apply.validate import Drift, of_system
from fastness.agent.errors import AgentError, DrainTimeout, Irreconcilable
from fastness.agent.host.errors import DriverError
from fastness.agent.host.states import Absent, Deployment, Pull
from fastness.formats.image_reference import digest_of, same_image
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.machineconfiguration.names import Progress
from fastness.machineconfig.overlay.merged import overlay_in, versions_in
from fastness.machineconfig.render import reconcile
from fastness.machineconfig.rollout import disruption
from fastness.machineconfig.rollout.diff import ConfigChange, Difference, How, Part, compare
from fastness.machineconfig.rollout.disruption import CRIO, Act, Decision
from fastness.machineconfig.rollout.nodes import drain_request

_OF_PULLS: Final = {
    Pull.DONE: "; its image was pulled", Pull.FAILED: "; its image was not pulled",
    Pull.UNKNOWN: "; whether its image was pulled is not known",
}  # fmt: skip
Blocking = Callable[[Callable[[], Any]], Awaitable[Any]]


class Drains(Protocol):
    """Waits for the drain controller; False when it took too long; raises Superseded."""

    async def drained(self, request: str, target: str) -> bool:
        """Until the node says that the request, on its way to a target, was carried out."""


@dataclass(frozen=True, slots=True)
class Goal:
    """A config, with the overlays of this machine on top if it has any, and what it asks of the machine."""

    config: JsonObject
    desired: Desired

    @property
    def name(self) -> str:
        """The rendered config."""
        return self.desired.name

    @property
    def overlay(self) -> str:
        """The digest of the overlays that are in it; empty for none."""
        return overlay_in(self.config)

    @property
    def overlays(self) -> tuple[str, ...]:
        """Name and version of each of them."""
        return versions_in(self.config)

    @property
    def image(self) -> str:
        """The image that was built for the pool, which the machine boots in the place of the config's; empty for none."""
        return image_in(self.config)

    @property
    def target(self) -> str:
        """Config, overlays and image in one word."""
        return names.target_of(self.name, self.overlay, self.image)

    @property
    def title(self) -> str:
        """Config and overlays for people."""
        return f"{self.name} with {', '.join(self.overlays)}" if self.overlays else self.name

    @property
    def spec(self) -> JsonObject:
        """Its spec, overlays included: what they cover up changes nothing on this machine."""
        spec: JsonObject = self.config.get("spec") or {}
        return spec

    def spec_for(self, booted: str) -> JsonObject:
        """Its spec with the image that it means on a machine that boots this one: two names of one image are no change."""
        image = self.desired.deployment.image or booted
        return {**self.spec, "osImageURL": digest_of(image) or image}


class Update:
    """One update of a host; `blocking` runs what must not stop the loop. A single node is not drained."""

    def __init__(
        self,
        old: Goal,
        new: Goal,
        configuration: JsonObject | None,
        *,
        host: Host,
        applier: Applier,
        reporter: Reporter,
        drains: Drains,
        blocking: Blocking,
        single_node: bool = False,
        force: bool = False,
        drifted: Sequence[Drift] = (),
    ) -> None:
        """`drifted` is what differs from the old config on this machine: all of it is put right on the way."""
        self._old = old
        self._new = new
        self._configuration = configuration
        self._host = host
        self._applier = applier
        self._reporter = reporter
        self._drains = drains
        self._blocking = blocking
        self._single_node = single_node
        # What runs is not what the old config says, so nothing that follows from comparing configs holds for it.
        self._force = force or any(of_system(drift) for drift in drifted)
        self._drifted = drifted

    async def run(self) -> bool:
        """Bring the machine to the new config; True when it must reboot now; raises AgentError, DriverError, ApiError."""
        booted = await self._blocking(self._host.system.booted)
        self._reporter.images(booted.image, self._new.desired.deployment.image or booted.image)
        decision = self._decide(booted)
        stays = bool(self._new.image) and same_image(self._new.image, booted.image)
        disk = Disk(self._host.root, self._host.originals, self._host.units, stays)
        config = self._new.config
        old, new = self._old.desired, self._new.desired
        restage, mend = self._force, bool(self._drifted)
        present = [path for path, target in new.paths.items() if not isinstance(target.state, Absent)]
        require_usr(present, self._new.image, self._host.system)
        steps = await self._blocking(lambda: plan_steps(old, new, config, disk, restage=restage, mend=mend))
        steps = without_usr(steps, self._host.system)
        # Before pods are moved away for what cannot be done.
        await self._blocking(lambda: self._applier.check(steps))
        await self._mark(Mark(Progress.UPDATE_PREPARED, TRUE, f"update to {self._new.title}: {decision.headline}"))
        # Before the first file changes: pods leave a machine that still is what they were scheduled to.
        drained = decision.drain and await self._drain()
        actions = tuple(action.to_json() for action in decision.actions)
        # The actions are written down with the beginning: a restart after the commit must run these, whatever the policies say by
        # then.
        begin = Begin(
            self._old.name, self._new.name, actions, drained, new.deployment.image, self._host.power.boot_id()
        )
        await self._apply(begin, steps, pulled=_pulled(steps, booted))
        if decision.reboot:
            return True
        await self._act(decision)
        return False

    async def _apply(self, begin: Begin, steps: Sequence[Step], *, pulled: str) -> None:
        """All steps or none, and what the node says of them; `pulled` is the image that they pull, if they do."""
        image = f", {pulled} for the next boot" if pulled else ""
        await self._mark(applied(UNKNOWN, f"writing {self._new.name}{image}", image=bool(pulled)))
        try:
            await self._blocking(lambda: self._applier.apply(begin, steps))
        except (AgentError, DriverError, OSError) as error:
            # What stayed in progress would be waited for. An image that came is not lost with what failed after it.
            pull = self._applier.pull
            text = f"nothing of {self._new.name} is left: {error}{_OF_PULLS[pull] if pulled else ''}"
            await self._mark(applied(FALSE, text, image=bool(pulled), pulled=pull))
            raise
        loader = self._applier.loader
        of_loader = f"; {loader.text}" if pulled else ""
        await self._mark(applied(TRUE, f"wrote {self._new.name}{image}{of_loader}", image=bool(pulled)))
        if loader.failed:
            await self._reporter.event(names.Event.BOOT_LOADER_NOT_UPDATED, loader.text, warning=True)

    def _decide(self, booted: Deployment) -> Decision:
        overrides = reconcile.overrides_of(self._configuration)
        # Asked on the machine again, though the render refused it: what reaches a node may come from an older control plane.
        differences = reconcile.irreconcilable(self._old.spec, self._new.spec, overrides)
        if blocking := reconcile.blocking(differences):
            reasons = "; ".join(str(difference) for difference in blocking)
            raise Irreconcilable(f"can't reconcile config {self._old.name} with {self._new.name}: {reasons}")
        policies = disruption.policies_of(self._configuration)
        old, new = self._old.spec_for(booted.image), self._new.spec_for(booted.image)
        changes = (*compare(old, new).changes, *_put_right(self._drifted))
        return disruption.decide(Difference(changes), policies, force=self._force)

    async def _drain(self) -> bool:
        if self._single_node:
            await self._reporter.event(names.Event.DRAIN, "a single node is not drained")
            return False
        request = drain_request(self._new.name)
        await self._mark(_drained("waiting for pods to leave", UNKNOWN))
        await self._reporter.annotate(drain=request)
        if not await self._drains.drained(request, self._new.target):
            await self._reporter.event(names.Event.FAILED_TO_DRAIN, f"{request} took too long", warning=True)
            raise DrainTimeout(f"failed to drain the node for {self._new.name}: the pods did not leave in time")
        await self._mark(_drained("the pods have left", TRUE))
        return True

    async def _act(self, decision: Decision) -> None:
        listed = ", ".join(str(action) for action in decision.actions)
        await self._mark(Mark(Progress.UPDATE_POST_ACTION_COMPLETE, UNKNOWN, f"actions: {listed}"))
        await self._blocking(lambda: self._act_or_revert(decision))
        if not decision.disturbs:
            await self._reporter.event(names.Event.SKIP_REBOOT, f"{self._new.name} needs no reboot")
        await self._mark(Mark(Progress.UPDATE_POST_ACTION_COMPLETE, TRUE, f"actions: {listed}"))

    def _act_or_revert(self, decision: Decision) -> None:
        actions = [action.to_json() for action in decision.actions]
        try:
            run_actions(self._applier, self._host, actions)
        except DriverError:
            # Files first, then the actions once more: a service that is restarted must find its old configuration.
            self._applier.revert()
            for action in actions:
                with suppress(DriverError):
                    run_action(self._host, action)
            raise

    async def _mark(self, mark: Mark) -> None:
        await self._reporter.progress(mark, current=self._old.name, desired=self._new.name)


def run_actions(applier: Applier, host: Host, actions: list[JsonObject]) -> None:
    """Run actions, each noted in the journal when it is done; raises DriverError."""
    for action in actions:
        run_action(host, action)
        applier.note(Acted())
    applier.end()


def run_action(host: Host, action: JsonObject) -> None:
    """Run one action in the form of the API; raises DriverError."""
    kind = action["type"]
    match kind:
        case Act.RELOAD | Act.RESTART:
            service = str(action[kind.lower()]["serviceName"])
            (host.units.reload if kind == Act.RELOAD else host.units.restart)(service)
        case Act.DAEMON_RELOAD:
            host.units.daemon_reload()
        case Act.SPECIAL:
            host.units.reload(CRIO)
        case _:
            return  # None and Drain need nothing here, a reboot is the caller's


def applied(status: str, message: str, *, image: bool, pulled: str = "") -> Mark:
    """The step that writes files and, with `image`, deploys another operating system; `pulled` if that differs from the rest."""
    children = {Progress.APPLIED_FILES_AND_OS: status, Progress.APPLIED_FILES: status}
    if image:
        children |= {Progress.APPLIED_OS_IMAGE: status, Progress.IMAGE_PULLED: pulled or status}
    return Mark(Progress.UPDATE_EXECUTED, status, message, children)


def _put_right(drifted: Iterable[Drift]) -> Iterator[ConfigChange]:
    """What drifted, as changes of a config: who reads a file has to read it again when it is put right."""
    for drift in drifted:
        if drift.path == accounts.SHADOW:
            yield ConfigChange(Part.USER, names.CORE_USER, How.CHANGED)
        elif drift.path.startswith("/"):
            yield ConfigChange(Part.FILE, drift.path, How.CHANGED)
        elif not of_system(drift):
            yield ConfigChange(Part.UNIT, drift.path, How.CHANGED)


def _drained(message: str, status: str) -> Mark:
    return Mark(Progress.UPDATE_EXECUTED, UNKNOWN, message, {Progress.DRAINED: status})


def _pulled(steps: Sequence[Step], booted: Deployment) -> str:
    """The image that the steps bring from a registry; empty when they deploy none, or the one that runs."""
    images = (step.deployment.image for step in steps if isinstance(step, Stage) and step.deployment is not None)
    return next((image for image in images if image and not same_image(image, booted.image)), "")
