"""The chart with two of everything on a bed, as a site installs it, and what an administrator and bad luck do to it."""

from __future__ import annotations

import base64
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fastness.attestation.values.from_images import MEASUREMENTS
from fastness.crypto.digests import sha256
from fastness.formats import json as canonical
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.runtime.clock import SystemClock
from fastness.sim.announce import announce_vendor
from fastness.sim.tee.images import default_image
from fastness.sim.tee.vendor import SimVendor
from tests.bed import Bed
from tests.bed.helm import Helm
from tests.bed.kubectl import Kubectl, pod
from tests.contract.worlds import https
from tests.e2e.bed.storm import BOOTED, BOOTS, ENOUGH, TICKET, TRUST
from tests.e2e.live import FASTNESS, environment, run
from tests.patience import eventually

ROOT = Path(__file__).resolve().parents[3]
ENTRY = "10.77.0.10"  # a node that stays: where a balancer of the site would stand
DOORS = {"enrol": 30800, "broker": 30880, "gate": 30623, "configserver": 30624}
ROLES = ("controllers", *DOORS, "webhook", "page")
LONG = 600.0


def values(image: str) -> dict[str, Any]:
    """What a site says that has two nodes and lets machines in by one address of its own."""
    doors: dict[str, dict[str, Any]] = {
        role: {"hosts": [ENTRY], "url": f"https://{ENTRY}:{port}", "service": {"type": "NodePort", "nodePort": port}}
        for role, port in DOORS.items()
    }
    doors["enrol"]["ratePerAddress"] = 200
    return {
        "image": {"repository": image.partition(":")[0]},
        "cluster": {"create": True, "mode": "Enforce", "simulated": True},
        "crds": {"with": ["machineconfig", "machines"]},
        "leaseSeconds": 15,
        **doors,
    }


@dataclass
class Site:
    """The installation, the machines, and what they were told so far."""

    bed: Bed
    helm: Helm
    directory: Path
    image: str
    kubectl: Kubectl = field(init=False)
    env: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self.kubectl = Kubectl(self.bed.kube.kubeconfig, NAMESPACE)
        self.env = environment(self.directory, KUBECONFIG=str(self.bed.kube.kubeconfig))

    # ------------------------------------------------------------ what an administrator does

    def install(self) -> None:
        """The chart with two of everything, ready."""
        facts = f"--from-literal=kubeconfig={{clusters: [{{cluster: {{server: '{self.bed.inner_url}'}}}}]}}"
        self.kubectl.ok("create", "configmap", "cluster-info", "-n", "kube-public", facts)
        self.set_chart("install", "--create-namespace")
        self.kubectl.wait("controllerconfig/machine-config-controller", "create")
        dns = '{"spec":{"clusterDNSIP":"10.96.0.10"}}'
        self.kubectl.ok("patch", "controllerconfig", "machine-config-controller", "--type=merge", "-p", dns)
        self.kubectl.wait("mcp/worker", "create")
        self.kubectl.wait("mcp/worker", "jsonpath={.spec.configuration.name}")

    def pull(self) -> None:
        """Have the image on both nodes before anybody waits for a pod."""
        admin, names = Kubectl(self.bed.kube.kubeconfig, "default"), ("bed-0", "bed-1")
        for node in names:
            admin.apply(pod(f"pull-{node}", node, ["/usr/bin/fastness", "version"], self.image))
        for node in names:
            admin.wait(f"pod/pull-{node}", "jsonpath={.status.phase}=Succeeded")
            admin.ok("delete", "pod", f"pull-{node}", "--wait=false")

    def set_chart(self, verb: str, *words: str) -> None:
        """Install or upgrade, and wait until every pod is ready."""
        path = self.directory / "values.yaml"
        path.write_text(json.dumps(values(self.image)))
        chart = str(ROOT / "deploy" / "chart")
        self.helm.ok(verb, "fastness", chart, "-f", str(path), "--wait", f"--timeout={LONG:.0f}s", *words)
        self.until_ready()

    def until_ready(self) -> None:
        """Every Deployment has all of its pods."""
        for role in ROLES:
            self.kubectl.ok("rollout", "status", f"deployment/fastness-{role}", f"--timeout={LONG:.0f}s")

    async def prepare_machines(self, count: int) -> None:
        """The vendor, the image, a ticket that is good for exactly so many machines, and what their image believes."""
        async with https(self.bed.kube.kubeconfig) as cluster:
            await announce_vendor(cluster, SimVendor(), SystemClock().now())
        manifest = canonical.canonical(default_image().manifest()).decode()
        self.kubectl.apply(
            {
                "apiVersion": "trusted-execution-clusters.io/v1alpha1", "kind": "ApprovedImage",
                "metadata": {"name": "storm", "namespace": NAMESPACE, "annotations": {MEASUREMENTS: manifest}},
                "spec": {"image": f"simulated.fastness.dev/machine@{sha256(manifest.encode())}"},
            }
        )  # fmt: skip
        self.kubectl.wait("approvedimage/storm", "condition=Committed")
        made = self.fastness("ticket", "create", "--pool", "worker", "--uses", str(count), "-o", "json")
        (self.directory / TICKET).write_text(json.loads(made)["ticket"])
        self.build_image()

    def build_image(self) -> None:
        """What an image of now believes: the authority of the doors, and the keys of configurations."""
        ca = json.loads(self.kubectl.ok("get", "secret", "doors-ca", "-o", "json"))["data"]["ca.crt"]
        keys = json.loads(self.kubectl.ok("get", "configmap", "config-public-keys", "-o", "json"))["data"]["jwks.json"]
        trust = {"ca": base64.b64decode(ca).decode(), "configKeys": json.loads(keys)["keys"]}
        (self.directory / TRUST).write_text(json.dumps(trust))

    def fastness(self, *words: str) -> str:
        """What a verb of ours prints; it must succeed."""
        done = run([FASTNESS, *words], self.env)
        assert done.code == 0, f"fastness {' '.join(words)}: {done.err}"
        return done.out

    # ------------------------------------------------------------ what machines were told

    def boots(self) -> list[dict[str, Any]]:
        """Every boot that ended."""
        path = self.directory / BOOTS
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def went_on(self, more: int = 3) -> None:
        """Machines boot: some more did since this was asked."""
        before = self.succeeded()
        eventually(lambda: self.succeeded() >= before + more, "another boot", LONG)

    def succeeded(self) -> int:
        """How many boots ended with a configuration."""
        return sum(boot["outcome"] == BOOTED for boot in self.boots())

    @contextmanager
    def storm(self, machines: int, changed: int, first: int) -> Iterator[None]:
        """Machines that boot until the block ends, and then once more each."""
        for name in (BOOTS, ENOUGH):
            (self.directory / name).unlink(missing_ok=True)
        with (self.directory / "storm.log").open("wb") as log:
            command = self.storm_command("--machines", str(machines), "--changed", str(changed), "--first", str(first))
            child = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log)
        try:
            yield
            (self.directory / ENOUGH).touch()
            assert child.wait(LONG) == 0, (self.directory / "storm.log").read_text()[-2000:]
        finally:
            if child.poll() is None:
                child.send_signal(signal.SIGKILL)
                child.wait()

    def storm_command(self, *words: str) -> list[str]:
        """How machines are started, in the network of the bed."""
        url = f"https://{ENTRY}:{DOORS['enrol']}"
        program = [sys.executable, "-m", "tests.e2e.bed.storm", str(self.directory), "--url", url]
        return [*self.bed.enter, *program, *words]

    # ------------------------------------------------------------ what happens to it

    def kill_pods(self) -> None:
        """One pod of each role, without a warning."""
        for role in ROLES:
            names = self.kubectl.ok(
                "get", "pods", "-l", f"app.kubernetes.io/component={role}", "-o", "jsonpath={.items[*].metadata.name}"
            ).split()
            self.kubectl.ok("delete", "pod", names[0], "--grace-period=0", "--force", "--wait=false")

    def drain_node(self) -> None:
        """A node is emptied for maintenance, and comes back."""
        self.kubectl.ok("drain", "bed-1", "--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout=170s")
        self.went_on()
        self.kubectl.ok("uncordon", "bed-1")

    def kill_kubelet(self) -> None:
        """The kubelet of a node dies, and is started again."""
        node = next(node for node in self.bed.nodes if node.index == 1)
        kubelet = node.programs["kubelet"]
        kubelet.child.kill()
        kubelet.child.wait()
        self.went_on()
        node.start_kubelet(self.bed.binaries, "bed-1")
        self.bed.until_ready("bed-1")

    def restart_etcd(self) -> None:
        """The store behind the API dies, and is started again."""
        self.bed.kube.kill_and_restart("etcd")
        with self.bed.kube.client() as admin:
            self.bed.until(lambda: admin.get("/readyz").is_success)

    def upgrade(self) -> None:
        """Every pod is replaced."""
        self.set_chart("upgrade", "--set", "logLevel=debug")
