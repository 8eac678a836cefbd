"""A real kube-apiserver asks the webhook: refusals, warnings, and what happens when nobody answers."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio.to_thread
import httpx
import pytest
from click.testing import CliRunner

from fastness.admission.door.server import webhook_server
from fastness.app.parts import LacksCluster
from fastness.app.replica import make_namespace
from fastness.attestation.loops.confidential import KEY, LOOK_SECONDS, Confidential
from fastness.attestation.loops.door_certificates import issuing
from fastness.attestation.machine.chip import BARRED
from fastness.cli.errors import Exit
from fastness.cli.main import cli
from fastness.enrolment.loops.machines import Machines
from fastness.formats import json
from fastness.keys.home import GOING, GONE, Home
from fastness.kinds.crd import manifests
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER, CONFIRM_LOWER
from fastness.kinds.fastness_dev.distrust import DISTRUST
from fastness.kinds.kind import Resource
from fastness.kinds.objects import ObjectName, condition
from fastness.kube.confirmation import confirmation
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster
from fastness.record.entry import RecordEntry
from fastness.record.live.reader import open_record
from fastness.record.live.record import ClusterRecord
from fastness.record.live.tiles import FileTiles
from fastness.record.loops.sequencer import KEY as SEQUENCE
from fastness.record.loops.sequencer import PACE_SECONDS, Sequencer
from fastness.runtime.clock import SystemClock, SystemEntropy
from fastness.workloads.admission.workloads import ENFORCEMENT
from tests.component.admission.disk_settings import guarded_disks
from tests.contract.worlds import https, served
from tests.patience import PATIENCE
from tests.realkube import RealKube
from tests.unit.workloads.admission.test_workloads import OPEN, RESTRICTIVE, packed, pod

Object = dict[str, Any]
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@pytest.fixture(scope="module")
def kube(real_kube_binaries: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealKube]:
    """A server of its own: the configuration covers the whole cluster."""
    with RealKube.start(tmp_path_factory.mktemp("webhook"), real_kube_binaries, unsafe_no_fsync=True) as server:
        definitions = manifests()
        with server.client() as admin:
            for manifest in definitions:
                assert admin.post(DEFINITIONS, json=manifest).status_code == 201
            for manifest in definitions:
                for _ in range(600):
                    if served(admin, f"{DEFINITIONS}/{manifest['metadata']['name']}"):
                        break
            for name, labels in (
                ("fastness-system", {}),
                ("safe", {ENFORCEMENT: "deny"}),
                ("openshift-nfd", {}),
                ("soft", {}),
            ):
                made = {"metadata": {"name": name, "labels": labels}}
                assert admin.post("/api/v1/namespaces", json=made).status_code == 201
            for name, handler in (("kata-cc", "kata-snp"), ("kata", "kata")):
                runtime = {"metadata": {"name": name}, "handler": handler}
                assert admin.post("/apis/node.k8s.io/v1/runtimeclasses", json=runtime).status_code == 201
        yield server


async def post(admin: httpx.Client, path: str, obj: Object) -> httpx.Response:
    return await anyio.to_thread.run_sync(lambda: admin.post(path, json=obj))


def named(obj: Object, name: str, namespace: str) -> Object:
    return {**obj, "metadata": {**obj["metadata"], "name": name, "namespace": namespace}}


async def test_real_server_asks_and_obeys(kube: RealKube) -> None:
    clock, entropy = SystemClock(), SystemEntropy()
    with kube.client() as admin:
        async with (
            https(kube.kubeconfig) as cluster,
            Informers(cluster, clock=clock, entropy=entropy) as informers,
            issuing(cluster, informers, clock, entropy),
            webhook_server(cluster, informers, clock, entropy),
        ):
            await _walk(admin)
        gone = await post(admin, "/api/v1/namespaces/safe/pods", named(pod(RESTRICTIVE), "late", "safe"))
        assert gone.status_code == 500, "nobody answers: refused"
        assert "failed calling webhook" in gone.json()["message"]
        plain = await post(admin, "/api/v1/namespaces/soft/pods", named(pod(runtime=""), "plain", "soft"))
        assert plain.status_code == 201, "what is not asked about goes on"


async def _walk(admin: httpx.Client) -> None:
    pods = "/api/v1/namespaces/{}/pods"
    good = await post(admin, pods.format("safe"), named(pod(RESTRICTIVE), "good", "safe"))
    assert good.status_code == 201, good.text
    bad = await post(admin, pods.format("safe"), named(pod(packed(OPEN)), "bad", "safe"))
    assert bad.status_code == 403
    assert 'admission webhook "required.workloads.fastness.dev" denied the request' in bad.json()["message"]
    assert "ExecProcessRequest (default in line 3)" in bad.json()["message"]
    beside = await post(admin, pods.format("openshift-nfd"), named(pod(), "p", "openshift-nfd"))
    assert beside.status_code == 403
    assert "is the namespace of an operator" in beside.json()["message"]
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": pod(runtime="kata-xx")}
    spec["template"]["metadata"] = {"labels": {"a": "b"}}
    deployment = {"metadata": {"name": "d"}, "spec": spec}
    warned = await post(admin, "/apis/apps/v1/namespaces/soft/deployments", deployment)
    assert warned.status_code == 201, warned.text
    assert 'RuntimeClass \\"kata-xx\\" not found; there are: kata, kata-cc' in warned.headers["warning"]
    switch = {"metadata": {"name": "typo", "labels": {ENFORCEMENT: "on"}}}
    wrong = await post(admin, "/api/v1/namespaces", switch)
    assert wrong.status_code == 422
    assert "use warn or deny" in wrong.json()["message"]
    kata = {"apiVersion": "kataconfiguration.openshift.io/v1", "kind": "KataConfig", "metadata": {"name": "one"}}
    path = "/apis/kataconfiguration.openshift.io/v1/kataconfigs"
    ignored = await post(admin, path, {**kata, "spec": {"enableMixedCluster": True}})
    assert ignored.status_code == 201
    assert "KataConfig spec.enableMixedCluster: stored, and Fastness does not act on it" in ignored.headers["warning"]
    second = await post(admin, path, {**kata, "metadata": {"name": "two"}})
    assert "A KataConfig instance already exists" in second.json()["message"]


MCO = "/apis/machineconfiguration.openshift.io/v1"
CONFIGURATIONS = "/apis/operator.openshift.io/v1/machineconfigurations"
ROLE = {"matchLabels": {"machineconfiguration.openshift.io/role": "worker"}}
DAEMON = {
    "Impersonate-User": "system:serviceaccount:openshift-machine-config-operator:machine-config-daemon",
    "Impersonate-Group": "system:masters",
}
CLAIM = "Impersonate-Extra-authentication.kubernetes.io%2Fnode-name"


def machine_object(kind: str, name: str, spec: Object, group: str = "machineconfiguration") -> Object:
    return {"apiVersion": f"{group}.openshift.io/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


async def test_machine_configuration_is_judged_there_as_in_the_embedded_api(kube: RealKube) -> None:
    clock, entropy = SystemClock(), SystemEntropy()
    with kube.client() as admin:
        async with (
            https(kube.kubeconfig) as cluster,
            Informers(cluster, clock=clock, entropy=entropy) as informers,
            issuing(cluster, informers, clock, entropy),
            webhook_server(cluster, informers, clock, entropy),
        ):
            await anyio.to_thread.run_sync(_machine_configuration, admin)


def _machine_configuration(admin: httpx.Client) -> None:
    merge = {"Content-Type": "application/merge-patch+json"}

    def refused(answer: httpx.Response, words: str) -> None:
        assert answer.status_code in (403, 422), answer.text
        assert words in answer.json()["message"]

    pool = machine_object("MachineConfigPool", "worker", {"machineConfigSelector": ROLE})
    follow = {"spec": {"osImageStream": {"name": "rhel-10"}}}
    assert admin.post(f"{MCO}/machineconfigpools", json=pool).status_code == 201
    late = admin.patch(f"{MCO}/machineconfigpools/worker", json=follow, headers=merge)
    refused(late, "rhel-10 is not on offer (there are: none)")
    unknown = {**pool, "metadata": {"name": "gpu"}, "spec": {"machineConfigSelector": {"matchLabels": {"a": "b"}}}}
    refused(admin.post(f"{MCO}/machineconfigpools", json=unknown), "must inherit from the worker pool")

    image = "registry.example.com/os/rhcos@sha256:" + "ab" * 32
    stream = machine_object("OSImageStream", "cluster", {"defaultStream": "rhel-10"})
    offers = [{"name": "rhel-10", "osImage": image, "osExtensionsImage": image}]
    status = {"status": {"availableStreams": offers, "defaultStream": "rhel-10"}}
    assert admin.post(f"{MCO}/osimagestreams", json=stream).status_code == 201
    assert admin.patch(f"{MCO}/osimagestreams/cluster/status", json=status, headers=merge).is_success
    assert admin.patch(f"{MCO}/machineconfigpools/worker", json=follow, headers=merge).is_success
    refused(admin.delete(f"{MCO}/osimagestreams/cluster"), "Deletion of OSImageStream resources is not allowed")

    other = machine_object("MachineConfiguration", "other", {}, "operator")
    refused(admin.post(CONFIGURATIONS, json=other), "Only a single object of MachineConfiguration is allowed")
    manager = {"resource": "machinesets", "apiGroup": "machine.openshift.io", "selection": {"mode": "All"}}
    managed = {"managedBootImages": {"machineManagers": [manager]}}
    infrastructure = machine_object("Infrastructure", "cluster", {}, "config")
    path = "/apis/config.openshift.io/v1/infrastructures"
    assert admin.post(path, json=infrastructure).status_code == 201
    platform = {"status": {"platformStatus": {"type": "OpenStack"}}}
    assert admin.patch(f"{path}/cluster/status", json=platform, headers=merge).is_success
    configuration = machine_object("MachineConfiguration", "cluster", {}, "operator")
    assert admin.post(CONFIGURATIONS, json=configuration).status_code == 201
    elsewhere = admin.patch(f"{CONFIGURATIONS}/cluster", json={"spec": managed}, headers=merge)
    refused(elsewhere, "only supported on these platforms: GCP, AWS, VSphere, Azure")
    platform = {"status": {"platformStatus": {"type": "BareMetal"}}}
    assert admin.patch(f"{path}/cluster/status", json=platform, headers=merge).is_success
    assert admin.patch(f"{CONFIGURATIONS}/cluster", json={"spec": managed}, headers=merge).is_success

    spec = {"node": {"name": "n1"}, "pool": {"name": "worker"}, "configVersion": {"desired": "not-yet-set"}}
    assert admin.post(f"{MCO}/machineconfignodes", json=machine_object("MachineConfigNode", "n1", spec)).is_success
    report = {"status": {"observedGeneration": 1}}
    own = f"{MCO}/machineconfignodes/n1/status"
    refused(admin.patch(own, json=report, headers={**merge, **DAEMON}), "node-name")
    refused(
        admin.patch(own, json=report, headers={**merge, **DAEMON, CLAIM: "n2"}),
        "updates to MCN n1 can only be done from the MCN's owner node",
    )
    assert admin.patch(own, json=report, headers={**merge, **DAEMON, CLAIM: "n1"}).is_success


async def test_enabling_twice_on_a_real_server_changes_nothing_the_second_time(kube: RealKube) -> None:
    """Our objects are compared with what a real server makes of them; nobody answers for the webhook any more."""
    with kube.client() as admin:
        admin.delete("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/fastness")
        admin.delete("/apis/kataconfiguration.openshift.io/v1/kataconfigs/one")
        for name, role in {"w0": "worker", "m0": "control-plane"}.items():
            node = {"metadata": {"name": name, "labels": {f"node-role.kubernetes.io/{role}": ""}}}
            assert (await post(admin, "/api/v1/nodes", node)).status_code == 201
    command = ["enable", "tdx", "--gpu", "--pccs-node", "m0", "--kubeconfig", str(kube.kubeconfig)]
    env = {"PCCS_API_KEY": "0123456789abcdef" * 2}
    done = await anyio.to_thread.run_sync(lambda: CliRunner().invoke(cli, command, env=env))
    assert done.exit_code == 0, done.output
    assert "DaemonSet intel-dcap/tdx-qgs created" in done.stdout
    again = await anyio.to_thread.run_sync(lambda: CliRunner().invoke(cli, command, env=env))
    assert "Nothing is left to do." in again.stdout, again.output


CLUSTERS = "/apis/fastness.dev/v1alpha1/confidentialclusters"
HOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
REVIEWS = Resource("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", False)
MERGE = {"content-type": "application/merge-patch+json"}


class Loops:
    """The loops that keep the record and guard protection, stepped by hand."""

    def __init__(self, cluster: Cluster, informers: Informers, tiles: FileTiles, watched: bool) -> None:
        clock, entropy = SystemClock(), SystemEntropy()
        record = ClusterRecord(cluster, clock, entropy, "controllers")
        self.cluster, self.tiles, self.informers = cluster, tiles, informers
        self.sequencer = Sequencer(cluster, tiles, clock, entropy)
        self.status = Confidential(cluster, informers, clock, record, tiles, lambda: watched)

    async def settle(self) -> Object:
        """The ConfidentialCluster once every loop has seen the present state."""
        informer = self.informers.of(CONFIDENTIAL_CLUSTER.resource)
        await informer.synced()
        async with asyncio.timeout(PATIENCE):
            while True:
                stored = await self.cluster.get(CONFIDENTIAL_CLUSTER.resource, "cluster")
                cached = informer.get("", "cluster") or {"metadata": {}}
                if cached["metadata"].get("generation") == stored["metadata"]["generation"]:
                    break
                await asyncio.sleep(0.05)
            for _ in range(2):
                await self.sequencer.reconcile(SEQUENCE)
                while (again := (await self.status.reconcile(KEY)).again_after) is not None and again != LOOK_SECONDS:
                    await asyncio.sleep(min(again, 1.0))
                    await self.sequencer.reconcile(SEQUENCE)
                await asyncio.sleep(PACE_SECONDS)
        return await self.cluster.get(CONFIDENTIAL_CLUSTER.resource, "cluster")

    async def lowered(self) -> list[tuple[str, str, str]]:
        """What the record says of lowerings: what, who, and whether admission let it through."""
        record = await open_record(self.cluster, self.tiles)
        assert record is not None
        entries = [json.decode(content) async for _, content in record.view.entries()]
        lowerings = ("act-lower-protection", "protection-lowered")
        recorded = [entry for entry in entries if entry["what"] in lowerings]
        return [(entry["what"], entry["who"], entry["detail"].get("guarded", "")) for entry in recorded]


async def test_a_lowering_names_its_person_and_one_past_the_webhook_is_seen(kube: RealKube, tmp_path: Path) -> None:
    clock, entropy, tiles = SystemClock(), SystemEntropy(), FileTiles(tmp_path / "record")
    body = {
        "apiVersion": "fastness.dev/v1alpha1", "kind": "ConfidentialCluster", "metadata": {"name": "cluster"},
        "spec": {"mode": "Enforce"},
    }  # fmt: skip

    async def patch(obj: Object, query: str = "") -> httpx.Response:
        sent = lambda: admin.patch(f"{CLUSTERS}/cluster{query}", json=obj, headers=MERGE)  # noqa: E731
        return await anyio.to_thread.run_sync(sent)

    with kube.client() as admin:
        async with https(kube.kubeconfig) as cluster:
            async with (
                Informers(cluster, clock=clock, entropy=entropy) as informers,
                issuing(cluster, informers, clock, entropy),
                webhook_server(cluster, informers, clock, entropy),
            ):
                loops = Loops(cluster, informers, tiles, watched=True)
                assert (await post(admin, CLUSTERS, body)).status_code == 201
                assert condition(await loops.settle(), "Guarded")["status"] == "True"  # type: ignore[index]
                refused = await patch({"spec": {"mode": "Audit"}})
                assert refused.status_code == 403
                word = refused.json()["message"].partition(f"{CONFIRM_LOWER}=")[2].split()[0]
                lower = {"metadata": {"annotations": {CONFIRM_LOWER: word}}, "spec": {"mode": "Audit"}}
                assert (await patch(lower, "?dryRun=All")).status_code == 200
                assert (await patch(lower)).status_code == 200
                after = await loops.settle()
                who = (await cluster.create(REVIEWS, {"apiVersion": "authentication.k8s.io/v1", "kind": REVIEWS.kind,
                    "metadata": {}}))["status"]["userInfo"]["username"]  # fmt: skip
                assert condition(after, "Guarded")["status"] == "True"  # type: ignore[index]
                assert CONFIRM_LOWER not in (after["metadata"].get("annotations") or {})
                guarded = [("act-lower-protection", who, ""), ("protection-lowered", who, "yes")]
                assert await loops.lowered() == guarded
                assert (await patch({"spec": {"mode": "Enforce"}})).status_code == 200
                await loops.settle()
            # Somebody takes the webhook away, lowers, and would even know the word.
            assert (await anyio.to_thread.run_sync(lambda: admin.delete(f"{HOOKS}/fastness"))).status_code == 200
            present = await cluster.get(CONFIDENTIAL_CLUSTER.resource, "cluster")
            word = confirmation(present, {"spec": {**present["spec"], "mode": "Disabled"}})
            forged = {"metadata": {"annotations": {CONFIRM_LOWER: word}}, "spec": {"mode": "Disabled"}}
            async with asyncio.timeout(PATIENCE):
                while (await patch(forged)).status_code != 200:  # noqa: ASYNC110  # the server forgets it a moment later
                    await asyncio.sleep(0.1)
            async with Informers(cluster, clock=clock, entropy=entropy) as informers:
                loops = Loops(cluster, informers, tiles, watched=False)
                state = condition(await loops.settle(), "Guarded")
                assert state is not None
                assert (state["status"], state["reason"]) == ("False", "UnguardedLowering")
                assert "mode goes from Enforce to Disabled" in state["message"]
                assert await loops.lowered() == [*guarded, ("protection-lowered", "unknown", "no")]
                doctor = ["doctor", "--kubeconfig", str(kube.kubeconfig), "-o", "json"]
                report = await anyio.to_thread.run_sync(lambda: CliRunner().invoke(cli, doctor))
                assert report.exit_code == 1
                assert "lowered past admission" in report.stdout
                assert (await patch({"spec": {"mode": "Enforce"}})).status_code == 200
                state = condition(await loops.settle(), "Guarded")
                assert state is not None
                assert state["reason"] == "NoWebhook", "as strict as before; but still nobody asks"


MACHINES = "/apis/trusted-execution-clusters.io/v1alpha1/namespaces/fastness-system/machines"
HOME = "/api/v1/namespaces/fastness-system"
NOBODY = {"apiVersion": "v1", "kind": "ConfigMap", "name": "none", "uid": "11111111-1111-4111-8111-111111111111"}


async def test_a_machine_gets_no_owner_there_and_goes_only_when_its_bar_is_noted(kube: RealKube) -> None:
    clock, entropy = SystemClock(), SystemEntropy()
    machine = {
        "apiVersion": "trusted-execution-clusters.io/v1alpha1", "kind": "Machine", "metadata": {"name": "m"},
        "spec": {"id": entropy.uid(), "approval": "Quarantined"},
    }  # fmt: skip
    with kube.client() as admin:

        async def patch(path: str, obj: Object) -> httpx.Response:
            return await anyio.to_thread.run_sync(lambda: admin.patch(path, json=obj, headers=MERGE))

        async def delete() -> httpx.Response:
            return await anyio.to_thread.run_sync(lambda: admin.delete(f"{MACHINES}/m"))

        async with (
            https(kube.kubeconfig) as cluster,
            Informers(cluster, clock=clock, entropy=entropy) as informers,
            issuing(cluster, informers, clock, entropy),
            webhook_server(cluster, informers, clock, entropy),
        ):
            assert (await post(admin, MACHINES, machine)).status_code == 201
            chip = {"status": {"chip": "snp:" + "ab" * 64}}
            assert (await patch(f"{MACHINES}/m/status", chip)).status_code == 200
            owned = await patch(f"{MACHINES}/m", {"metadata": {"ownerReferences": [NOBODY]}})
            assert (owned.status_code, "unrecorded" in owned.text) == (403, True)
            early = await delete()
            assert (early.status_code, "not noted yet" in early.text) == (403, True)
            assert (await patch(f"{MACHINES}/m", {"metadata": {"finalizers": [BARRED]}})).status_code == 200
            assert (await delete()).status_code == 200
            loop = Machines(cluster, informers, ClusterRecord(cluster, clock, entropy, "controllers"), clock)
            await loop.reconcile(ObjectName("fastness-system", "m"))
            assert (await anyio.to_thread.run_sync(lambda: admin.get(f"{MACHINES}/m"))).status_code == 404
            (distrust,) = (await cluster.list(DISTRUST.resource)).items
            assert distrust["spec"]["bars"] == chip["status"]


async def test_settings_of_disks_are_guarded_there_as_in_the_embedded_api(kube: RealKube) -> None:
    clock, entropy = SystemClock(), SystemEntropy()
    with kube.client() as admin:
        async with (
            https(kube.kubeconfig) as cluster,
            Informers(cluster, clock=clock, entropy=entropy) as informers,
            issuing(cluster, informers, clock, entropy),
            webhook_server(cluster, informers, clock, entropy),
        ):
            await anyio.to_thread.run_sync(guarded_disks, admin)


async def test_our_namespace_goes_there_only_confirmed_and_everybody_says_that_it_is_gone(
    kube: RealKube, tmp_path: Path
) -> None:
    clock, entropy, tiles = SystemClock(), SystemEntropy(), FileTiles(tmp_path / "record")
    with kube.client() as admin:

        async def delete() -> httpx.Response:
            return await anyio.to_thread.run_sync(lambda: admin.delete(HOME))

        async with (
            https(kube.kubeconfig) as cluster,
            Informers(cluster, clock=clock, entropy=entropy) as informers,
            issuing(cluster, informers, clock, entropy),
            webhook_server(cluster, informers, clock, entropy),
        ):
            await ClusterRecord(cluster, clock, entropy, "controllers").append(
                RecordEntry("release", "a", resource="b")
            )
            await Sequencer(cluster, tiles, clock, entropy).reconcile(SEQUENCE)
            refused = await delete()
            assert refused.status_code == 403
            word = refused.json()["message"].partition(f"{CONFIRM_LOWER}=")[2].split()[0]
            noted = {"metadata": {"annotations": {CONFIRM_LOWER: word}}}
            assert (await anyio.to_thread.run_sync(lambda: admin.patch(HOME, json=noted, headers=MERGE))).is_success
            assert (await delete()).is_success
            home = Home(cluster, clock)
            await home.look()
            assert home.problem() == GOING
            # What the namespace controller does, which does not run here.
            namespace = admin.get(HOME).json()
            assert admin.put(f"{HOME}/finalize", json={**namespace, "spec": {"finalizers": []}}).is_success
            await home.look()
            assert home.problem() == GONE
        doctor = ["doctor", "--kubeconfig", str(kube.kubeconfig), "-o", "json"]
        report = await anyio.to_thread.run_sync(lambda: CliRunner().invoke(cli, doctor))
        assert (report.exit_code, "fastness-system is gone" in report.stdout) == (1, True)
        async with https(kube.kubeconfig) as cluster:
            with pytest.raises(LacksCluster, match="is gone"):
                await make_namespace(cluster, "fastness-system")
        serve = [sys.executable, "-m", "fastness.cli.main", "serve", "--kubeconfig", str(kube.kubeconfig)]
        with anyio.fail_after(PATIENCE):
            ended = await anyio.run_process(serve, check=False)
        assert (ended.returncode, "fastness-system is gone" in ended.stderr.decode()) == (Exit.MISSING, True)
        assert admin.post("/api/v1/namespaces", json={"metadata": {"name": "fastness-system"}}).status_code == 201
