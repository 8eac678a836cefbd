"""One boot in namespaces: systemd as the first process of a root in memory, with the units that the dracut module installs.

    with InitrdBoot(directory, unlock="wait").running() as boot:
        boot.until("waiting for the keys")       # on the console
        boot.let_go()
        assert boot.end() == ENTERED

The module's own `install` puts the units where they belong; what it asks of dracut is a copy and a link here. The kernel's side
is left out: no hardware, no udev, no network. The agent is a script that does what a test tells it, with the words of the real
one; the root is a directory whose systemd leaves a mark, so that a boot which goes on is told from one which does not.

* systemd takes a root in memory with /etc/initrd-release for an initial file system, and switches to the root as on a machine.
* The volume is a file with ext4 behind a loop device, in the place of the opened one.
"""

from __future__ import annotations

import itertools
import os
import pty
import shlex
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.bed.janitor import group_name, mounted_controllers, sweep
from tests.bed.node import control_groups
from tests.bed.space import Space, command
from tests.patience import PATIENCE

MODULE = Path(__file__).parents[2] / "deploy" / "dracut" / "50fastness"
UNITS = "/usr/lib/systemd/system"
_numbers = itertools.count(900)
ENTERED, STOPPED = "entered", "stopped"
# What the module calls of dracut, as far as units and files are concerned.
DRACUT = """
inst_simple() { mkdir -p "$initdir$(dirname "${2:-$1}")"; if [ -e "$1" ]; then cp -a "$1" "$initdir${2:-$1}"; fi; }
inst_multiple() { :; }
inst_libdir_file() { :; }
inst_hook() { :; }
dinfo() { echo "$@"; }
ln_r() { mkdir -p "$initdir$(dirname "$2")"; ln -sfn "$1" "$initdir$2"; }
"""
AGENT = """#!/bin/sh
echo "agent: $1 begins" > /dev/console
case "$1:$(cat /given/"$1" 2> /dev/null)" in
    unlock:refuse) echo "agent: this machine's volumes stay closed (header-refused)" > /dev/console; exit 1;;
    unlock:nothing) ;;
    unlock:wait)
        echo "agent: waiting for the keys of this machine's volumes (unreachable): the broker does not answer" > /dev/console
        while [ ! -e /given/go ]; do sleep 0.1; done;;
    leave-initrd:refuse) echo "agent: the register did not move" > /dev/console; exit 1;;
esac
if [ "$1" = unlock ] && [ "$(cat /given/unlock)" != nothing ]; then
    mkdir -p /run/fastness/opened && ln -s /dev/volume /run/fastness/opened/var
fi
echo "agent: $1 is done" > /dev/console
"""
ROOT_UNITS = {
    "default.target": "[Unit]\nRequires=entered.service\nAfter=entered.service\n",
    "entered.service": "[Unit]\nDefaultDependencies=no\n[Service]\nType=oneshot\n"
    "ExecStart=/bin/sh -c 'grep /var /proc/mounts > /given/entered'\nExecStart=/bin/systemctl --force --force poweroff\n",
}
SEALED_ROOT = (
    "[Unit]\nDefaultDependencies=no\nAfter=initrd-root-device.target\nRequires=initrd-root-device.target\n[Mount]\n"
)


@dataclass
class InitrdBoot:
    """One boot; `given` is the directory that test and machine share."""

    directory: Path
    unlock: str = "open"
    leave: str = "move"
    masked: tuple[str, ...] = ()
    changed: dict[str, str] = field(default_factory=dict)
    """Units of the initial file system that an image has otherwise, by name."""
    _said: bytes = b""
    _terminal: str = ""
    _volume: str = ""

    @property
    def given(self) -> Path:
        """What the test tells the machine, and the machine the test."""
        return self.directory / "given"

    @property
    def console(self) -> str:
        """What the machine said."""
        return self._said.decode(errors="replace").replace("\r", "")

    @contextmanager
    def running(self) -> Iterator[InitrdBoot]:
        """Boot; whatever still runs at the end of the block is switched off."""
        self._lay_out()
        master, slave = pty.openpty()
        reader = threading.Thread(target=self._listen, args=[master], daemon=True)
        self._terminal = os.ttyname(slave)
        reader.start()
        volume = self._attached()
        script = "exec 3<&0 0</dev/null; echo ready; cat <&3 >/dev/null; exec 3<&-\n" + self._script()
        name = group_name(os.getpid())
        groups = control_groups(name, next(_numbers))
        self._space = Space.start(whole=True, groups=groups, first=["/bin/sh", "-euc", script])
        self._space.release()
        try:
            yield self
        finally:
            self._space.child.kill()
            self._space.stop()
            os.close(slave)
            reader.join(PATIENCE)
            os.close(master)
            sweep(name, list(mounted_controllers().values()))
            subprocess.run(["losetup", "-d", volume], check=True)

    def _attached(self) -> str:
        """The volume, as a device."""
        file = self.directory / "volume"
        with file.open("wb") as disk:
            disk.truncate(4 << 20)
        subprocess.run(["mke2fs", "-q", "-F", "-t", "ext4", file], check=True)
        found = subprocess.run(["losetup", "-f", "--show", file], check=True, capture_output=True, text=True)
        self._volume = found.stdout.strip()
        return self._volume

    def _listen(self, terminal: int) -> None:
        # A terminal that nobody has open any more ends in an error.
        with suppress(OSError):
            while data := os.read(terminal, 65536):
                self._said += data

    def until(self, words: str) -> None:
        """Wait until the console says this."""
        end = time.monotonic() + PATIENCE
        while words not in self.console:
            assert time.monotonic() < end, f"{words!r} is not on the console:\n{self.console}"
            assert self._space.child.poll() is None, f"it ended before it said {words!r}:\n{self.console}"
            time.sleep(0.05)

    def show(self, unit: str, *properties: str) -> dict[str, str]:
        """What systemd knows of a unit, while the machine is on."""
        words = [*self._space.enter, command("env"), "systemctl", "show", unit, *(f"-p{name}" for name in properties)]
        shown = subprocess.run(words, capture_output=True, text=True, check=True, timeout=PATIENCE).stdout
        return dict(line.split("=", 1) for line in shown.splitlines())

    def let_go(self) -> None:
        """The broker is there."""
        (self.given / "go").touch()

    def end(self) -> str:
        """How the boot ended; it does so by itself."""
        self._space.child.wait(PATIENCE)
        return ENTERED if (self.given / "entered").exists() else STOPPED

    def _lay_out(self) -> None:
        initrd, real = self.directory / "initrd", self.directory / "system"
        for path in (self.given, initrd / "usr", initrd / "etc", real / "var"):
            path.mkdir(parents=True)
        (self.given / "unlock").write_text(self.unlock)
        (self.given / "leave-initrd").write_text(self.leave)
        home = self.directory / "image" / "usr/lib/fastness"
        _write(home / "agent/bin/fastness-agent", AGENT)
        _write(home / "volumes.json", '{"var": "/dev/disk/by-partlabel/fastness-var"}')
        _write(home / "trust.json", "{}")
        install = f"{DRACUT}\n. {MODULE}/module-setup.sh\ninstall"
        environment = {
            "initdir": str(initrd), "moddir": str(MODULE), "systemdsystemunitdir": UNITS, "PATH": "/usr/bin:/bin",
            "dracutsysrootdir": str(self.directory / "image"),
        }  # fmt: skip
        subprocess.run(["/bin/bash", "-euc", install], env=environment, check=True)
        _write(initrd / "usr/lib/fastness/agent/bin/fastness-agent", AGENT)
        for name in ("volumes.json", "trust.json"):
            _write(initrd / "usr/lib/fastness" / name, (home / name).read_text())
        _write(initrd / "etc/initrd-release", "ID=test\n")
        _write(initrd / "etc/os-release", "ID=test\n")
        _write(initrd / "etc/machine-id", "")
        place = initrd / "etc/systemd/system"
        _write(place / "sysroot.mount", f"{SEALED_ROOT}What=/realroot\nWhere=/sysroot\nType=none\nOptions=rbind\n")
        for name, text in self.changed.items():
            _write(place / name, text)
        for name in ("emergency.service", "rescue.service", *self.masked):
            (place / name).symlink_to("/dev/null")
        for name, text in ROOT_UNITS.items():
            _write(real / "etc/systemd/system" / name, text)
        _write(real / "etc/os-release", "ID=test\n")

    def _script(self) -> str:
        here = shlex.quote(str(self.directory))
        lines = [
            "root=/run/machine", "mount -t tmpfs -o mode=755 tmpfs /run", "mkdir $root", "mount -t tmpfs -o mode=755 tmpfs $root",
            "cd $root", "mkdir usr run proc sys dev tmp old given sysroot realroot var",
            f"cp -a {here}/initrd/etc etc", "cp /etc/passwd /etc/group etc/",
            "for name in bin sbin lib lib64; do ln -s usr/$name $name; done",
            f"mount -t overlay -o lowerdir={here}/initrd/usr:/usr overlay usr",
            f"mount --bind {here}/given given", "mount -t tmpfs -o mode=755 tmpfs realroot",
            f"cp -a {here}/system/. realroot/",
            "for name in usr given proc sys dev run tmp; do mkdir realroot/$name; done",
            "mount --bind /usr realroot/usr", f"mount --bind {here}/given realroot/given",
            "for name in bin sbin lib lib64; do ln -s usr/$name realroot/$name; done",
            "mount -t tmpfs -o mode=755 tmpfs run", "mount -t tmpfs -o mode=755 tmpfs dev", "mkdir dev/pts dev/shm",
            "for name in null zero full random urandom tty kmsg; do touch dev/$name; mount --bind /dev/$name dev/$name; done",
            "touch dev/console dev/volume", f"mount --bind {self._volume} dev/volume",
            f"mount --bind {self._terminal} dev/console",
            "mount -t devpts -o newinstance,ptmxmode=0666,mode=0620,gid=5 devpts dev/pts", "ln -s pts/ptmx dev/ptmx",
            "ln -s /proc/self/fd dev/fd", "mount -t proc proc proc", "mount --bind proc/sys proc/sys",
            "mount -o remount,bind,ro proc/sys", "mount -t sysfs -o ro sysfs sys",
            "mount -t tmpfs -o mode=755 tmpfs sys/fs/cgroup",
            *(_controller(name) for name in mounted_controllers()),
            "hostname machine", "pivot_root . old", "umount -l /old", "rmdir /old", "cd /",
            "exec < /dev/console > /dev/console 2>&1",
            "exec env -i container=test /lib/systemd/systemd --log-target=console --show-status=1 "
            "systemd.unified_cgroup_hierarchy=0 systemd.legacy_systemd_cgroup_controller=1",
        ]  # fmt: skip
        return "\n".join(lines)


def _controller(name: str) -> str:
    options = "none,name=systemd" if name == "systemd" else name
    return f"mkdir sys/fs/cgroup/{name}; mount -t cgroup -o {options} cgroup sys/fs/cgroup/{name}"


def why_not() -> str | None:
    """What this machine lacks for such a boot; None for nothing."""
    if "systemd" not in mounted_controllers():
        return "systemd needs a hierarchy of control groups of its own, of version 1"
    if subprocess.run(["losetup", "-f"], capture_output=True, check=False).returncode != 0:
        return "a volume needs a loop device"
    return None


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755 if text.startswith("#!") else 0o644)
