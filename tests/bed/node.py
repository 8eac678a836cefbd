"""A node of a bed: containerd, a kubelet and a kube-proxy in namespaces and control groups of their own.

    node = Node.prepare(…)      # namespaces, network, containerd: needs no API
    node.join(…)                # the kubelet and the proxy

The node sees the machine's files, with `/run`, `/var/lib` and `/var/log` of its own, `/proc` and `/sys` of its own namespaces,
and the kernel-wide settings that a kubelet insists on as files of its own.
"""

from __future__ import annotations

import shlex
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.bed import settings
from tests.bed.janitor import mounted_controllers
from tests.bed.space import Space, command
from tests.patience import PATIENCE
from tests.realkube.process import Program, StartFailed


@dataclass
class Node:
    """A running node, or one that is about to be."""

    index: int
    directory: Path
    space: Space
    programs: dict[str, Program] = field(default_factory=dict)

    @classmethod
    def prepare(cls, index: int, directory: Path, network: Space, bed: str, registry: str) -> Node:
        """A machine with containerd, in the bed's network; raises StartFailed."""
        for name in ("lib/kubelet/pki", "lib/containerd", "log", "etc/certs.d/_default", "tunables"):
            (directory / name).mkdir(parents=True)
        node = cls(index, directory, Space.start(whole=True, groups=control_groups(bed, index)))
        try:
            cable(network, node.space, index)
            node._furnish(registry)
            node.start_containerd()
        except BaseException:
            node.stop()
            raise
        return node

    @property
    def address(self) -> str:
        """The node's address in the bed's network."""
        return f"10.77.0.{10 + self.index}"

    @property
    def kubelet_directory(self) -> Path:
        """The kubelet's directory, as the machine sees it: /var/lib/kubelet of the node."""
        return self.directory / "lib" / "kubelet"

    def _furnish(self, registry: str) -> None:
        """Mounts and files that belong to this node alone."""
        for path, value in settings.TUNABLES.items():
            (self.directory / "tunables" / path.replace("/", "-")).write_text(f"{value}\n")
        (self.directory / "etc" / "containerd.toml").write_text(
            settings.containerd_settings(str(self.directory / "etc" / "certs.d"))
        )
        (self.directory / "etc/certs.d/_default/hosts.toml").write_text(settings.registry_hosts(registry))
        (self.directory / "etc" / "bed.conflist").write_text(settings.pod_network(f"10.244.{self.index}.0/24"))
        self.space.script(_mounts(self.directory))

    def start_containerd(self) -> None:
        """Start containerd and wait until it serves."""
        self._run(Path(command("containerd")), ["--config", str(self.directory / "etc" / "containerd.toml")])
        socket = self.space.path("/run/containerd/containerd.sock")
        self._until("containerd", socket.is_socket)

    def join(self, binaries: Path, name: str, kubeconfigs: dict[str, str], ca: Path, **changes: Any) -> None:
        """Start the kubelet and the proxy as a node of that name.

        `kubeconfigs` are the files `kubelet` or `bootstrap`, and `proxy`; `changes` are settings of the kubelet.
        """
        etc = self.directory / "etc"
        for kind, text in kubeconfigs.items():
            (etc / f"{kind}.kubeconfig").write_text(text)
        (etc / "kubelet.json").write_text(settings.kubelet_settings(str(ca), **changes))
        (etc / "proxy.json").write_text(settings.proxy_settings(str(etc / "proxy.kubeconfig"), name))
        self.start_kubelet(binaries, name)
        self._run(binaries / "kube-proxy", [f"--config={etc / 'proxy.json'}"])

    def start_kubelet(self, binaries: Path, name: str) -> None:
        """Start the kubelet, the first time or again."""
        etc = self.directory / "etc"
        flags = [
            f"--config={etc / 'kubelet.json'}",
            f"--hostname-override={name}",
            f"--node-ip={self.address}",
            f"--kubeconfig={etc / 'kubelet.kubeconfig'}",
        ]
        if (etc / "bootstrap.kubeconfig").exists():
            flags.append(f"--bootstrap-kubeconfig={etc / 'bootstrap.kubeconfig'}")
        self._run(binaries / "kubelet", flags)

    def _run(self, binary: Path, flags: list[str]) -> None:
        self.programs[binary.name] = self.space.run(binary, flags, self.directory)

    def _until(self, name: str, ready: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not ready():
            self.check()
            if time.monotonic() > deadline:
                raise self.programs[name].failure(f"was not ready after {PATIENCE:.0f} s")
            time.sleep(0.05)

    def check(self) -> None:
        """Raise StartFailed with the log of a program that has ended."""
        for program in self.programs.values():
            if program.ended():
                raise program.failure(f"ended with code {program.child.returncode}")

    def stop(self) -> None:
        """End everything that runs on this node: the namespaces first, so that every program is reaped by who started it."""
        self.space.stop()
        for program in self.programs.values():
            with suppress(subprocess.TimeoutExpired):
                program.child.wait(PATIENCE)
            program.stop()


def cable(network: Space, space: Space, index: int) -> None:
    """A cable from the bed's bridge to a node, and the ways to the pods of the other nodes."""
    address, end = f"10.77.0.{10 + index}", f"node{index}"
    network.script(
        f"ip link add {end} type veth peer name eth0 netns {space.pid}\n"
        f"ip link set {end} master bed0 up\n"
        f"ip route replace 10.244.{index}.0/24 via {address}\n"
    )
    space.script(
        "ip link set lo up\n"
        f"ip address add {address}/24 dev eth0\n"
        "ip link set eth0 up\n"
        "ip route add default via 10.77.0.1\n"
        "echo 1 > /proc/sys/net/ipv4/ip_forward\n"
    )


def control_groups(bed: str, index: int) -> list[Path]:
    """Make the control groups of a node, one for each controller; raises StartFailed."""
    groups = []
    for name, root in mounted_controllers().items():
        group = root / bed / f"node{index}"
        try:
            group.mkdir(parents=True, exist_ok=True)
            if "cpuset" in name:  # a new group of this controller has no processor and takes no process
                for each in (group.parent, group):
                    for file in ("cpuset.cpus", "cpuset.mems"):
                        (each / file).write_text((each.parent / file).read_text())
        except OSError as error:
            raise StartFailed(f"{group}: {error.strerror}") from error
        groups.append(group)
    return groups


def _mounts(directory: Path) -> str:
    """The script that gives a node its own places; it runs inside the node's namespaces."""
    here = shlex.quote(str(directory))
    lines = [
        f"mount --bind {here}/lib /var/lib",
        f"mount --bind {here}/log /var/log",
        "mount -t tmpfs -o mode=755 tmpfs /run",
        "mkdir -p /run/cni /run/lock",
        "touch /run/resolv.conf",
        f"cp {here}/etc/bed.conflist /run/cni/bed.conflist",
        "mount -t sysfs sysfs /sys",
        "mount -t tmpfs -o mode=755 tmpfs /sys/fs/cgroup",
    ]
    for name in mounted_controllers():
        options = f"none,name={name}" if name == "systemd" else name
        lines += [f"mkdir /sys/fs/cgroup/{name}", f"mount -t cgroup -o {options} cgroup /sys/fs/cgroup/{name}"]
    for path in settings.TUNABLES:
        lines.append(f"mount --bind {here}/tunables/{path.replace('/', '-')} /proc/sys/{path}")
    return "\n".join(lines)


def ready(node: dict[str, Any]) -> bool:
    """Whether a Node says that it is ready."""
    conditions = (node.get("status") or {}).get("conditions") or ()
    return any(entry["type"] == "Ready" and entry["status"] == "True" for entry in conditions)
