"""Which program deploys the operating system of this machine, by what the machine is.

    bootc booted it, with composefs                bootc
    bootc booted it, with layered packages         rpm-ostree: bootc refuses such a machine
    rpm-ostree knows container images              rpm-ostree, unless bootc is preferred and booted it
    the same, where the cluster has bootc alone    rpm-ostree, which deploys nothing any more and says why
    bootc booted it                                bootc
    its command line names its root, cfsctl there  composefs
    neither                                        a package host

Asked of the programs and not of marker files: machines with composefs have none of those that ostree leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from fastness.agent.host import bootc, composefs, rpm_ostree_os
from fastness.agent.host.engine import Commands
from fastness.agent.host.errors import CommandFailed
from fastness.agent.host.process import Run
from fastness.formats.composefs import root_on
from fastness.formats.errors import OsStatusError
from fastness.formats.os_status import OsEntry, bootc_status, features, rpm_ostree_status
from fastness.kinds.machineconfiguration import names

AUTO: Final = "auto"
PREFER_BOOTC: Final = "prefer-bootc"
BOOTC: Final = "bootc"
RPM_OSTREE: Final = "rpm-ostree"
COMPOSEFS: Final = "composefs"
PACKAGES: Final = "none"
_STAGE: Final = "this cluster has bootc alone (stage 3 of image mode)"


class Choice(NamedTuple):
    """The driver of a machine, and why as a sentence; `refusal` says why that driver deploys nothing any more."""

    driver: str
    why: str
    refusal: str = ""

    def __str__(self) -> str:
        """As a node says it."""
        return f"{self.driver}: {self.why}" + (f"; {self.refusal}" if self.refusal else "")


def driver_for(
    booted: OsEntry | None, rpm_ostree_features: frozenset[str], *, prefer_bootc: bool = False, sealed: bool = False,
    packages: Sequence[str] = (),
) -> Choice:  # fmt: skip
    """The driver of a machine that bootc booted like this, or not at all; `sealed` when its command line names its root.

    `packages` are those that somebody layered on the image.
    """
    layers = "container" in rpm_ostree_features
    if booted is not None and booted.composefs:
        return Choice(BOOTC, "bootc booted this machine with composefs, which rpm-ostree does not know")
    if booted is not None and booted.incompatible:
        listed = f" ({', '.join(packages)})" if packages else ""
        why = f"this machine has layered packages{listed}, which bootc refuses"
        return Choice(RPM_OSTREE, why) if layers else Choice(PACKAGES, f"{why}, and no rpm-ostree knows images")
    if sealed and booted is None:
        return Choice(COMPOSEFS, "the command line names the root of this machine, and bootc did not boot it")
    if layers and not (prefer_bootc and booted is not None):
        return Choice(
            RPM_OSTREE, "rpm-ostree knows images here" + (f", and {names.BOOTC_NOT_PREFERRED}" if booted else "")
        )
    if booted is not None:
        return Choice(BOOTC, "bootc booted this machine" + (" and is preferred" if layers else ""))
    return Choice(PACKAGES, "neither bootc nor rpm-ostree deploys this machine: it is a package host")


def bootc_alone(choice: Choice) -> Choice:
    """The same where the cluster has bootc alone: a machine that only rpm-ostree could deploy is not deployed."""
    if choice.driver != RPM_OSTREE:
        return choice
    return choice._replace(refusal=f"{_STAGE}, so it deploys nothing here any more")


def detect(
    commands: Commands | None = None, *, bootc_program: Sequence[str] = (bootc.PROGRAM,),
    rpm_ostree_program: Sequence[str] = (rpm_ostree_os.PROGRAM,), prefer_bootc: bool = False,
    cfsctl_program: Sequence[str] = (composefs.PROGRAM,), cmdline: Callable[[], str] = composefs.CMDLINE.read_text,
) -> Choice:  # fmt: skip
    """The driver of this machine."""
    ask = (commands or Commands()).ask
    booted: OsEntry | None = None
    listed: frozenset[str] = frozenset()
    try:
        booted = bootc_status(ask([*bootc_program, *bootc.STATUS]).encode()).booted
    except (CommandFailed, OsStatusError):
        booted = None
    try:
        listed = features(ask([*rpm_ostree_program, "--version"]))
    except CommandFailed:
        listed = frozenset()
    layered = _layered(ask, rpm_ostree_program) if booted is not None and booted.incompatible else ()
    sealed = _sealed(ask, cfsctl_program, cmdline)
    return driver_for(booted, listed, prefer_bootc=prefer_bootc, sealed=sealed, packages=layered)


def _layered(ask: Run, program: Sequence[str]) -> tuple[str, ...]:
    """The packages that were layered on the image that runs; bootc says that there are some and not which."""
    try:
        status = rpm_ostree_status(ask([*program, *rpm_ostree_os.STATUS]).encode())
    except (CommandFailed, OsStatusError):
        return ()
    return tuple(sorted(status.booted.packages)) if status.booted is not None else ()


def _sealed(ask: Run, program: Sequence[str], cmdline: Callable[[], str]) -> bool:
    """Whether this machine boots a root that its command line names, and has the program that keeps such roots."""
    try:
        if not root_on(cmdline()):
            return False
        ask([*program, "--version"])
    except (CommandFailed, OSError):
        return False
    return True
