"""The disks of a sealed machine, the boot that installs it, and one boot after the other.

    /dev/vda    a partition table and the EFI system partition: systemd-boot and kernel images side by side
    /dev/vdb    ext4 with fs-verity: the repository of composefs, and what has to stay

A repository with fs-verity can only be made by a kernel that has it, so a first boot installs: it pulls the image as a machine
would and prepares its boot. Firmware variables, TPM and disks stay from boot to boot; every boot is a QEMU of its own, because a
warm reset is erratic under emulation. The host reaches what runs inside through a console of its own.
"""

from __future__ import annotations

import base64
import json
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fastness.agent.host.boot_entries import entry_of
from fastness.formats.composefs import tag_of
from fastness.formats.evidence.efi.gpt import Gpt
from fastness.sim.vms.guest import DOORS, FORWARDER
from fastness.sim.vms.parts import BUSYBOX, QEMU, SWTPM
from tests.measuredboot import loader
from tests.measuredboot import machine as measured
from tests.measuredboot.initrd import QUOTED
from tests.sealedvm import root
from tests.sealedvm.inside import MARK

DATA_BYTES = 3 * 1024**3
ESP_MEGABYTES = 160
DEADLINE = 1200.0
# Double faults of the emulated processor are seen in kernels of this age with this instruction.
PROCESSOR = "qemu64,-cx16"
DONE = "@@INSTALLED"
PIECE = 4000
QUOTE = f"""set -e
mkdir -p /run/quote; cd /run/quote
export TPM2TOOLS_TCTI=device:/dev/tpmrm0
tpm2 createek -Q -G ecc -c ek.ctx -u ek.pub
tpm2 createak -Q -C ek.ctx -G ecc -g sha256 -s ecdsa -c ak.ctx -u ak.pub -f tss
tpm2 readpublic -Q -c ak.ctx -f der -o ak.der
tpm2 quote -Q -c ak.ctx -l sha256:{",".join(map(str, QUOTED))} -g sha256 -q {{nonce}} -m message -s signature
tpm2 flushcontext -t
for index in $(seq 0 23); do echo "$index $(cat /sys/class/tpm/tpm0/pcr-sha256/$index)"; done > registers
cat /sys/kernel/security/tpm0/binary_bios_measurements > log
"""
PYTHON = "env LD_LIBRARY_PATH=/usr/lib/fastness/agent/lib/native /usr/lib/fastness/agent/bin/python3.11 -I -B"
INSTALL = root.START + """
mkdir -p /boot /tmp
mount -t vfat /dev/vda1 /boot
export HOME=/ TMPDIR=/tmp PATH=/bin SSL_CERT_FILE=/dev/null
exec > /dev/ttyS0 2>&1
cfsctl --repo /sysroot/composefs init
cfsctl --repo /sysroot/composefs --require-verity oci pull --bootable docker://{image} {tag} || exec poweroff -f
cfsctl --repo /sysroot/composefs oci prepare-boot {tag} --bootdir /boot --entry-id {entry} || exec poweroff -f
sync
umount /boot /sysroot
echo "{done}"
poweroff -f
"""  # fmt: skip


class Guest:
    """A machine that runs: what its kernel said, and steps for what runs inside."""

    def __init__(self, process: subprocess.Popen[bytes], console: socket.socket, serial: Path) -> None:
        self.process = process
        self.serial = serial
        self._console = console
        self._received = b""

    def said(self) -> str:
        """What came over the serial port so far."""
        return self.serial.read_text(errors="replace")

    def hear(self, seconds: float = DEADLINE) -> str:
        """The next line for us; fails when the machine is gone or silent."""
        deadline = time.monotonic() + seconds
        while True:
            line, newline, rest = self._received.partition(b"\n")
            if newline:
                self._received = rest
                text = line.decode(errors="replace").strip()
                if text.startswith(MARK):
                    return text.removeprefix(MARK)
                continue
            assert time.monotonic() < deadline, f"the machine is silent: {self.said()[-3000:]}"
            self._console.settimeout(1.0)
            try:
                piece = self._console.recv(65536)
            except TimeoutError:
                assert self.process.poll() is None, f"the machine stopped: {self.said()[-3000:]}"
                continue
            assert piece, f"the machine stopped: {self.said()[-3000:]}"
            self._received += piece

    def ask(self, verb: str, **arguments: Any) -> dict[str, Any]:
        """One step, and how it went."""
        self._console.sendall(json.dumps([verb, arguments]).encode() + b"\n")
        answer: dict[str, Any] = json.loads(self.hear())
        return answer

    def sh(self, command: str) -> str:
        """What a command of the machine printed; fails when it does."""
        answer = self.ask("sh", command=command)
        assert answer.get("exit") == 0, answer
        return str(answer["output"])

    def fetch(self, path: str) -> bytes:
        """A file of the machine, in pieces."""
        size, content = int(self.sh(f"wc -c < {path}")), b""
        while len(content) < size:
            content += base64.b64decode(self.sh(f"tail -c +{len(content) + 1} {path} | head -c {PIECE} | base64 -w0"))
        return content

    def quote(self, nonce: bytes) -> measured.Booted:
        """The evidence of this boot, which answers a nonce."""
        self.sh(QUOTE.format(nonce=nonce.hex()))
        parts = {name: self.fetch(f"/run/quote/{name}") for name in measured.PARTS}
        return measured.collected(parts, 0.0)

    def go_down(self) -> None:
        """Power off in order: what was written is on the disks."""
        self._console.sendall(json.dumps(["sh", {"command": "sync; systemctl poweroff --force"}]).encode() + b"\n")
        self.process.wait(timeout=120)


class SealedHost:
    """A machine with its disks, its firmware variables and its TPM."""

    def __init__(self, place: Path, tpm: Path, ports: Sequence[int]) -> None:
        self.place = place
        self.ports = tuple(ports)
        shutil.copytree(tpm, place / "tpm")
        shutil.copy(measured.FIRMWARE / measured.PLAIN[1], place / "vars.fd")
        loader.write_disk(place / "esp", {}, "fastness-*", loader=loader.systemd_boot(), room=ESP_MEGABYTES)
        with (place / "data").open("wb") as file:
            file.truncate(DATA_BYTES)
        command = ["mkfs.ext4", "-q", "-b", "4096", "-O", "verity", "-F", str(place / "data")]
        subprocess.run(command, check=True)

    @property
    def table(self) -> Gpt:
        """The partition table of its first disk."""
        return loader.table_of(self.place / "esp")

    def install(self, image: str, registry: str) -> str:
        """Let the first image be on the disks; what the installing boot said."""
        words = {"image": image, "tag": tag_of(image), "entry": entry_of(image).removesuffix(".efi"), "done": DONE}
        script = INSTALL.replace("{modules}", " ".join(root.modules()))
        for name, value in words.items():
            script = script.replace(f"{{{name}}}", value)
        port = registry.rpartition(":")[2]
        remap = f'[[registry]]\nprefix = "{registry}"\nlocation = "{DOORS}:{port}"\ninsecure = true\n'
        files = {
            "etc/containers/policy.json": json.dumps(root.POLICY).encode(),
            "etc/containers/registries.conf": remap.encode(),
        }
        programs = {"bin/cfsctl": root.require_engines() / "cfsctl", "bin/skopeo": root.SKOPEO}
        with tempfile.TemporaryDirectory(prefix="fastness-install-") as scratch:
            started = Path(scratch) / "initrd"
            started.write_bytes(root.initrd(script, programs, files))
            command = [
                *self._qemu(Path(scratch)), "-kernel", str(root.kernel() / "vmlinuz"), "-initrd", str(started),
                "-append", "console=ttyS0 quiet no_timer_check panic=1", "-serial", "stdio",
            ]  # fmt: skip
            done = subprocess.run(command, capture_output=True, timeout=DEADLINE, check=False, stdin=subprocess.DEVNULL)
        output = done.stdout.decode(errors="replace")
        assert DONE in output, output[-4000:] + done.stderr.decode(errors="replace")[-1000:]
        return output

    @contextmanager
    def boot(self, *, answers: bool = True) -> Iterator[Guest]:
        """One boot, for the time of the block; with `answers` it begins when what runs inside says so."""
        with tempfile.TemporaryDirectory(prefix="fastness-sealed-") as scratch:
            place = Path(scratch)
            tpm = [
                str(SWTPM), "socket", "--tpm2", "--tpmstate", f"dir={self.place}/tpm",
                "--ctrl", f"type=unixio,path={place}/tpm.sock", "--terminate",
            ]  # fmt: skip
            serial = self.place / "serial.log"
            command = [*self._qemu(place), *self._firmware(place), "-serial", f"file:{serial}"]
            with measured.running(tpm, place / "swtpm.log"):
                measured.wait_for(place / "tpm.sock")
                with measured.running(command, self.place / "qemu.log") as process:
                    measured.wait_for(place / "console.sock")
                    with socket.socket(socket.AF_UNIX) as console:
                        console.connect(str(place / "console.sock"))
                        guest = Guest(process, console, serial)
                        if answers:
                            assert guest.hear() == "ready"
                            self._greet(guest)
                        yield guest

    def _greet(self, guest: Guest) -> None:
        """Ways to the doors on the machine's own loopback, as machines of `fastness up` have them; a registry without TLS."""
        ports = [str(port) for port in self.ports]
        guest.ask("start", name="forward", command=["/bin/sh", "-c", f"exec {PYTHON} /{FORWARDER} {' '.join(ports)}"])
        insecure = "".join(f'[[registry]]\nlocation = "127.0.0.1:{port}"\ninsecure = true\n' for port in ports)
        guest.ask("write", path="/etc/containers/registries.conf", text=insecure)
        guest.sh("for i in $(seq 300); do grep -q ready /run/forward.log && exit 0; sleep 0.2; done; exit 1")

    def _qemu(self, place: Path) -> list[str]:
        ways = "".join(f",guestfwd=tcp:{DOORS}:{port}-cmd:{BUSYBOX} nc 127.0.0.1 {port}" for port in self.ports)
        return [
            str(QEMU), "-accel", "tcg,tb-size=256", "-machine", "q35", "-cpu", PROCESSOR, "-m", "1024", "-smp", "1",
            "-nodefaults", "-no-user-config", "-display", "none", "-monitor", "none", "-no-reboot",
            "-drive", f"if=none,id=d0,format=raw,file={self.place}/esp", "-device", "virtio-blk-pci,drive=d0",
            "-drive", f"if=none,id=d1,format=raw,file={self.place}/data", "-device", "virtio-blk-pci,drive=d1",
            "-netdev", f"user,id=n0,restrict=on{ways}", "-device", "virtio-net-pci,netdev=n0,romfile=",
            "-device", "virtio-rng-pci", "-device", "virtio-serial-pci",
            "-chardev", f"socket,id=con,path={place}/console.sock,server=on,wait=off", "-device", "virtconsole,chardev=con",
        ]  # fmt: skip

    def _firmware(self, place: Path) -> list[str]:
        return [
            "-drive", f"if=pflash,format=raw,unit=0,readonly=on,file={measured.FIRMWARE / measured.PLAIN[0]}",
            "-drive", f"if=pflash,format=raw,unit=1,file={self.place}/vars.fd",
            "-chardev", f"socket,id=ctpm,path={place}/tpm.sock", "-tpmdev", "emulator,id=tpm0,chardev=ctpm",
            "-device", "tpm-crb,tpmdev=tpm0",
        ]  # fmt: skip
