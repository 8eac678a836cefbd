"""What a real cluster says about itself and a bare API server does not: where its DNS is, and where machines reach it."""

from __future__ import annotations

import httpx
import yaml

from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.machineconfiguration import names
from fastness.kinds.machineconfiguration.controller_config import CONTROLLER_CONFIG, SINGLETON
from fastness.kinds.registry import find
from fastness.kube.errors import NotFound
from fastness.kube.port import Cluster

SERVICE = find("", "v1", "services").resource
CONFIG_MAP = find("", "v1", "configmaps").resource
CONTROLLERS = CONTROLLER_CONFIG.resource
DNS = "10.96.0.10"


def node_facts(url: str, runtime: str = "") -> list[tuple[Resource, JsonObject]]:
    """The DNS service and the address of the API, as kubeadm leaves them; and the runtime, where a person chose one."""
    meta = {"name": "kube-dns", "namespace": "kube-system"}
    ports = [{"name": "dns", "port": 53, "protocol": "UDP"}]
    service = {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": {"clusterIP": DNS, "ports": ports}}
    place = {"name": "cluster-info", "namespace": "kube-public"}
    config = yaml.safe_dump({"clusters": [{"name": "", "cluster": {"server": url}}]})
    info = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": place, "data": {"kubeconfig": config}}
    chosen = {"name": SINGLETON, "annotations": {names.CONTAINER_RUNTIME: runtime}}
    controller = {"apiVersion": names.API_VERSION, "kind": "ControllerConfig", "metadata": chosen, "spec": {}}
    return [(SERVICE, service), (CONFIG_MAP, info), *([(CONTROLLERS, controller)] if runtime else [])]


async def state_node_facts(cluster: Cluster, url: str, runtime: str = "") -> None:
    """Let a cluster say these, unless it does."""
    for resource, obj in node_facts(url, runtime):
        try:
            await cluster.get(resource, obj["metadata"]["name"], obj["metadata"].get("namespace"))
        except NotFound:
            # Looked for first: a real server refuses a second kube-dns for its address, before it sees that it exists.
            await cluster.create(resource, obj)


def post_node_facts(admin: httpx.Client, url: str, runtime: str = "") -> None:
    """The same over HTTP, as an administrator."""
    for resource, obj in node_facts(url, runtime):
        path = resource.path(obj["metadata"].get("namespace"))
        if admin.get(f"{path}/{obj['metadata']['name']}").status_code == 404:
            answer = admin.post(path, json=obj)
            assert answer.status_code == 201, answer.text
