"""Image mode as an administrator turns it on, stage by stage: kubectl, a real registry and builder, and the real agent on hosts whose
bootc and rpm-ostree are stood in for."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fastness.kinds.machineconfiguration import names
from tests.components import require_program, require_root
from tests.e2e.acceptance.cluster import Acceptance, a_file, machine_config
from tests.e2e.builds.registry_images import pulled, pushed_busybox, pushed_other, pushed_with
from tests.e2e.live import Live
from tests.e2e.machineconfig.local_registry import LocalRegistry, running_registry
from tests.patience import eventually
from tests.standins.os_host import OsHost

pytestmark = pytest.mark.processes
NODE = "host-0"
GATES = {"apiVersion": "config.openshift.io/v1", "kind": "FeatureGate", "metadata": {"name": "cluster"}}


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalRegistry]:
    """A registry on loopback that anybody may read and write."""
    program = require_program(Path("/usr/bin/docker-registry"), "docker-registry")
    require_program(Path("/usr/bin/buildah"), "buildah")
    require_root("the sandbox of builds, and a root of its own for the agent")
    with running_registry(program, tmp_path_factory.mktemp("registry")) as started:
        yield started


class Cluster(Acceptance):
    """A cluster whose one worker is a host with both programs."""

    def __init__(self, live: Live, registry: LocalRegistry) -> None:
        super().__init__(live, 1)
        self.registry = registry

    def prepare(self, base: str) -> None:
        """What every administrator has before: a registry that is known, credentials for it, a base image."""
        self.live.kubectl("create", "namespace", names.OPERATOR_NAMESPACE)
        secret = base64.b64encode(json.dumps({"auths": {}}).encode()).decode()
        self.apply({
            "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/dockerconfigjson",
            "metadata": {"name": "push", "namespace": names.OPERATOR_NAMESPACE}, "data": {".dockerconfigjson": secret},
        })  # fmt: skip
        insecure = {"registrySources": {"insecureRegistries": [self.registry.address]}}
        self.apply({
            "apiVersion": "config.openshift.io/v1", "kind": "Image", "metadata": {"name": "cluster"}, "spec": insecure,
        })  # fmt: skip
        self.apply(machine_config("10-base", osImageURL=base))

    def join(self, name: str) -> None:
        """The Node, as a kubelet registers it."""
        eventually(lambda: self.rendered(), "a rendered config")
        notes = {names.DESIRED_CONFIG: self.rendered()}
        meta = {"name": name, "labels": {names.WORKER_LABEL: ""}, "annotations": notes}
        self.kubectl("create", "-f", "-", stdin={"apiVersion": "v1", "kind": "Node", "metadata": meta})

    def gates(self, *enabled: str) -> None:
        """Turn gates of the cluster on, and all others off."""
        spec = {"featureSet": "CustomNoUpgrade", "customNoUpgrade": {"enabled": list(enabled)}}
        self.apply({**GATES, "spec": spec})

    def setting(self, **notes: str | None) -> None:
        """Annotations of MachineConfiguration cluster; None takes one away."""
        patch = json.dumps({"metadata": {"annotations": notes}})
        self.kubectl("patch", "machineconfiguration", "cluster", "--type", "merge", "-p", patch)

    def notes(self, name: str = NODE) -> dict[str, str]:
        return dict(self.get("node", name).get("metadata", {}).get("annotations", {}))

    def driver(self, name: str = NODE) -> str:
        return self.notes(name).get(names.OS_DRIVER, "")

    def settled(self, host: OsHost, image: str) -> bool:
        """Whether the host runs an image, and node and pool say so."""
        return (
            host.booted() == image and self.updated() and self.notes(host.node).get(names.BOOTED_IMAGE) == image
            and self.notes(host.node).get(names.STATE) == "Done"
        )  # fmt: skip

    def image(self) -> str:
        """The image of the pool's MachineOSConfig; empty while there is none."""
        return str(self.get("machineosconfig", "worker").get("status", {}).get("currentImagePullSpec", ""))

    def doctor(self) -> dict[str, Any]:
        """What doctor finds about drivers."""
        findings = self.fastness("doctor", "--kubeconfig", str(self.live.kubeconfig), "-o", "json").json["findings"]
        return next(dict(finding) for finding in findings if finding["name"] == "os drivers")


@pytest.fixture(scope="module")
def cluster(registry: LocalRegistry, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster without attestation, which has a base image."""
    with Live.start(tmp_path_factory.mktemp("stages"), "--profile", "containers", "--machines", "0") as live:
        made = Cluster(live, registry)
        made.prepare(pushed_busybox(registry))
        yield made


@pytest.mark.long("seven boots of a real agent")
def test_one_host_goes_through_every_stage_in_place_and_back(cluster: Cluster, registry: LocalRegistry) -> None:
    base, other = pushed_busybox(registry), pushed_other(registry)
    cluster.join(NODE)
    home = cluster.live.home
    with OsHost(home / NODE, NODE, cluster.live.kubeconfig, base, outside=home) as host:
        try:
            eventually(lambda: cluster.settled(host, base), "the first config")
            print(cluster.driver(), host.boots)
        finally:
            print(host.log()[-3000:])
            print(host.engine.calls()[-20:])
            print(json.dumps(cluster.notes(), indent=1))
