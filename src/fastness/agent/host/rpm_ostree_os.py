"""The operating system of a host that `rpm-ostree` deploys: an image from a registry, with packages and a kernel on top.

One change, in this order; whatever fails on the way, everything that was staged is dropped again:

    packages unpacked    cleanup -p    kernel back    rebase    kargs    other kernel    update --install    what came of it

* Before: a drop-in that an interrupted update of another agent left for the daemon goes, and the pull secret is linked.
* A daemon that is busy with something else is waited for; one that stays busy is told by what it does.
* Exit 77 means that there was nothing to change.
* What is booted is read from the kernel's command line, not from what the next boot would get.
* A boot that went well drops the deployment to fall back to (`booted_well`): its files in /etc belong to the config before.
"""

from __future__ import annotations

import platform
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Final

from fastness.agent.host.engine import NODE_SECRET, Commands, Course, Tree, as_image_failure, auth_link, in_a_unit
from fastness.agent.host.errors import AnotherImage, CommandFailed, DriverError, ImageFailure
from fastness.agent.host.os_steps import (
    DEFAULT_KERNEL,
    KERNELS,
    Arguments,
    DropStaged,
    Kernel,
    OsStep,
    Packages,
    Present,
    ResetKernel,
    Switch,
    deployment_of,
    os_steps,
    packages_for,
)
from fastness.agent.host.states import ABSENT, NOTHING, Deployment, File
from fastness.formats.errors import OsStatusError
from fastness.formats.image_reference import same_image
from fastness.formats.os_status import OsEntry, OsStatus, rpm_ostree_status
from fastness.machineconfig.render.validate import EXTENSIONS

PROGRAM: Final = "rpm-ostree"
STATUS: Final = ("status", "--json")
FINALIZER: Final = "ostree-finalize-staged.service"
REGISTRY: Final = "ostree-unverified-registry:"
AUTH: Final = "/run/ostree/auth.json"
LEFT_OVER: Final = "/run/systemd/system/rpm-ostreed.service.d/temporal-policy-binding.conf"
REPOSITORY: Final = "/etc/yum.repos.d/coreos-extensions.repo"
CMDLINE: Final = Path("/proc/cmdline")
UNPACKED: Final = Path("/run/mco-extensions")
CONTAINER: Final = "fastness-os-extensions"
UNCHANGED: Final = 77
BUSY_PAUSE: Final = 5.0
BUSY_TRIES: Final = 120
_UNCHANGED_FLAG: Final = "--unchanged-exit-77"


class RpmOstreeOs:
    """The deployments of this machine, as rpm-ostree has them."""

    brings_arguments = False
    owns_usr = True
    brings_usr = True

    finalizer = FINALIZER

    def __init__(
        self, root: Tree, commands: Commands | None = None, *, program: Sequence[str] = (PROGRAM,),
        podman: Sequence[str] = ("podman",), launcher: Sequence[str] = ("systemd-run",),
        cmdline: Callable[[], str] = CMDLINE.read_text, unpacked: Path = UNPACKED, architecture: str = "",
    ) -> None:  # fmt: skip
        self._root = root
        self._commands = commands or Commands()
        self._program = tuple(program)
        self._podman = tuple(podman)
        self._launcher = tuple(launcher)
        self._cmdline = cmdline
        self._unpacked = unpacked
        self._architecture = architecture or platform.machine()

    def booted(self) -> Deployment:
        """What runs now; raises ImageFailure."""
        return deployment_of(_booted(self._status()), self._running_arguments())

    def staged(self) -> Deployment | None:
        """What the next boot will run, if it differs; raises ImageFailure."""
        entry = self._status().staged
        return deployment_of(entry, self._next_arguments()) if entry is not None else None

    def stage(self, deployment: Deployment, old: Deployment = NOTHING, extensions_image: str = "") -> None:
        """Let the next boot run a deployment; raises ImageFailure, and nothing is staged then."""
        self._refuse(deployment, extensions_image)
        steps = os_steps(self._present(), deployment, old)
        if not steps:
            return
        self._root.put(LEFT_OVER, ABSENT)
        auth_link(self._root, AUTH)
        layered = deployment.extensions or deployment.kernel or old.extensions or old.kernel
        course = Course(steps)
        try:
            with self._packages(extensions_image) if layered and extensions_image else nullcontext():
                self._ask("cleanup", "-p")
                for step in steps:
                    with course.of(step):
                        self._carry_out(step)
            self._verify(deployment, steps)
        except DriverError as error:
            self._abandon(error)
            raise as_image_failure(error, course.pull_after(error)) from error

    def discard(self) -> None:
        """Drop what is staged; raises ImageFailure."""
        self._ask("cleanup", "-p")

    def on_trial(self) -> bool:
        """Never: rpm-ostree goes back only when somebody asks it to."""
        return False

    def booted_well(self) -> None:
        """The machine runs what it should: drop what it would fall back to; raises ImageFailure."""
        self._ask("cleanup", "-r")

    def last_boot_log(self) -> str:
        """What finalizing the staged deployment said at the last shutdown."""
        return self._commands.last_boot_log(FINALIZER)

    def _refuse(self, deployment: Deployment, extensions_image: str) -> None:
        """What cannot be done is refused before anything happens."""
        unknown = [extension for extension in deployment.extensions if extension not in EXTENSIONS]
        if unknown:
            raise ImageFailure(f"extensions {', '.join(unknown)} are not supported", f"Use {', '.join(EXTENSIONS)}.")
        if deployment.kernel and deployment.kernel not in KERNELS:
            raise ImageFailure(f"there is no kernel {deployment.kernel!r}", f"Use {', '.join(KERNELS)} or default.")
        if deployment.kernel and "kernel-devel" in deployment.extensions:
            raise ImageFailure(f"kernel-devel does not fit the kernel {deployment.kernel}", "Drop one of the two.")
        if deployment.kernel == "64k-pages" and self._architecture != "aarch64":
            raise ImageFailure("the kernel 64k-pages exists for aarch64 only", "Take kernelType back for this pool.")
        if (deployment.kernel or deployment.extensions) and not extensions_image:
            raise ImageFailure(
                "no image with packages is known for extensions and kernels",
                "Name it in baseOSExtensionsContainerImage of a MachineConfig or of the ControllerConfig.",
            )

    def _carry_out(self, step: OsStep) -> None:
        match step:
            case DropStaged():
                return  # the sequence began with it
            case ResetKernel(removed, layered):
                self._deploy("override", "reset", *removed, *(f"--uninstall={package}" for package in layered))
            case Switch(image):
                self._commands.persistently([*self._program, "rebase", "--experimental", f"{REGISTRY}{image}"])
            case Arguments(old, new):
                gone = (f"--delete-if-present={argument}" for argument in old)
                self._changed("kargs", _UNCHANGED_FLAG, *gone, *(f"--append={argument}" for argument in new))
            case Kernel(packages):
                self._deploy("override", "remove", *DEFAULT_KERNEL, *(f"--install={package}" for package in packages))
            case Packages(install, uninstall):
                words = [f"--install={package}" for package in install]
                words += [f"--uninstall={package}" for package in uninstall]
                self._changed("update", _UNCHANGED_FLAG, *words)

    def _verify(self, deployment: Deployment, steps: Sequence[OsStep]) -> None:
        """What is staged now is what was asked for: a program that ends well and does something else is not believed."""
        status = self._status()
        entry = status.staged or _booted(status)
        goal = deployment.image or _booted(status).image
        if not same_image(entry.image, goal):
            raise AnotherImage(f"{PROGRAM} staged {entry.image or 'no image'} instead of {goal}")
        needed = packages_for(deployment.extensions) | frozenset(KERNELS.get(deployment.kernel, ()))
        if lacking := sorted(needed - frozenset(entry.packages)):
            raise ImageFailure(f"the staged deployment lacks {', '.join(lacking)}")
        if any(isinstance(step, Arguments) for step in steps):
            present = self._next_arguments()
            if absent := [argument for argument in deployment.arguments if argument not in present]:
                raise ImageFailure(f"the staged deployment lacks the kernel arguments {' '.join(absent)}")

    def _abandon(self, error: DriverError) -> None:
        """Nothing of a change that failed is left for the next boot."""
        if isinstance(error.__cause__, CommandFailed) and error.__cause__.status is None:
            # The client was killed, its daemon goes on: what it fetches must not be staged after all.
            with suppress(DriverError):
                self._ask("cancel")
        with suppress(DriverError):
            self._ask("cleanup", "-p")

    @contextmanager
    def _packages(self, image: str) -> Iterator[None]:
        """The packages of the extensions image, as a repository for the time of the block."""
        pull = [*self._podman, "pull", "--quiet", f"--authfile={NODE_SECRET}", image]
        self._commands.persistently([*in_a_unit(self._launcher), *pull])
        try:
            self._run([*self._podman, "create", "--replace", "--net=none", f"--name={CONTAINER}", image, "/unused"])
            shutil.rmtree(self._unpacked, ignore_errors=True)
            self._run([*self._podman, "cp", f"{CONTAINER}:/", str(self._unpacked)])
            text = (
                "[coreos-extensions]\nname=extensions of the operating system\nenabled=1\nmetadata_expire=1m\n"
                f"baseurl=file://{self._unpacked}/usr/share/rpm-ostree/extensions/\ngpgcheck=0\nskip_if_unavailable=False\n"
            )
            self._root.put(REPOSITORY, File(text.encode()))
            yield
        finally:
            self._root.put(REPOSITORY, ABSENT)
            shutil.rmtree(self._unpacked, ignore_errors=True)
            with suppress(DriverError):
                self._run([*self._podman, "rm", "--force", CONTAINER])

    def _present(self) -> Present:
        status = self._settled()
        next_arguments = self._next_arguments() if status.staged is not None else None
        return Present(_booted(status), self._running_arguments(), status.staged, next_arguments)

    def _settled(self) -> OsStatus:
        """The status once the daemon is at rest; raises ImageFailure."""
        for _ in range(BUSY_TRIES):
            status = self._status()
            if not status.transaction:
                return status
            self._commands.pause(BUSY_PAUSE)
        raise ImageFailure(
            f"{PROGRAM} is busy with another transaction: {status.transaction}",
            "See `rpm-ostree status` on that machine.",
        )

    def _status(self) -> OsStatus:
        try:
            return rpm_ostree_status(self._ask(*STATUS).encode())
        except OsStatusError as error:
            raise ImageFailure(f"`{PROGRAM} status`: {error}", error.hint) from error

    def _running_arguments(self) -> tuple[str, ...]:
        return tuple(self._cmdline().split())

    def _next_arguments(self) -> tuple[str, ...]:
        return tuple(self._ask("kargs").split())

    def _changed(self, *words: str) -> None:
        """Run what may find nothing to change."""
        try:
            self._commands.deploy([*self._program, *words])
        except CommandFailed as error:
            if error.status != UNCHANGED:
                raise

    def _deploy(self, *words: str) -> None:
        self._commands.deploy([*self._program, *words])

    def _run(self, command: Sequence[str]) -> None:
        self._commands.deploy(command)

    def _ask(self, *words: str) -> str:
        try:
            return self._commands.ask([*self._program, *words])
        except CommandFailed as error:
            raise ImageFailure(error.message, error.hint) from error


def _booted(status: OsStatus) -> OsEntry:
    if status.booted is None:
        raise ImageFailure("no deployment of this machine is booted", "See `rpm-ostree status` on that machine.")
    return status.booted
