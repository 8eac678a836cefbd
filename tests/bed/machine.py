"""A machine of a bed that boots by itself: its first process is a systemd of its own, and a reboot is a reboot.

    machine = Machine(bed, image, tpm, firmware)
    machine.switch_on(user_data)            # enrols, attests, has its configuration laid down by Ignition, starts its units
    machine.ctl("is-active", "kubelet.service")
    machine.switch_off()

It has namespaces, control groups and an address as every node of a bed has them. Beside them it has a root of its own: /usr and
/etc are the image over those of the Debian that runs the tests, and what the machine writes stays its own, over reboots; /var is
its own, /run and /dev are in memory.

* A first boot does what an initial file system does: the agent proves the machine, Ignition fetches from it and writes.
* `firmware` is called before each boot, with a TPM that was switched off and on.
* What the kernel does not lend to a namespace is shown as files of the machine's own: its settings, and the number of the boot.
"""

from __future__ import annotations

import itertools
import shlex
import shutil
import signal
import subprocess
import threading
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.bed import settings
from tests.bed.bed import Bed
from tests.bed.janitor import mounted_controllers
from tests.bed.node import cable, control_groups
from tests.bed.space import Space, command
from tests.patience import PATIENCE
from tests.swtpm import Swtpm

IGNITION = "/usr/lib/dracut/modules.d/30ignition/ignition"
DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "kmsg")
# Settings that a rendered configuration makes and the kernel has once for all: what the machine writes there stays its own.
OWN_SETTINGS = (
    *settings.TUNABLES, "fs/inotify/max_user_instances", "fs/inotify/max_user_watches", "vm/max_map_count",
    "vm/unprivileged_userfaultfd",
)  # fmt: skip
# Control groups of version 2 have no namespace of the machine's own here: it must not touch them.
LEGACY = "systemd.unified_cgroup_hierarchy=0 systemd.legacy_systemd_cgroup_controller=1"
FIRST_BOOT = f"""
export PATH=/usr/lib/bed:$PATH
/usr/lib/fastness/agent/bin/fastness-agent boot &
agent=$!
export IGNITION_CONFIG_FILE=/nonexistent
ignite() {{
    {IGNITION} -platform file -root / -log-to-stdout -config-cache /run/ignition.cache -state-file /run/ignition.state \
        -neednet /run/neednet -stage "$1"
}}
ignite fetch || {{ wait $agent || true; echo 'Ignition has nothing'; exit 1; }}
wait $agent
ignite files > /run/ignition.log
rm /var/first-boot
"""


@dataclass
class Machine:
    """One machine, on or off."""

    bed: Bed
    image: Path
    tpm: Swtpm
    firmware: Callable[[Swtpm], bytes]
    index: int = field(init=False)
    directory: Path = field(init=False)
    boots: int = 0
    _space: Space | None = None
    _power: threading.Thread | None = None
    _on: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.index = next(self.bed.indices)
        self.directory = self.bed.directory / f"machine{self.index}"
        for name in ("var", "own", "given", *(f"{kind}.{tree}" for kind in ("up", "work") for tree in ("usr", "etc"))):
            (self.directory / name).mkdir(parents=True)
        (self.directory / "var" / "first-boot").touch()
        for path in OWN_SETTINGS:
            (self.directory / "own" / path.replace("/", "-")).write_text("0\n")

    @property
    def address(self) -> str:
        """The machine's address in the bed's network."""
        return f"10.77.0.{10 + self.index}"

    @property
    def space(self) -> Space:
        """Its namespaces of this boot."""
        assert self._space is not None, "the machine is off"
        return self._space

    @property
    def console(self) -> str:
        """What it said on its console, all boots."""
        logs = sorted(self.directory.glob("console.*"), key=lambda path: int(path.suffix[1:]))
        return "\n".join(log.read_text(errors="replace") for log in logs)

    # ------------------------------------------------------------ power

    def switch_on(self, user_data: bytes) -> None:
        """Boot, and boot again whenever the machine reboots; returns at once."""
        (self.directory / "given" / "user-data").write_bytes(user_data)
        self._on.set()
        # The kernel ends what a thread started with that thread: one thread starts every boot and lives as long as the machine.
        self._power = threading.Thread(target=self._boots, daemon=True)
        self._power.start()

    def switch_off(self) -> None:
        """Pull the plug and remove what lies on its disks; consoles stay."""
        self._on.clear()
        if self._space is not None:
            with suppress(ProcessLookupError):
                self._space.child.kill()
        if self._power is not None:
            self._power.join(PATIENCE)
        for tree in self.directory.iterdir():
            if tree.is_dir():
                shutil.rmtree(tree, ignore_errors=True)

    def _boots(self) -> None:
        for number in itertools.count(1):
            self._boot(number)
            ended = self.space.child.wait()
            self.space.stop()
            # A first process that asks the kernel for a reboot is ended by this signal, by another one when it is switched off.
            if not self._on.is_set() or ended != -signal.SIGHUP:
                return
            # As a kernel does that goes down in order; a TPM that is cut off too often takes it for an attack.
            self.tpm.tool("shutdown", "--clear")

    def _boot(self, number: int) -> None:
        self.tpm.reset()
        given = self.directory / "given"
        (given / "event-log").write_bytes(self.firmware(self.tpm))
        (self.directory / "own" / "boot-id").write_text(f"{uuid.uuid4()}\n")
        groups = control_groups(self.bed.name, self.index)
        console = shlex.quote(str(self.directory / f"console.{number}"))
        wait = f"exec 3<&0 0</dev/null; echo ready; cat <&3 >/dev/null; exec 3<&- > {console} 2>&1\n"
        first = ["/bin/sh", "-euc", wait + self._script()]
        self._space = Space.start(whole=True, groups=groups, first=first)
        cable(self.bed.network, self._space, self.index)
        self.boots = number
        self._space.release()

    def _script(self) -> str:
        """What happens between the kernel and systemd; it runs as the first process."""
        here, image = (shlex.quote(str(path)) for path in (self.directory, self.image))
        lines = [
            "root=/run/machine", "mount -t tmpfs -o mode=755 tmpfs /run", "mkdir $root", "mount -t tmpfs -o mode=755 tmpfs $root",
            "cd $root", "mkdir usr etc var run proc sys dev tmp root srv old", f"cp -a {image}/opt opt",
            "for name in bin sbin lib lib64; do ln -s usr/$name $name; done",
            "for tree in usr etc; do",
            f"own=upperdir={here}/up.$tree,workdir={here}/work.$tree",
            f"mount -t overlay -o lowerdir={image}/$tree:/$tree,$own overlay $tree", "done",
            f"mount --bind {here}/var var", "mount -t tmpfs -o mode=755 tmpfs run", "mount -t tmpfs tmpfs tmp",
            "touch run/resolv.conf", "mkdir -p srv/machine/tpmrm", f"mount --bind {self.tpm.socket.parent} srv/machine/tpmrm",
            f"cp {here}/given/* srv/machine/", "touch srv/machine/tpm.lock",
            "mount -t tmpfs -o mode=755 tmpfs dev", "mkdir dev/pts dev/shm",
            f"for name in {' '.join(DEVICES)}; do touch dev/$name; mount --bind /dev/$name dev/$name; done",
            "mount -t devpts -o newinstance,ptmxmode=0666,mode=0620,gid=5 devpts dev/pts",
            "ln -s pts/ptmx dev/ptmx", "ln -s /proc/self/fd dev/fd",
            *self._kernel(here),
            "hostname machine", "pivot_root . old", "umount -l /old", "rmdir /old", "cd /",
            "export PATH=/usr/sbin:/usr/bin:/sbin:/bin",
            f"if [ -e /var/first-boot ]; then {FIRST_BOOT} fi",
            # It says itself that it is in a container: it then leaves devices and the kernel alone.
            f"exec env -i container=bed /lib/systemd/systemd --log-target=journal systemd.show_status=0 {LEGACY}",
        ]  # fmt: skip
        return "\n".join(lines)

    def _kernel(self, here: str) -> list[str]:
        lines = [
            "mount -t proc proc proc", "mount --bind proc/sys proc/sys", "mount -o remount,bind,ro proc/sys",
            "mount --bind /proc/sys/net proc/sys/net",
            *(f"mount --bind {here}/own/{path.replace('/', '-')} proc/sys/{path}" for path in OWN_SETTINGS),
            f"mount --bind {here}/own/boot-id proc/sys/kernel/random/boot_id",
            "mount -t sysfs -o ro sysfs sys", "mount -t tmpfs -o mode=755 tmpfs sys/fs/cgroup",
        ]  # fmt: skip
        for name in mounted_controllers():
            options = f"none,name={name}" if name == "systemd" else name
            lines += [f"mkdir sys/fs/cgroup/{name}", f"mount -t cgroup -o {options} cgroup sys/fs/cgroup/{name}"]
        return lines

    # ------------------------------------------------------------ what tests use

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a program on the machine, which is on."""
        return subprocess.run(
            [*self.space.enter, command("env"), *words],
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )

    def ctl(self, *words: str) -> str:
        """What systemctl answers."""
        return self.run("systemctl", *words).stdout.strip()

    def file(self, path: str) -> Path:
        """A file of the machine, as we see it."""
        return self.space.path(path)

    def journal(self, unit: str) -> str:
        """What a unit said in this boot."""
        return self.run("journalctl", "--no-pager", "-b", "-o", "cat", "-u", unit).stdout
