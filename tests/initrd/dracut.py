"""An initial file system that dracut builds with our module, and a machine that boots it: Debian's kernel in QEMU.

    image = built(directory)
    console = booted(image, "test.unlock=refuse")

The agent is a script that opens the second disk as the volume `var`, or refuses where the command line says so; the root is the
first disk, whose `init` says that it was entered and switches the machine off. dracut, systemd, udev, the module of Ignition and
the kernel are the real ones. What an image brings is laid over /usr in a mount namespace, where dracut looks for it.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from fastness.sim.vms import parts
from tests.initrd.boots import MODULE
from tests.measuredboot.machine import running

DRACUT = {
    Path("/usr/bin/dracut"): "dracut-core", Path("/usr/lib/dracut/modules.d/30ignition/module-setup.sh"): "ignition",
    Path("/usr/lib/dracut/modules.d/45url-lib/module-setup.sh"): "dracut-network", parts.QEMU: "qemu-system-x86",
    parts.BUSYBOX: "busybox-static", Path("/usr/sbin/mke2fs"): "e2fsprogs", Path("/usr/bin/tpm2_quote"): "tpm2-tools",
}  # fmt: skip
MODULES = (
    "systemd systemd-initrd dracut-systemd base fs-lib rootfs-block udev-rules kernel-modules usrmount shutdown qemu url-lib "
    "network ignition fastness"
)
COMMAND_LINE = "console=ttyS0 no_timer_check panic=1 root=/dev/vda rw"
SECONDS = 600.0
AGENT = """#!/bin/sh
echo "agent: $1 begins" > /dev/console
case "$(cat /proc/cmdline)" in *"test.$1=refuse"*) echo "agent: $1 refuses" > /dev/console; exit 1;; esac
if [ "$1" = unlock ]; then mkdir -p /run/fastness/opened; ln -s /dev/vdb /run/fastness/opened/var; fi
echo "agent: $1 is done" > /dev/console
"""
INIT = """#!/bin/busybox sh
busybox mount | busybox grep /var > /dev/console
echo "root: entered" > /dev/console
busybox poweroff -f
"""


@dataclass(frozen=True)
class DracutImage:
    """Kernel, initial file system, root and volume, as files."""

    directory: Path

    def path(self, name: str) -> Path:
        """One of them."""
        return self.directory / name


def built(directory: Path) -> DracutImage:
    """Build it all; dracut takes half a minute."""
    image, tree = DracutImage(directory), parts.module_tree()
    extra = directory / "usr"
    shutil.copytree(tree, extra / "lib/modules" / tree.name)
    (directory / "lib").symlink_to("usr/lib")
    subprocess.run(["/usr/sbin/depmod", "-b", directory, tree.name], check=True)
    shutil.copytree(MODULE, extra / "lib/dracut/modules.d/50fastness")
    files = {
        "fastness/agent/bin/fastness-agent": AGENT, "fastness/volumes.json": '{"var": "/dev/vdb"}', "fastness/trust.json": "{}",
        "ignition/user.ign": "{}",
    }  # fmt: skip
    for name, text in files.items():
        _write(extra / "lib" / name, text)
    words = [
        "--no-hostonly",
        "--no-early-microcode",
        "--no-compress",
        "--nostrip",
        "--kver",
        tree.name,
        "--tmpdir",
        str(directory),
    ]
    command = shlex.join(["dracut", *words, "-m", MODULES, "-f", str(image.path("initrd"))])
    over = f"mount -t overlay -o lowerdir={shlex.quote(str(extra))}:/usr overlay /usr"
    subprocess.run(
        ["unshare", "--mount", "/bin/sh", "-euc", f"{over}; {command}"],
        check=True,
        capture_output=True,
        timeout=SECONDS,
    )
    image.path("kernel").write_bytes(parts.kernel())
    root = directory / "root"
    _write(root / "sbin/init", INIT)
    _write(root / "etc/os-release", "ID=test\n")
    for name in ("bin", "var", "proc", "sys", "dev", "run", "usr", "tmp"):
        (root / name).mkdir()
    shutil.copy(parts.BUSYBOX, root / "bin/busybox")
    disks: dict[str, list[str]] = {"root.img": ["-d", str(root)], "var.img": []}
    for name, options in disks.items():
        with image.path(name).open("wb") as file:
            file.truncate(16 << 20)
        subprocess.run(["/usr/sbin/mke2fs", "-q", "-F", "-t", "ext4", *options, image.path(name)], check=True)
    return image


def booted(image: DracutImage, words: str = "") -> str:
    """What a machine says on its console until it is off, with these words on its command line."""
    command = [
        str(parts.QEMU), "-accel", "tcg", "-machine", "q35", "-cpu", "qemu64", "-m", "1024", "-smp", "1", "-nodefaults",
        "-no-user-config", "-display", "none", "-monitor", "none", "-no-reboot", "-serial", "stdio", "-kernel",
        str(image.path("kernel")), "-initrd", str(image.path("initrd")), "-append", f"{COMMAND_LINE} {words}",
        "-device", "virtio-rng-pci",
    ]  # fmt: skip
    for number, name in enumerate(("root.img", "var.img")):
        drive = f"if=none,id=d{number},format=raw,snapshot=on,file={image.path(name)}"
        command += ["-drive", drive, "-device", f"virtio-blk-pci,drive=d{number}"]
    said = b""
    with running(command, image.path("qemu.log")) as machine:
        assert machine.stdout is not None
        for line in machine.stdout:
            said += line
            # Halted and not switched off: the machine would stand there for ever.
            if b"reboot: System halted" in line or b"reboot: Power down" in line:
                break
    return said.decode(errors="replace")


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755 if text.startswith("#!") else 0o644)
