"""One real machine: a disk that boots, a TPM with a state of its own, a second disk for its key, and a serial port that we read.

    STATE/vms/<name>/tpm          the TPM: made once by the local authority, the same after every restart
    STATE/vms/<name>/disk         the machine's second disk
    STATE/vms/<name>/console.log  what it said on its serial port, the last boot only

Every boot has a fresh copy of the firmware's variables, because what an earlier boot left there would be measured. The processes
end with the machine, and also when this process is killed: the kernel tells them.
"""

from __future__ import annotations

import asyncio
import base64
import os
import shutil
import signal
import tempfile
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fastness.agent.host.process import run
from fastness.sim.vms import parts
from fastness.sim.vms.guest import DOORS, ROOT_DISK
from fastness.sim.vms.initrd import NOTE_SERIAL, VOLUME_SERIAL

MEMORY: Final = 1024
# With a root of its own, of which everything that is written lies in memory.
ROOT_MEMORY: Final = 2048
DISK_BYTES: Final = 1024 * 1024
# With tags every sector is written at the first boot, and under emulation that takes seconds.
VOLUME_BYTES: Final = 32 * 1024 * 1024
CONSOLE_BYTES: Final = 4 * 1024 * 1024
LINE_BYTES: Final = 64 * 1024
SOCKET_SECONDS: Final = 10.0
STOP_SECONDS: Final = 5.0
FATAL: Final = (b"BdsDxe: No bootable option", b"Access Denied", b"Kernel panic")
Heard = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Boot:
    """What a machine boots with: the disk of the image, the ports of doors that it may reach, and answers to its questions.

    `root` is the disk of a root of its own.
    """

    disk: Path
    ports: tuple[int, ...]
    answers: Mapping[str, bytes]
    root: Path | None = None
    volume: bool = False


def write_disk(path: Path, uki: bytes) -> None:
    """A disk with an EFI system partition that boots an image; raises CommandFailed."""
    megabytes = len(uki) // 1024**2 + 8
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        source, image = Path(scratch) / "uki.efi", str(Path(scratch) / "disk")
        source.write_bytes(uki)
        with Path(image).open("wb") as file:
            file.truncate(megabytes * 1024**2)
        for command in (
            ["mformat", "-i", image, "-T", str(megabytes * 2048), "-N", "0", "::"],
            ["mmd", "-i", image, "::/EFI", "::/EFI/BOOT"],
            ["mcopy", "-i", image, str(source), "::/EFI/BOOT/BOOTX64.EFI"],
        ):
            run(command)
        Path(image).rename(path)


def command(place: Path, boot: Boot, own_disk: Path) -> list[str]:
    """How QEMU is started: emulated, without a monitor, with one way out for each door."""
    ways = "".join(f",guestfwd=tcp:{DOORS}:{port}-cmd:{parts.BUSYBOX} nc 127.0.0.1 {port}" for port in boot.ports)
    memory = ROOT_MEMORY if boot.root else MEMORY
    return [
        str(parts.QEMU), "-accel", "tcg", "-machine", "q35", "-cpu", "qemu64", "-m", str(memory), "-smp", "1",
        "-nodefaults", "-no-user-config", "-display", "none", "-monitor", "none", "-no-reboot", "-serial", "stdio",
        "-drive", f"if=pflash,format=raw,unit=0,readonly=on,file={parts.FIRMWARE}",
        "-drive", f"if=pflash,format=raw,unit=1,file={place}/vars.fd",
        "-chardev", f"socket,id=ctpm,path={place}/tpm.sock", "-tpmdev", "emulator,id=tpm0,chardev=ctpm",
        "-device", "tpm-crb,tpmdev=tpm0",
        "-drive", f"if=none,id=d0,format=raw,readonly=on,file={boot.disk}",
        "-device", "virtio-blk-pci,drive=d0,bootindex=0",
        "-drive", f"if=none,id=d1,format=raw,file={own_disk}", "-device", f"virtio-blk-pci,drive=d1,serial={NOTE_SERIAL}",
        *_root(boot.root), *_volume(boot, own_disk.with_name("volume")),
        "-netdev", f"user,id=n0,restrict=on{ways}", "-device", "virtio-net-pci,netdev=n0,romfile=",
        "-device", "virtio-rng-pci",
    ]  # fmt: skip


def _root(disk: Path | None) -> list[str]:
    if disk is None:
        return []
    drive = f"if=none,id=d3,format=raw,readonly=on,file={disk}"
    return ["-drive", drive, "-device", f"virtio-blk-pci,drive=d3,serial={ROOT_DISK}"]


def _volume(boot: Boot, disk: Path) -> list[str]:
    """The disk of the encrypted volume; the host can read and change it like every other."""
    if not boot.volume:
        return []
    return [
        "-drive",
        f"if=none,id=d2,format=raw,file={disk}",
        "-device",
        f"virtio-blk-pci,drive=d2,serial={VOLUME_SERIAL}",
    ]


async def life(directory: Path, boot: Boot, heard: Heard) -> None:
    """One boot, until the machine powers off or the task is cancelled; `heard` gets every line that begins with a mark."""
    own_disk = directory / "disk"
    for path, size in ((own_disk, DISK_BYTES), (directory / "volume", VOLUME_BYTES if boot.volume else 0)):
        if size and not path.exists():
            with path.open("wb") as file:
                file.truncate(size)
    # The path of a Unix socket has at most 107 bytes, and state directories may be long.
    with tempfile.TemporaryDirectory(prefix="fastness-vm-") as scratch:
        place = Path(scratch)
        # Fresh at each boot: what an earlier one left in the firmware's variables would be measured, and no prediction would
        # fit.
        shutil.copy(parts.VARIABLES, place / "vars.fd")
        tpm = [
            str(parts.SWTPM), "socket", "--tpm2", "--tpmstate", f"dir={directory / 'tpm'}",
            "--ctrl", f"type=unixio,path={place}/tpm.sock", "--terminate",
        ]  # fmt: skip
        async with _running(tpm) as chip:
            await _socket(place / "tpm.sock", chip)
            async with _running(command(place, boot, own_disk)) as machine:
                await _converse(machine, boot.answers, directory / "console.log", heard)


async def _converse(machine: Process, answers: Mapping[str, bytes], console: Path, heard: Heard) -> None:
    """Read the serial port to its end, keep it, and answer what is asked."""
    assert machine.stdout is not None  # noqa: S101  # both are pipes
    assert machine.stdin is not None  # noqa: S101
    written = 0
    with console.open("wb") as log:
        async for line in _lines(machine.stdout):
            if written < CONSOLE_BYTES:
                log.write(line + b"\n")
                log.flush()
                written += len(line) + 1
            if any(mark in line for mark in FATAL):
                raise parts.NoRealMachine(
                    f"the machine does not boot: {line.decode(errors='replace')}", f"See {console}."
                )
            _, separator, rest = line.partition(b"@@")
            if separator:
                question = (b"@@" + rest).decode("ascii", "replace").strip()
                if question in answers:
                    machine.stdin.write(base64.encodebytes(answers[question]) + b"\n")
                    await machine.stdin.drain()
                heard(question)


async def _lines(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """Lines of a serial port; one that is too long is cut."""
    rest = b""
    while piece := await reader.read(4096):
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            yield line.rstrip(b"\r")
        # A guest that never ends its line must not grow our memory.
        rest = rest[-LINE_BYTES:]


@asynccontextmanager
async def _running(words: Sequence[str]) -> AsyncIterator[Process]:
    """A process for the time of the block, in a session of its own: Ctrl-C at the terminal is for us."""
    dying = shutil.which("setpriv")
    whole = [dying, "--pdeathsig", "KILL", *words] if dying else list(words)
    process = await asyncio.create_subprocess_exec(
        *whole, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, start_new_session=True
    )
    try:
        yield process
    finally:
        await asyncio.shield(_ended(process))


async def _ended(process: Process) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.returncode is not None:
            return
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), STOP_SECONDS)


async def _socket(path: Path, chip: Process) -> None:
    for _ in range(int(SOCKET_SECONDS / 0.02)):
        if os.path.exists(path):  # noqa: ASYNC240  # one look at a short path
            return
        if chip.returncode is not None:
            break
        await asyncio.sleep(0.02)
    raise parts.NoRealMachine(f"swtpm did not come up (it ended with {chip.returncode})")
