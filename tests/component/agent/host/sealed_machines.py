"""Sealed machines whose programs are stood in for, and the driver on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from io import StringIO
from pathlib import Path

from fastness.agent.host.boot_entries import BootEntries, efi_variable, entry_of
from fastness.agent.host.composefs import ComposefsOs
from fastness.agent.host.engine import CLIENT, Commands
from fastness.agent.host.errors import CommandFailed
from fastness.agent.host.files import RootedFiles
from fastness.agent.host.process import run
from fastness.formats.composefs import KARG, tag_of
from fastness.images.uki import write_uki
from tests.measuredboot import minted
from tests.standins.sealed_engine import Engine, SealedMachine, set_variable

A, B, C = (f"registry.example/os@sha256:{digit * 64}" for digit in "abc")
WRONG = f"registry.example/os@sha256:{'d' * 64}"
LOST = f"registry.example/os@sha256:{'f' * 64}"
ROOTS = {image: image[-1] * 128 for image in (A, B, C, WRONG)}


def line_of(image: str, *more: str) -> str:
    """The command line that a sealed image has."""
    return " ".join([f"{KARG}v1-sha512-12:{ROOTS[image]}", "quiet", *more])


def kernel_image(line: str) -> bytes:
    return write_uki(minted.stub(), minted.sections(cmdline=line.encode()))


def sealed_machine(directory: Path) -> SealedMachine:
    """A machine that runs A, with a registry of three more, one of which was sealed for another root."""
    machine = SealedMachine(directory)
    for image in (A, B, C):
        machine.publish(image, ROOTS[image], kernel_image(line_of(image)), line_of(image))
    machine.publish(WRONG, ROOTS[WRONG], kernel_image(line_of(C)), line_of(C))
    machine.install(A, tag_of(A), entry_of(A))
    set_variable(directory, "LoaderEntryDefault", entry_of(A))
    machine.boot()
    return machine


def _called(machine: SealedMachine, command: Sequence[str]) -> str:
    """What the stand-in prints, without a process: there are hundreds of calls."""
    place = max(at for at, word in enumerate(command) if word == str(machine.directory))
    if "systemd-run" in command:
        with (machine.directory / "calls").open("a") as calls:
            calls.write(" ".join(command[command.index("systemd-run") :]) + "\n")
    printed, complained = StringIO(), StringIO()
    try:
        with redirect_stdout(printed), redirect_stderr(complained):
            Engine(machine.directory).main(command[place + 1], list(command[place + 2 :]))
    except SystemExit as end:
        raise CommandFailed(
            f"`{command[place + 1]}`: {complained.getvalue().strip()}", status=int(end.code or 0)
        ) from end
    return printed.getvalue()


def driver(
    machine: SealedMachine,
    run_before: Callable[[Sequence[str]], None] = lambda _words: None,
    *,
    processes: bool = False,
) -> ComposefsOs:
    """The driver; `run_before` sees each command before it runs, in a process of its own where that is asked for."""

    def started(command: Sequence[str]) -> str:
        run_before(command)
        return run(list(command), seconds=30.0, environment=CLIENT) if processes else _called(machine, command)

    commands = Commands(started, started, lambda _seconds: None)
    entries = BootEntries(
        commands, boot=machine.boot_partition, program=machine.program("bootctl"),
        variable=partial(efi_variable, directory=machine.directory / "efivars"),
    )  # fmt: skip
    return ComposefsOs(
        RootedFiles(machine.root), entries, commands, program=machine.program("cfsctl"),
        launcher=machine.program("systemd-run"), cmdline=machine.cmdline,
    )  # fmt: skip
