"""`Bed`: a real Kubernetes with real nodes, from start to stop.

    with Bed.start(directory, binaries) as bed:
        bed.kubectl("run", "hello", f"--image={BUSYBOX}", …)

| where | what runs there |
| --- | --- |
| the bed's network, 10.77.0.1 | etcd, kube-apiserver, kube-controller-manager, kube-scheduler, the registry |
| node 0, 1, … at 10.77.0.10 + n | containerd, kubelet, kube-proxy, pods with addresses in 10.244.n.0/24 |

There is no way from the bed to any other network, nor from there into the bed: tests reach its API by `forward`, on loopback.
The nodes of the start are called bed-0 and bed-1 and have certificates of the cluster's CA; `spare_node` prepares a machine that
has joined nothing yet.
"""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from types import TracebackType

import httpx

from tests.bed import forward, janitor, settings
from tests.bed.images import busybox_image, pause_image, push
from tests.bed.node import Node, ready
from tests.bed.space import Space, command
from tests.patience import PATIENCE
from tests.realkube import RealKube
from tests.realkube.cluster import free_ports
from tests.realkube.credentials import kubeconfig
from tests.realkube.process import LEASH, Program, StartFailed

ADDRESS = "10.77.0.1"
BUSYBOX = "ghcr.io/bed/busybox:1"  # whatever the host: nodes ask the bed's registry for all of them
# A busy machine must not make nodes disappear; a node that was killed is noticed soon enough.
CONTROLLER_FLAGS = (
    "--kube-api-qps=300",
    "--kube-api-burst=600",
    "--node-monitor-period=1s",
    "--node-monitor-grace-period=40s",
)


@dataclass
class Bed:
    """A running control plane with its nodes."""

    directory: Path
    binaries: Path
    name: str
    network: Space
    sweeper: subprocess.Popen[bytes]
    registry: str = ""
    control_plane: RealKube | None = None
    nodes: list[Node] = field(default_factory=list)
    indices: Iterator[int] = field(default_factory=itertools.count)
    programs: list[Program] = field(default_factory=list)
    forwarders: list[subprocess.Popen[bytes]] = field(default_factory=list)

    # ------------------------------------------------------------ what the control plane stands on (realkube.Ground)

    @property
    def address(self) -> str:
        """Where nodes reach the API server."""
        return ADDRESS

    @property
    def enter(self) -> Sequence[str]:
        """What to put before a command so that it runs in the bed's network."""
        return self.network.enter

    def open(self, ports: Sequence[int]) -> None:
        """Carry what comes to these ports of our loopback to the same ports in the bed; raises StartFailed."""
        words = [str(forward.__file__), self.network.network, *map(str, ports)]
        child = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", LEASH, str(os.getpid()), sys.executable, "-I", "-S", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self.forwarders.append(child)
        assert child.stdout is not None
        if child.stdout.readline() != b"ready\n":
            raise StartFailed(f"the forwarder ended: {child.stdout.read().decode(errors='replace')}")

    # ------------------------------------------------------------ start

    @classmethod
    def start(cls, directory: Path, binaries: Path, nodes: int = 2) -> Bed:
        """Bring a bed up in an empty directory, with its nodes ready. Raises StartFailed with the log of what went wrong."""
        bed = cls.prepare(directory, binaries, nodes)
        try:
            bed._start()
        except BaseException:
            bed.stop()
            raise
        return bed

    @classmethod
    def prepare(cls, directory: Path, binaries: Path, nodes: int) -> Bed:
        """The network, the registry and machines with containerd: all but Kubernetes itself. Raises StartFailed."""
        janitor.sweep_dead()
        name, network = janitor.group_name(os.getpid()), Space.start(whole=False)
        sweeper = subprocess.Popen(
            [sys.executable, "-I", "-S", str(janitor.__file__), name, str(directory)],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
        bed = cls(directory, binaries, name, network, sweeper)
        try:
            bed._prepare(nodes)
        except BaseException:
            bed.stop()
            raise
        return bed

    def _prepare(self, nodes: int) -> None:
        self.network.script(
            "ip link set lo up\n"
            "ip link add bed0 type bridge\n"
            f"ip address add {ADDRESS}/24 dev bed0\n"
            "ip link set bed0 up\n"
            "echo 1 > /proc/sys/net/ipv4/ip_forward\n"
        )
        self._start_registry()
        for _ in range(nodes):
            self.spare_node()

    def _start(self) -> None:
        self.control_plane = RealKube.start(
            self.directory / "control-plane",
            self.binaries,
            unsafe_no_fsync=True,
            controllers=("*",),
            apiserver_flags=["--enable-bootstrap-token-auth=true"],
            controller_flags=CONTROLLER_FLAGS,
            signing=timedelta(hours=1),
            ground=self,
        )
        self.kube.run(
            "kube-scheduler", [f"--kubeconfig={self.kube.kubeconfig}", "--leader-elect=false", "--secure-port=0"]
        )
        for node in self.nodes:
            self._join(node)
        for node in self.nodes:
            self.until_ready(f"bed-{node.index}")

    def _start_registry(self) -> None:
        """A private registry with the images of the bed."""
        (port,) = free_ports(1)
        self.open([port])
        self.registry = f"http://127.0.0.1:{port}"
        config = self.directory / "registry.yml"
        config.write_text(settings.registry_settings(str(self.directory / "registry"), f"0.0.0.0:{port}"))
        program = self.network.run(Path(command("docker-registry")), ["serve", str(config)], self.directory)
        self.programs.append(program)
        self.until(lambda: httpx.get(f"{self.registry}/v2/", trust_env=False).is_success, program)
        busybox = Path(command("busybox"))
        for image in (pause_image(busybox), busybox_image(busybox)):
            push(self.registry, image)

    def spare_node(self) -> Node:
        """One more machine with containerd, which has joined nothing yet."""
        index = next(self.indices)
        inside = self.registry.replace("127.0.0.1", ADDRESS)
        node = Node.prepare(index, self.directory / f"node{index}", self.network, self.name, inside)
        self.nodes.append(node)
        return node

    def remove_node(self, node: Node) -> None:
        """End a machine; what the API has of it stays."""
        self.nodes.remove(node)
        node.stop()
        shutil.rmtree(node.directory / "lib", ignore_errors=True)

    def _join(self, node: Node) -> None:
        """Let a machine in by certificates of the cluster's CA."""
        name, etc = f"bed-{node.index}", node.directory / "etc"
        certificate, key = self.kube.credentials.issue(etc, f"system:node:{name}", group="system:nodes")
        serving, serving_key = self.kube.credentials.issue(etc, name, name, node.address)
        user = {"client-certificate": str(certificate), "client-key": str(key)}
        kubeconfigs = {"kubelet": kubeconfig(self.inner_url, self.kube.ca, user), "proxy": self.proxy_kubeconfig(node)}
        changes = {"tlsCertFile": str(serving), "tlsPrivateKeyFile": str(serving_key)}
        node.join(self.binaries, name, kubeconfigs, self.kube.ca, **changes)

    def proxy_kubeconfig(self, node: Node) -> str:
        """The credential of a node's kube-proxy."""
        certificate, key = self.kube.credentials.issue(node.directory / "etc", "system:kube-proxy")
        return kubeconfig(
            self.inner_url, self.kube.ca, {"client-certificate": str(certificate), "client-key": str(key)}
        )

    # ------------------------------------------------------------ what tests use

    @property
    def kube(self) -> RealKube:
        """The control plane: its URL, users and kubeconfigs, which are good on loopback."""
        assert self.control_plane is not None, "the bed has not started"
        return self.control_plane

    @property
    def inner_url(self) -> str:
        """Where nodes and pods reach the API server."""
        return self.kube.url.replace("127.0.0.1", ADDRESS)

    def until(self, true: Callable[[], bool], *watched: Program) -> None:
        """Wait for a fact; raises StartFailed at once when a program of the bed has ended, or after PATIENCE."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            for program in (*self.programs, *watched):
                if program.ended():
                    raise program.failure(f"ended with code {program.child.returncode}")
            for node in self.nodes:
                node.check()
            try:
                if true():
                    return
            except httpx.TransportError:
                pass  # not listening yet
            time.sleep(0.05)
        raise StartFailed(f"a bed waited {PATIENCE:.0f} s in vain; logs are in {self.directory}")

    def until_ready(self, name: str) -> None:
        """Wait for a node of that name to be ready."""
        selected = {"fieldSelector": f"metadata.name={name}"}
        with self.kube.client() as admin:
            self.until(lambda: any(map(ready, admin.get("/api/v1/nodes", params=selected).json()["items"])))

    # ------------------------------------------------------------ stop

    def stop(self) -> None:
        """End everything that the bed started and remove what it made; logs stay."""
        for node in self.nodes:
            node.stop()
        if self.control_plane is not None:
            self.control_plane.stop()
        for program in self.programs:
            program.stop()
        for child in self.forwarders:
            child.kill()
            child.wait()
            assert child.stdout is not None
            child.stdout.close()
        self.network.stop()
        janitor.sweep(self.name, list(janitor.mounted_controllers().values()))
        for node in self.nodes:
            shutil.rmtree(node.directory / "lib", ignore_errors=True)
        shutil.rmtree(self.directory / "registry", ignore_errors=True)
        self.sweeper.kill()  # nothing is left for it
        self.sweeper.wait()
        assert self.sweeper.stdin is not None
        self.sweeper.stdin.close()

    def __enter__(self) -> Bed:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
