"""The operating system of a host that `bootc` deploys: an image from a registry and, where bootc can, kernel arguments.

* An image is staged by `bootc switch`, in a unit of its own with the proxy of the node; a registry that fails is asked again.
* What was staged is read back: another digest than the one that was asked for is taken back, and that is a failure.
* bootc has no word to drop what is staged: switching to the booted image does it.
* Arguments are ours by their source, so that those of others stay (`loader-entries`, with ostree 2026.1 or later). Those that
  rpm-ostree set, before this machine went over to bootc, have no source: rpm-ostree takes them away where it is there. Where
  bootc cannot, and with a unified kernel image always, they are refused: there the command line is part of what was signed.
* Packages and other kernels are refused: they belong into the image.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from fastness.agent.host.engine import Commands, Course, Tree, as_image_failure, auth_link, in_a_unit
from fastness.agent.host.errors import AnotherImage, CommandFailed, DriverError, ImageFailure
from fastness.agent.host.os_steps import Arguments, DropStaged, OsStep, Present, Switch, deployment_of, os_steps
from fastness.agent.host.states import NOTHING, Deployment, File
from fastness.formats import json
from fastness.formats.errors import JsonError, OsStatusError
from fastness.formats.image_reference import canonical, same_image
from fastness.formats.os_status import OsEntry, OsStatus, bootc_status

PROGRAM: Final = "bootc"
STATUS: Final = ("status", "--format=json", "--format-version=1")
SOURCE: Final = "fastness"
AUTH: Final = "/etc/ostree/auth.json"
POLICY: Final = "/etc/containers/policy.json"
CMDLINE: Final = Path("/proc/cmdline")
OSTREE_FINALIZER: Final = "ostree-finalize-staged.service"
COMPOSEFS_FINALIZER: Final = "bootc-finalize-staged.service"
_UNCHANGED: Final = 77
_BUILD: Final = "Bake it into the image of the pool."


class BootcOs:
    """The deployments of this machine, as bootc has them."""

    brings_arguments = True
    owns_usr = True
    brings_usr = True

    def __init__(
        self, root: Tree, commands: Commands | None = None, *, program: Sequence[str] = (PROGRAM,),
        launcher: Sequence[str] = ("systemd-run",), cmdline: Callable[[], str] = CMDLINE.read_text,
        rpm_ostree: Sequence[str] = ("rpm-ostree",),
    ) -> None:  # fmt: skip
        self._root = root
        self._rpm_ostree = tuple(rpm_ostree)
        self._commands = commands or Commands()
        self._program = tuple(program)
        self._launcher = tuple(launcher)
        self._cmdline = cmdline

    @property
    def finalizer(self) -> str:
        """The unit that makes the staged deployment the next one to boot, at shutdown."""
        return COMPOSEFS_FINALIZER if _booted(self._status()).composefs else OSTREE_FINALIZER

    def booted(self) -> Deployment:
        """What runs now; raises ImageFailure."""
        return deployment_of(_booted(self._status()), tuple(self._cmdline().split()))

    def staged(self) -> Deployment | None:
        """What the next boot will run, if it differs; raises ImageFailure."""
        status = self._status()
        if status.staged is None or same_image(status.staged.image, _booted(status).image):
            return None
        return deployment_of(status.staged, ())

    def stage(self, deployment: Deployment, old: Deployment = NOTHING, extensions_image: str = "") -> None:
        """Let the next boot run a deployment; raises ImageFailure, and nothing is staged then."""
        if deployment.kernel or deployment.extensions:
            asked_for = deployment.kernel or ", ".join(deployment.extensions)
            raise ImageFailure(f"bootc cannot change the kernel or add packages ({asked_for})", _BUILD)
        status = self._status()
        booted = _booted(status)
        present = Present(booted, tuple(self._cmdline().split()), status.staged)
        steps = os_steps(present, deployment, old)
        if any(isinstance(step, Arguments) for step in steps):
            self._check_arguments(booted)
        auth_link(self._root, AUTH)
        # A switch replaces what is staged: going back to the booted image first would fetch it for nothing.
        switches = any(isinstance(step, Switch) for step in steps)
        steps = tuple(step for step in steps if not (switches and isinstance(step, DropStaged)))
        course = Course(steps)
        try:
            for step in steps:
                with course.of(step):
                    self._carry_out(step, booted)
            if steps:
                self._verify(deployment.image or booted.image)
        except DriverError as error:
            with suppress(DriverError):
                self.discard()
            raise as_image_failure(error, course.pull_after(error)) from error

    def discard(self) -> None:
        """Let the next boot run what is booted; raises ImageFailure."""
        status = self._status()
        booted = _booted(status)
        if status.staged is not None and not same_image(status.staged.image, booted.image):
            self._switch(booted.image)
            self._verify(booted.image)

    def on_trial(self) -> bool:
        """Never: bootc goes back only when somebody asks it to."""
        return False

    def booted_well(self) -> None:
        """Nothing to clean: bootc keeps one deployment to fall back to and replaces it itself."""

    def last_boot_log(self) -> str:
        """What finalizing the staged deployment said at the last shutdown."""
        return self._commands.last_boot_log(self.finalizer)

    def _check_arguments(self, booted: OsEntry) -> None:
        if booted.uki:
            raise ImageFailure(
                "kernel arguments cannot be changed: the command line is inside the signed kernel image", _BUILD
            )
        try:
            self._commands.ask([*self._program, "loader-entries", "set-options-for-source", "--help"])
        except CommandFailed as error:
            raise ImageFailure(
                "this bootc cannot change kernel arguments of a machine (loader-entries is missing)",
                "Put them into /usr/lib/bootc/kargs.d of the image, or update bootc and ostree on the host.",
            ) from error

    def _carry_out(self, step: OsStep, booted: OsEntry) -> None:
        match step:
            case DropStaged():
                self._switch(booted.image)
            case Switch(image):
                self._switch(canonical(image))
            case Arguments(old, new):
                self._take_from_rpm_ostree(old)
                options = (
                    "loader-entries",
                    "set-options-for-source",
                    f"--source={SOURCE}",
                    f"--options={' '.join(new)}",
                )
                self._commands.deploy([*self._program, *options])
            case _:
                raise ImageFailure(f"bootc cannot do {type(step).__name__}", _BUILD)

    def _take_from_rpm_ostree(self, arguments: Sequence[str]) -> None:
        """Take arguments away that rpm-ostree set while it deployed this machine; bootc knows those of its own sources alone."""
        if not arguments:
            return
        try:
            self._commands.ask([*self._rpm_ostree, "--version"])
        except CommandFailed:
            return  # a host of bootc alone: nobody else set any
        gone = (f"--delete-if-present={argument}" for argument in arguments)
        try:
            self._commands.deploy([*self._rpm_ostree, "kargs", "--unchanged-exit-77", *gone])
        except CommandFailed as error:
            if error.status != _UNCHANGED:
                raise

    def _switch(self, image: str) -> None:
        strict = ["--enforce-container-sigpolicy"] if self._policy_is_strict() else []
        self._commands.persistently([*in_a_unit(self._launcher), *self._program, "switch", *strict, image])

    def _verify(self, image: str) -> None:
        status = self._status()
        entry = status.staged or _booted(status)
        if not same_image(entry.image, canonical(image)):
            raise AnotherImage(f"bootc staged {entry.image or 'no image'} instead of {image}")

    def _policy_is_strict(self) -> bool:
        """Whether signatures are asked for by default; bootc refuses the flag where they are not."""
        state = self._root.look(POLICY)
        try:
            default = json.decode(state.content)["default"] if isinstance(state, File) else []
            return bool(default) and all(rule["type"] != "insecureAcceptAnything" for rule in default)
        except (JsonError, KeyError, TypeError):
            return False

    def _status(self) -> OsStatus:
        try:
            return bootc_status(self._commands.ask([*self._program, *STATUS]).encode())
        except CommandFailed as error:
            raise ImageFailure(error.message, error.hint) from error
        except OsStatusError as error:
            raise ImageFailure(f"`{PROGRAM} status`: {error}", error.hint) from error


def _booted(status: OsStatus) -> OsEntry:
    if status.booted is None:
        raise ImageFailure("bootc did not boot this machine", "See `bootc status` on that machine.")
    return status.booted
