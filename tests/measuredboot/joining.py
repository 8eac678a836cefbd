"""A machine that joins: its image carries the agent, the real Ignition and whom to believe; QEMU gives it a TPM and a network.

The doors are reached at 10.0.2.100, whatever ports they have on the host, so the image is the same for every run of one cluster.
User-data is what the host says: it lies on a virtio disk with the serial number `ignition`, as hosts attach it. What the platform
of Ignition would find lies on another one, and may differ: the image carries the pointer, so nobody should look there.
"""

from __future__ import annotations

import gzip
import re
import shutil
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from fastness.images.uki import write_uki
from fastness.protocol.pointer import SYSTEM_CONFIG, image_pointer
from fastness.sim.vms.guest import AGENT, DOORS
from fastness.sim.vms.initrd import TOOLS, archive, shared_libraries
from fastness.sim.vms.parts import BUSYBOX, IGNITION, MODULES, STUB, SWTPM, TPM2, modules
from fastness.sim.vms.qemu import write_disk
from tests.measuredboot import machine
from tests.measuredboot.kernel import kernel
from tools import agent_image

# Without KVM a busy host keeps the timer back while the kernel looks for it; it would then go on without one, for ever.
COMMAND_LINE = b"console=ttyS0 quiet no_timer_check panic=1 ignition.platform.id=qemu"
DEADLINE = 900.0

INIT = f"""#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t devtmpfs dev /dev
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t securityfs sec /sys/kernel/security
mkdir -p /run
mount -t tmpfs run /run
mount -t tmpfs tmp /tmp
echo 1 > /proc/sys/kernel/printk
exec </dev/ttyS0 >/dev/ttyS0 2>&1
stty -echo
for name in {" ".join(MODULES)}; do insmod /modules/$name.ko; done
ip link set lo up
ip link set eth0 up
ip address add 10.0.2.15/24 dev eth0
mkdir -p /sysroot/etc/selinux
echo SELINUXTYPE=targeted > /sysroot/etc/selinux/config
for disk in /sys/block/vd*; do grep -q platform $disk/serial && tr -d '\\0' < /dev/${{disk##*/}} > /run/platform; done
/{AGENT}/bin/fastness-agent boot > /run/console 2>&1 &
agent=$!
export IGNITION_CONFIG_FILE=/run/platform
common="-platform file -root /sysroot -log-to-stdout -config-cache /run/cache -state-file /run/state -neednet /run/neednet"
ignition $common -stage fetch > /run/ignition 2>&1 && ignition $common -stage files >> /run/ignition 2>&1
echo "@@IGNITION $?"
wait $agent
echo "@@AGENT $?"
give() {{ echo "@@BEGIN $1 $(wc -c < $2)"; base64 < $2; echo "@@END $1"; }}
give console /run/console
tail -n 30 /run/ignition > /run/ignition.end
give ignition /run/ignition.end
cd /sysroot
find . ! -type d ! -path ./etc/selinux/config -exec sha256sum {{}} \\; > /run/files
give files /run/files
echo "@@DONE"
poweroff -f
"""


@dataclass(frozen=True)
class Joined:
    """How a boot ended."""

    agent: int
    ignition: int
    console: str
    log: str
    files: Mapping[str, str]
    seconds: float


def require_joining() -> None:
    """Skip by name, or fail in CI, unless everything that such a boot needs is there."""
    machine.require_machine()


def image(trust: bytes, command_line: bytes = COMMAND_LINE) -> bytes:
    """An image for one cluster."""
    parts = {".osrel": b"ID=fastness-test\n", ".cmdline": command_line, ".initrd": _initrd(trust), ".linux": kernel()}
    return write_uki(STUB.read_bytes(), parts)


@lru_cache(maxsize=1)
def _initrd(trust: bytes) -> bytes:
    links = {"bin/sh": "busybox", **{f"bin/tpm2_{name}": "tpm2" for name in TOOLS}}
    files = {**_carried(), "usr/lib/fastness/trust.json": trust, SYSTEM_CONFIG: image_pointer()}
    return gzip.compress(archive(files, links), 6, mtime=0)


@cache
def _carried() -> Mapping[str, bytes]:
    """Everything of the image that is the same for every cluster."""
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch) / "agent"
        agent_image.build(place)
        files = {f"{AGENT}/{path.relative_to(place)}": path.read_bytes() for path in place.rglob("*") if path.is_file()}
    programs = {"bin/busybox": BUSYBOX, "bin/tpm2": TPM2, "bin/ignition": IGNITION}
    files |= {name: path.read_bytes() for name, path in programs.items()}
    files |= {f"modules/{name}.ko": data for name, data in modules().items()}
    files |= {path.lstrip("/"): Path(path).read_bytes() for path in shared_libraries()}
    return files | {"init": INIT.encode(), "bin/setfiles": b"#!/bin/sh\nexit 0\n"}


def join(uki: bytes, tpm: Path, ports: Mapping[int, int], user_data: bytes, platform: bytes) -> Joined:
    """Boot an image on a machine whose TPM has this state; `ports` leads from those of the doors to those of the host.

    `user_data` is what the agent finds, `platform` what Ignition would.
    """
    with tempfile.TemporaryDirectory(prefix="fastness-join-") as scratch:
        place = Path(scratch)
        shutil.copy(machine.FIRMWARE / machine.PLAIN[1], place / "vars.fd")
        shutil.copytree(tpm, place / "tpm")
        write_disk(place / "esp.img", uki)
        for serial, data in (("ignition", user_data), ("platform", platform)):
            (place / serial).write_bytes(data + bytes(-len(data) % 512))
        swtpm = [
            str(SWTPM), "socket", "--tpm2", "--tpmstate", f"dir={place}/tpm",
            "--ctrl", f"type=unixio,path={place}/tpm.sock", "--terminate",
        ]  # fmt: skip
        with machine.running(swtpm, place / "swtpm.log"):
            machine.wait_for(place / "tpm.sock")
            started = time.monotonic()
            with machine.running(_qemu(place, ports), place / "qemu.log") as process:
                output = machine.conversation(process, {}, started + DEADLINE)
        return _read(output, time.monotonic() - started)


def _qemu(place: Path, ports: Mapping[int, int]) -> list[str]:
    command = machine.qemu(place, machine.FIRMWARE / machine.PLAIN[0], secure_boot=False)
    command[command.index("-m") + 1] = "1024"
    forwards = ",".join(
        f"guestfwd=tcp:{DOORS}:{port}-cmd:{BUSYBOX} nc 127.0.0.1 {host}" for port, host in ports.items()
    )
    return [
        *command, "-netdev", f"user,id=n0,restrict=on,{forwards}", "-device", "virtio-net-pci,netdev=n0,romfile=",
        "-device", "virtio-rng-pci", *_disk(place, "ignition"), *_disk(place, "platform"),
    ]  # fmt: skip


def _disk(place: Path, serial: str) -> list[str]:
    """A disk of the host's, by its serial number."""
    drive = f"if=none,id={serial},format=raw,readonly=on,file={place}/{serial}"
    return ["-drive", drive, "-device", f"virtio-blk-pci,drive={serial},serial={serial}"]


def _read(serial: bytes, seconds: float) -> Joined:
    ends = {name: re.search(rb"@@" + name + rb" (\d+)", serial) for name in (b"AGENT", b"IGNITION")}
    statuses = {name: int(end[1]) if end else -1 for name, end in ends.items()}
    console, log, listed = (machine.part(serial, name).decode() for name in ("console", "ignition", "files"))
    rows = [line.split(None, 1) for line in listed.splitlines()]
    files = {path.removeprefix("./"): digest for digest, path in rows}
    return Joined(statuses[b"AGENT"], statuses[b"IGNITION"], console, log, files, seconds)
