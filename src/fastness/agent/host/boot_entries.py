"""Kernel images on the EFI system partition, and which of them systemd-boot takes: always, once, this time.

What systemd-boot decided and was told stands in EFI variables. They are read as files, as the kernel shows them, and written by
`bootctl`; every change is read back. Names of entries are those of files below EFI/Linux; ours are made from the digest of an
image, and only files with such names are ever removed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Final

from fastness.agent.host.engine import Commands
from fastness.agent.host.errors import CommandFailed, ImageFailure
from fastness.agent.host.states import Pull
from fastness.formats.errors import ImageError
from fastness.formats.evidence.pe.uki import parse_uki
from fastness.formats.image_reference import digest_of

VARIABLES: Final = Path("/sys/firmware/efi/efivars")
VENDOR: Final = "4a67b082-0a4c-41cf-b6c7-440b29bb8c4f"
DEFAULT: Final = "LoaderEntryDefault"
ONCE: Final = "LoaderEntryOneShot"
SELECTED: Final = "LoaderEntrySelected"
BOOT: Final = Path("/boot")
MAX_KERNEL_IMAGE: Final = 512 * 1024 * 1024
MAX_VARIABLE: Final = 4096
_OURS: Final = re.compile(r"fastness-[0-9a-f]{64}\.efi\Z", re.ASCII)
_HINT: Final = "Look at `bootctl status` and `bootctl list` on that machine."


def entry_of(image: str) -> str:
    """The boot entry of an image by digest."""
    return f"fastness-{digest_of(image).partition(':')[2]}.efi"


def efi_variable(name: str, directory: Path = VARIABLES) -> str:
    """The text in a variable of systemd-boot; empty where there is none; raises OSError."""
    try:
        with (directory / f"{name}-{VENDOR}").open("rb") as file:
            content = file.read(MAX_VARIABLE)
    except FileNotFoundError:
        return ""
    # Four bytes of attributes come first.
    return content[4:].decode("utf-16-le", "replace").partition("\0")[0]


class BootEntries:
    """The kernel images of this machine."""

    def __init__(
        self, commands: Commands | None = None, *, boot: Path = BOOT, program: Sequence[str] = ("bootctl",),
        variable: Callable[[str], str] = efi_variable,
    ) -> None:  # fmt: skip
        self.boot = boot
        self._commands = commands or Commands()
        self._program = (*program, f"--esp-path={boot}")
        self._variable = variable

    def selected(self) -> str:
        """The entry that was booted; empty where the boot loader did not say; raises ImageFailure."""
        return self._read(SELECTED)

    def default(self) -> str:
        """The entry that every boot takes; raises ImageFailure."""
        return self._read(DEFAULT)

    def once(self) -> str:
        """The entry that the next boot takes, and no other; raises ImageFailure."""
        return self._read(ONCE)

    def keep(self, entry: str) -> None:
        """Let every boot take an entry; raises ImageFailure."""
        if self.default() != entry:
            self._set("set-default", DEFAULT, entry)

    def boot_once(self, entry: str) -> None:
        """Let the next boot take an entry; raises ImageFailure."""
        self._set("set-oneshot", ONCE, entry)

    def forget_once(self) -> None:
        """Let the next boot take what every boot takes; raises ImageFailure."""
        if self.once():
            self._set("set-oneshot", ONCE, "")

    def command_line(self, entry: str) -> str:
        """The command line in a kernel image on the partition; raises ImageError, ImageFailure."""
        place = self._directory / entry
        try:
            if place.stat().st_size > MAX_KERNEL_IMAGE:
                raise ImageError("too-large", f"{entry} has more than {MAX_KERNEL_IMAGE} bytes")
            sections = parse_uki(place.read_bytes()).sections
        except OSError as error:
            raise ImageFailure(f"{place}: {error.strerror}", _HINT, pull=Pull.DONE) from error
        return sections.get(".cmdline", b"").decode("ascii", "replace").strip()

    def settle(self, entry: str) -> None:
        """Have a kernel image on the disk, not in memory, before a boot is told to take it; raises ImageFailure."""
        try:
            for place in (self._directory / entry, self._directory):
                descriptor = os.open(place, os.O_RDONLY)
                try:
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)
        except OSError as error:
            raise ImageFailure(f"{self._directory}: {error.strerror}", _HINT, pull=Pull.DONE) from error

    def retain(self, needed: Collection[str]) -> None:
        """Take away our kernel images but these; raises ImageFailure."""
        try:
            for place in sorted(self._directory.glob("fastness-*.efi")):
                if _OURS.match(place.name) and place.name not in needed:
                    place.unlink()
        except OSError as error:
            raise ImageFailure(f"{self._directory}: {error.strerror}", _HINT) from error

    @property
    def _directory(self) -> Path:
        return self.boot / "EFI" / "Linux"

    def _set(self, verb: str, variable: str, entry: str) -> None:
        try:
            self._commands.ask([*self._program, verb, entry])
        except CommandFailed as error:
            raise ImageFailure(error.message, error.hint, pull=Pull.DONE) from error
        if (now := self._read(variable)) != entry:
            raise ImageFailure(
                f"{variable} is {now or 'not set'} after `bootctl {verb} {entry}`", _HINT, pull=Pull.DONE
            )

    def _read(self, name: str) -> str:
        try:
            return self._variable(name)
        except OSError as error:
            raise ImageFailure(f"EFI variable {name}: {error.strerror}", "Mount efivarfs on that machine.") from error
