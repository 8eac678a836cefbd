"""Cluster API's bootstrap contract: a FastnessConfig becomes a Secret with the pointer of its pool, and says so."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from fastness.formats import json
from fastness.kinds.cluster_api.bootstrap import FASTNESS_CONFIG
from fastness.kinds.cluster_api.owners import CLUSTERS, MACHINES
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.kubernetes.core import SECRET
from fastness.kinds.machineconfiguration.names import USER_DATA_NAMESPACE
from fastness.kinds.objects import ObjectName, condition
from fastness.kinds.registry import find
from fastness.kube.controllers.fenced import FencedCluster
from fastness.kube.port import Cluster, PatchType, WriteOptions
from fastness.machineconfig.loops.machines.bootstrap_configs import BootstrapConfigs
from fastness.runtime.clock import SystemClock
from tests.embedded.fixtures import Embedded

CONFIGS, SECRETS = FASTNESS_CONFIG.resource, SECRET.resource
DEFINITIONS = find("apiextensions.k8s.io", "v1", "customresourcedefinitions").resource
KEY = ObjectName(USER_DATA_NAMESPACE, "node-1")
STATUS = WriteOptions(subresource="status")
ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def definition(resource: Resource) -> JsonObject:
    """What Cluster API brings: enough of its definition to store its objects."""
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": ANYTHING, "status": ANYTHING}}}
    version = {
        "name": resource.version,
        "served": True,
        "storage": True,
        "schema": schema,
        "subresources": {"status": {}},
    }
    names = {
        "plural": resource.plural,
        "singular": resource.kind.lower(),
        "kind": resource.kind,
        "listKind": f"{resource.kind}List",
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{resource.plural}.{resource.group}"},
        "spec": {"group": resource.group, "scope": "Namespaced", "names": names, "versions": [version]},
    }  # fmt: skip


class ClusterApi:
    """The objects that users and Cluster API write, and the loop."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.loop = BootstrapConfigs(FencedCluster(cluster, "test", BootstrapConfigs.writes), SystemClock())

    async def looked(self) -> JsonObject:
        """The config after a look of the loop."""
        await self.loop.reconcile(KEY)
        return await self.cluster.get(CONFIGS, KEY.name, KEY.namespace)

    async def make(self, resource: Resource, name: str, **rest: Any) -> JsonObject:
        meta = {"name": name, "namespace": USER_DATA_NAMESPACE, **rest.pop("metadata", {})}
        return await self.cluster.create(
            resource, {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": meta, **rest}
        )

    async def provisioned(self, resource: Resource, name: str) -> None:
        status = {"status": {"initialization": {"infrastructureProvisioned": True}}}
        await self.cluster.patch(resource, name, status, PatchType.MERGE, USER_DATA_NAMESPACE, STATUS)

    async def secret(self) -> JsonObject:
        return await self.cluster.get(SECRETS, "node-1-bootstrap", USER_DATA_NAMESPACE)


def pointer(ticket: str) -> dict[str, str]:
    source = {
        "source": "https://doors.example/config/worker",
        "httpHeaders": [{"name": "Authorization", "value": ticket}],
    }
    document = {"ignition": {"version": "3.2.0", "config": {"merge": [source]}}}
    return {"userData": base64.b64encode(json.encode(document)).decode()}


@pytest.fixture
async def api(embedded_server: Embedded) -> ClusterApi:
    made = ClusterApi(embedded_server.cluster)
    machine = {"apiVersion": MACHINES.api_version, "kind": "Machine", "name": "node-1", "uid": "u-1"}
    await made.make(CONFIGS, "node-1", metadata={"ownerReferences": [machine]}, spec={"pool": "worker"})
    return made


def ready(config: JsonObject) -> tuple[str, str]:
    entry = condition(config, "Ready") or {}
    return str(entry.get("status")), str(entry.get("reason"))


async def test_a_config_waits_for_what_cluster_api_needs_first_and_then_hands_on_the_pointer(api: ClusterApi) -> None:
    assert ready(await api.looked()) == ("False", "WaitingForMachine"), "without the kinds of Cluster API too"
    for resource in (CLUSTERS, MACHINES):
        await api.cluster.create(DEFINITIONS, definition(resource))
    await api.make(MACHINES, "node-1", spec={"clusterName": "one"})
    assert ready(await api.looked()) == ("False", "WaitingForCluster")
    await api.make(CLUSTERS, "one", spec={})
    assert ready(await api.looked()) == ("False", "WaitingForInfrastructure")
    await api.provisioned(CLUSTERS, "one")
    assert ready(await api.looked()) == ("False", "WaitingForUserData")
    await api.make(SECRETS, "worker-user-data-managed", data=pointer("Bearer first"))
    done = await api.looked()
    assert done["status"]["dataSecretName"] == "node-1-bootstrap"
    assert done["status"]["initialization"] == {"dataSecretCreated": True}
    secret = await api.secret()
    assert secret["type"] == "cluster.x-k8s.io/secret"
    assert secret["metadata"]["labels"] == {"cluster.x-k8s.io/cluster-name": "one"}
    assert secret["data"] == {"value": pointer("Bearer first")["userData"]}
    version = (await api.looked())["metadata"]["resourceVersion"]
    assert (await api.looked())["metadata"]["resourceVersion"] == version, "looking again writes nothing"

    await api.cluster.patch(
        SECRETS, "worker-user-data-managed", {"data": pointer("Bearer second")}, PatchType.MERGE, USER_DATA_NAMESPACE
    )
    await api.looked()
    assert (await api.secret())["data"] == {"value": pointer("Bearer second")["userData"]}, (
        "a new ticket before the machine is made"
    )
    await api.provisioned(MACHINES, "node-1")
    await api.cluster.patch(
        SECRETS, "worker-user-data-managed", {"data": pointer("Bearer third")}, PatchType.MERGE, USER_DATA_NAMESPACE
    )
    await api.looked()
    assert (await api.secret())["data"] == {"value": pointer("Bearer second")["userData"]}, (
        "what it was made with is history"
    )


async def test_a_paused_config_is_left_alone(api: ClusterApi) -> None:
    note = {"metadata": {"annotations": {"cluster.x-k8s.io/paused": ""}}}
    await api.cluster.patch(CONFIGS, "node-1", note, PatchType.MERGE, USER_DATA_NAMESPACE)
    assert "status" not in await api.looked()
