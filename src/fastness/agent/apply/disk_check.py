"""Whether the disk of a node says what its config says, and what follows if it does not.

    check(…)           all of it once, later what changed; what differs is repaired where that is the policy, told otherwise
    before_update(…)   the same before an update: a machine that differs from its own config is not updated from there, unless
                       the update replaces what differs anyway
    settled(…)         the machine is well with a config

An update replaces whatever drifted when it goes back to a config that the machine had, so that taking a change back always
heals, or when it brings another image. On a machine that boots an image of its pool the next boot puts right what drifted: its
/etc is the image's, and nobody has to repair it by hand. Of what its image has below /usr nothing is kept in /etc.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from fastness.agent.apply import others
from fastness.agent.apply.apply import Applier
from fastness.agent.apply.boots import Boots, Images
from fastness.agent.apply.drift import DriftMonitor
from fastness.agent.apply.earlier_configs import read_earlier, remember_config
from fastness.agent.apply.image_defaults import uncover_steps
from fastness.agent.apply.journal import Begin
from fastness.agent.apply.ports import Host
from fastness.agent.apply.report import Reporter
from fastness.agent.apply.steps import Disk, Step, repair_steps
from fastness.agent.apply.update import Goal
from fastness.agent.apply.validate import Drift, describe_drifts, drifts, watched
from fastness.agent.errors import DriftFound
from fastness.formats.image_reference import same_image
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import annotations_of
from fastness.runtime.tasks import uninterrupted

DRIFT_POLICY: Final = "fastness.dev/drift-policy"
REPAIR: Final = "repair"


class DiskCheck:
    """Looks at the disk of one host."""

    def __init__(self, host: Host, applier: Applier, boots: Boots, reporter: Reporter, monitor: DriftMonitor) -> None:
        self._host = host
        self._applier = applier
        self._boots = boots
        self._reporter = reporter
        self._monitor = monitor
        self._checked = ""
        self._reported: list[Drift] = []
        self.images = Images()

    def forget(self) -> None:
        """Look at everything again the next time."""
        self._checked = ""

    def stop_watching(self) -> None:
        """An update is about to change files."""
        self._monitor.watch(())
        self._checked = ""

    async def check(self, current: Goal, node: JsonObject) -> None:
        """Raise DriftFound if the disk differs from the config."""
        suspects = self._monitor.suspects()
        only = suspects if self._checked == current.name else None
        if only is None:
            await self._look_at_images(current)
            await uninterrupted(lambda: self._care_for_others(current))
        differences = await uninterrupted(lambda: self._drifts(current, only))
        if differences and (why := self._repairs(current, node)):
            text = f"repairing, {why}: {describe_drifts(current.name, differences)}"
            await self._reporter.event(names.Event.CONFIG_DRIFT_DETECTED, text, warning=True)
            await self._repair(current)
            differences = await uninterrupted(lambda: self._drifts(current))
        if self._checked != current.name or differences:
            self._monitor.watch(watched(current.desired))
        if differences:
            reason = names.Event.ON_DISK_VALIDATION_FAILED if only is None else names.Event.CONFIG_DRIFT_DETECTED
            self._checked = ""
            if self._reported != differences:
                self._reported = differences
                await self._reporter.event(reason, describe_drifts(current.name, differences), warning=True)
            raise DriftFound(describe_drifts(current.name, differences))
        if only is None and current.image:
            await uninterrupted(lambda: self._uncover(current))
        self._checked, self._reported = current.name, []

    def _repairs(self, current: Goal, node: JsonObject) -> str:
        """Why what differs is put right without asking; empty where a person decides."""
        if annotations_of(node).get(DRIFT_POLICY) == REPAIR:
            return "as the node asks for"
        # Until this boot was seen to be well once. Later a change on a running machine is news, whoever made it.
        return "with the boot of the image of its pool" if current.image and self._boots.is_new else ""

    async def before_update(self, current: Goal, goal: Goal, node: JsonObject) -> tuple[Drift, ...]:
        """What differs and is replaced by an update; raises DriftFound where it is not."""
        try:
            await self.check(current, node)
        except DriftFound as error:
            why = await uninterrupted(lambda: self._replaces(current, goal))
            if not why:
                await self._reporter.event(names.Event.PREFLIGHT_DRIFT_CHECK_FAILED, error.message, warning=True)
                raise
            differences = await uninterrupted(lambda: self._drifts(current))
            text = f"{why} and replaces what drifted: {describe_drifts(current.name, differences)}"
            await self._reporter.event(names.Event.CONFIG_DRIFT_REPLACED, text, warning=True)
            return tuple(differences)
        return ()

    def _replaces(self, current: Goal, goal: Goal) -> str:
        """Why an update may begin on a machine that drifted; empty where it may not."""
        if goal.name in read_earlier(self._host.state):
            return f"the machine goes back to {goal.name}"
        before, after = current.desired.deployment.image, goal.desired.deployment.image
        return f"{goal.name} brings another image" if after and not same_image(before, after) else ""

    async def before_reboot(self, current: Goal) -> None:
        """What other operators wrote must outlive the boot; raises DriverError."""
        await uninterrupted(lambda: others.keep(self._host, current.desired.others))

    def _care_for_others(self, current: Goal) -> None:
        declared = current.desired.others
        # Once for each boot: what its owner takes away from a running machine stays away.
        if self._boots.is_new:
            others.bring_back(self._host, declared)
        others.keep(self._host, declared)

    async def settled(self, current: Goal) -> None:
        """Remember that the machine is well with a config; raises DriverError."""
        await uninterrupted(lambda: self._settled(current))

    def _settled(self, current: Goal) -> None:
        remember_config(self._host.state, current.name)
        self._boots.note_well()

    async def _look_at_images(self, current: Goal) -> None:
        self.images = await uninterrupted(lambda: self._boots.look(current))
        self._reporter.images(self.images.booted, current.desired.deployment.image or self.images.booted)
        if dropped := self.images.dropped:
            text = f"{dropped} was staged for the next boot, and {current.name} asks for what runs: dropped"
            await self._reporter.event(names.Event.STAGED_IMAGE_DROPPED, text, warning=True)

    def _drifts(self, current: Goal, only: Iterable[str] | None = None) -> list[Drift]:
        return drifts(current.desired, self._host, only, built=bool(current.image))

    async def _repair(self, current: Goal) -> None:
        """Write what differs again, by the journal."""

        def work() -> None:
            self._carry_out(current, repair_steps(current.desired, current.config, self._disk(current)))

        await uninterrupted(work)

    def _uncover(self, current: Goal) -> None:
        """Take away what lies in /etc over the same default of the image, so that the image's next one is not hidden by it."""
        if not self._host.system.brings_usr:
            return
        if steps := uncover_steps(current.desired, self._disk(current)):
            self._carry_out(current, steps)
            self._host.units.daemon_reload()

    def _carry_out(self, current: Goal, steps: Sequence[Step]) -> None:
        self._applier.apply(Begin(current.name, current.name), steps)
        self._applier.end()

    def _disk(self, current: Goal) -> Disk:
        host = self._host
        return Disk(host.root, host.originals, host.units, image_stays=bool(current.image))
