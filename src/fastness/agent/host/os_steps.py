"""From what a machine boots to what it should boot: which steps, in which order. A table without a host.

    booted is it, nothing or the same staged       nothing to do
    booted is it, something else staged            drop what is staged
    staged is it                                   nothing to do but the reboot
    anything else                                  drop what is staged, then what differs: kernel back, image, arguments,
                                                   kernel, packages

* Images are compared by digest: two names of the same bytes are the same image.
* The deployment that is kept to fall back to may be the one that is asked for, and is deployed anew all the same: its /etc is as
  old as it is, and a machine that fell back to it would lose what was configured since.
* Arguments are replaced as a whole: every one of the old config goes, every one of the new config comes, in order and as often as
  it stands there. Arguments and packages that no config brought are not touched.

Drivers (`rpm_ostree_os`, `bootc`) carry the steps out; one that has no way to do a step refuses before the first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from fastness.agent.host.states import Deployment
from fastness.formats.image_reference import same_image
from fastness.formats.os_status import OsEntry
from fastness.machineconfig.render.validate import EXTENSIONS

DEFAULT_KERNEL: Final = ("kernel", "kernel-core", "kernel-modules", "kernel-modules-core", "kernel-modules-extra")
KERNELS: Final = {
    "realtime": ("kernel-rt-core", "kernel-rt-modules", "kernel-rt-modules-extra"),
    "64k-pages": ("kernel-64k-core", "kernel-64k-modules", "kernel-64k-modules-core", "kernel-64k-modules-extra"),
}
_KERNEL_PACKAGES: Final = frozenset(package for packages in KERNELS.values() for package in packages)


class DropStaged(NamedTuple):
    """The next boot takes what is booted."""


class ResetKernel(NamedTuple):
    """The image's own kernel comes back."""

    removed: tuple[str, ...]
    layered: tuple[str, ...]


class Switch(NamedTuple):
    """Another image."""

    image: str


class Arguments(NamedTuple):
    """Kernel arguments: all of the old ones go, all of the new ones come."""

    old: tuple[str, ...]
    new: tuple[str, ...]


class Kernel(NamedTuple):
    """Another kernel in the place of the image's own."""

    packages: tuple[str, ...]


class Packages(NamedTuple):
    """Packages on top of the image, each list in order of names."""

    install: tuple[str, ...]
    uninstall: tuple[str, ...]


OsStep = DropStaged | ResetKernel | Switch | Arguments | Kernel | Packages


@dataclass(frozen=True, slots=True)
class Present:
    """What a machine has: two deployments with the arguments of the kernel, None for arguments that nobody can tell."""

    booted: OsEntry
    arguments: tuple[str, ...] = ()
    staged: OsEntry | None = None
    staged_arguments: tuple[str, ...] | None = None


def os_steps(present: Present, new: Deployment, old: Deployment) -> tuple[OsStep, ...]:
    """The steps that make the next boot run `new` on a machine that was told to run `old` until now."""
    goal = new._replace(image=new.image or present.booted.image)
    if _is(present.booted, present.arguments, goal, old):
        stray = present.staged is not None and not _is(
            present.staged, present.staged_arguments or present.arguments, goal, old
        )
        return (DropStaged(),) if stray else ()
    if present.staged is not None and _is(present.staged, present.staged_arguments, goal, old):
        return ()
    if _only_arguments_unknown(present, goal, old):
        right = _arguments_right(present.arguments, goal, old)  # what is booted passes them on
        return () if right else (Arguments(old.arguments, goal.arguments),)
    return ((DropStaged(),) if present.staged is not None else ()) + _from_booted(present, goal, old)


def extensions_of(packages: tuple[str, ...]) -> tuple[str, ...]:
    """The package sets whose packages are all there."""
    present = frozenset(packages)
    return tuple(name for name, members in EXTENSIONS.items() if present.issuperset(members))


def kernel_of(packages: tuple[str, ...]) -> str:
    """The kernel that is layered; empty for the image's own."""
    present = frozenset(packages)
    return next((name for name, members in KERNELS.items() if present.issuperset(members)), "")


def deployment_of(entry: OsEntry, arguments: tuple[str, ...]) -> Deployment:
    """A deployment in the terms of configs."""
    return Deployment(entry.image, arguments, kernel_of(entry.packages), extensions_of(entry.packages))


def packages_for(extensions: tuple[str, ...]) -> frozenset[str]:
    """The packages that sets of them are made of."""
    return frozenset(package for extension in extensions for package in EXTENSIONS[extension])


def _from_booted(present: Present, goal: Deployment, old: Deployment) -> tuple[OsStep, ...]:
    booted = present.booted
    switched = not same_image(booted.image, goal.image)
    layered = tuple(package for package in booted.packages if package in _KERNEL_PACKAGES)
    removed = tuple(package for package in booted.removals if package in DEFAULT_KERNEL)
    another_kernel = kernel_of(booted.packages) != goal.kernel
    steps: list[OsStep] = []
    # Before the image: an override is of the packages of the old one, and would not resolve against the new one's.
    if (switched or another_kernel) and layered and removed:
        steps.append(ResetKernel(removed, layered))
    if switched:
        steps.append(Switch(goal.image))
    if not _arguments_right(present.arguments, goal, old):
        steps.append(Arguments(old.arguments, goal.arguments))
    if goal.kernel and (switched or another_kernel):
        steps.append(Kernel(KERNELS[goal.kernel]))
    packages = _packages(booted, goal, old)
    return (*steps, packages) if any(packages) else tuple(steps)


def _is(entry: OsEntry, arguments: tuple[str, ...] | None, goal: Deployment, old: Deployment) -> bool:
    """Whether a deployment is what is asked for."""
    return (
        arguments is not None
        and same_image(entry.image, goal.image)
        and kernel_of(entry.packages) == goal.kernel
        and not any(_packages(entry, goal, old))
        and _arguments_right(arguments, goal, old)
    )


def _only_arguments_unknown(present: Present, goal: Deployment, old: Deployment) -> bool:
    """Whether the right image waits already and only its arguments cannot be told: setting them twice does no harm."""
    staged = present.staged
    return (
        staged is not None
        and present.staged_arguments is None
        and same_image(staged.image, goal.image)
        and kernel_of(staged.packages) == goal.kernel
        and not any(_packages(staged, goal, old))
    )


def _packages(entry: OsEntry, goal: Deployment, old: Deployment) -> Packages:
    """What has to come and to go. What no config brought stays: the runtime of confidential containers can come by a pod."""
    target, layered = packages_for(goal.extensions), frozenset(entry.packages)
    gone = (packages_for(old.extensions) - target) & layered
    return Packages(tuple(sorted(target - layered)), tuple(sorted(gone)))


def _arguments_right(present: tuple[str, ...], goal: Deployment, old: Deployment) -> bool:
    missing = any(argument not in present for argument in goal.arguments)
    left = any(argument in present for argument in old.arguments if argument not in goal.arguments)
    return not missing and not left
