"""The servers that are measured: `fastness up`, and the real kube-apiserver with its etcd.

Both are real processes on loopback with TLS, RBAC and fsync. The load comes in as one service account bound to
cluster-admin, with a token that both have issued themselves, so both verify the same kind of credential. The controller
manager of the peer runs, as the loops of `fastness up` do; its CPU time is left out of the peer's (in the peer's favour).
"""

from __future__ import annotations

import base64
import os
import shutil
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import orjson

from bench.accounting import cpu_seconds, resident_bytes
from bench.figures import API_SERVER
from fastness.kinds.crd import manifests
from tests.realkube.cluster import RealKube

OURS, PEER = "fastness", API_SERVER
PATIENCE = 60.0
_TOKEN_SECONDS = 24 * 3600
_BINDING = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "bench"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
    "subjects": [{"kind": "ServiceAccount", "namespace": "default", "name": "bench"}],
}


class TargetError(Exception):
    """A server did not start or did not take what the benchmark needs."""

    code = "TargetFailed"
    hint = "Run `fastness doctor`; for the peer run `python tools/realkube.py ensure`."


@dataclass(frozen=True, slots=True)
class Target:
    """A running server and how to reach it."""

    name: str
    address: str
    ca: str
    token: str
    pids: tuple[int, ...]
    ready_seconds: float

    def cpu(self) -> float:
        """CPU seconds that its processes have used so far."""
        return cpu_seconds(self.pids)

    def memory(self) -> int:
        """Bytes resident in its processes."""
        return resident_bytes(self.pids)

    def client(self) -> httpx.Client:
        """A client for what is not measured."""
        trust = ssl.create_default_context(cadata=self.ca)
        headers = {"Authorization": f"Bearer {self.token}"}
        return httpx.Client(
            base_url=f"https://{self.address}", verify=trust, headers=headers, timeout=300.0, trust_env=False
        )


@contextmanager
def ours(directory: Path) -> Iterator[Target]:
    """`fastness up` on a new state directory."""
    command = [str(Path(sys.executable).with_name("fastness")), "up", "--state", "state", "--port", "0", "-o", "json"]
    directory.mkdir(parents=True)
    started = time.monotonic()
    with (directory / "log").open("wb") as log, subprocess.Popen(
        command, cwd=directory, stdout=subprocess.PIPE, stderr=log, start_new_session=True
    ) as child:  # fmt: skip
        try:
            announced = _first_document(child)
            ready = time.monotonic() - started
            kubeconfig = directory / announced["kubeconfig"]
            yield _with_account(OURS, _admin(kubeconfig), (child.pid,), ready)
        finally:
            child.terminate()
            try:
                child.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                child.kill()
            shutil.rmtree(directory / "state", ignore_errors=True)


def _first_document(child: subprocess.Popen[bytes]) -> dict[str, Any]:
    """The JSON that `fastness up` prints when it is ready."""
    assert child.stdout is not None
    lines: list[bytes] = []
    for line in child.stdout:
        lines.append(line)
        if line.rstrip() == b"}":
            return dict(orjson.loads(b"".join(lines)))
    raise TargetError(f"fastness up ended with code {child.wait()}")


@dataclass(frozen=True, slots=True)
class _Admin:
    """The administrator's way in: only used to make the account."""

    address: str
    ca: str
    context: ssl.SSLContext


def _admin(kubeconfig: Path) -> _Admin:
    """The address, the authority and the client certificate in a kubeconfig of ours."""
    document = orjson.loads(kubeconfig.read_bytes())
    cluster, user = document["clusters"][0]["cluster"], document["users"][0]["user"]
    ca = base64.b64decode(cluster["certificate-authority-data"]).decode()
    pair = kubeconfig.with_name("bench-admin.pem")
    pair.touch(mode=0o600)
    pair.write_bytes(base64.b64decode(user["client-certificate-data"]) + base64.b64decode(user["client-key-data"]))
    context = ssl.create_default_context(cadata=ca)
    context.load_cert_chain(pair)
    return _Admin(cluster["server"].removeprefix("https://"), ca, context)


@contextmanager
def peer(directory: Path, binaries: Path) -> Iterator[Target]:
    """A real kube-apiserver with etcd, fsync on, and the definitions of all our kinds."""
    directory.mkdir(parents=True)
    started = time.monotonic()
    with RealKube.start(directory, binaries) as kube:
        ready = time.monotonic() - started
        context = ssl.create_default_context(cafile=str(kube.ca))
        context.load_cert_chain(kube.credentials.admin_certificate, kube.credentials.admin_key)
        admin = _Admin(kube.url.removeprefix("https://"), kube.ca.read_text(), context)
        pids = kube.pids()
        _install_definitions(admin)
        yield _with_account(PEER, admin, (pids["kube-apiserver"], pids["etcd"]), ready)


def _install_definitions(admin: _Admin) -> None:
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    with _client(admin) as client:
        for manifest in manifests():
            client.post(path, json=manifest).raise_for_status()
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            listed = client.get(path).raise_for_status().json()["items"]
            if all(_established(item) for item in listed):
                return
            time.sleep(0.2)
    raise TargetError("the API server did not establish our kinds")


def _established(definition: dict[str, Any]) -> bool:
    conditions = definition.get("status", {}).get("conditions") or ()
    return any(condition["type"] == "Established" and condition["status"] == "True" for condition in conditions)


def _client(admin: _Admin) -> httpx.Client:
    return httpx.Client(base_url=f"https://{admin.address}", verify=admin.context, timeout=60.0, trust_env=False)


def _with_account(name: str, admin: _Admin, pids: tuple[int, ...], ready: float) -> Target:
    """Make the account that the load comes from, and take a token for it."""
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": _TOKEN_SECONDS},
    }
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "bench"}}
    with _client(admin) as client:
        client.post(accounts, json=account).raise_for_status()
        client.post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", json=_BINDING).raise_for_status()
        answer = client.post(f"{accounts}/bench/token", json=request).raise_for_status().json()
    return Target(name, admin.address, admin.ca, answer["status"]["token"], pids, ready)


def environment() -> dict[str, str]:
    """The environment of this process, as a copy."""
    return dict(os.environ)
