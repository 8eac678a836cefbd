"""What of an update happens across a boot: did the machine come up with the system that it was to have, and what if not.

    resume()    an update that ends with a reboot, after a start of the agent:
                  the same boot                               ask for the reboot, again if need be
                  another, and the system is what it should   the update is over
                  another, and it is not                      power was lost before the reboot was asked for: begin anew
                                                              otherwise: remembered, undone, and one more reboot, back
    unproved(…) the machine came up, and nobody believes what it booted: the same way back
    refuse(…)   what must not be tried: an image that nobody knows, a system that this machine did not come up with
    look(…)     what is booted, and what it would go back to; what somebody staged beside the config is dropped

The truth about a machine is what it booted: no config counts as applied before that was looked at, and no system is rebooted into
twice. Everything here blocks.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple

from fastness.agent.apply import disk
from fastness.agent.apply.apply import Applier
from fastness.agent.apply.failed_boot import FailedBoot, forget_failed_boot, read_failed_boot, write_failed_boot
from fastness.agent.apply.journal import Phase
from fastness.agent.apply.ports import Host
from fastness.agent.apply.trial import why_left
from fastness.agent.apply.update import Goal
from fastness.agent.apply.validate import system_drifts
from fastness.agent.errors import BootFailed, NoBaseImage
from fastness.agent.host.errors import DriverError
from fastness.agent.host.states import File
from fastness.formats.image_reference import same_image
from fastness.kinds.machineconfiguration import names
from fastness.observe.logs import logger

SEEN: Final = "/seen-boot"
_log = logger("agent")


class Images(NamedTuple):
    """What a machine booted and what it goes back to without a config that names an image; empty on a package host.

    `dropped` was staged for the next boot although the config asks for what runs.
    """

    booted: str = ""
    base: str = ""
    dropped: str = ""


class After(StrEnum):
    """What follows for an update when the agent starts."""

    REBOOT = "reboot"
    ARRIVED = "arrived"
    ANEW = "anew"
    FAILED = "failed"


class Resumed(NamedTuple):
    """What follows, and of a boot that failed why."""

    after: After
    reason: str = ""


class Boots:
    """The boots of one host."""

    def __init__(self, host: Host, applier: Applier) -> None:
        self._host = host
        self._applier = applier

    def resume(self) -> Resumed:
        """Go on with what was committed and ends with a reboot; raises AgentError, DriverError."""
        journal = self._applier.journal
        # The same boot id: the machine never went down, whatever was asked for.
        if journal.boot_before in ("", self._host.power.boot_id()):
            return Resumed(After.REBOOT)
        goal = self._goal()
        lacking = [str(drift) for drift in system_drifts(goal.desired, self._host.system)] if goal is not None else []
        if not lacking:
            self._arrived()
            return Resumed(After.ARRIVED)
        if journal.phase is Phase.COMMITTED:
            # Nobody asked for this boot: the machine lost power, and what was staged with it.
            self._applier.revert()
            return Resumed(After.ANEW)
        return Resumed(After.FAILED, self._failed(lacking))

    def _arrived(self) -> None:
        """The machine came up with what was asked for; raises DriverError."""
        try:
            self._host.system.booted_well()
        except DriverError as error:
            # What a machine could fall back to is only in the way: no reason to call a good node bad.
            _log.warning("agent.left_over", code=error.code, error=error.message)
        # Without steps it was the way back from a system that failed, which is remembered all the more.
        if self._applier.journal.undo:
            forget_failed_boot(self._host.state)
        self._applier.end()

    def _failed(self, lacking: list[str]) -> str:
        """Go back from a system that the machine did not come up with; why, for people; raises AgentError, DriverError."""
        log, left = self._host.system.last_boot_log(), why_left(self._host)
        details = (f"; the last shutdown said: {log}" if log else "") + (f"; it was left: {left}" if left else "")
        return self._leave(
            f"the reboot into {self._applier.journal.begin.target} did not bring it: {'; '.join(lacking)}{details}"
        )

    @property
    def on_trial(self) -> bool:
        """Whether the machine came up with another image for an update that is not over: it has to prove itself first."""
        journal = self._applier.journal
        rebooted = journal.phase is Phase.BOOTING and journal.boot_before not in ("", self._host.power.boot_id())
        return rebooted and bool(journal.begin.image) and bool(journal.undo)

    def unproved(self, refusal: str) -> str:
        """Go back from an image that the machine came up with and that nobody believes; why; raises AgentError, DriverError.

        Empty where it is no image on trial that was refused: the machine stays where it is, and others find out why.
        """
        if not self.on_trial:
            return ""
        begin = self._applier.journal.begin
        return self._leave(f"the machine came up with {begin.image} of {begin.target} and was refused: {refusal}")

    def _leave(self, reason: str) -> str:
        """Remember what failed, undo it, and be ready for the reboot that leads back; why it failed."""
        journal, goal = self._applier.journal, self._goal()
        if goal is not None and journal.undo:
            # Before anything is undone: a crash in between must not forget that this was tried.
            write_failed_boot(self._host.state, FailedBoot(goal.desired.deployment, reason))
        self._applier.come_back()
        return reason

    def refuse(self, goal: Goal, *, forced: bool) -> None:
        """Raise what keeps this machine from trying a config: NoBaseImage, BootFailed; raises DriverError."""
        if not goal.desired.deployment.image and self._host.system.booted().image:
            raise NoBaseImage(
                f"no base image known: {goal.name} names no image, and none was recorded at the first boot"
            )
        failed = read_failed_boot(self._host.state)
        if failed is None or not failed.concerns(goal.desired.deployment):
            return
        if not forced:
            raise BootFailed(failed.reason)
        forget_failed_boot(self._host.state)

    def look(self, current: Goal) -> Images:
        """What is booted and staged, beside a config that was applied; raises DriverError."""
        system = self._host.system
        booted, staged = system.booted().image, system.staged()
        base = (disk.read_base_image(self._host.root) or names.UNKNOWN_IMAGE) if booted else ""
        goal = current.desired.deployment.image or booted
        # Only where the right one runs: otherwise what is staged may be all that is missing, and people decide.
        if staged is None or same_image(staged.image, goal) or not same_image(booted, goal):
            return Images(booted, base)
        system.discard()
        return Images(booted, base, staged.image)

    @property
    def is_new(self) -> bool:
        """Whether the machine was not seen to be well since it booted; raises DriverError."""
        entry = self._host.state.look(SEEN)
        return not isinstance(entry, File) or entry.content.decode(errors="replace") != self._host.power.boot_id()

    def note_well(self) -> None:
        """The machine is well in this boot; raises DriverError."""
        if self.is_new:
            self._host.state.put(SEEN, File(self._host.power.boot_id().encode(), 0o600))

    def _goal(self) -> Goal | None:
        config = disk.read_current(self._host.root)
        return disk.goal(self._host.root, config) if config is not None else None


def leave_unproved(host: Host, refusal: str) -> bool:
    """Whether the image that a machine booted is left again, as who should believe it refused; raises AgentError, DriverError.

    For whoever proves a boot before there is an agent: then the machine has to reboot, and its agent tells why.
    """
    applier = Applier(host)
    applier.recover()
    return bool(Boots(host, applier).unproved(refusal))
