"""`fastness serve` against a real kube-apiserver: what it needs, who leads, and who takes over."""

from __future__ import annotations

import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from fastness.kinds.crd.sets import definitions
from tests.e2e.live import FASTNESS, environment, run
from tests.patience import PATIENCE, eventually
from tests.realkube import RealKube

LEASE_SECONDS = (
    "10"  # a shorter one is lost while a loaded machine takes in its first lists, and all of them begin anew
)
LEASE = "/apis/coordination.k8s.io/v1/namespaces/fastness-system/leases/fastness-controllers"
SPENT = "/apis/fastness.dev/v1alpha1/spentchallenges"


class Replica:
    """One `fastness serve`."""

    def __init__(self, kube: RealKube, home: Path, name: str, *options: str) -> None:
        self.name = name
        self.process = subprocess.Popen(
            [
                str(FASTNESS), "serve", "--kubeconfig", str(kube.kubeconfig), "--identity", name, "--metrics-port", "0",
                "--lease-seconds", LEASE_SECONDS, "--log-level", "warning", *options,
            ],
            env=environment(home), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self.process.stderr is not None
        alarm = threading.Timer(PATIENCE, self.process.kill)
        alarm.start()
        self.announced = self.process.stderr.readline()
        alarm.cancel()

    def end(self, number: int) -> int:
        """End it by a signal; returns its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        self.process.communicate(timeout=PATIENCE)
        return self.process.returncode


@pytest.fixture(scope="module")
def admin(bare_kube: RealKube) -> Iterator[httpx.Client]:
    with bare_kube.client() as client:
        yield client


def holder(admin: httpx.Client) -> str:
    answer = admin.get(LEASE)
    return str(answer.json()["spec"].get("holderIdentity") or "") if answer.is_success else ""


def spent(admin: httpx.Client, name: str) -> None:
    body = {
        "apiVersion": "fastness.dev/v1alpha1", "kind": "SpentChallenge", "metadata": {"name": name},
        "spec": {"expires": "2026-01-01T00:00:00Z"},
    }  # fmt: skip
    admin.post(SPENT, json=body).raise_for_status()


def swept(admin: httpx.Client, name: str) -> bool:
    return admin.get(f"{SPENT}/{name}").status_code == 404


def test_missing_definitions_are_counted_named_and_how_to_install_them_told(
    bare_kube: RealKube, tmp_path: Path
) -> None:
    command: list[str | Path] = [FASTNESS, "serve", "--kubeconfig", bare_kube.kubeconfig, "--metrics-port", "0"]
    outcome = run(command, environment(tmp_path))
    assert outcome.code == 3
    assert f"the cluster lacks {len(definitions())} definitions: appraisalpolicies.fastness.dev, " in outcome.err
    assert "fastness crds | kubectl apply --server-side -f -" in outcome.err


def test_a_cluster_that_does_not_answer_is_said_so(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: x\nclusters: [{name: x, cluster: {server: 'https://127.0.0.1:1'}}]\n"
        "contexts: [{name: x, context: {cluster: x, user: x}}]\nusers: [{name: x, user: {token: t}}]\n"
    )
    config.chmod(0o600)
    outcome = run([FASTNESS, "serve", "--kubeconfig", config, "--metrics-port", "0"], environment(tmp_path))
    assert outcome.code in (3, 4)
    assert "127.0.0.1:1" in outcome.err
    assert "Traceback" not in outcome.err


def test_one_of_two_leads_and_the_other_takes_over_and_works(
    bare_kube: RealKube, admin: httpx.Client, tmp_path: Path
) -> None:
    crds = run([FASTNESS, "crds", "--with", "all"], environment(tmp_path)).out
    env = environment(tmp_path, KUBECONFIG=str(bare_kube.kubeconfig))
    applied = run(["kubectl", "apply", "--server-side", "-f", "-"], env, stdin=crds)
    assert applied.code == 0, applied.err
    run(["kubectl", "wait", "--for=condition=Established", "crd", "--all", "--timeout=30s"], env)
    first = Replica(bare_kube, tmp_path, "first")
    try:
        assert first.announced.startswith("serving controllers as first; health and metrics on http://127.0.0.1:")
        eventually(lambda: holder(admin) == "first", "the lease of the first")
        second = Replica(bare_kube, tmp_path, "second")
        try:
            spent(admin, "one")
            eventually(lambda: swept(admin, "one"), "the work of the first")
            assert holder(admin) == "first"
            first.end(signal.SIGKILL)
            spent(admin, "two")
            eventually(lambda: holder(admin) == "second", "the lease of the second")
            eventually(lambda: swept(admin, "two"), "the work of the second")
            assert second.end(signal.SIGTERM) == 0
            assert holder(admin) == ""
        finally:
            second.end(signal.SIGKILL)
    finally:
        first.end(signal.SIGKILL)


def test_health_and_metrics_are_served_beside_it_where_it_is_told(
    bare_kube: RealKube, admin: httpx.Client, tmp_path: Path
) -> None:
    # Another address of loopback than the default: a pod's is another one as well, and its kubelet asks there.
    replica = Replica(bare_kube, tmp_path, "third", "--metrics-host", "127.0.0.2")
    try:
        url = replica.announced.split()[-1]
        assert url.startswith("http://127.0.0.2:")
        with pytest.raises(httpx.ConnectError):
            httpx.get(url.replace("127.0.0.2", "127.0.0.1"), trust_env=False)
        with httpx.Client(base_url=url, trust_env=False) as plain:
            eventually(lambda: plain.get("/readyz").text == "ok" and holder(admin) == "third", "a third that is ready")
            assert 'fastness_leader{lease="fastness-controllers"} 1.0' in plain.get("/metrics").text
            refused = plain.post("/metrics")
            assert (refused.status_code, refused.headers["allow"]) == (405, "GET, HEAD")
    finally:
        assert replica.end(signal.SIGINT) == 0
