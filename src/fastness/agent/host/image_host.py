"""Which program deploys the operating system of this machine, by what the machine is.

    bootc booted it, with composefs                bootc
    bootc booted it, with layered packages         rpm-ostree: bootc refuses such a machine
    rpm-ostree knows container images              rpm-ostree, unless bootc is preferred and booted it
    bootc booted it                                bootc
    neither                                        a package host

Asked of the programs and not of marker files: machines with composefs have none of those that ostree leaves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fastness.agent.host import bootc, rpm_ostree_os
from fastness.agent.host.engine import Commands
from fastness.agent.host.errors import CommandFailed
from fastness.formats.errors import OsStatusError
from fastness.formats.os_status import OsEntry, bootc_status, features

AUTO: Final = "auto"
BOOTC: Final = "bootc"
RPM_OSTREE: Final = "rpm-ostree"
PACKAGES: Final = "none"


def driver_for(booted: OsEntry | None, rpm_ostree_features: frozenset[str], *, prefer_bootc: bool = False) -> str:
    """The driver of a machine that bootc booted like this, or not at all."""
    layers = "container" in rpm_ostree_features
    if booted is not None and booted.composefs:
        return BOOTC
    if booted is not None and booted.incompatible:
        return RPM_OSTREE if layers else PACKAGES
    if layers and not (prefer_bootc and booted is not None):
        return RPM_OSTREE
    return BOOTC if booted is not None else PACKAGES


def detect(
    commands: Commands | None = None, *, bootc_program: Sequence[str] = (bootc.PROGRAM,),
    rpm_ostree_program: Sequence[str] = (rpm_ostree_os.PROGRAM,), prefer_bootc: bool = False,
) -> str:  # fmt: skip
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
    return driver_for(booted, listed, prefer_bootc=prefer_bootc)
