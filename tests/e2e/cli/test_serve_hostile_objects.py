"""`serve --roles controllers` on a real API server that holds what nobody can read: it goes on, and says which object it is.

A real API server takes ten thousand levels wherever a schema keeps what it does not know. An object of 1,500 once ended the
controllers, and every restart of them. Its author needs the right to create KubeletConfigs and no other.
"""

from __future__ import annotations

import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.live import FASTNESS, environment, run
from tests.patience import PATIENCE
from tests.realkube import RealKube

KUBELET_CONFIGS = "/apis/machineconfiguration.openshift.io/v1/kubeletconfigs"
RBAC = "rbac.authorization.k8s.io"
LEVELS = 1500


def eventually(ask: Callable[[], Any], what: str) -> Any:
    deadline = time.monotonic() + 2 * PATIENCE
    while time.monotonic() < deadline:
        if found := ask():
            return found
        time.sleep(0.2)
    raise AssertionError(f"{what} did not happen in time")


@pytest.fixture(scope="module")
def admin(bare_kube: RealKube, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """The administrator of a cluster with our definitions, in which alice may create KubeletConfigs and nothing else."""
    env = environment(tmp_path_factory.mktemp("home"), KUBECONFIG=str(bare_kube.kubeconfig))
    assert run(["kubectl", "apply", "--server-side", "-f", "-"], env, stdin=run([FASTNESS, "crds"], env).out).code == 0
    run(["kubectl", "wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"], env)
    rule = {
        "apiGroups": ["machineconfiguration.openshift.io"], "resources": ["kubeletconfigs"], "verbs": ["create"],
    }  # fmt: skip
    role = {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": "tuner"}, "rules": [rule]}
    binding = {
        "apiVersion": f"{RBAC}/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "tuner"},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "tuner"},
        "subjects": [{"apiGroup": RBAC, "kind": "User", "name": "alice"}],
    }  # fmt: skip
    with bare_kube.client() as client:
        client.post(f"/apis/{RBAC}/v1/clusterroles", json=role).raise_for_status()
        client.post(f"/apis/{RBAC}/v1/clusterrolebindings", json=binding).raise_for_status()
        yield client


class Served:
    """A process of `fastness serve --roles controllers`."""

    def __init__(self, child: subprocess.Popen[str], url: str) -> None:
        self.child = child
        self._ops = httpx.Client(base_url=url, trust_env=False, timeout=PATIENCE)

    def close(self) -> None:
        self._ops.close()

    def ready(self) -> httpx.Response:
        return self._ops.get("/readyz?verbose")

    def aside(self, plural: str) -> float:
        found = re.search(rf'fastness_informer_set_aside{{resource="{plural}"}} (\S+)', self._ops.get("/metrics").text)
        return float(found[1]) if found else 0.0

    def works(self, admin: httpx.Client, name: str) -> None:
        """A KubeletConfig that is written properly gets its answer."""
        admin.delete(f"{KUBELET_CONFIGS}/{name}")
        eventually(lambda: admin.get(f"{KUBELET_CONFIGS}/{name}").status_code == 404, "the end of an older one")
        admin.post(KUBELET_CONFIGS, json=_kubelet_config(name, {"maxPods": 100})).raise_for_status()
        eventually(lambda: admin.get(f"{KUBELET_CONFIGS}/{name}").json().get("status"), "an answer of the controllers")
        assert self.child.poll() is None


@contextmanager
def serving(kube: RealKube, home: Path) -> Iterator[Served]:
    command = [
        str(FASTNESS), "serve", "--roles", "controllers", "--kubeconfig", str(kube.kubeconfig), "--metrics-port", "0",
        "--log-level", "error", "--lease-seconds", "3",
    ]  # fmt: skip
    child = subprocess.Popen(command, env=environment(home), stderr=subprocess.PIPE, text=True)
    said: list[str] = []
    assert child.stderr is not None
    reader = threading.Thread(target=lambda lines: said.extend(lines), args=(child.stderr,), daemon=True)
    first = child.stderr.readline()
    reader.start()
    found = re.search(r"http://\S+", first)
    assert found, first
    served = Served(child, found[0])
    try:
        yield served
        assert child.poll() is None, "".join(said)[-3000:]
        child.send_signal(signal.SIGTERM)
        assert child.wait(timeout=PATIENCE) == 0, "".join(said)[-3000:]
    finally:
        if child.poll() is None:
            child.kill()
            child.wait()
        served.close()
        reader.join()
        child.stderr.close()


def _kubelet_config(name: str, content: Any) -> dict[str, Any]:
    return {
        "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "KubeletConfig", "metadata": {"name": name},
        "spec": {"kubeletConfig": content},
    }  # fmt: skip


def _deep_body(name: str) -> str:
    inner = '{"a":' * LEVELS + "1" + "}" * LEVELS
    return (
        f'{{"apiVersion":"machineconfiguration.openshift.io/v1","kind":"KubeletConfig","metadata":{{"name":"{name}"}},'
        f'"spec":{{"kubeletConfig":{inner}}}}}'
    )


def test_an_object_of_1500_levels_by_somebody_who_may_create_nothing_else(
    bare_kube: RealKube, admin: httpx.Client, tmp_path: Path
) -> None:
    with serving(bare_kube, tmp_path) as served:
        eventually(lambda: served.ready().is_success, "readiness")
        admin.delete(f"{KUBELET_CONFIGS}/deep")
        with bare_kube.client("alice") as alice:
            answer = alice.post(
                KUBELET_CONFIGS, content=_deep_body("deep"), headers={"content-type": "application/json"}
            )
            assert answer.status_code == 201, answer.text[:300]
        eventually(lambda: served.aside("kubeletconfigs") == 1, "the object was not set aside")
        served.works(admin, "good-1")
        ready = served.ready()
        assert (ready.status_code, "1 of kubeletconfigs" in ready.text) == (200, True), ready.text
    with serving(bare_kube, tmp_path) as served:  # its first list has the object in it
        eventually(lambda: served.aside("kubeletconfigs") == 1, "the object was not set aside after a restart")
        served.works(admin, "good-2")
        doctor = run([FASTNESS, "doctor", "--kubeconfig", bare_kube.kubeconfig], environment(tmp_path))
        assert "set aside: kubeletconfigs deep" in doctor.out, doctor.out + doctor.err
        admin.delete(f"{KUBELET_CONFIGS}/deep").raise_for_status()
        eventually(lambda: served.aside("kubeletconfigs") == 0, "a deleted object stayed set aside")
