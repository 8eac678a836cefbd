"""Image mode as an administrator turns it on, stage by stage: kubectl, a real registry and builder, and the real agent.

Its hosts have programs that stand in for bootc and rpm-ostree; they pull from the registry and boot what they staged.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fastness.kinds.machineconfiguration import names
from tests.components import require_program, require_root
from tests.e2e.acceptance.cluster import GROUP, Acceptance, a_file, machine_config
from tests.e2e.builds.registry_images import pulled, pushed_busybox, pushed_other
from tests.e2e.live import Live
from tests.e2e.machineconfig.local_registry import LocalRegistry, running_registry
from tests.patience import eventually
from tests.standins.os_host import OsHost

pytestmark = pytest.mark.processes
CHRONY, FOREIGN, USR = "/etc/chrony.conf", "/etc/sriov/config.json", "/usr/lib/mine"
BOOTC, BUILD = "BootcNodeManagement", "OnClusterBuild"
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

    def notes(self, name: str) -> dict[str, str]:
        return dict(self.get("node", name).get("metadata", {}).get("annotations", {}))

    def says(self, kind: str) -> str:
        """The message of a condition of the pool, while it is true."""
        state = self.condition("mcp", "worker", kind)
        return f"{state['reason']}: {state['message']}" if state.get("status") == "True" else ""

    def driver(self, name: str) -> str:
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


@pytest.fixture
def cluster(registry: LocalRegistry, tmp_path: Path) -> Iterator[Cluster]:
    """A cluster without attestation, which has a base image."""
    with Live.start(tmp_path, "--profile", "containers", "--machines", "0") as live:
        made = Cluster(live, registry)
        made.prepare(pushed_busybox(registry))
        yield made


@pytest.fixture
def host(cluster: Cluster, registry: LocalRegistry) -> Iterator[OsHost]:
    """A host with both programs that has joined."""
    with running_host(cluster, registry, "host-0") as started:
        eventually(lambda: cluster.settled(started, pushed_busybox(registry)), "the first config")
        yield started


def running_host(cluster: Cluster, registry: LocalRegistry, name: str) -> OsHost:
    cluster.join(name)
    home = cluster.live.home
    return OsHost(home / name, name, cluster.live.kubeconfig, pushed_busybox(registry), outside=home)


@pytest.mark.long("ten boots of a real agent and two builds")
@pytest.mark.row("003-10")
@pytest.mark.row("003-15")
@pytest.mark.row("003-16")
@pytest.mark.row("003-17")
@pytest.mark.row("003-22")
@pytest.mark.row("003-36")
@pytest.mark.row("003-37")
@pytest.mark.row("003-38")
@pytest.mark.row("003-39")
@pytest.mark.row("003-67")
@pytest.mark.row("003-86")
@pytest.mark.row("003-87")
@pytest.mark.row("003-88")
@pytest.mark.row("003-89")
@pytest.mark.row("003-90")
@pytest.mark.row("003-91")
@pytest.mark.row("003-94")
@pytest.mark.row("003-95")
def test_hosts_go_from_direct_and_rpm_ostree_to_layered_and_bootc_in_place_and_back(
    cluster: Cluster, host: OsHost, registry: LocalRegistry
) -> None:
    base = pushed_busybox(registry)
    foreign = host.engine.root / FOREIGN.lstrip("/")
    foreign.parent.mkdir()
    foreign.write_text("of another operator")
    direct_by_rpm_ostree(cluster, host, pushed_other(registry))
    direct_by_bootc(cluster, host, base)
    other = running_host(cluster, registry, "host-1")
    other.engine.change(booted={**other.engine.read()["booted"], "packages": ["strace"]})
    with other:
        eventually(lambda: cluster.settled(other, base), "the first config of a second host")
        layered_by_default(cluster, host, other)
        beside_a_host_with_packages(cluster, host, other)
        bootc_alone(cluster, host, other)
        stock_again(cluster, host, other, base)
    cluster.kubectl("delete", "node", other.node)
    release_names_an_image(cluster, host)
    assert host.file(FOREIGN) == "of another operator"


def direct_by_rpm_ostree(cluster: Cluster, host: OsHost, image: str) -> None:
    """Stage 1: image, argument and file of one config in one reboot, all or nothing."""
    assert cluster.driver(host.node).startswith("rpm-ostree: ")
    assert "bootc is not preferred" in cluster.driver(host.node)
    finding = cluster.doctor()
    assert "host-0 (pool worker: rpm-ostree knows images here" in finding["found"]
    assert "BootcNodeManagement" in finding["fix"]
    boots = host.boots
    host.engine.fault("rpm-ostree", "--append=nosmt", times=3, text="error: No space left on device")
    mine = a_file("/etc/mine", "mine")
    cluster.apply(machine_config("50-all", config=mine, osImageURL=image, kernelArguments=["nosmt"]))
    eventually(lambda: "No space left on device" in cluster.says("NodeDegraded"), "a node that says why")
    eventually(lambda: host.engine.read()["staged"] is None and host.file("/etc/mine") is None, "nothing of it")
    assert host.boots == boots
    eventually(lambda: cluster.settled(host, image), "the image")
    assert (host.boots, host.file("/etc/mine")) == (boots + 1, "mine")
    assert "nosmt" in host.engine.cmdline().split()
    assert host.calls("rpm-ostree rebase")
    assert not host.calls("bootc switch")


def direct_by_bootc(cluster: Cluster, host: OsHost, base: str) -> None:
    """The gate alone: another program from the next change on, and no reboot for that."""
    boots = host.boots
    cluster.gates(BOOTC)
    eventually(
        lambda: cluster.driver(host.node) == "bootc: bootc booted this machine and is preferred", "another driver"
    )
    assert host.boots == boots
    assert "no node says that it needs rpm-ostree" in cluster.doctor()["found"]
    rebased, drained = len(host.calls("rpm-ostree rebase")), cluster.notes(host.node)[f"{GROUP}/lastAppliedDrain"]
    with single_node(cluster):
        cluster.kubectl("delete", "mc", "50-all")
        eventually(lambda: cluster.settled(host, base), "the base by bootc")
    assert any(event["message"] == "a single node is not drained" for event in cluster.events("Drain"))
    assert cluster.notes(host.node)[f"{GROUP}/lastAppliedDrain"] == drained
    assert not cluster.get("node", host.node)["spec"].get("unschedulable")
    assert (host.boots, host.file("/etc/mine")) == (boots + 1, None)
    assert "nosmt" not in host.engine.cmdline().split(), "what rpm-ostree set goes as well"
    assert f"bootc switch {base}" in host.calls("bootc switch")
    assert len(host.calls("rpm-ostree rebase")) == rebased


@contextmanager
def single_node(cluster: Cluster) -> Iterator[None]:
    """A cluster whose control plane is one node, as its installer says."""

    def topology(name: str) -> None:
        status = json.dumps({"status": {"controlPlaneTopology": name}})
        cluster.kubectl(
            "patch", "infrastructure", "cluster", "--subresource", "status", "--type", "merge", "-p", status
        )

    topology("SingleReplica")
    yield
    topology("HighlyAvailable")


def layered_by_default(cluster: Cluster, host: OsHost, other: OsHost) -> None:
    """Both gates: no place, no build; with a place, a config of a pool that nobody described becomes an image."""
    boots = host.boots
    cluster.gates(BOOTC, BUILD)
    eventually(lambda: cluster.says("ImageBuildDegraded").startswith("PushPlaceMissing"), "what is missing")
    assert f"{names.IMAGE_PUSH_SPEC} and {names.IMAGE_PUSH_SECRET}" in cluster.says("ImageBuildDegraded")
    assert cluster.get("machineosconfig", "worker") == {}
    cluster.apply(machine_config("60-chrony", config=a_file(CHRONY, "server%20a")))
    cluster.setting(**{names.IMAGE_PUSH_SPEC: f"{cluster.registry.address}/os", names.IMAGE_PUSH_SECRET: "push"})
    one_by_one(cluster, (host, other), but="")
    assert cluster.image().startswith(f"{cluster.registry.address}/os/worker@sha256:")
    assert pulled(cluster.registry, cluster.image())[0][CHRONY.lstrip("/")] == b"server a"
    assert host.calls(f"bootc switch {cluster.image()}")
    assert cluster.says("ImageBuildDegraded") == ""
    assert host.file(FOREIGN) == "of another operator"
    assert host.boots <= boots + 2, "one for the file that came first, one for the image"


def beside_a_host_with_packages(cluster: Cluster, host: OsHost, other: OsHost) -> None:
    """A host with packages of its own: rpm-ostree takes it to the same image with them; stage 3 is refused with their names."""
    cluster.setting(**{names.IMAGE_MODE_STAGE: "2"})
    cluster.gates(BOOTC)
    assert other.booted() == cluster.image()
    assert other.engine.read()["booted"]["packages"] == ["strace"]
    assert other.calls("rpm-ostree rebase")
    assert not other.calls("bootc switch")
    assert "this machine has layered packages (strace), which bootc refuses" in cluster.driver(other.node)
    assert "host-1 (pool worker: this machine has layered packages (strace)" in cluster.doctor()["found"]
    note = f"{names.IMAGE_MODE_STAGE}=3"
    refused = cluster.live.kubectl("annotate", "--overwrite", "machineconfiguration", "cluster", note)
    assert refused.code != 0
    assert (
        "stage 3 has bootc alone, and nodes need rpm-ostree: host-1 (this machine has layered packages (strace)"
        in refused.err
    )
    assert cluster.settled(host, cluster.image())


def bootc_alone(cluster: Cluster, host: OsHost, other: OsHost) -> None:
    """Stage 3, when the packages are gone: both hosts change over in place, one after the other."""
    other.engine.change(booted={**other.engine.read()["booted"], "packages": []})
    other.power_cycle()
    eventually(lambda: cluster.driver(other.node).startswith("bootc: "), "a host that bootc can deploy")
    cluster.setting(**{names.IMAGE_MODE_STAGE: "3"})
    cluster.gates()
    eventually(lambda: cluster.notes(other.node)[names.OS_DRIVER_RULE] == "bootc-alone", "the rule")
    first = cluster.image()
    cluster.apply(machine_config("70-usr", config=a_file(USR, "mine")))
    one_by_one(cluster, (host, other), but=first)
    for each in (host, other):
        assert each.calls(f"bootc switch {cluster.image()}")
        assert each.file(CHRONY) == "server a"


def one_by_one(cluster: Cluster, hosts: tuple[OsHost, ...], but: str) -> None:
    """Until all hosts run the image of the pool, another one than before; never two of them at work at once."""
    together = 0

    def everybody() -> bool:
        nonlocal together
        working = [cluster.notes(each.node).get(names.STATE) != "Done" for each in hosts]
        together = max(together, sum(working))
        image = cluster.image()
        return image not in ("", but) and all(cluster.settled(each, image) for each in hosts)

    eventually(everybody, "the image of the pool on all hosts", 180)
    assert together <= 1, "one by one"


def stock_again(cluster: Cluster, host: OsHost, other: OsHost, base: str) -> None:
    """Leaving is refused while nodes would be stranded, says what to do, and brings everybody back then."""
    refused = cluster.live.kubectl("delete", "machineosconfig", "worker")
    assert refused.code != 0
    assert f"{USR} can be there in an image alone (host-0, host-1)" in refused.err
    assert "take this out of the MachineConfigs of the pool first" in refused.err
    cluster.setting(**{names.IMAGE_MODE_STAGE: None})
    eventually(
        lambda: any("keeps its image although" in event["message"] for event in cluster.events("ImageByDefault")),
        "why the pool stays",
    )
    assert cluster.get("machineosconfig", "worker")
    cluster.kubectl("delete", "mc", "70-usr")
    eventually(lambda: all(cluster.settled(each, base) for each in (host, other)), "the stock image", 180)
    assert cluster.get("machineosconfig", "worker") == {}
    eventually(lambda: cluster.get("machineosbuilds")["items"] == [], "no builds")
    for each in (host, other):
        assert each.file(CHRONY) == "server a", "files of the configs are there"


def release_names_an_image(cluster: Cluster, host: OsHost) -> None:
    """The release of the cluster has another operating system: nobody has to name it anywhere."""
    labels = {"io.openshift.os.streamclass": "rhel-10"}
    system = cluster.registry.push("release/os", "1", "new", labels={**labels, "containers.bootc": "1"})
    extensions = cluster.registry.push(
        "release/more", "1", "x", labels={**labels, "io.openshift.os.extensions": "true"}
    )
    images = {"rhel-coreos-10": f"release/os@{system}", "rhel-coreos-10-extensions": f"release/more@{extensions}"}
    tags = [{"name": tag, "from": {"name": f"{cluster.registry.address}/{path}"}} for tag, path in images.items()]
    release = cluster.registry.push(
        "release/all", "1", json.dumps({"spec": {"tags": tags}}), "release-manifests/image-references"
    )
    cluster.kubectl("delete", "mc", "10-base")
    version = {"apiVersion": "config.openshift.io/v1", "kind": "ClusterVersion", "metadata": {"name": "version"}}
    cluster.apply({**version, "spec": {"clusterID": "00000000-0000-0000-0000-000000000000"}})
    desired = {"version": "5.0.0", "image": f"{cluster.registry.address}/release/all@{release}"}
    history = [{"state": "Completed", "version": "5.0.0", "image": desired["image"], "verified": False}]
    status = json.dumps({"status": {"desired": desired, "history": history}})
    cluster.kubectl("patch", "clusterversion", "version", "--subresource", "status", "--type", "merge", "-p", status)
    eventually(lambda: cluster.settled(host, f"{cluster.registry.address}/release/os@{system}"), "the release's image")
