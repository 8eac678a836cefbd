"""Installing the runtime for confidential containers from a pod on the node, where no machine configs are.

What the pods of the DaemonSets do, one step for one look at the node. The label of the node carries the handshake with the
control plane, which says whose turn it is:

    install      (nothing) ─ waiting_to_install ─┤ turn ├─ installing ─┬─ installed
                                                                        └─ failed ─ waiting_to_install, after a while
    uninstall    waiting_to_uninstall ─┤ turn ├─ uninstalling ─┬─ waiting_for_reboot ─┤ boot ├─ uninstalled
                                                               └─ failed_to_uninstall ─ waiting_to_uninstall

* Packages are added to the running system, drop-ins are written, the container runtime is restarted. Taking packages away
  needs a boot.
* A step that fails takes back what it did, says why in an annotation, and is tried again; it never leaves a node half changed.
* Looking twice changes nothing: what is installed is compared first. Installed is what the container runtime can use
  (`agent.apply.handlers`), whatever the list of packages says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from fastness.agent.apply.handlers import lacking
from fastness.agent.apply.matching import matches
from fastness.agent.apply.ports import Files, Units
from fastness.agent.host.errors import DriverError, ImageFailure
from fastness.agent.host.states import ABSENT, Absent, File
from fastness.kinds.kata import names, runtime
from fastness.kinds.kata.names import InstallState
from fastness.kinds.objects import annotations_of, labels_of

MAX_REASON: Final = 500
RUNTIME_UNIT: Final = "crio.service"


class Packages(Protocol):
    """The packages of the runtime on a host; all raise DriverError."""

    def installed(self) -> bool:
        """Whether the running system has them."""

    def install(self) -> None:
        """Add them to the running system."""

    def uninstall(self) -> bool:
        """Take them away; whether that needs a boot."""


@dataclass(frozen=True, slots=True)
class StepReport:
    """What the node says next: its state, and why it could not go on."""

    state: InstallState
    failure: str = ""

    def patch(self, node: Mapping[str, Any]) -> dict[str, Any]:
        """The patch of the node; a failure stays until the step that failed succeeds."""
        meta: dict[str, Any] = {"labels": {names.STATE_LABEL: str(self.state)}}
        done = self.state in (InstallState.INSTALLED, InstallState.UNINSTALLED)
        if self.failure or (done and names.FAILURE in annotations_of(node)):
            meta["annotations"] = {names.FAILURE: self.failure or None}
        return {"metadata": meta}


class RuntimeSteps:
    """The steps on one host."""

    def __init__(
        self,
        files: Files,
        units: Units,
        packages: Packages,
        reboot: Callable[[str], None],
        level: str = "info",
        *,
        peer_pods: bool = False,
    ) -> None:
        self._files = files
        self._units = units
        self._packages = packages
        self._reboot = reboot
        self.level = level
        self.peer_pods = peer_pods

    def install(self, node: Mapping[str, Any]) -> StepReport | None:
        """One look at a node that shall have the runtime; None when it waits or is done."""
        match labels_of(node).get(names.STATE_LABEL):
            case InstallState.INSTALLING:
                return self._try(self._install, self._take_back, InstallState.INSTALLED, InstallState.FAILED)
            case InstallState.WAITING_TO_INSTALL:
                return None
            case InstallState.INSTALLED:
                return None if self._complete() else StepReport(InstallState.WAITING_TO_INSTALL)
            case _:
                return StepReport(InstallState.INSTALLED if self._complete() else InstallState.WAITING_TO_INSTALL)

    def uninstall(self, node: Mapping[str, Any]) -> StepReport | None:
        """One look at a node that shall lose the runtime; None when it waits or is done."""
        match labels_of(node).get(names.STATE_LABEL):
            case InstallState.UNINSTALLING:
                return self._try(
                    self._uninstall, self._nothing, InstallState.WAITING_FOR_REBOOT, InstallState.FAILED_TO_UNINSTALL
                )
            case InstallState.WAITING_FOR_REBOOT:
                if not self._packages.installed():
                    return StepReport(InstallState.UNINSTALLED)
                self._reboot("the runtime for confidential containers is removed")
                return None
            case InstallState.FAILED_TO_UNINSTALL:
                return StepReport(InstallState.WAITING_TO_UNINSTALL)
            case _:
                return None

    def _try(
        self, work: Callable[[], None], undo: Callable[[], None], done: InstallState, failed: InstallState
    ) -> StepReport:
        try:
            work()
        except DriverError as error:
            undo()
            return StepReport(failed, error.message[:MAX_REASON])
        return StepReport(done)

    def _install(self) -> None:
        if not self._packages.installed():
            self._packages.install()
        for path, state in self._files_by_path().items():
            if not isinstance(state, Absent) or not isinstance(self._files.look(path), Absent):
                self._files.put(path, state)
        if missing := [f"{path}: {what}" for path, what in lacking(self._files)]:
            raise ImageFailure(f"the packages are installed, but {'; '.join(missing)}")
        self._units.restart(RUNTIME_UNIT)

    def _take_back(self) -> None:
        """What a failed installation wrote must not make the runtime fail at its next start."""
        for path in self._files_by_path():
            if not isinstance(self._files.look(path), Absent):
                self._files.put(path, ABSENT)

    def _uninstall(self) -> None:
        self._take_back()
        if self._packages.installed() and not self._packages.uninstall():
            self._units.restart(RUNTIME_UNIT)

    def _nothing(self) -> None:
        """There is nothing to take back: what was removed stays removed, and the rest is tried again."""

    def _files_by_path(self) -> dict[str, File | Absent]:
        level = f'[crio]\n[crio.runtime]\nlog_level = "{self.level}"\n'
        return {
            names.RUNTIME_FILE: File(runtime.DROP_IN),
            names.LOG_LEVEL_FILE: File(level.encode()),
            **self._remote(),
        }

    def _remote(self) -> dict[str, File | Absent]:
        """The files of peer pods; where nobody asks for them, those that were written here before go, and no others."""
        ours = {path: File(content) for path, content in runtime.REMOTE_FILES.items()}
        if self.peer_pods:
            return {**ours}
        return {path: ABSENT for path, state in ours.items() if matches(self._files.look(path), state)}

    def _complete(self) -> bool:
        written = all(matches(self._files.look(path), state) for path, state in self._files_by_path().items())
        return written and self._packages.installed() and not any(lacking(self._files))
