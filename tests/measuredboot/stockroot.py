"""A stock Debian root: the systemd that is installed here with everything that it ships, busybox, and one unit that reports.

It is small enough to be the whole root of a unified kernel image. Nothing in it was chosen to be weak: it is what the package
`systemd` puts on every machine. Before systemd starts, drivers for fw_cfg and disks are loaded, as kernels with them built in
have them. The report goes to the serial port: what of the host's words reached the machine.
"""

from __future__ import annotations

import gzip
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fastness.images.uki import write_uki
from fastness.sim.vms import parts
from fastness.sim.vms.initrd import archive
from fastness.sim.vms.parts import BUSYBOX, FW_CFG, IGNITION, STUB, SWTPM
from fastness.sim.vms.qemu import write_disk
from tests.components import require_program
from tests.measuredboot import machine
from tests.measuredboot.kernel import kernel

LINKS = {
    "bin": "usr/bin",
    "sbin": "usr/sbin",
    "lib": "usr/lib",
    "lib64": "usr/lib64",
}
LEFT_OUT = ("usr/bin/ignition", "usr/lib/fastness/agent/")
DEADLINE = 360.0
PLANTED = "/etc/sudoers.d/host"
DRIVERS = (
    FW_CFG,
    "virtio_ring",
    "virtio_pci_modern_dev",
    "virtio_pci_legacy_dev",
    "virtio",
    "virtio_pci",
    "virtio_blk",
)
INIT = f"""#!/usr/bin/busybox sh
for name in {" ".join(DRIVERS)}; do busybox insmod /usr/lib/drivers/$name.ko; done
exec /usr/lib/systemd/systemd
"""
LOADED = ("serial-getty@ttyS0.service", "emergency.service", "debug-shell.service", "systemd-firstboot.service")
STARTED = ("fastness-agent.service", "fastness-attest.service", "fastness-identity.service")
REGISTERS = (4, 9, 11, 12)
REPORT = f"""#!/usr/bin/busybox sh
give() {{ echo "@@BEGIN $1 $(busybox wc -c < $2)"; busybox base64 < $2; echo "@@END $1"; }}
exec > /dev/ttyS0 2>&1
busybox cat /sys/firmware/dmi/entries/11-*/raw > /run/smbios
(cd /sys/firmware/qemu_fw_cfg/by_name && busybox find opt) > /run/fw_cfg
for disk in /sys/block/vd*; do
  echo $(busybox cat $disk/serial) $(busybox dd if=/dev/${{disk##*/}} bs=1 skip=43 count=11 2> /dev/null)
done > /run/disks
busybox cp /proc/mounts /run/mounts
busybox ls /run/credentials/@system > /run/credentials.list
busybox cat {PLANTED} > /run/planted
for unit in {" ".join(LOADED)}; do echo $unit $(systemctl show -P LoadState $unit); done > /run/units
registers=/sys/class/tpm/tpm0/pcr-sha256
for index in {" ".join(map(str, REGISTERS))}; do echo $index $(busybox cat $registers/$index); done > /run/registers
for unit in {" ".join(STARTED)}; do echo $unit $(systemctl show -P WantedBy $unit); done > /run/started
give smbios /run/smbios
give fw_cfg /run/fw_cfg
give disks /run/disks
give mounts /run/mounts
give started /run/started
give credentials /run/credentials.list
give planted /run/planted
give units /run/units
give registers /run/registers
echo "@@DONE"
"""
FILES = {
    "etc/passwd": "root:x:0:0:root:/root:/bin/sh\n",
    "etc/group": "root:x:0:\n",
    "etc/shadow": "root:!:19000::::::\n",
    "etc/os-release": "ID=debian\n",
    "init": INIT,
    "usr/bin/report": REPORT,
    "usr/lib/systemd/system/report.service": "[Unit]\nDefaultDependencies=no\n"
    "After=systemd-firstboot.service systemd-tmpfiles-setup.service\n[Service]\nType=oneshot\nExecStart=/usr/bin/report\n",
    # What every boot does that matters here, and nothing that only takes time.
    "usr/lib/systemd/system/report.target": "[Unit]\nDefaultDependencies=no\n"
    "Wants=systemd-firstboot.service systemd-tmpfiles-setup.service report.service\n",
}


def build(root: Path) -> None:
    """Make the root in a directory; skips by name, or fails in CI, where systemd or busybox is missing."""
    require_program(Path("/usr/lib/systemd/systemd"), "systemd")
    kernel()
    listed = subprocess.run(["dpkg", "-L", "systemd"], capture_output=True, text=True, check=True).stdout.splitlines()
    shipped = [Path(line) for line in listed if not line.startswith("/usr/share/")]
    programs = [path for path in shipped if path.is_file() and os.access(path, os.X_OK)]
    for path in [*shipped, *libraries_of([*programs, IGNITION])]:
        _copy(path, root)
    for source, name in ((BUSYBOX, "usr/bin/busybox"), (IGNITION, "usr/bin/ignition")):
        shutil.copy(source, root / name)
    for name, driver in parts.modules(DRIVERS).items():
        (root / "usr/lib/drivers").mkdir(exist_ok=True)
        (root / f"usr/lib/drivers/{name}.ko").write_bytes(driver)
    for name, content in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
        (root / name).chmod(0o755)
    for name, target in {
        **LINKS,
        "usr/bin/sh": "busybox",
        "etc/systemd/system/default.target": "report.target",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).unlink(missing_ok=True)
        (root / name).symlink_to(target)


def _copy(path: Path, root: Path) -> None:
    """A file or link of this machine at the same place below the root; /lib and its like are links on both."""
    target = root / str(path.parent.resolve() / path.name).lstrip("/")
    if target.exists() or target.is_symlink() or not (path.is_file() or path.is_symlink()):
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(path, target, follow_symlinks=False)


def libraries_of(programs: Sequence[Path]) -> set[Path]:
    """The shared libraries that programs need, by the names that they ask for and as files."""
    listing = subprocess.run(["ldd", *programs], capture_output=True, text=True, check=False).stdout
    libraries = {Path(name) for name in re.findall(r"(/\S+) \(0x", listing)}
    return libraries | {path.resolve() for path in libraries}


def image(root: Path) -> bytes:
    """The root as a unified kernel image, with the command line that is kept in it.

    Without the programs of LEFT_OUT, which this boot does not start: firmware hashes every byte, and it is emulated.
    """
    machine.require_machine()
    places = (path for path in root.rglob("*") if not str(path.relative_to(root)).startswith(LEFT_OUT))
    entries = sorted(path for path in places if path.is_symlink() or path.is_file())
    files = {str(path.relative_to(root)): path.read_bytes() for path in entries if not path.is_symlink()}
    links = {str(path.relative_to(root)): os.readlink(path) for path in entries if path.is_symlink()}
    line = (root / "etc/kernel/cmdline").read_bytes().strip()
    sections = {
        ".osrel": files["etc/os-release"], ".cmdline": line, ".initrd": gzip.compress(archive(files, links), 6, mtime=0),
        ".linux": kernel(),
    }  # fmt: skip
    return write_uki(STUB.read_bytes(), sections)


@dataclass(frozen=True)
class HostSays:
    """What a host puts where a guest may look: strings in SMBIOS type 11, files in fw_cfg, user-data on disks by their label."""

    smbios: Sequence[str]
    fw_cfg: Mapping[str, bytes]
    disks: Mapping[str, bytes]

    def options(self, place: Path) -> list[str]:
        """The same for QEMU, with what it needs in a directory."""
        words = [word for text in self.smbios for word in ("-smbios", f"type=11,value={text}")]
        for number, (name, content) in enumerate(self.fw_cfg.items()):
            (place / f"fw{number}").write_bytes(content)
            words += ["-fw_cfg", f"name={name},file={place}/fw{number}"]
        for label, content in self.disks.items():
            disk = place / f"{label}.img"
            write_labelled(disk, label, content)
            words += ["-drive", f"if=none,id={label},format=raw,readonly=on,file={disk}"]
            words += ["-device", f"virtio-blk-pci,drive={label},serial={label}"]
        return words


def write_labelled(disk: Path, label: str, content: bytes) -> None:
    """A disk with a label and one file, as stock provisioning makes them for cloud-init."""
    with disk.open("wb") as file:
        file.truncate(1024**2)
    source = disk.with_suffix(".user-data")
    source.write_bytes(content)
    for command in (
        ["mformat", "-i", str(disk), "-T", "2048", "-v", label, "-N", "0", "::"],
        ["mcopy", "-i", str(disk), str(source), "::/user-data"],
    ):
        subprocess.run(command, check=True)


def boot(uki: bytes, host: HostSays) -> bytes:
    """What a machine says on its serial port, whose host says this."""
    with tempfile.TemporaryDirectory(prefix="fastness-turn-") as scratch:
        place = Path(scratch)
        shutil.copy(machine.FIRMWARE / machine.PLAIN[1], place / "vars.fd")
        write_disk(place / "esp.img", uki)
        (place / "tpm").mkdir()
        swtpm = [
            str(SWTPM), "socket", "--tpm2", "--tpmstate", f"dir={place}/tpm",
            "--ctrl", f"type=unixio,path={place}/tpm.sock", "--terminate",
        ]  # fmt: skip
        command = machine.qemu(place, machine.FIRMWARE / machine.PLAIN[0], secure_boot=False)
        command[command.index("-m") + 1] = "1024"
        command += host.options(place)
        with machine.running(swtpm, place / "swtpm.log"):
            machine.wait_for(place / "tpm.sock")
            with machine.running(command, place / "qemu.log") as process:
                return machine.conversation(process, {}, time.monotonic() + DEADLINE)
