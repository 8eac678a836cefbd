"""What an API server has from its first second: namespaces, default roles, the definitions of built-in kinds, and the few
objects that every OpenShift cluster has and manuals rely on.

Written at start straight to the store, in one atomic write, and only where something is missing or older than this program: an
administrator's additions to default roles stay (`kube/access/defaults`), definitions of built-in kinds are the server's own and
always those of this version.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import NamedTuple

from fastness.apiserver import storable
from fastness.apiserver.catalog.definitions import builtin_crd
from fastness.apiserver.definitions import CRD_KEY
from fastness.apiserver.store import Key, Record, Store, WriteStep
from fastness.formats import json
from fastness.kinds import crd
from fastness.kinds.crd.roles import roles
from fastness.kinds.kind import JsonObject
from fastness.kinds.kubernetes import definitions as native
from fastness.kinds.machineconfiguration import GROUP as MACHINE_CONFIG
from fastness.kinds.machineconfiguration import names
from fastness.kinds.machineconfiguration.controller_config import SINGLETON
from fastness.kinds.objects import rfc3339
from fastness.kube.access.defaults import bootstrap_objects, reconciled
from fastness.kube.places import MADE_HERE, ROOT_CA
from fastness.runtime.clock import Entropy

# Those in which objects speak for the cluster are made before anybody can connect: nobody is the first to have one.
NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease", *MADE_HERE)
RBAC = "rbac.authorization.k8s.io"
AUTHENTICATION = Key("", "configmaps", "kube-system", "extension-apiserver-authentication")
ROOT = Key("", "configmaps", "kube-system", ROOT_CA)
NODE_FACTS = Key(MACHINE_CONFIG, "controllerconfigs", "", SINGLETON)
# The tenth address of the block that Kubernetes gives to services by default; nothing here routes to it.
CLUSTER_DNS = "10.96.0.10"
API_SERVER = "https://kubernetes.default.svc"
PRIVILEGED = "privileged"
_PLURALS = {
    "ClusterRole": "clusterroles", "ClusterRoleBinding": "clusterrolebindings", "Role": "roles", "RoleBinding": "rolebindings",
}  # fmt: skip


class _Wanted(NamedTuple):
    key: Key
    obj: JsonObject


async def seed(store: Store, entropy: Entropy, now: datetime, authorities: str) -> int:
    """Write what is missing; the number of objects written. `authorities` (PEM) are those of this API, server and clients."""
    changes = [
        change
        for first in (
            *_namespaces(now),
            *_roles(),
            *_definitions(now),
            *_platform(),
            *_node_facts(),
            *_published(authorities),
        )
        if (change := _change(store.get(first.key), first, entropy, now)) is not None  # one set aside is made anew
    ]
    if not changes:
        return 0

    def make(revision: int) -> list[WriteStep]:
        return [_stamped(key, obj, head, revision + index) for index, (key, obj, head) in enumerate(changes)]

    # One write: a first start that dies in the middle leaves a store with everything or with nothing, never with half of RBAC.
    await store.write(make)
    return len(changes)


def _stamped(key: Key, obj: JsonObject, head: Record | None, revision: int) -> WriteStep:
    meta = {**obj["metadata"], "resourceVersion": str(revision)}
    return WriteStep(key, json.encode({**obj, "metadata": meta}), head.revision if head else None)


def _change(
    head: Record | None, first: _Wanted, entropy: Entropy, now: datetime
) -> tuple[Key, JsonObject, Record | None] | None:
    if head is None:
        meta = {"uid": entropy.uid(), "creationTimestamp": rfc3339(now), **first.obj["metadata"]}
        return first.key, {**first.obj, "metadata": meta}, None
    current = storable.read(head.body)
    if first.key.group == RBAC:
        merged = reconciled(current, first.obj)
        return (first.key, merged, head) if merged is not None else None
    if first.key in (AUTHENTICATION, ROOT) and current.get("data") != first.obj["data"]:
        return first.key, {**current, "data": first.obj["data"]}, head
    if first.key == NODE_FACTS:
        return _completed(current, first, head)
    if first.key[:2] == CRD_KEY and current["spec"] != first.obj["spec"]:
        generation = int(current["metadata"].get("generation") or 1) + 1
        meta = {**current["metadata"], "generation": generation}
        return first.key, {**first.obj, "metadata": meta}, head
    return None


def _completed(current: JsonObject, first: _Wanted, head: Record) -> tuple[Key, JsonObject, Record] | None:
    """The object with what it lacks; whatever it says stays. Earlier versions of this program stated less."""
    meta, stated = current["metadata"], current.get("spec") or {}
    notes = {**first.obj["metadata"]["annotations"], **(meta.get("annotations") or {})}
    spec = {**first.obj["spec"], **stated}
    if spec == stated and notes == meta.get("annotations"):
        return None
    generation = int(meta.get("generation") or 1) + (spec != stated)
    return (
        first.key,
        {**current, "metadata": {**meta, "annotations": notes, "generation": generation}, "spec": spec},
        head,
    )


def _namespaces(now: datetime) -> Iterator[_Wanted]:
    for name in NAMESPACES:
        yield _Wanted(
            Key("", "namespaces", "", name),
            {
                "apiVersion": "v1", "kind": "Namespace",
                "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}},
                "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"},
            },
        )  # fmt: skip


def _platform() -> Iterator[_Wanted]:
    """What an installed OpenShift has and manuals look up: platform, topology, proxy, and the constraint for privileged pods."""
    yield _Wanted(Key("config.openshift.io", "infrastructures", "", "cluster"), _infrastructure())
    yield _Wanted(
        Key("config.openshift.io", "proxies", "", "cluster"),
        {"apiVersion": "config.openshift.io/v1", "kind": "Proxy", "metadata": {"name": "cluster"}, "spec": {}},
    )
    anyone = {"type": "RunAsAny"}
    yield _Wanted(
        Key("security.openshift.io", "securitycontextconstraints", "", PRIVILEGED),
        {
            "apiVersion": "security.openshift.io/v1", "kind": "SecurityContextConstraints", "metadata": {"name": PRIVILEGED},
            "allowPrivilegedContainer": True, "allowedCapabilities": ["*"], "volumes": ["*"], "readOnlyRootFilesystem": False,
            "seLinuxContext": anyone, "runAsUser": anyone, "fsGroup": anyone, "supplementalGroups": anyone, "priority": None,
            "users": [], "groups": [],
        },
    )  # fmt: skip
    name = f"system:openshift:scc:{PRIVILEGED}"
    rule = {"apiGroups": ["security.openshift.io"], "resources": ["securitycontextconstraints"],
            "resourceNames": [PRIVILEGED], "verbs": ["use"]}  # fmt: skip
    yield _Wanted(
        Key(RBAC, _PLURALS["ClusterRole"], "", name),
        {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": [rule]},
    )


def _published(authorities: str) -> Iterator[_Wanted]:
    """Whom clients believe, and whose client certificates count: servers beside the API, and what makes nodes, look them up.

    A loop has the first of them in every namespace; here it is there before anything starts.
    """
    for key, data in ((ROOT, {"ca.crt": authorities}), (AUTHENTICATION, {"client-ca-file": authorities})):
        meta = {"name": key.name, "namespace": key.namespace}
        yield _Wanted(key, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data})


def _node_facts() -> Iterator[_Wanted]:
    """What this control plane says about itself to whoever makes configurations of nodes; a person may change all of it."""
    notes = {names.DISTRIBUTION: "kubernetes", names.CONTAINER_RUNTIME: "crio"}
    yield _Wanted(
        NODE_FACTS,
        {
            "apiVersion": names.API_VERSION, "kind": "ControllerConfig",
            "metadata": {"name": SINGLETON, "generation": 1, "annotations": notes},
            "spec": {"clusterDNSIP": CLUSTER_DNS, "ipFamilies": "IPv4", "infra": _infrastructure()},
        },
    )  # fmt: skip


def _infrastructure() -> JsonObject:
    """The platform and the topology of this control plane; without a name, which an installer gives."""
    # The name is in the API's certificate. Machines that are simulated never dial it.
    status = {"apiServerInternalURI": API_SERVER, "platform": "None", "platformStatus": {"type": "None"},
              "controlPlaneTopology": "HighlyAvailable"}  # fmt: skip
    return {
        "apiVersion": "config.openshift.io/v1", "kind": "Infrastructure", "metadata": {"name": "cluster"}, "spec": {},
        "status": status,
    }  # fmt: skip


def _roles() -> Iterable[_Wanted]:
    for obj in bootstrap_objects((*native.default_roles(), *roles())):
        meta = obj["metadata"]
        yield _Wanted(Key(RBAC, _PLURALS[obj["kind"]], meta.get("namespace", ""), meta["name"]), obj)


def _definitions(now: datetime) -> Iterator[_Wanted]:
    for manifest in crd.manifests():
        definition = builtin_crd(manifest, now, "0")
        # A round trip gives the form in which it will be read back, so that the next start sees no difference.
        yield _Wanted(Key(*CRD_KEY, "", definition["metadata"]["name"]), json.decode(json.encode(definition)))
