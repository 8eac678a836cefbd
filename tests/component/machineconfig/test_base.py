"""The base of pools, with all loops: what is missing degrades by its name, what can be read is written down and followed."""

from __future__ import annotations

import base64
from typing import Any

from fastness.formats import data_url, json
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import annotations_of, condition
from fastness.kinds.registry import find
from fastness.kube.errors import NotFound
from fastness.kube.port import PatchType, WriteOptions
from fastness.machineconfig.loops.rendering.generated import wakes_bases
from tests.component.machineconfig.worker_pool import CONFIG, POOL, WorkerPool, config, until

CONTROLLERS = find("machineconfiguration.openshift.io", "v1", "controllerconfigs").resource
SECRET = find("", "v1", "secrets").resource
NAMESPACE = find("", "v1", "namespaces").resource
SERVICE = find("", "v1", "services").resource
PROXY = find("config.openshift.io", "v1", "proxies").resource
EVENT = find("", "v1", "events").resource
RUNTIME_CONFIG = find("machineconfiguration.openshift.io", "v1", "containerruntimeconfigs").resource
NAME = "machine-config-controller"


async def state(workers: WorkerPool, patch: JsonObject) -> None:
    """Change the ControllerConfig, as a person does."""
    await workers.cluster.patch(CONTROLLERS, NAME, patch, PatchType.MERGE)


async def degraded(workers: WorkerPool, says: str, pool: str = "worker") -> str:
    """Wait until a pool says why it is not rendered."""

    async def message() -> str:
        stated = await conditions(workers, pool)
        text = str(stated.get("message") or "")
        return text if stated.get("status") == "True" and says in text else ""

    return str(await until(message, f"pool {pool} does not say {says!r}"))


async def conditions(workers: WorkerPool, pool: str) -> JsonObject:
    """The RenderDegraded condition of a pool; empty while there is none."""
    pools = {entry["metadata"]["name"]: entry for entry in (await workers.cluster.list(POOL)).items}
    return dict(condition(pools.get(pool, {}), "RenderDegraded") or {})


async def healthy(workers: WorkerPool, pool: str = "worker") -> None:
    async def good() -> bool:
        return (await conditions(workers, pool)).get("status") == "False" and await rendered(workers, pool)

    await until(good, f"pool {pool} is not well")


async def files(workers: WorkerPool, pool: str = "worker") -> dict[str, str]:
    """The files of the config that a pool renders to now."""
    name = (await workers.cluster.get(POOL, pool))["spec"]["configuration"]["name"]
    document = (await workers.cluster.get(CONFIG, name))["spec"]["config"]
    return {entry["path"]: data_url.contents(entry["contents"]).decode() for entry in document["storage"]["files"]}


async def has_file(workers: WorkerPool, path: str, says: str, pool: str = "worker") -> None:
    async def there() -> bool:
        return says in (await files(workers, pool)).get(path, "")

    await until(there, f"{path} does not say {says!r}")


async def test_what_is_missing_degrades_every_pool_by_the_name_of_its_field_until_it_is_there(
    workers: WorkerPool,
) -> None:
    await healthy(workers)
    before = await workers.goal()
    await state(workers, {"spec": {"clusterDNSIP": None}})
    text = await degraded(workers, "spec.clusterDNSIP is missing")
    assert "kubectl patch controllerconfig" in text
    await degraded(workers, "spec.clusterDNSIP", "master")
    assert await workers.goal() == before, "machines keep what they have"
    await state(workers, {"spec": {"clusterDNSIP": "10.96.0.10"}})
    await healthy(workers)
    assert await workers.goal() == before, "the same facts lead to the same config"


async def test_a_dns_service_is_found_and_its_origin_noted(workers: WorkerPool) -> None:
    await healthy(workers)
    await state(workers, {"spec": {"clusterDNSIP": None}})
    await degraded(workers, "clusterDNSIP")
    service = {
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "kube-dns", "namespace": "kube-system"},
        "spec": {"clusterIP": "10.96.7.7", "ports": [{"port": 53}]},
    }  # fmt: skip
    await workers.cluster.create(SERVICE, service)
    await has_file(workers, "/etc/kubernetes/kubelet.conf", "10.96.7.7")
    origins = json.decode(annotations_of(await workers.cluster.get(CONTROLLERS, NAME))[names.READ_FROM].encode())
    assert origins["clusterDNSIP"]["from"] == "Service kube-system/kube-dns"
    messages = [
        event["message"] for event in (await workers.cluster.list(EVENT)).items if event["reason"] == "ClusterFactsRead"
    ]
    assert any("spec.clusterDNSIP from Service kube-system/kube-dns" in message for message in messages)


async def test_a_pool_chooses_its_runtime_and_a_wrong_word_is_refused(workers: WorkerPool) -> None:
    await healthy(workers)
    await has_file(workers, "/etc/crio/crio.conf.d/00-default", "crun")
    await annotate(workers, "worker", "docker")
    await degraded(workers, "annotation fastness.dev/container-runtime is 'docker'")
    await annotate(workers, "worker", "containerd")
    await has_file(workers, "/etc/containerd/config.toml", "SystemdCgroup = true")
    assert "/etc/crio/crio.conf.d/00-default" not in await files(workers)


async def annotate(workers: WorkerPool, pool: str, runtime: str | None) -> None:
    patch = {"metadata": {"annotations": {names.CONTAINER_RUNTIME: runtime}}}
    await workers.cluster.patch(POOL, pool, patch, PatchType.MERGE)


def infra(*roles: str) -> JsonObject:
    selector = {"matchExpressions": [{"key": names.ROLE_LABEL, "operator": "In", "values": list(roles)}]}
    nodes = {"matchLabels": {f"{names.NODE_ROLE_PREFIX}infra": ""}}
    meta = {"name": "infra", "annotations": {names.CONTAINER_RUNTIME: "containerd"}}
    spec = {"machineConfigSelector": selector, "nodeSelector": nodes}
    return {"apiVersion": names.API_VERSION, "kind": "MachineConfigPool", "metadata": meta, "spec": spec}


async def test_a_custom_pool_that_differs_has_a_base_of_its_own_for_as_long_as_it_does(workers: WorkerPool) -> None:
    await workers.cluster.create(POOL, infra("worker", "infra"))
    await until(lambda: rendered(workers, "infra"), "infra is not rendered")
    mine = await files(workers, "infra")
    assert "/etc/containerd/config.toml" in mine
    assert not [path for path in mine if path.startswith("/etc/crio")], "nothing of the workers' runtime"
    await annotate(workers, "infra", None)
    await has_file(workers, "/etc/crio/crio.conf.d/00-default", "crun", "infra")

    async def gone() -> bool:
        try:
            await workers.cluster.get(CONFIG, "01-infra-container-runtime")
        except NotFound:
            return True
        return False

    await until(gone, "the base that nobody needs is still there")


async def rendered(workers: WorkerPool, pool: str) -> bool:
    spec = (await workers.cluster.get(POOL, pool)).get("spec") or {}
    return bool((spec.get("configuration") or {}).get("name"))


async def test_a_custom_pool_that_does_not_select_its_base_says_so(workers: WorkerPool) -> None:
    await workers.cluster.create(POOL, infra("worker"))
    text = await degraded(workers, "spec.machineConfigSelector leaves out 00-infra", "infra")
    assert "machineconfiguration.openshift.io/role=infra" in text


async def test_a_config_of_a_person_is_not_overwritten_where_a_base_needs_its_name(workers: WorkerPool) -> None:
    mine = config("00-infra", "/etc/mine", "hello", "infra")
    await workers.cluster.create(CONFIG, mine)
    await workers.cluster.create(POOL, infra("worker", "infra"))
    await degraded(workers, "MachineConfig 00-infra has a name that this pool's base needs", "infra")
    assert (await workers.cluster.get(CONFIG, "00-infra"))["spec"]["config"]["storage"] == mine["spec"]["config"][
        "storage"
    ]
    await workers.cluster.delete(CONFIG, "00-infra")
    await healthy(workers, "infra")
    assert "/etc/containerd/config.toml" in await files(workers, "infra")


def pull_secret(content: Any, kind: str = "kubernetes.io/dockerconfigjson") -> JsonObject:
    data = {".dockerconfigjson": base64.b64encode(json.encode(content)).decode()} if kind != "Opaque" else {"x": "eA=="}
    meta = {"name": "pull-secret", "namespace": "openshift-config"}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "type": kind, "data": data}


async def test_the_pull_secret_is_found_followed_and_told_when_it_is_gone(workers: WorkerPool) -> None:
    await healthy(workers)
    await workers.cluster.create(
        NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "openshift-config"}}
    )
    await has_file(workers, "/var/lib/kubelet/config.json", '{"auths":{}}')
    await workers.cluster.create(SECRET, pull_secret({"auths": {"one.example": {"auth": "eDp5"}}}))
    await has_file(workers, "/var/lib/kubelet/config.json", "one.example")
    other = pull_secret({"auths": {"two.example": {"auth": "eDp5"}}})
    await workers.cluster.patch(SECRET, "pull-secret", {"data": other["data"]}, PatchType.MERGE, "openshift-config")
    await has_file(workers, "/var/lib/kubelet/config.json", "two.example")
    assert "eDp5" not in str(await workers.cluster.get(CONTROLLERS, NAME))
    await healthy(workers)
    before, damaged = await workers.goal(), {"data": {".dockerconfigjson": "eyJ4IjoxfQ=="}}
    await workers.cluster.patch(SECRET, "pull-secret", damaged, PatchType.MERGE, "openshift-config")
    await degraded(workers, "Secret openshift-config/pull-secret has no credentials in .dockerconfigjson")
    assert await workers.goal() == before, "machines keep the credentials that they have"
    await workers.cluster.patch(SECRET, "pull-secret", {"data": other["data"]}, PatchType.MERGE, "openshift-config")
    await healthy(workers)
    await state(workers, {"spec": {"pullSecret": {"name": "mine", "namespace": "openshift-config"}}})
    await degraded(workers, "Secret openshift-config/mine is not there")
    failing = condition(await workers.cluster.get(CONTROLLERS, NAME), "TemplateControllerFailing") or {}
    assert failing["status"] == "True"
    await state(workers, {"spec": {"pullSecret": None}})
    await healthy(workers)
    await has_file(workers, "/var/lib/kubelet/config.json", "two.example")


async def test_a_proxy_reaches_machines_and_leaves_them(workers: WorkerPool) -> None:
    await healthy(workers)
    status = {"status": {"httpProxy": "http://proxy.example:3128", "noProxy": ".svc"}}
    options = WriteOptions(subresource="status")
    await workers.cluster.patch(PROXY, "cluster", status, PatchType.MERGE, "", options)
    await has_file(workers, "/etc/mco/proxy.env", "HTTP_PROXY=http://proxy.example:3128\nNO_PROXY=.svc\n")
    await workers.cluster.patch(PROXY, "cluster", {"status": None}, PatchType.MERGE, "", options)

    async def gone() -> bool:
        return (await files(workers))["/etc/mco/proxy.env"] == ""

    await until(gone, "the proxy stays")


async def test_settings_of_crio_are_refused_where_containerd_runs(workers: WorkerPool) -> None:
    await healthy(workers)
    await annotate(workers, "worker", "containerd")
    selector = {"matchLabels": {f"{names.POOL_LABEL_PREFIX}worker": ""}}
    settings = {"machineConfigPoolSelector": selector, "containerRuntimeConfig": {"pidsLimit": 4096}}
    meta = {"name": "pids"}
    body = {"apiVersion": names.API_VERSION, "kind": "ContainerRuntimeConfig", "metadata": meta, "spec": settings}
    await workers.cluster.create(RUNTIME_CONFIG, body)
    await degraded(workers, "run containerd")


async def test_a_controller_config_with_a_damaged_note_stops_no_loop(workers: WorkerPool) -> None:
    await healthy(workers)
    await state(workers, {"metadata": {"annotations": {names.READ_FROM: "{"}}})
    await annotate(workers, "worker", "containerd")
    await has_file(workers, "/etc/containerd/config.toml", "SystemdCgroup")


def test_a_config_with_the_name_of_a_base_wakes_the_loop_that_makes_it() -> None:
    """Otherwise a pool waits for minutes after such a config was deleted, unless something else happens to wake the loop."""
    assert list(wakes_bases(config("00-infra", "/etc/mine", "hello", "infra")))
    assert not list(wakes_bases(config("50-infra", "/etc/mine", "hello", "infra")))
