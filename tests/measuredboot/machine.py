"""Booting an image and collecting its evidence.

Every boot has a fresh TPM and a fresh copy of the firmware's variables. The serial port carries everything: the machine asks
for the nonce, we answer, it prints its evidence with lengths, so that lost bytes are seen. The exit status of QEMU says
nothing (a panic ends with 0); only the mark at the end counts.
"""

from __future__ import annotations

import base64
import json
import os
import selectors
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fastness.sim.vms import parts
from fastness.sim.vms.parts import QEMU, SWTPM
from fastness.sim.vms.qemu import write_disk
from tests.components import require_program
from tests.measuredboot.initrd import QUOTED
from tests.patience import PATIENCE

FIRMWARE = parts.FIRMWARE.parent
PLAIN = ("OVMF_CODE.fd", "OVMF_VARS.fd")
SECURE = ("OVMF_CODE_4M.secboot.fd", "OVMF_VARS_4M.snakeoil.fd")
DEADLINE = 600.0
PARTS = ("ak.pub", "ak.der", "message", "signature", "registers", "log")
FATAL = (b"BdsDxe: No bootable option", b"Access Denied", b"Kernel panic")


@dataclass(frozen=True)
class Booted:
    """What one boot gave."""

    registers: dict[int, bytes]
    event_log: bytes
    message: bytes
    signature: bytes
    ak: bytes
    ak_area: bytes
    seconds: float

    @property
    def evidence(self) -> bytes:
        """The JSON that agents send."""
        values = {str(index): self.registers[index].hex() for index in QUOTED}
        quote = {"message": _b64(self.message), "signature": _b64(self.signature)}
        pcrs = {"bank": "sha256", "values": values}
        whole = {"ak_public": _b64(self.ak), "tpm_quote": {**quote, "pcrs": pcrs}, "event_log": _b64(self.event_log)}
        return json.dumps(whole, indent=1).encode()


def require_machine() -> None:
    """Skip by name, or fail in CI, unless everything that a boot needs is there."""
    for path, package in parts.PACKAGES.items():
        require_program(path, package)


def boot(uki: bytes, nonce: bytes, *, secure_boot: bool = False) -> Booted:
    """Boot an image from a disk and let the machine answer the nonce."""
    # The path of a unix socket has at most 107 characters, and test directories are long.
    with tempfile.TemporaryDirectory(prefix="fastness-boot-") as scratch:
        place = Path(scratch)
        code, variables = SECURE if secure_boot else PLAIN
        shutil.copy(FIRMWARE / variables, place / "vars.fd")
        write_disk(place / "esp.img", uki)
        return boot_in(place, FIRMWARE / code, nonce, secure_boot=secure_boot)


def boot_in(place: Path, code: Path, nonce: bytes, *, secure_boot: bool, writable: bool = False) -> Booted:
    """Boot a machine whose variables and disk lie in a directory, and let it answer the nonce."""
    with running(_tpm(place), place / "swtpm.log"):
        wait_for(place / "tpm.sock")
        started = time.monotonic()
        command = qemu(place, code, secure_boot=secure_boot, writable=writable)
        with running(command, place / "qemu.log") as machine:
            serial = conversation(machine, {b"@@NONCE": nonce.hex().encode()}, started + DEADLINE)
        return _collected(serial, time.monotonic() - started)


def _tpm(place: Path) -> list[str]:
    (place / "tpm").mkdir(exist_ok=True)
    return [str(SWTPM), "socket", "--tpm2", "--tpmstate", f"dir={place}/tpm",
            "--ctrl", f"type=unixio,path={place}/tpm.sock", "--terminate"]  # fmt: skip


def qemu(place: Path, code: Path, *, secure_boot: bool, writable: bool = False) -> list[str]:
    """The command of a machine whose parts lie in a directory; a boot loader writes to its disk, firmware alone does not."""
    mode = "off" if writable else "on"
    machine = ["-machine", "q35,smm=on", "-global", "driver=cfi.pflash01,property=secure,value=on"]
    return [
        str(QEMU), "-accel", "tcg", *(machine if secure_boot else ["-machine", "q35"]), "-cpu", "qemu64", "-m", "512",
        "-smp", "1", "-nodefaults", "-no-user-config", "-display", "none", "-monitor", "none", "-no-reboot",
        "-serial", "stdio",
        "-drive", f"if=pflash,format=raw,unit=0,readonly=on,file={code}",
        "-drive", f"if=pflash,format=raw,unit=1,file={place}/vars.fd",
        "-chardev", f"socket,id=ctpm,path={place}/tpm.sock", "-tpmdev", "emulator,id=tpm0,chardev=ctpm",
        "-device", "tpm-crb,tpmdev=tpm0",
        "-drive", f"if=none,id=d0,format=raw,readonly={mode},file={place}/esp.img",
        "-device", "virtio-blk-pci,drive=d0,bootindex=0",
    ]  # fmt: skip


@contextmanager
def running(command: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process for the time of the block."""
    with log.open("wb") as errors:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def wait_for(path: Path) -> None:
    """Until a socket is there."""
    deadline = time.monotonic() + PATIENCE
    while not path.exists():
        assert time.monotonic() < deadline, "swtpm did not open its socket"
        time.sleep(0.01)


def conversation(machine: subprocess.Popen[bytes], answers: Mapping[bytes, bytes], deadline: float) -> bytes:
    """What a machine says until its last mark; each of its questions is answered with one line."""
    assert machine.stdout is not None
    assert machine.stdin is not None
    serial, open_questions = b"", dict(answers)
    with selectors.DefaultSelector() as ready:
        ready.register(machine.stdout, selectors.EVENT_READ)
        while b"@@DONE" not in serial:
            assert time.monotonic() < deadline, f"the machine did not finish: {serial[-2000:]!r}"
            if not ready.select(timeout=1.0):
                continue
            piece = os.read(machine.stdout.fileno(), 65536)
            serial += piece
            assert piece, f"the machine stopped: {serial[-2000:]!r}"
            assert not any(mark in serial for mark in FATAL), f"the machine does not boot: {serial[-2000:]!r}"
            for question in [mark for mark in open_questions if mark in serial]:
                machine.stdin.write(open_questions.pop(question) + b"\n")
                machine.stdin.flush()
    return serial


def _collected(serial: bytes, seconds: float) -> Booted:
    return collected({name: part(serial, name) for name in PARTS}, seconds)


def collected(parts: Mapping[str, bytes], seconds: float) -> Booted:
    """What one boot gave, out of its parts."""
    rows = [line.split() for line in parts["registers"].decode().splitlines()]
    registers = {int(index): bytes.fromhex(value) for index, value in rows}
    return Booted(
        registers=registers,
        event_log=parts["log"],
        message=parts["message"],
        signature=parts["signature"],
        ak=parts["ak.der"],
        ak_area=parts["ak.pub"],
        seconds=seconds,
    )


def part(serial: bytes, name: str) -> bytes:
    """What a machine gave under a name, complete."""
    head, _, rest = serial.partition(b"@@BEGIN " + name.encode() + b" ")
    size, _, body = rest.partition(b"\n")
    assert size.strip().isdigit(), f"the machine gave no {name}: {head[-2000:]!r}"
    data = base64.b64decode(body.partition(b"@@END")[0])
    assert len(data) == int(size), f"bytes of {name} were lost on the serial port"
    return data


def _b64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
