"""`RealKube`: a real control plane for tests, from start to stop.

Start is in three steps, each of which waits for the effect that the next one needs, never for a time:

1. etcd answers its health page;
2. kube-apiserver says ready, with its own CA, Node and RBAC authorization, and tokens from a file;
3. kube-controller-manager has worked: the default service account exists and `view` has its aggregated rules.

Rules: everything binds 127.0.0.1 on free ports and lives below one directory; etcd syncs to disk as in production
unless `unsafe_no_fsync` is asked for; feature gates are the defaults; a failed start stops what it had started.
"""

from __future__ import annotations

import os
import shutil
import socket
import ssl
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

import httpx

from tests.realkube.credentials import Credentials, User, kubeconfig
from tests.realkube.process import Program, StartFailed

CONTROLLERS = (
    "namespace-controller",
    "garbage-collector-controller",
    "serviceaccount-controller",
    "root-ca-certificate-publisher-controller",
    "clusterrole-aggregation-controller",
)
SIGNER = "certificatesigningrequest-signing-controller"
PORT_RACES = 3
PATIENCE = 90.0


class Ground(Protocol):
    """Where a control plane with nodes runs: a network of its own, in which its ports on loopback can be reached from ours."""

    @property
    def address(self) -> str:
        """Where nodes reach the API server."""

    @property
    def enter(self) -> Sequence[str]:
        """What to put before a command so that it runs there."""

    def open(self, ports: Sequence[int]) -> None:
        """Carry what comes to these ports of our loopback to the same ports there; raises StartFailed."""


@dataclass
class RealKube:
    """A running etcd, kube-apiserver and kube-controller-manager."""

    directory: Path
    binaries: Path
    credentials: Credentials
    unsafe_no_fsync: bool = False
    ground: Ground | None = None
    url: str = ""
    programs: dict[str, Program] = field(default_factory=dict)
    flags: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def start(
        cls,
        directory: Path,
        binaries: Path,
        *,
        unsafe_no_fsync: bool = False,
        controllers: Sequence[str] = CONTROLLERS,
        apiserver_flags: Sequence[str] = (),
        controller_flags: Sequence[str] = (),
        signing: timedelta | None = None,
        ground: Ground | None = None,
    ) -> RealKube:
        """Bring the cluster up in an empty directory; `signing` lets it sign certificates of that lifetime.

        On a `ground` it is made for nodes: with service accounts in pods, and with a service network.
        Raises StartFailed with the log of what went wrong.
        """
        directory = directory.resolve()
        for attempt in range(PORT_RACES):
            home = directory / f"run{attempt}"
            home.mkdir(mode=0o700, parents=True)
            names = (ground.address, SERVICE_ADDRESS, "kubernetes") if ground else ()
            kube = cls(home, binaries, Credentials.create(home / "pki", names), unsafe_no_fsync, ground)
            try:
                kube._start(controllers, apiserver_flags, controller_flags, signing)
            except BaseException as error:
                kube.stop()
                # A port that was free may be taken by the time the program binds it.
                race = isinstance(error, StartFailed) and "address already in use" in str(error)
                if not race or attempt == PORT_RACES - 1:
                    raise
            else:
                return kube
        raise AssertionError("the loop above returns or raises")

    def _start(
        self,
        controllers: Sequence[str],
        apiserver_flags: Sequence[str],
        controller_flags: Sequence[str],
        signing: timedelta | None,
    ) -> None:
        client_port, peer_port, api_port = free_ports(3)
        if self.ground is not None:
            self.ground.open((client_port, api_port))
        etcd_url = f"http://127.0.0.1:{client_port}"
        self.url = f"https://127.0.0.1:{api_port}"
        self._write_kubeconfigs()

        etcd = self.run("etcd", etcd_flags(etcd_url, f"http://127.0.0.1:{peer_port}", self.unsafe_no_fsync))
        with httpx.Client(trust_env=False) as plain:
            self._wait(etcd, lambda: plain.get(f"{etcd_url}/health").is_success)

        behind = flags_for_nodes(self.credentials, self.ground.address) if self.ground else FLAGS_WITHOUT_NODES
        flags = [*apiserver_flags_for(self.credentials, etcd_url, self.url), *behind, *apiserver_flags]
        apiserver = self.run("kube-apiserver", flags)
        with self.client() as admin:
            self._wait(apiserver, lambda: admin.get("/readyz").is_success)
            running = (*controllers, SIGNER) if signing is not None else controllers
            flags = [*controller_flags_for(self.credentials, self.kubeconfig, running), *controller_flags]
            if signing is not None:
                flags += signing_flags(self.credentials, signing)
            controller = self.run("kube-controller-manager", flags)
            self._wait(controller, lambda: has_worked(admin, controllers))
            admin.post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", json=VIEWER_BINDING).raise_for_status()

    def run(self, name: str, flags: list[str]) -> Program:
        """Start one more program of the release, where the others run; it ends with them."""
        enter = self.ground.enter if self.ground else ()
        program = Program.start(self.binaries / name, flags, self.directory, os.getpid(), enter)
        self.programs[name], self.flags[name] = program, flags
        return program

    def kill_and_restart(self, name: str) -> None:
        """End a program without a warning and start it again as it was; nobody waits until it works."""
        self.programs[name].child.kill()
        self.programs[name].child.wait()
        self.run(name, self.flags[name])

    def lose(self) -> None:
        """The cluster is gone with everything that it held: its programs die, and so does the disk of etcd."""
        for program in reversed(self.programs.values()):
            program.child.kill()
            program.child.wait()
        shutil.rmtree(self.directory / "etcd")

    def begin_anew(self) -> None:
        """An empty cluster at the same address and with the same authority, as somebody makes it who lost one."""
        self.programs.clear()
        for name, flags in self.flags.items():
            program = self.run(name, flags)
            if name == "kube-apiserver":
                with self.client() as admin:
                    self._wait(program, lambda: admin.get("/readyz").is_success)

    def _wait(self, program: Program, ready: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            for other in self.programs.values():
                if other.ended():
                    raise other.failure(f"ended with code {other.child.returncode}")
            try:
                if ready():
                    return
            except httpx.TransportError:
                pass  # not listening yet
            time.sleep(0.05)
        raise program.failure(f"was not ready after {PATIENCE:.0f} s")

    def _write_kubeconfigs(self) -> None:
        certificate = {
            "client-certificate": str(self.credentials.admin_certificate),
            "client-key": str(self.credentials.admin_key),
        }
        self.kubeconfig.write_text(kubeconfig(self.url, self.credentials.ca, certificate))
        for name, user in self.users.items():
            self.kubeconfig_for(name).write_text(kubeconfig(self.url, self.credentials.ca, {"token": user.token}))
        for path in self.directory.glob("*kubeconfig"):
            path.chmod(0o600)

    @property
    def users(self) -> dict[str, User]:
        """Users with tokens: admin (system:masters), alice (no rights), viewer (ClusterRole view), node (worker-0)."""
        return self.credentials.users

    @property
    def kubeconfig(self) -> Path:
        """Kubeconfig of the administrator, by client certificate."""
        return self.directory / "kubeconfig"

    @property
    def ca(self) -> Path:
        """The certificate authority that signed the server and the admin certificate (PEM)."""
        return self.credentials.ca

    def kubeconfig_for(self, user: str) -> Path:
        """Kubeconfig of a user of the token file."""
        return self.directory / f"{user}.kubeconfig"

    def trust(self) -> ssl.SSLContext:
        """A TLS context that trusts this cluster and nobody else."""
        return ssl.create_default_context(cafile=str(self.ca))

    def client(self, user: str | None = "admin", **options: Any) -> httpx.Client:
        """An HTTP client for the API as one of the users; None sends no credential at all."""
        headers = {"Authorization": f"Bearer {self.users[user].token}"} if user is not None else {}
        settings = {"timeout": 30.0, "trust_env": False, **options}
        return httpx.Client(base_url=self.url, verify=self.trust(), headers=headers, **settings)

    def pids(self) -> dict[str, int]:
        """Process ids by program name, for measuring CPU and memory."""
        return {name: program.pid for name, program in self.programs.items()}

    def stop(self) -> None:
        """End the programs, the last started first, and drop the store; logs stay. Again: does nothing."""
        for program in reversed(self.programs.values()):
            program.stop()
        # etcd allocates 128 MB ahead, and pytest keeps the directories of three runs.
        shutil.rmtree(self.directory / "etcd", ignore_errors=True)

    def __enter__(self) -> RealKube:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


VIEWER_BINDING = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "realkube-viewer"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
    "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "viewer"}],
}


def free_ports(count: int) -> list[int]:
    """Ports of 127.0.0.1 that nobody listens on now."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


FLAGS_WITHOUT_NODES = (
    "--bind-address=127.0.0.1",
    "--advertise-address=127.0.0.1",
    "--disable-admission-plugins=ServiceAccount",
    "--endpoint-reconciler-type=none",
)
SERVICE_ADDRESS = "10.96.0.1"  # the API server's own Service: the first address of the range below


def etcd_flags(client_url: str, peer_url: str, unsafe_no_fsync: bool) -> list[str]:
    """Flags of a single-member etcd."""
    flags = [
        "--name=one",
        "--data-dir=etcd",
        f"--listen-client-urls={client_url}",
        f"--advertise-client-urls={client_url}",
        f"--listen-peer-urls={peer_url}",
        f"--initial-advertise-peer-urls={peer_url}",
        f"--initial-cluster=one={peer_url}",
        "--log-level=warn",
    ]
    return [*flags, "--unsafe-no-fsync"] if unsafe_no_fsync else flags


def apiserver_flags_for(credentials: Credentials, etcd_url: str, url: str) -> list[str]:
    """Flags of kube-apiserver: Node and RBAC, certificates and tokens."""
    return [
        f"--etcd-servers={etcd_url}",
        f"--secure-port={httpx.URL(url).port}",
        "--cert-dir=apiserver",
        f"--tls-cert-file={credentials.serving_certificate}",
        f"--tls-private-key-file={credentials.serving_key}",
        f"--client-ca-file={credentials.ca}",
        f"--token-auth-file={credentials.token_file}",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction,OwnerReferencesPermissionEnforcement",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={credentials.account_key}",
        f"--service-account-signing-key-file={credentials.account_key}",
        "--service-cluster-ip-range=10.96.0.0/16",
        "--allow-privileged=true",
    ]


def flags_for_nodes(credentials: Credentials, address: str) -> list[str]:
    """Flags of a kube-apiserver with kubelets before it: it listens in their network, which is private, and calls them back."""
    return [
        "--bind-address=0.0.0.0",
        f"--advertise-address={address}",
        f"--kubelet-client-certificate={credentials.admin_certificate}",
        f"--kubelet-client-key={credentials.admin_key}",
        f"--kubelet-certificate-authority={credentials.ca}",
        "--kubelet-preferred-address-types=InternalIP",
        "--enable-aggregator-routing=true",
    ]


def controller_flags_for(credentials: Credentials, config: Path, controllers: Sequence[str]) -> list[str]:
    """Flags of kube-controller-manager with only some of its controllers; `*` are all that it starts by default."""
    return [
        f"--kubeconfig={config}",
        f"--service-account-private-key-file={credentials.account_key}",
        f"--root-ca-file={credentials.ca}",
        "--leader-elect=false",
        "--secure-port=0",
        f"--controllers={','.join(controllers)}",
    ]


def signing_flags(credentials: Credentials, lifetime: timedelta) -> list[str]:
    """Flags that let the controller manager sign what was approved, with the CA that the API server believes."""
    return [
        f"--cluster-signing-cert-file={credentials.ca}",
        f"--cluster-signing-key-file={credentials.ca_key}",
        f"--cluster-signing-duration={lifetime.total_seconds():.0f}s",
    ]


def has_worked(admin: httpx.Client, controllers: Sequence[str]) -> bool:
    """Whether the controllers have done what a fresh cluster asks of them."""
    effects: dict[str, Callable[[], bool]] = {
        "serviceaccount-controller": lambda: exists(admin, "/api/v1/namespaces/default/serviceaccounts/default"),
        "root-ca-certificate-publisher-controller": lambda: exists(
            admin, "/api/v1/namespaces/default/configmaps/kube-root-ca.crt"
        ),
        "clusterrole-aggregation-controller": lambda: bool(
            admin.get("/apis/rbac.authorization.k8s.io/v1/clusterroles/view").raise_for_status().json().get("rules")
        ),
    }
    return all(effect() for name, effect in effects.items() if name in controllers or "*" in controllers)


def exists(admin: httpx.Client, path: str) -> bool:
    """Whether an object is there."""
    return admin.get(path).status_code == httpx.codes.OK
