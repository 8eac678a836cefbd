"""One predicted boot: the image, what it was predicted to measure, the challenge, and what the machine gave."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from fastness.images.firmware import FirmwareVars
from fastness.images.measure import measure_uki
from fastness.images.measurement import Measurement
from fastness.images.uki import write_uki
from fastness.sim.vms.parts import STUB
from tests.measuredboot import machine
from tests.measuredboot.initrd import initrd
from tests.measuredboot.kernel import kernel

# Without KVM a busy host keeps the timer back while the kernel looks for it; it would then go on without one, for ever.
COMMAND_LINE = b"console=ttyS0 quiet no_timer_check panic=1 x=1"
# Blanks of all kinds: the boot stub turns them into spaces and drops those at the end, which is predicted as well.
CHANGED_LINE = b"console=ttyS0 quiet\tno_timer_check panic=1 x=2 \n"
OS_RELEASE = b"ID=fastness-test\n"


@dataclass(frozen=True)
class Run:
    """A boot and its prediction."""

    uki: bytes
    predicted: Measurement
    nonce: bytes
    booted: machine.Booted


def image(command_line: bytes = COMMAND_LINE, *, stub: Path = STUB, **more: bytes) -> bytes:
    """The image of the test machine, with further sections; skips by name where something is missing."""
    machine.require_machine()
    parts = {".osrel": OS_RELEASE, ".cmdline": command_line, ".initrd": _packed(), ".linux": kernel()}
    return write_uki(stub.read_bytes(), parts | {f".{name}": content for name, content in more.items()})


def run(uki: bytes, nonce: bytes, *, secure_boot: bool = False) -> Run:
    """Predict first, boot then."""
    variables = (machine.FIRMWARE / (machine.SECURE if secure_boot else machine.PLAIN)[1]).read_bytes()
    predicted = measure_uki(uki, FirmwareVars.of_store(variables), secure_boot=secure_boot)
    return Run(uki, predicted, nonce, machine.boot(uki, nonce, secure_boot=secure_boot))


_packed: Callable[[], bytes] = cache(initrd)
