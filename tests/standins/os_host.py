"""A host for the real agent: a root of its own, the programs of image hosts on its path, and boots.

The agent runs as `fastness agent run --os auto` in a mount namespace, with this directory as its root, and knows nothing of the
test. `bootc`, `rpm-ostree`, `podman`, `systemd-run` and `systemctl` are in /usr/sbin there and work on the state of `os_engine`;
links of units are made by the real systemctl, offline. When the agent asks for a reboot, its process ends as on a machine that
goes down, what is staged becomes what is booted, and another process starts with another boot id.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
import threading
from pathlib import Path
from uuid import uuid4

from tests.e2e.live import FASTNESS
from tests.patience import eventually
from tests.standins import os_engine
from tests.standins.os_engine import Machine

REPOSITORY = Path(__file__).resolve().parents[2]
PROGRAMS = ("bootc", "rpm-ostree", "podman", "systemd-run", "journalctl")
_SYSTEMCTL = """#!/bin/sh
case "$1" in
reboot) exec touch {asked} ;;
is-active) echo active ;;
is-enabled|enable|disable|preset) exec env SYSTEMD_OFFLINE=1 /usr/bin/systemctl --root=/ "$@" ;;
cat|start) exec {engine} systemctl "$@" ;;
esac
"""
_ENTER = """set -e
cd {root}
mkdir -p usr proc dev tmp run var etc sys .{repository} .{outside}
for name in bin sbin lib lib64; do [ -L $name ] || ln -s usr/$name $name; done
mount --rbind /usr usr
mount --bind {programs} usr/sbin
mount --rbind /proc proc
mount --rbind /dev dev
mount --bind {boot_id} proc/sys/kernel/random/boot_id
mount --bind {cmdline} proc/cmdline
mount --bind {repository} .{repository}
mount --bind {outside} .{outside}
exec unshare --root=. --wd=/ {command}
"""


class OsHost:
    """One machine, switched on until the block ends."""

    def __init__(self, directory: Path, node: str, kubeconfig: Path, booted: str, *, outside: Path) -> None:
        """`outside` is the directory above both this machine's and the kubeconfig, which its agent sees under the same name."""
        self.directory, self.node = directory, node
        self._kubeconfig, self._outside = kubeconfig, outside
        self.engine = Machine(directory, booted, ())
        self.engine.change(pullsFromRegistry=True)
        self.boots = 0
        self._asked = directory / "reboot-asked"
        self._stop = threading.Event()
        self._process: subprocess.Popen[str] | None = None
        self._write_programs()
        self._watcher = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> OsHost:
        self._boot()
        self._watcher.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._watcher.join()
        self._end()

    def power_cycle(self) -> None:
        """Switch it off and on again."""
        self._asked.touch()
        boots = self.boots
        eventually(lambda: self.boots > boots, "a boot")

    def file(self, path: str) -> str | None:
        """What a file of the machine holds; None where there is none."""
        place = self.engine.root / path.lstrip("/")
        return place.read_text() if place.exists() else None

    def booted(self) -> str:
        """The image that runs, by digest."""
        return str(self.engine.read()["booted"]["image"])

    def calls(self, *beginnings: str) -> list[str]:
        """The calls that begin with these words."""
        return [line for line in self.engine.calls() if line.startswith(beginnings)]

    def log(self) -> str:
        """What its agents wrote."""
        return (self.directory / "agent.log").read_text()

    def _write_programs(self) -> None:
        programs = self.directory / "programs"
        programs.mkdir()
        engine = shlex.join([sys.executable, "-IS", str(Path(os_engine.__file__).resolve()), str(self.directory)])
        for name in PROGRAMS:
            (programs / name).write_text(f'#!/bin/sh\nexec {engine} {name} "$@"\n')
        (programs / "systemctl").write_text(_SYSTEMCTL.format(asked=self._asked, engine=engine))
        for program in programs.iterdir():
            program.chmod(0o755)

    def _boot(self) -> None:
        self.boots += 1
        (self.directory / "boot-id").write_text(f"{uuid4()}\n")
        (self.directory / "cmdline").write_text(self.engine.cmdline())
        command = [
            FASTNESS, "agent", "run", "--node", self.node, "--fast", "--os", "auto", "--kubeconfig", self._kubeconfig,
        ]  # fmt: skip
        script = _ENTER.format(
            root=self.engine.root, programs=self.directory / "programs", repository=REPOSITORY, outside=self._outside,
            boot_id=self.directory / "boot-id", cmdline=self.directory / "cmdline", command=shlex.join(map(str, command)),
        )  # fmt: skip
        with (self.directory / "agent.log").open("a") as log:
            self._process = subprocess.Popen(
                ["unshare", "--mount", "--propagation", "private", "sh", "-c", script], stdout=log, stderr=log,
                env={"PATH": "/usr/bin:/bin:/usr/sbin", "HOME": "/root", "LC_ALL": "C.UTF-8"}, text=True,
            )  # fmt: skip

    def _watch(self) -> None:
        while not self._stop.wait(0.1):
            if self._asked.exists():
                self._end()
                self._asked.unlink()
                self.engine.reboot()
                self._boot()

    def _end(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait(timeout=30)
