"""A node's credential touches its own objects and nothing of another node."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import pytest

from fastness.kube.access.node import _TABLE, MCO_GROUP, authorize_node
from fastness.kube.access.user import NODES, Attributes, User

Object = Mapping[str, Any]
NODE = User("system:node:n1", (NODES, "system:authenticated"))
VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")


def pod(namespace: str, name: str, node: str, **spec: Any) -> Object:
    return {
        "metadata": {"namespace": namespace, "name": name, "uid": f"uid-{name}"},
        "spec": {"nodeName": node, **spec},
    }


class World:
    """Two nodes with a pod each, a waiting pod, and what they refer to."""

    pods: tuple[Object, ...] = (
        pod("d", "mine", "n1", volumes=[{"secret": {"secretName": "s-mine"}}, {"configMap": {"name": "c-mine"}}],
            serviceAccountName="bot"),
        pod("d", "theirs", "n2", volumes=[{"secret": {"secretName": "s-theirs"}}], serviceAccountName="other"),
        pod("d", "waiting", "", volumes=[{"secret": {"secretName": "s-waiting"}}]),
    )  # fmt: skip

    def pod(self, namespace: str, name: str) -> Object | None:
        matches = (p for p in self.pods if p["metadata"]["namespace"] == namespace and p["metadata"]["name"] == name)
        return next(matches, None)

    def pods_on(self, node: str) -> Iterable[Object]:
        return [p for p in self.pods if p["spec"]["nodeName"] == node]

    def reads_trust(self, node: str) -> bool:
        return node != "confidential"

    def rendered_configs(self, node: str) -> Collection[str]:
        return {"n1": ["rendered-worker-1", "rendered-worker-2"]}.get(node, [])

    def __init__(self, barred: str | None = None, unproved: str | None = None) -> None:
        self._barred = barred
        self._unproved = unproved

    def unproved(self, node: str) -> str | None:
        return self._unproved

    def barred(self, node: str) -> str | None:
        return self._barred

    def signing_request(self, name: str) -> Object | None:
        owners = {"csr-mine": "system:node:n1", "csr-theirs": "system:node:n2"}
        return {"spec": {"username": owners[name]}} if name in owners else None


def allowed(verb: str, resource: str, name: str = "", namespace: str = "", group: str = "", fields: str = "",
            user: User = NODE) -> bool:  # fmt: skip
    resource, _, sub = resource.partition("/")
    attrs = Attributes(user, verb, group, "v1", resource, sub, namespace, name, field_selector=fields)
    return authorize_node(attrs, World()).allowed


# For each resource: the verbs allowed on the own object by name, then a list or watch that selects the own object.
OWN: dict[tuple[str, str, str], tuple[str, str, str]] = {
    # (group, resource, namespace): (own name, other name, verbs by name)
    ("", "nodes", ""): ("n1", "n2", "get list watch create update patch"),
    ("nfd.openshift.io", "nodefeatures", "d"): ("n1", "n2", "get list watch create update patch delete"),
    ("nfd.k8s-sigs.io", "nodefeatures", "d"): ("n1", "n2", "get list watch create update patch delete"),
    ("", "nodes/status", ""): ("n1", "n2", "get update patch"),
    (MCO_GROUP, "machineconfignodes", ""): ("n1", "n2", "get list watch update patch"),
    (MCO_GROUP, "machineconfignodes/status", ""): ("n1", "n2", "get update patch"),
    (MCO_GROUP, "machineconfigs", ""): ("rendered-worker-1", "rendered-master-1", "get"),
    (MCO_GROUP, "controllerconfigs", ""): ("machine-config-controller", "another", "get"),
    ("", "configmaps", "fastness-system"): ("kubeconfig-data", "config-public-keys", "get"),
    ("coordination.k8s.io", "leases", "kube-node-lease"): ("n1", "n2", "get create update patch delete"),
    ("storage.k8s.io", "csinodes", ""): ("n1", "n2", "get create update patch delete"),
    ("", "pods", "d"): ("mine", "theirs", "get list watch create delete"),
    ("", "pods/status", "d"): ("mine", "theirs", "get update patch"),
    ("", "pods/eviction", "d"): ("mine", "theirs", "create"),
    ("", "secrets", "d"): ("s-mine", "s-theirs", "get"),
    ("", "configmaps", "d"): ("c-mine", "c-other", "get"),
    ("", "serviceaccounts/token", "d"): ("bot", "other", "create"),
    ("certificates.k8s.io", "certificatesigningrequests", ""): ("csr-mine", "csr-theirs", "get list watch create"),
}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("key", OWN, ids=lambda key: key[1])
def test_own_objects_are_open_for_exactly_these_verbs(key: tuple[str, str, str], verb: str) -> None:
    group, resource, namespace = key
    own, _, verbs = OWN[key]
    name = "" if verb == "create" and "/" not in resource else own
    assert allowed(verb, resource, name, namespace, group) is (verb in verbs.split())


# The name of a new object is in its body: admission judges it (test_noderestriction.py).
@pytest.mark.parametrize(
    ("key", "verb"), [(key, verb) for key in OWN for verb in VERBS if verb != "create" or "/" in key[1]]
)
def test_objects_of_another_node_are_closed(key: tuple[str, str, str], verb: str) -> None:
    group, resource, namespace = key
    assert not allowed(verb, resource, OWN[key][1], namespace, group)


@pytest.mark.parametrize("verb", ["list", "watch", "deletecollection"])
@pytest.mark.parametrize("key", OWN, ids=lambda key: key[1])
def test_collections_are_closed_without_a_selector(key: tuple[str, str, str], verb: str) -> None:
    assert not allowed(verb, key[1], "", key[2], key[0])


@pytest.mark.parametrize(
    ("group", "resource", "namespace", "fields", "expected"),
    [
        ("", "nodes", "", "metadata.name=n1", True),
        ("", "nodes", "", "metadata.name=n2", False),
        ("", "nodes", "", "metadata.name!=n1", False),
        ("", "nodes", "", "metadata.name=n1,metadata.name=n2", True),
        (MCO_GROUP, "machineconfignodes", "", "metadata.name=n1", True),
        ("coordination.k8s.io", "leases", "kube-node-lease", "metadata.name=n1", False),
        ("", "pods", "", "spec.nodeName=n1", True),
        ("", "pods", "d", "spec.nodeName=n1", True),
        ("", "pods", "", "spec.nodeName=n2", False),
        ("", "pods", "", "spec.nodeName!=n1", False),
        ("", "pods", "", "metadata.name=mine", False),
        ("", "pods", "", "spec.nodeName=", False),
        ("", "pods", "", "=,=rubbish==", False),
        ("certificates.k8s.io", "certificatesigningrequests", "", "metadata.name=csr-mine", True),
        ("certificates.k8s.io", "certificatesigningrequests", "", "metadata.name=csr-theirs", False),
    ],
)  # fmt: skip
def test_lists_must_select_what_is_their_own(
    group: str, resource: str, namespace: str, fields: str, expected: bool
) -> None:
    for verb in ("list", "watch"):
        assert allowed(verb, resource, "", namespace, group, fields) is expected


def test_secret_of_a_pod_that_waits_for_a_node_is_closed() -> None:
    assert not allowed("get", "secrets", "s-waiting", "d")


def test_secret_of_the_same_name_in_another_namespace_is_closed() -> None:
    assert not allowed("get", "secrets", "s-mine", "other")


def test_every_row_of_the_table_has_a_case() -> None:
    unlimited = {("", "events", ""), ("events.k8s.io", "events", ""), ("", "services", ""),
                 ("node.k8s.io", "runtimeclasses", ""), ("storage.k8s.io", "csidrivers", ""), ("", "persistentvolumeclaims", ""),
                 ("operator.openshift.io", "machineconfigurations", ""), (MCO_GROUP, "pinnedimagesets", "")}  # fmt: skip
    covered = {(group, *_split(resource)) for group, resource, _ in OWN}
    assert set(_TABLE) == covered | unlimited


def _split(resource: str) -> tuple[str, str]:
    name, _, sub = resource.partition("/")
    return name, sub


def test_what_all_nodes_may_do() -> None:
    assert allowed("create", "events", "", "d")
    assert not allowed("delete", "events", "e", "d")
    assert allowed("list", "services")
    assert allowed("watch", "runtimeclasses", group="node.k8s.io")
    assert allowed("get", "machineconfigurations", "cluster", group="operator.openshift.io")
    assert not allowed("patch", "machineconfigurations", "cluster", group="operator.openshift.io")


def test_a_node_reads_a_set_of_pinned_images_by_its_name_and_lists_none() -> None:
    assert allowed("get", "pinnedimagesets", "base", group=MCO_GROUP)
    for verb in ("list", "watch", "create", "patch", "update", "delete"):
        assert not allowed(verb, "pinnedimagesets", "base", group=MCO_GROUP)
        assert not allowed(verb, "pinnedimagesets", "", group=MCO_GROUP)


@pytest.mark.parametrize("resource", ["nodes/proxy", "namespaces", "serviceaccounts", "pods/exec", "pods/binding"])
def test_what_no_node_may_do(resource: str) -> None:
    assert not any(allowed(verb, resource, "n1", "d") for verb in VERBS)


@pytest.mark.parametrize(
    "user",
    [
        User("system:node:n1", ("system:authenticated",)),
        User("n1", (NODES,)),
        User("system:node:", (NODES,)),
        User("system:nodes:n1", (NODES,)),
    ],
)
def test_only_a_node_name_in_the_group_of_nodes_counts(user: User) -> None:
    assert not allowed("get", "nodes", "n1", user=user)


def test_paths_are_no_business_of_nodes() -> None:
    attrs = Attributes(NODE, "get", path="/metrics", is_resource_request=False)
    assert not authorize_node(attrs, World()).allowed


def test_refusal_says_what_was_missing() -> None:
    attrs = Attributes(NODE, "list", resource="pods")
    assert "spec.nodeName=n1" in authorize_node(attrs, World()).reason


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("key", OWN, ids=lambda key: key[1])
def test_a_machine_that_is_not_trusted_any_more_reads_itself_and_its_pods_alone(
    key: tuple[str, str, str], verb: str
) -> None:
    group, resource, namespace = key
    plain, _, sub = resource.partition("/")
    attrs = Attributes(NODE, verb, group, "v1", plain, sub, namespace, OWN[key][0])
    decision = authorize_node(attrs, World("its machine is in quarantine"))
    readable = plain in ("nodes", "pods", "machineconfignodes") and verb in ("get", "list", "watch")
    assert decision.denied is not readable, "no role may give it back"
    assert not decision.allowed or readable
    if not readable:
        assert "quarantine" in decision.reason


@pytest.mark.parametrize(
    ("verb", "group", "resource"),
    [
        ("get", "", "secrets"),
        ("list", "", "secrets"),
        ("get", "", "configmaps"),
        ("create", "", "serviceaccounts/token"),
        ("get", "machineconfiguration.openshift.io", "machineconfigs"),
    ],
)
def test_a_machine_without_a_proof_reads_nothing_secret_and_no_role_helps(verb: str, group: str, resource: str) -> None:
    plain, _, sub = resource.partition("/")
    attrs = Attributes(NODE, verb, group, "v1", plain, sub, "default", "x")
    decision = authorize_node(attrs, World(unproved="its machine has no live proof (ProofExpired)"))
    assert (decision.allowed, decision.denied) == (False, True)
    assert "ProofExpired" in decision.reason


def test_a_machine_without_a_proof_still_says_how_it_is() -> None:
    for verb, group, resource in (("patch", "", "nodes"), ("update", "coordination.k8s.io", "leases")):
        attrs = Attributes(NODE, verb, group, "v1", resource, "", "kube-node-lease", "n1")
        assert authorize_node(attrs, World(unproved="stale")).allowed


def test_where_attestation_is_enforced_no_credential_reads_whom_nodes_believe() -> None:
    confidential = User("system:node:confidential", NODE.groups)
    assert not allowed("get", "controllerconfigs", "machine-config-controller", "", MCO_GROUP, user=confidential)
    assert not allowed("get", "configmaps", "kubeconfig-data", "fastness-system", user=confidential)
