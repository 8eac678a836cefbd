"""Operators and support bundles on a real kube-apiserver: the same loops, the same verbs, the real garbage collector."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from fastness.kube.client.client import connect
from fastness.kube.client.config import Surroundings, find
from fastness.kube.controllers import Runner
from fastness.kube.informers import Informers
from fastness.runtime.clock import SystemClock, SystemEntropy
from fastness.workloads.loops.controllers import operator_loops
from tests.e2e.live import FASTNESS, KUBECTL, Outcome, environment, run
from tests.e2e.machineconfig.test_on_real_kubernetes import install_definitions
from tests.manual.table import HERE, rows
from tests.patience import PATIENCE
from tests.realkube.cluster import RealKube

CANARY = "CanaryRk7Wq2ZtX9vLmP4nJ6sB"
NS = "openshift-sandboxed-containers-operator"
SUCCEEDED = "sandboxed-containers-operator.v1.12.0"
CRD = "kataconfigs.kataconfiguration.openshift.io"


class Session:
    """kubectl and fastness as an administrator of a real cluster."""

    def __init__(self, kube: RealKube, directory: Path) -> None:
        self._env = environment(directory, KUBECONFIG=str(kube.kubeconfig))
        self._directory = directory

    def kubectl(self, *words: str) -> Outcome:
        return run([KUBECTL, *words], self._env, cwd=HERE / "manifests")

    def fastness(self, *words: str) -> Outcome:
        return run([FASTNESS, *words], self._env, cwd=self._directory)

    def until(self, text: str, *words: str) -> Outcome:
        """Ask until the answer has a word in it."""
        end = time.monotonic() + PATIENCE
        while True:
            outcome = self.kubectl(*words)
            if text in outcome.out + outcome.err or time.monotonic() > end:
                return outcome
            time.sleep(0.2)


def _install(session: Session) -> None:
    for name in ("osc-namespace", "osc-operatorgroup", "osc-subscription"):
        made = session.kubectl("apply", "-f", f"{name}.yaml")
        assert made.code == 0, made.err
    outcome = session.until("Succeeded", "get", "csv", "-n", NS)
    expected = next(row.command.ours for row in rows() if row.n == 6)
    assert outcome.rows == [line.split() for line in expected]


def _gather(session: Session, directory: Path) -> None:
    session.kubectl("create", "secret", "generic", "s", "-n", NS, f"--from-literal=a={CANARY}")
    session.kubectl("create", "configmap", "c", "-n", NS, f"--from-literal=app.conf=password: {CANARY}")
    made = session.fastness("support", "bundle", "--dest-dir", "bundle", "--run-namespace", NS)
    assert made.code == 0, made.err
    files = {
        path.relative_to(directory / "bundle"): path.read_text()
        for path in (directory / "bundle").rglob("*")
        if path.is_file()
    }
    assert CANARY not in "\n".join(files.values())
    assert SUCCEEDED in files[Path("sandboxed-containers/clusterserviceversion_description")]
    assert "<redacted>" in files[Path(f"namespaces/{NS}/core/configmaps.yaml")]


def _uninstall(session: Session) -> None:
    plan = session.kubectl("get", "installplans", "-n", NS, "-o", "name").out.strip()
    assert plan.startswith("installplan")
    assert session.kubectl("delete", "subscription", "sandboxed-containers-operator", "-n", NS).code == 0
    assert "NotFound" in session.until("NotFound", "get", plan, "-n", NS).err
    assert SUCCEEDED in session.kubectl("get", "csv", "-n", NS).out
    assert session.kubectl("delete", "namespace", NS).code == 0
    gone = session.kubectl("delete", "crd", CRD)
    assert gone.out.startswith(f'customresourcedefinition.apiextensions.k8s.io "{CRD}" deleted'), gone.err
    absent = session.kubectl("get", "crd", CRD)
    assert (absent.code, absent.err.strip()) == (
        1, f'Error from server (NotFound): customresourcedefinitions.apiextensions.k8s.io "{CRD}" not found',
    )  # fmt: skip


async def test_an_operator_is_installed_looked_at_and_removed_as_the_manual_says(
    bare_kube: RealKube, tmp_path: Path
) -> None:
    await asyncio.to_thread(install_definitions, bare_kube)
    session, clock, entropy = Session(bare_kube, tmp_path), SystemClock(), SystemEntropy()
    async with (
        connect(find(Surroundings({}, tmp_path), kubeconfig=bare_kube.kubeconfig)) as cluster,
        Informers(cluster, clock=clock, entropy=entropy) as informers,
        asyncio.TaskGroup() as tasks,
    ):
        runner = Runner(operator_loops(cluster, informers, clock), informers, clock, entropy)
        work = tasks.create_task(runner.run())
        await asyncio.to_thread(_install, session)
        await asyncio.to_thread(_gather, session, tmp_path)
        await asyncio.to_thread(_uninstall, session)
        work.cancel()
