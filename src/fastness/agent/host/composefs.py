"""The operating system of a sealed host: images side by side, of which the measured command line names every byte of one.

    pull          into a repository whose files the kernel compares with their digests (`cfsctl oci pull`)
    prepare       its unified kernel image goes onto the EFI system partition, beside the one that runs
    boot once     `bootctl set-oneshot`: the next boot takes it, every boot after that takes the old one again
    keep          `bootctl set-default`, when the machine is healthy and has proved itself (`booted_well`)

* Before anything is written the running image is made the default, by name: whatever happens afterwards, a boot leads back to it.
* An exit code of zero is not believed. The manifest must have the digest that was asked for. The kernel image on the partition
  must name the root that came with it, which is computed from what was pulled; else nothing is booted.
* The tag of an image in the repository and its boot entry are made from its digest: nothing else has to be remembered.
* What runs is the image whose root the command line of the running kernel names. The boot loader's own word is only taken where
  two images have the same root.
* Kernel arguments are inside of the image: those that a config asks for must be on its line. Packages and kernels belong into it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeVar

from fastness.agent.host.boot_entries import BootEntries, entry_of
from fastness.agent.host.engine import Commands, Tree, as_image_failure, auth_link, in_a_unit
from fastness.agent.host.errors import AnotherImage, CommandFailed, DriverError, ImageFailure
from fastness.agent.host.os_steps import Arguments, DropStaged, Present, Switch, deployment_of, os_steps
from fastness.agent.host.states import NOTHING, Deployment, Pull
from fastness.formats.composefs import Stored, pulled_manifest, root_on, stored_images, tag_of
from fastness.formats.errors import ImageError, OsStatusError
from fastness.formats.image_reference import canonical, digest_of, same_image
from fastness.formats.os_status import OsEntry

PROGRAM: Final = "cfsctl"
REPOSITORY: Final = Path("/sysroot/composefs")
AUTH: Final = "/etc/containers/auth.json"
CMDLINE: Final = Path("/proc/cmdline")
_BUILD: Final = "Bake it into the image of the pool."
T = TypeVar("T")


class ComposefsOs:
    """The images of this machine, and which of them it boots."""

    finalizer = ""
    # They are on the measured command line of the image, and nowhere else.
    brings_arguments = True
    owns_usr = True
    brings_usr = True

    def __init__(
        self, root: Tree, entries: BootEntries, commands: Commands | None = None, *, program: Sequence[str] = (PROGRAM,),
        launcher: Sequence[str] = ("systemd-run",), cmdline: Callable[[], str] = CMDLINE.read_text,
        repository: Path = REPOSITORY,
    ) -> None:  # fmt: skip
        self._root = root
        self._entries = entries
        self._commands = commands or Commands()
        self._repository = ("--repo", str(repository))
        self._program = tuple(program)
        self._launcher = tuple(launcher)
        self._cmdline = cmdline

    def booted(self) -> Deployment:
        """What runs now; raises ImageFailure."""
        return deployment_of(OsEntry(self._running().image, composefs=True, uki=True), self._arguments())

    def staged(self) -> Deployment | None:
        """What the next boot will run once, if it differs; raises ImageFailure."""
        chosen = self._entries.once()
        image = next((each.image for each in self._images() if chosen and entry_of(each.image) == chosen), "")
        return Deployment(image) if image and not same_image(image, self._running().image) else None

    def on_trial(self) -> bool:
        """Whether what runs was booted once, and the next boot goes back; raises DriverError."""
        return self._entries.default() not in ("", self._entries.selected())

    def stage(self, deployment: Deployment, old: Deployment = NOTHING, extensions_image: str = "") -> None:
        """Let the next boot run a deployment once; raises ImageFailure, and the next boot runs what runs now then."""
        if deployment.kernel or deployment.extensions:
            asked_for = deployment.kernel or ", ".join(deployment.extensions)
            raise ImageFailure(f"a sealed image has its own kernel and packages ({asked_for})", _BUILD)
        running = self._running()
        waiting = self.staged()
        staged = OsEntry(waiting.image) if waiting else None
        present = Present(OsEntry(running.image), self._arguments(), staged, deployment.arguments if staged else None)
        steps = os_steps(present, deployment, old)
        switch = next((step for step in steps if isinstance(step, Switch)), None)
        if switch is None and any(isinstance(step, Arguments) for step in steps):
            raise ImageFailure("kernel arguments cannot be changed: they are inside of the measured image", _BUILD)
        if any(isinstance(step, DropStaged) for step in steps):
            self.discard()
        if switch is not None:
            self._switch(canonical(switch.image), running, deployment.arguments)

    def discard(self) -> None:
        """Let the next boot run what is booted; raises ImageFailure."""
        self._entries.forget_once()

    def booted_well(self) -> None:
        """Keep what runs: every boot from now on takes it; raises DriverError."""
        self._entries.keep(self._entries.selected() or entry_of(self._running().image))

    def last_boot_log(self) -> str:
        """Nothing is written when the machine goes down."""
        return ""

    # ------------------------------------------------------------ one switch

    def _switch(self, image: str, running: Stored, arguments: tuple[str, ...]) -> None:
        if not digest_of(image):
            raise ImageFailure(f"{image} names no digest", "Name the image as registry/repository@sha256:….")
        auth_link(self._root, AUTH)
        pull = Pull.FAILED
        try:
            # What runs on trial is not kept for the sake of a third image: a boot leads back to the one before, then.
            if not self.on_trial():
                self._entries.keep(self._entries.selected() or entry_of(running.image))
            self._make_room(running.image, image)
            self._pull(image)
            pull = Pull.DONE
            self._prepare(image, arguments)
            self._entries.boot_once(entry_of(image))
        except DriverError as error:
            with suppress(DriverError):
                self._entries.forget_once()
            with suppress(DriverError):
                self._make_room(running.image)
            came = error.pull if isinstance(error, ImageFailure) and pull is Pull.FAILED else pull
            raise as_image_failure(error, Pull.FAILED if isinstance(error, AnotherImage) else came) from error

    def _make_room(self, *needed: str) -> None:
        """Take away images and kernel images that are neither booted nor asked for."""
        entries = {self._entries.selected(), self._entries.default(), *map(entry_of, needed)}
        self._entries.retain(entries)
        images = self._images()
        for each in [each for each in images if entry_of(each.image) not in entries]:
            self._ask("oci", "untag", each.name)
        # Always: a pull that a full disk or a power cut ended has left files without a name. Roots that may be booted are named:
        # whoever installed the machine may have prepared its boot without tying the root to the tag, and it would be collected.
        roots = {root_on(self._cmdline())} | {
            self._root_of(each.name) for each in images if entry_of(each.image) in entries
        }
        self._ask("gc", *(word for root in sorted(roots - {""}) for word in ("--root", root)))

    def _pull(self, image: str) -> None:
        # The root of a pull that is not bootable belongs to no tag, and is gone with the next collection.
        words = ("--require-verity", "oci", "pull", "--bootable", f"docker://{image}", tag_of(image))
        # skopeo pulls for cfsctl, and looks for credentials nowhere below /etc unless it is told.
        unit = [*in_a_unit(self._launcher), "-p", f"Environment=REGISTRY_AUTH_FILE={AUTH}"]
        printed = self._commands.persistently([*unit, *self._program, *self._repository, *words])
        came = _read(lambda: pulled_manifest(printed))
        if came != digest_of(image):
            raise AnotherImage(f"{PROGRAM} pulled {came or 'nothing'} instead of {image}")

    def _prepare(self, image: str, arguments: tuple[str, ...]) -> None:
        """Put the kernel image onto the partition, and look at what is there then."""
        entry = entry_of(image)
        root = self._root_of(tag_of(image))
        options = ("--bootdir", str(self._entries.boot), "--entry-id", entry.removesuffix(".efi"))
        self._ask("oci", "prepare-boot", tag_of(image), *options)
        try:
            line = self._entries.command_line(entry)
        except ImageError as error:
            raise ImageFailure(f"the kernel image of {image} is damaged: {error}", pull=Pull.DONE) from error
        if root_on(line) != root:
            raise AnotherImage(
                f"the kernel image of {image} names another root than the image has",
                "Its build was not sealed, or somebody changed it afterwards: build it anew.",
            )
        missing = [argument for argument in arguments if argument not in line.split()]
        if missing:
            raise ImageFailure(
                f"the kernel image of {image} lacks {' '.join(missing)} on its line", _BUILD, pull=Pull.DONE
            )
        self._entries.settle(entry)

    # ------------------------------------------------------------ what is there

    def _running(self) -> Stored:
        root, selected = root_on(self._cmdline()), self._entries.selected()
        if not root:
            raise ImageFailure("no sealed image is booted: the command line names no root", "See /proc/cmdline there.")
        same = [each for each in self._images() if self._root_of(each.name) == root]
        named = [each for each in same if entry_of(each.image) == selected]
        for each in (*named, *same):
            return each
        raise ImageFailure("the root that runs is not in the repository of this machine", "Install the machine anew.")

    def _images(self) -> tuple[Stored, ...]:
        return _read(lambda: stored_images(self._ask("oci", "images", "--json").encode()))

    def _root_of(self, name: str) -> str:
        return self._ask("oci", "compute-id", "--bootable", name).strip()

    def _arguments(self) -> tuple[str, ...]:
        return tuple(self._cmdline().split())

    def _ask(self, *words: str) -> str:
        try:
            return self._commands.ask([*self._program, *self._repository, *words])
        except CommandFailed as error:
            raise ImageFailure(error.message, error.hint, pull=Pull.UNKNOWN) from error


def _read(read: Callable[[], T]) -> T:
    try:
        return read()
    except OsStatusError as error:
        raise ImageFailure(f"`{PROGRAM}`: {error}", error.hint) from error
