"""The cluster's own settings reach kubelets: an object is applied, configs follow, pools render them, and all of it is told."""

from __future__ import annotations

from typing import Any

from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import condition
from fastness.kinds.registry import find
from fastness.kube.errors import NotFound
from fastness.kube.port import PatchType
from fastness.machineconfig.render.kubelet import settings_in
from fastness.machineconfig.render.settings.cluster import cgroup_refusal
from tests.component.machineconfig.test_product_loops import CONFIG, KUBELET, MCO, POOL, Loops, config, run
from tests.embedded.fixtures import Embedded
from tests.unit.machineconfig.render.made_files import files

GROUP = "config.openshift.io"
NODE_CONFIG, FEATURE_GATE, API_SERVER = (
    find(GROUP, "v1", name).resource for name in ("nodes", "featuregates", "apiservers")
)
RUNTIME = find(MCO, "v1", "containerruntimeconfigs").resource
CONFIDENTIAL = find("fastness.dev", "v1alpha1", "confidentialclusters").resource
EVENT = find("", "v1", "events").resource
LOW, MEDIUM = "LowUpdateSlowReaction", "MediumUpdateAverageReaction"
WORKERS = {"matchLabels": {f"{names.POOL_LABEL_PREFIX}worker": ""}}


def gates(*enabled: str) -> JsonObject:
    return {"featureSet": "CustomNoUpgrade", "customNoUpgrade": {"enabled": list(enabled)}}


async def put(loops: Loops, resource: Any, spec: JsonObject, name: str = "cluster") -> None:
    """Create an object or give it another spec, and let the loops come to rest."""
    obj = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": name}, "spec": spec}
    try:
        present = await loops.cluster.get(resource, name)
    except NotFound:
        await loops.cluster.create(resource, obj)
    else:
        patch = [{"op": "replace", "path": "/spec", "value": spec}]
        await loops.cluster.patch(resource, present["metadata"]["name"], patch, PatchType.JSON)
    await loops.settle()


async def rendered(loops: Loops, pool: str = "worker") -> tuple[list[str], JsonObject, JsonObject]:
    """The sources of a pool's rendered config, its kubelet's settings, and its whole spec."""
    target = (await loops.cluster.get(POOL, pool))["spec"]["configuration"]
    obj = await loops.cluster.get(CONFIG, target["name"])
    return [source["name"] for source in target["source"]], settings_in(obj) or {}, obj["spec"]


async def events(loops: Loops, reason: str) -> list[tuple[str, str, int]]:
    listed = (await loops.cluster.list(EVENT)).items
    return sorted(
        (event["involvedObject"]["kind"], event["message"], event["count"])
        for event in listed
        if event["reason"] == reason
    )


async def degraded(loops: Loops, pool: str) -> str:
    entry = condition(await loops.cluster.get(POOL, pool), "RenderDegraded") or {}
    return str(entry.get("message")) if entry.get("status") == "True" else ""


async def accepted(loops: Loops, resource: Any) -> tuple[str, str]:
    entry = condition(await loops.cluster.get(resource, "cluster"), "Accepted") or {}
    return str(entry.get("status")), str(entry.get("message"))


async def test_a_feature_gate_reaches_the_kubelets_of_every_pool_and_goes_again(embedded_server: Embedded) -> None:
    async def play(loops: Loops) -> None:
        await put(loops, FEATURE_GATE, gates("EventedPLEG", "NoSuchGate"))
        for pool in ("master", "worker"):
            sources, settings, _ = await rendered(loops, pool)
            assert f"98-{pool}-generated-kubelet" in sources
            assert settings["featureGates"] == {"EventedPLEG": True}
        status, message = await accepted(loops, FEATURE_GATE)
        assert (status, message.endswith("they were left out: NoSuchGate")) == ("True", True)
        await put(loops, FEATURE_GATE, gates("MemoryQoS"))
        assert (await rendered(loops))[1]["featureGates"] == {"MemoryQoS": True}
        await loops.cluster.delete(FEATURE_GATE, "cluster")
        await loops.settle()
        sources, settings, _ = await rendered(loops)
        assert ("98-worker-generated-kubelet" in sources, "featureGates" in settings) == (False, False)

    await run(embedded_server, 1, play)


async def test_the_last_of_three_carries_what_all_of_them_ask_for(embedded_server: Embedded) -> None:
    async def play(loops: Loops) -> None:
        await put(loops, NODE_CONFIG, {"workerLatencyProfile": MEDIUM})
        await put(loops, FEATURE_GATE, gates("EventedPLEG"))
        await put(loops, API_SERVER, {"tlsSecurityProfile": {"type": "Modern"}})
        await put(loops, KUBELET, {"machineConfigPoolSelector": WORKERS, "kubeletConfig": {"maxPods": 77}}, "pods")
        sources, settings, spec = await rendered(loops)
        assert [name for name in sources if "-generated-" in name] == [
            "97-worker-generated-kubelet", "98-worker-generated-kubelet", "99-worker-generated-kubelet",
        ]  # fmt: skip
        assert (settings["maxPods"], settings["nodeStatusUpdateFrequency"]) == (77, "20s")
        assert (settings["featureGates"], settings["tlsMinVersion"]) == ({"EventedPLEG": True}, "VersionTLS13")
        assert spec["kernelArguments"] == ["systemd.unified_cgroup_hierarchy=1", 'cgroup_no_v1="all"']
        _, settings, _ = await rendered(loops, "master")
        assert settings.get("nodeStatusUpdateFrequency", "10s") == "10s"

    await run(embedded_server, 2, play)


async def test_another_tls_profile_of_the_cluster_is_in_every_config_that_has_a_kubelets_file(
    embedded_server: Embedded,
) -> None:
    async def play(loops: Loops) -> None:
        await put(loops, FEATURE_GATE, gates("EventedPLEG"))
        await put(loops, NODE_CONFIG, {})
        await put(loops, KUBELET, {"machineConfigPoolSelector": WORKERS}, "pods")
        ciphers = ["ECDHE-RSA-AES128-GCM-SHA256", "DHE-RSA-AES128-GCM-SHA256"]
        custom = {"minTLSVersion": "VersionTLS11", "ciphers": ciphers}
        await put(loops, API_SERVER, {"tlsSecurityProfile": {"type": "Custom", "custom": custom}})
        with_file = {
            entry["metadata"]["name"]: settings
            for entry in (await loops.cluster.list(CONFIG)).items
            if "rendered-" not in entry["metadata"]["name"] and (settings := settings_in(entry)) is not None
        }
        assert set(with_file) == {
            "01-master-kubelet", "01-worker-kubelet", "97-master-generated-kubelet", "97-worker-generated-kubelet",
            "98-master-generated-kubelet", "98-worker-generated-kubelet", "99-worker-generated-kubelet",
        }  # fmt: skip
        for settings in with_file.values():
            assert settings["tlsMinVersion"] == "VersionTLS11"
            assert settings["tlsCipherSuites"] == ["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"]
        assert await events(loops, "SettingsLeftOut") == [
            ("APIServer", "kubelets do not know these ciphers, they were left out: DHE-RSA-AES128-GCM-SHA256", 1)
        ]

    await run(embedded_server, 3, play)


async def test_a_forbidden_step_is_told_and_changes_nothing_and_two_steps_get_there(embedded_server: Embedded) -> None:
    async def play(loops: Loops) -> None:
        await put(loops, NODE_CONFIG, {"workerLatencyProfile": "Default"})
        before = await rendered(loops)
        await put(loops, NODE_CONFIG, {"workerLatencyProfile": LOW})
        why = f"workerLatencyProfile cannot go from Default to {LOW} directly; set {MEDIUM} first"
        assert await rendered(loops) == before
        assert await accepted(loops, NODE_CONFIG) == ("False", why)
        assert await events(loops, "ActionProhibited") == [("Node", why, 1)]
        assert why in await degraded(loops, "worker")
        assert await degraded(loops, "master") == ""
        for profile, every in ((MEDIUM, "20s"), (LOW, "1m")):
            await put(loops, NODE_CONFIG, {"workerLatencyProfile": profile})
            assert (await rendered(loops))[1]["nodeStatusUpdateFrequency"] == every
        assert await degraded(loops, "worker") == ""
        assert await accepted(loops, NODE_CONFIG) == ("True", "")

    await run(embedded_server, 4, play)


async def test_objects_of_other_names_have_no_effect_and_an_event_says_so(embedded_server: Embedded) -> None:
    async def play(loops: Loops) -> None:
        for resource, spec in ((NODE_CONFIG, {}), (FEATURE_GATE, gates("EventedPLEG")), (API_SERVER, {})):
            await put(loops, resource, spec, "mine")
        assert [kind for kind, _, _ in await events(loops, "ActionProhibited")] == ["APIServer", "FeatureGate", "Node"]
        sources, settings, _ = await rendered(loops)
        assert not [name for name in sources if "-generated-" in name]
        assert "featureGates" not in settings

    await run(embedded_server, 5, play)


async def test_control_groups_v1_degrade_every_pool_until_they_are_gone_and_the_rest_of_the_kind_works(
    embedded_server: Embedded,
) -> None:
    async def play(loops: Loops) -> None:
        await put(loops, NODE_CONFIG, {"workerLatencyProfile": MEDIUM})
        before = await rendered(loops)
        await put(loops, NODE_CONFIG, {"cgroupMode": "v1", "workerLatencyProfile": LOW})
        why = cgroup_refusal("v1")
        assert await accepted(loops, NODE_CONFIG) == ("False", why)
        for pool in ("master", "worker"):
            assert why in await degraded(loops, pool)
        assert await rendered(loops) == before
        await put(loops, NODE_CONFIG, {"cgroupMode": "v2", "workerLatencyProfile": LOW})
        assert [await degraded(loops, pool) for pool in ("master", "worker")] == ["", ""]
        assert (await rendered(loops))[1]["nodeStatusUpdateFrequency"] == "1m"

    await run(embedded_server, 12, play)


async def test_confidential_pools_stay_whole_and_the_object_says_what_their_image_has_to_bring(
    embedded_server: Embedded,
) -> None:
    async def play(loops: Loops) -> None:
        await put(loops, CONFIDENTIAL, {"mode": "Enforce", "simulated": True})
        await put(loops, NODE_CONFIG, {"cgroupMode": "v2", "workerLatencyProfile": MEDIUM})
        for pool in ("master", "worker"):
            assert await degraded(loops, pool) == ""
            assert (await rendered(loops, pool))[2]["kernelArguments"] == []
        assert (await rendered(loops))[1]["nodeStatusUpdateFrequency"] == "20s"
        assert (await accepted(loops, NODE_CONFIG))[0] == "True"
        without = condition(await loops.cluster.get(NODE_CONFIG, "cluster"), "KernelArgumentsApplied") or {}
        assert (without["status"], without["reason"]) == ("False", "ConfidentialPools")
        assert "has to bring systemd.unified_cgroup_hierarchy=1" in without["message"]

    await run(embedded_server, 6, play)


async def test_a_config_that_somebody_edits_or_deletes_is_put_back_and_a_pool_that_goes_takes_its_own_along(
    embedded_server: Embedded,
) -> None:
    async def play(loops: Loops) -> None:
        selector = {"matchExpressions": [{"key": names.ROLE_LABEL, "operator": "In", "values": ["worker", "infra"]}]}
        await put(
            loops, POOL, {"machineConfigSelector": selector, "nodeSelector": {"matchLabels": {"infra": ""}}}, "infra"
        )
        await put(loops, FEATURE_GATE, gates("EventedPLEG"))
        name = "98-infra-generated-kubelet"
        made = await loops.cluster.get(CONFIG, name)
        await loops.cluster.patch(CONFIG, name, [{"op": "replace", "path": "/spec", "value": {}}], PatchType.JSON)
        await loops.settle()
        assert (await loops.cluster.get(CONFIG, name))["spec"] == made["spec"]
        await loops.cluster.delete(CONFIG, name)
        await loops.settle()
        assert (await loops.cluster.get(CONFIG, name))["spec"] == made["spec"]
        await loops.cluster.create(CONFIG, config("97-infra-mine", "x", "infra"))
        await loops.cluster.delete(POOL, "infra")
        await loops.settle()
        left = [entry["metadata"]["name"] for entry in (await loops.cluster.list(CONFIG)).items]
        assert (name in left, "97-infra-mine" in left) == (False, True)

    await run(embedded_server, 7, play)


async def test_a_kubelet_config_with_what_has_no_effect_is_accepted_and_an_event_names_it(
    embedded_server: Embedded,
) -> None:
    async def play(loops: Loops) -> None:
        custom = {"ciphers": ["AES128-SHA", "nonsense"]}
        spec = {"machineConfigPoolSelector": WORKERS, "kubeletConfig": {"maxPods": 0}}
        await put(loops, KUBELET, {**spec, "tlsSecurityProfile": {"type": "Custom", "custom": custom}}, "pods")
        status = (await loops.cluster.get(KUBELET, "pods"))["status"]["conditions"]
        assert [(entry["type"], entry["message"]) for entry in status] == [
            ("Accepted", "Success"),
            ("Success", "Success"),
        ]
        [(kind, message, count)] = await events(loops, "SettingsLeftOut")
        assert (kind, count) == ("KubeletConfig", 1)
        assert message == (
            "kubelets do not know these ciphers, they were left out: nonsense; "
            "an empty value does not take away what the cluster sets: maxPods"
        )

    await run(embedded_server, 8, play)


async def test_the_last_three_outcomes_are_kept(embedded_server: Embedded) -> None:
    async def play(loops: Loops) -> None:
        for level in (None, 11, None, 12):
            settings = {"kubeletConfig": {"cgroupDriver": f"d{level}"}} if level else {}
            await put(loops, KUBELET, {"machineConfigPoolSelector": WORKERS, **settings}, "pods")
        status = (await loops.cluster.get(KUBELET, "pods"))["status"]["conditions"]
        prefix = "Error: KubeletConfiguration: cgroupDriver is not allowed to be set, but contains:"
        assert [(entry["type"], entry["message"]) for entry in status] == [
            ("Accepted", f"{prefix} d11"), ("Accepted", "Success"), ("Accepted", f"{prefix} d12"),
            ("Failure", f"{prefix} d12"),
        ]  # fmt: skip

    await run(embedded_server, 9, play)


async def test_stores_are_written_once_their_gate_is_on(embedded_server: Embedded) -> None:
    async def play(loops: Loops) -> None:
        stores = {"additionalLayerStores": [{"path": "/var/lib/stargz"}]}
        await put(loops, RUNTIME, {"machineConfigPoolSelector": WORKERS, "containerRuntimeConfig": stores}, "stores")
        assert "needs the feature gate AdditionalStorageConfig" in await degraded(loops, "worker")
        await put(loops, FEATURE_GATE, gates("AdditionalStorageConfig"))
        assert await degraded(loops, "worker") == ""
        sources, _, spec = await rendered(loops)
        assert "99-worker-generated-containerruntime" in sources
        assert 'additionallayerstores = ["/var/lib/stargz:ref"]\n' in files(spec)["/etc/containers/storage.conf"]

    await run(embedded_server, 10, play)


async def test_a_pool_with_containerd_refuses_settings_of_crio(embedded_server: Embedded) -> None:
    async def play(loops: Loops) -> None:
        await loops.settle()
        note = {"metadata": {"annotations": {"fastness.dev/container-runtime": "containerd"}}}
        await loops.cluster.patch(POOL, "worker", note, PatchType.MERGE)
        limits = {"machineConfigPoolSelector": WORKERS, "containerRuntimeConfig": {"pidsLimit": 100}}
        await put(loops, RUNTIME, limits, "pids")
        failure = condition(await loops.cluster.get(RUNTIME, "pids"), "Failure") or {}
        assert failure["message"] == (
            "Error: pidsLimit is a setting of CRI-O, and the machines of this pool run containerd: "
            "set podPidsLimit in a KubeletConfig"
        )

    await run(embedded_server, 11, play)
