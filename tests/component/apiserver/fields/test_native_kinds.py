"""Ownership of native kinds beside that of a real kube-apiserver: create, update, forced apply.

Native objects are structs in a real server, typed by the definitions in `fastness.kinds.kubernetes`. What admission and the
kind's own strategy set after ownership was recorded (`later`) is taken out before our code sees the object.
"""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from fastness.apiserver.fields import TypedSchema, Writer, apply, reset_fields, track_update
from fastness.kinds.kubernetes.definitions import definition, definition_for
from tests.realkube.cluster import RealKube

JsonObject = dict[str, Any]

NAME = "fields-native"
POD: JsonObject = {
    "containers": [
        {
            "name": "c", "image": "i", "ports": [{"containerPort": 80}, {"containerPort": 443, "protocol": "UDP", "name": "q"}],
            "env": [{"name": "A", "value": "1"}, {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
            "resources": {"limits": {"cpu": "1"}}, "volumeMounts": [{"name": "v", "mountPath": "/v"}],
            "livenessProbe": {"httpGet": {"path": "/", "port": 80}},
        },
        {"name": "d", "image": "j"},
    ],
    "volumes": [{"name": "v", "emptyDir": {}}, {"name": "w", "configMap": {"name": "x", "items": [{"key": "a", "path": "b"}]}}],
    "nodeSelector": {"a": "b"},
    "imagePullSecrets": [{"name": "s"}],
}  # fmt: skip
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": POD}
ROLE = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": NAME}


@dataclass(frozen=True)
class Native:
    """A kind, a body for it, and what a server sets after ownership was recorded."""

    api_version: str
    kind: str
    plural: str
    body: JsonObject
    namespaced: bool = True
    later: tuple[str, ...] = ()

    @property
    def base(self) -> str:
        root = f"/apis/{self.api_version}" if "/" in self.api_version else f"/api/{self.api_version}"
        return f"{root}/namespaces/default/{self.plural}" if self.namespaced else f"{root}/{self.plural}"

    def manifest(self, meta: JsonObject, body: JsonObject) -> JsonObject:
        return {"apiVersion": self.api_version, "kind": self.kind, "metadata": {"name": NAME, **meta}, **deepcopy(body)}


SUBJECT = {"kind": "User", "name": "u"}
OVERHEAD = {"podFixed": {"cpu": "1"}}
RBAC = "rbac.authorization.k8s.io/v1"
KINDS = [
    Native("v1", "ConfigMap", "configmaps", {"data": {"k": "v"}}),
    Native("v1", "Secret", "secrets", {"data": {"k": "dg=="}, "type": "Opaque"}),
    Native("v1", "ServiceAccount", "serviceaccounts", {"imagePullSecrets": [{"name": "z"}]}),
    Native("v1", "Pod", "pods", {"spec": POD}, later=("priority", "preemptionPolicy", "tolerations")),
    Native("v1", "Service", "services", {"spec": {"selector": {"a": "b"}, "ports": [{"port": 80, "name": "a"}]}},
           later=("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")),
    Native("v1", "Namespace", "namespaces", {}, namespaced=False, later=("finalizers",)),
    Native("v1", "Node", "nodes", {"spec": {"podCIDR": "10.0.0.0/24", "podCIDRs": ["10.0.0.0/24"]}}, namespaced=False,
           later=("taints",)),
    Native("apps/v1", "Deployment", "deployments", {"spec": {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}}),
    Native("apps/v1", "DaemonSet", "daemonsets", {"spec": {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}}),
    Native(RBAC, "ClusterRole", "clusterroles", {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}, False),
    Native(RBAC, "ClusterRoleBinding", "clusterrolebindings", {"roleRef": ROLE, "subjects": [SUBJECT]}, False),
    Native("coordination.k8s.io/v1", "Lease", "leases", {"spec": {"holderIdentity": "me", "leaseDurationSeconds": 5}}),
    Native("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets", {"spec": {"minAvailable": 1, "selector": {}}}),
    Native("node.k8s.io/v1", "RuntimeClass", "runtimeclasses", {"handler": "kata", "overhead": OVERHEAD}, False),
]  # fmt: skip


def _typed(kind: Native) -> tuple[TypedSchema, bool]:
    group, _, version = kind.api_version.rpartition("/")
    schema = definition(definition_for(group, version, kind.kind))
    return TypedSchema(schema, definition, native=True), "status" in schema["properties"]


def _lines(managed: list[JsonObject] | None) -> dict[tuple[str, str], JsonObject]:
    return {(line["operation"], line["manager"]): line["fieldsV1"] for line in managed or []}


def _written(kind: Native, obj: JsonObject) -> JsonObject:
    written = deepcopy(obj)
    written["metadata"].pop("managedFields", None)
    for name in kind.later:
        written.get("spec", {}).pop(name, None)
    return written


@pytest.mark.parametrize("kind", KINDS, ids=lambda each: each.kind)
def test_native_ownership_is_that_of_a_real_api_server(real_kube: RealKube, kind: Native) -> None:
    schema, has_status = _typed(kind)
    reset = reset_fields(has_status=has_status)
    meta = {"labels": {"a": "b"}, "annotations": {"x": "y"}}
    with real_kube.client() as client:
        live = _ok(client.post(kind.base, params={"fieldManager": "maker"}, json=kind.manifest(meta, kind.body)))
        ours = track_update(
            None, _written(kind, live), Writer("maker", kind.api_version, "2030-01-01T00:00:00Z"), schema, reset
        )
        assert _lines(ours) == _lines(live["metadata"]["managedFields"])

        changed = {**deepcopy(live), "metadata": {**live["metadata"], "labels": {"a": "c", "d": "e"}}}
        new = _ok(client.put(f"{kind.base}/{NAME}", params={"fieldManager": "upd"}, json=changed))
        by = Writer("upd", kind.api_version, "2030-01-01T00:00:01Z")
        ours = track_update(
            _written(kind, live) | {"metadata": live["metadata"]}, _written(kind, new), by, schema, reset
        )
        assert _lines(ours) == _lines(new["metadata"]["managedFields"])

        live = new
        for config in (
            kind.manifest({"labels": {"z": "1"}}, kind.body),
            kind.manifest({"labels": {"a": "9", "y": "2"}}, {}),
        ):
            done = apply(
                live, config, Writer("ssa", kind.api_version, "2030-01-01T00:00:02Z"), schema, force=True, reset=reset
            )
            answer = _apply(client, kind, config)
            if answer.status_code == httpx.codes.UNPROCESSABLE_ENTITY:
                continue  # the merged object is refused by the kind's own rules, which come after ownership
            assert _lines(done.managed) == _lines(_ok(answer)["metadata"]["managedFields"])
            live = answer.json()


def _apply(client: httpx.Client, kind: Native, config: JsonObject) -> httpx.Response:
    return client.patch(
        f"{kind.base}/{NAME}",
        params={"fieldManager": "ssa", "force": "true"},
        content=json.dumps(config),
        headers={"Content-Type": "application/apply-patch+yaml"},
    )


def _ok(answer: httpx.Response) -> JsonObject:
    assert answer.is_success, answer.text
    body: JsonObject = answer.json()
    return body
