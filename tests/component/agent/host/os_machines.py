"""Drivers of operating systems on a machine whose programs are stood in for, run as real processes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fastness.agent.host.boot_loader import HostBootLoader
from fastness.agent.host.bootc import BootcOs
from fastness.agent.host.engine import CLIENT, Commands
from fastness.agent.host.files import RootedFiles
from fastness.agent.host.process import run
from fastness.agent.host.rpm_ostree_os import RpmOstreeOs
from tests.standins.os_engine import Machine

BASE, A, B, EXTENSIONS = (f"registry.example/{name}@sha256:{digit * 64}" for name, digit in (
    ("os", "0"), ("os", "a"), ("os", "b"), ("extensions", "e"),
))  # fmt: skip
LOST = f"registry.example/os@sha256:{'f' * 64}"
ASKS = ("bootc status", "rpm-ostree status", "bootc loader-entries set-options-for-source --help", "systemd-run")


class Pauses(list[float]):
    """Takes down how long a driver would have waited."""

    def __call__(self, seconds: float) -> None:
        self.append(seconds)


def commands(machine: Machine, pauses: Pauses, seconds: float = 30.0) -> Commands:
    """Real processes, bounded in time; the journal is the machine's."""

    def started(command: Sequence[str]) -> str:
        words = [*machine.program("journalctl"), *command[1:]] if command[0] == "journalctl" else list(command)
        return run(words, seconds=seconds, environment=CLIENT)

    return Commands(started, started, pauses)


def machine_at(directory: Path) -> Machine:
    """A machine that runs the base image, with a registry of three more."""
    return Machine(directory, BASE, (A, B, EXTENSIONS))


def rpm_ostree(machine: Machine, pauses: Pauses | None = None, seconds: float = 30.0) -> RpmOstreeOs:
    """The driver for rpm-ostree."""
    return RpmOstreeOs(
        RootedFiles(machine.root), commands(machine, pauses if pauses is not None else Pauses(), seconds),
        program=machine.program("rpm-ostree"), podman=machine.program("podman"), launcher=machine.program("systemd-run"),
        cmdline=machine.cmdline, unpacked=machine.directory / "unpacked", architecture="x86_64",
    )  # fmt: skip


def boot_loader(machine: Machine, secure: bytes | None = b"\6\0\0\0\1", architecture: str = "x86_64") -> HostBootLoader:
    """What updates the boot loader of a machine; `secure` is what its firmware says of Secure Boot, None for nothing."""

    def firmware() -> bytes:
        if secure is None:
            raise FileNotFoundError
        return secure

    return HostBootLoader(
        commands(machine, Pauses()), podman=machine.program("podman"), systemctl=machine.program("systemctl"),
        launcher=machine.program("systemd-run"), secure_boot=firmware, architecture=architecture,
    )  # fmt: skip


def bootc(machine: Machine, pauses: Pauses | None = None, seconds: float = 30.0) -> BootcOs:
    """The driver for bootc."""
    return BootcOs(
        RootedFiles(machine.root), commands(machine, pauses if pauses is not None else Pauses(), seconds),
        program=machine.program("bootc"), launcher=machine.program("systemd-run"), cmdline=machine.cmdline,
        rpm_ostree=machine.program("rpm-ostree"),
    )  # fmt: skip
