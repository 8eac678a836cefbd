"""What a node may write into its own objects: status, not its place in the cluster."""

from __future__ import annotations

from typing import Any

import pytest

from fastness.kube.access.node import MCO_GROUP
from fastness.kube.access.node_restriction import MIRROR_ANNOTATION, refuse_node_token, refuse_node_write

Object = dict[str, Any]


def node(name: str = "n1", labels: dict[str, str] | None = None, **more: Any) -> Object:
    meta: Object = {"name": name, "labels": labels or {}, **more.pop("metadata", {})}
    return {"metadata": meta, "spec": more.pop("spec", {}), **more}


def words(reason: str | None) -> str:
    """What a refusal says; there must be one."""
    assert reason is not None
    return reason


def write_node(new: Object, old: Object | None = None) -> str | None:
    return refuse_node_write("n1", "UPDATE" if old is not None else "CREATE", "", "nodes", "", new, old)


def test_node_registers_itself_with_taints_and_descriptive_labels() -> None:
    new = node(labels={"kubernetes.io/hostname": "n1", "example.com/rack": "7"}, spec={"taints": [{"key": "x"}]})
    assert write_node(new) is None


def test_node_registers_nobody_else() -> None:
    assert "only its own" in words(write_node(node("n2")))
    assert "only its own" in words(refuse_node_write("n1", "UPDATE", "", "nodes", "status", node("n2"), node("n2")))


def test_node_is_not_deleted_by_nodes() -> None:
    assert refuse_node_write("n1", "DELETE", "", "nodes", "", None, node())


@pytest.mark.parametrize(
    ("label", "allowed"),
    [
        ("kubernetes.io/hostname", True),
        ("kubernetes.io/arch", True),
        ("topology.kubernetes.io/zone", True),
        ("node.kubernetes.io/instance-type", True),
        ("kubelet.kubernetes.io/anything", True),
        ("example.com/rack", True),
        ("rack", True),
        ("node-restriction.kubernetes.io/fips", False),
        ("a.node-restriction.kubernetes.io/fips", False),
        ("node-role.kubernetes.io/master", False),
        ("node-role.kubernetes.io/worker", False),
        ("kubernetes.io/role", False),
        ("other.k8s.io/x", False),
        ("machineconfiguration.openshift.io/role", False),
        ("node.openshift.io/os_id", False),
        ("fastness.dev/attested", False),
        ("evil-kubernetes.io/x", True),
    ],
)
def test_labels_that_place_a_node_are_not_its_own_to_set_change_or_remove(label: str, allowed: bool) -> None:
    bare, labelled, two = node(), node(labels={label: "1"}), node(labels={label: "2"})
    for new, old in ((labelled, None), (labelled, bare), (two, labelled), (bare, labelled)):
        assert (write_node(new, old) is None) is allowed
    assert write_node(labelled, labelled) is None


def test_taints_do_not_change_after_registration() -> None:
    tainted = node(spec={"taints": [{"key": "x", "effect": "NoSchedule"}]})
    assert "taints" in words(write_node(node(), tainted))
    assert "taints" in words(write_node(tainted, node()))
    assert write_node(tainted, tainted) is None


def test_owner_references_are_not_set_by_nodes() -> None:
    owned = node(metadata={"ownerReferences": [{"name": "x", "uid": "u"}]})
    assert "ownerReferences" in words(write_node(owned, node()))
    assert "ownerReferences" in words(write_node(owned))
    assert "ownerReferences" in words(write_node(node(), owned))


def annotated(**notes: str) -> Object:
    return node(metadata={"annotations": {f"{MCO_GROUP}/{key}": value for key, value in notes.items()}})


def test_node_does_not_choose_its_configuration() -> None:
    for key in ("desiredConfig", "desiredImage"):
        assert "configuration" in words(write_node(annotated(**{key: "rendered-master-1"}), node()))
        assert "configuration" in words(write_node(annotated(**{key: "rendered-master-1"})))
        assert "configuration" in words(write_node(node(), annotated(**{key: "rendered-worker-1"})))


def test_node_reports_as_current_only_what_was_desired_of_it() -> None:
    instructed = annotated(desiredConfig="rendered-worker-2", currentConfig="rendered-worker-1")
    assert (
        write_node(annotated(desiredConfig="rendered-worker-2", currentConfig="rendered-worker-2"), instructed) is None
    )
    unchanged = annotated(desiredConfig="rendered-worker-2", currentConfig="rendered-worker-1", state="Done")
    assert write_node(unchanged, instructed) is None
    other = annotated(desiredConfig="rendered-worker-2", currentConfig="rendered-master-1")
    assert "currentConfig" in words(write_node(other, instructed))
    assert "currentConfig" in words(write_node(annotated(currentConfig="rendered-master-1")))


def test_node_writes_status_but_not_spec_of_its_machine_config_node() -> None:
    def write(sub: str, new: Object, old: Object | None, operation: str = "UPDATE") -> str | None:
        return refuse_node_write("n1", operation, MCO_GROUP, "machineconfignodes", sub, new, old)

    old = node(spec={"configVersion": {"desired": "rendered-worker-1"}})
    new = node(spec={"configVersion": {"desired": "rendered-master-1"}})
    assert "spec" in words(write("", new, old))
    assert write("status", {**old, "status": {"x": 1}}, old) is None
    assert write("", old, old) is None
    assert write("status", node("n2"), node("n2"))
    assert write("", old, None, "CREATE")
    assert write("", {}, old, "DELETE")
    assert "ownerReferences" in words(write("status", node(metadata={"ownerReferences": [{}]}), node()))


def pod(node_name: str, annotations: dict[str, str] | None = None, **spec: Any) -> Object:
    meta = {"name": "p", "namespace": "d", "uid": "u1", "annotations": annotations or {}}
    return {"metadata": meta, "spec": {"nodeName": node_name, **spec}}


def test_node_creates_only_mirror_pods_of_its_own() -> None:
    def create(new: Object) -> str | None:
        return refuse_node_write("n1", "CREATE", "", "pods", "", new, None)

    mirror = {MIRROR_ANNOTATION: "hash"}
    assert create(pod("n1", mirror)) is None
    assert "mirror" in words(create(pod("n1")))
    assert "bound to it" in words(create(pod("n2", mirror)))
    assert "service account" in words(create(pod("n1", mirror, serviceAccountName="bot")))
    assert "secrets/s" in words(create(pod("n1", mirror, volumes=[{"secret": {"secretName": "s"}}])))


def test_node_writes_status_of_its_own_pods_only() -> None:
    def status(new: Object, old: Object) -> str | None:
        return refuse_node_write("n1", "UPDATE", "", "pods", "status", new, old)

    assert status(pod("n1"), pod("n1")) is None
    assert status(pod("n2"), pod("n2"))
    assert status(pod("n1"), pod("n2"))
    relabelled = pod("n1")
    relabelled["metadata"]["labels"] = {"app": "x"}
    assert "labels" in words(status(relabelled, pod("n1")))


def test_node_removes_its_own_pods_only() -> None:
    for operation, sub in (("DELETE", ""), ("CREATE", "eviction")):
        assert refuse_node_write("n1", operation, "", "pods", sub, {}, pod("n1")) is None
        assert refuse_node_write("n1", operation, "", "pods", sub, {}, pod("n2"))


def test_node_writes_its_own_lease_only() -> None:
    def lease(namespace: str, name: str) -> str | None:
        new = {"metadata": {"namespace": namespace, "name": name}}
        return refuse_node_write("n1", "CREATE", "coordination.k8s.io", "leases", "", new, None)

    assert lease("kube-node-lease", "n1") is None
    assert lease("kube-node-lease", "n2")
    assert lease("kube-system", "n1")


@pytest.mark.parametrize("operation", ["CREATE", "UPDATE"])
def test_node_writes_its_own_csinode_only(operation: str) -> None:
    def refused(name: str) -> str | None:
        return refuse_node_write("n1", operation, "storage.k8s.io", "csinodes", "", {"metadata": {"name": name}}, None)

    assert refused("n1") is None
    assert refused("n2")


def test_node_asks_for_tokens_of_pods_that_run_on_it() -> None:
    def ask(reference: Object | None, runs_on: str = "n1") -> str | None:
        def find(namespace: str, name: str) -> Object | None:
            return pod(runs_on) if (namespace, name) == ("d", "p") else None

        return refuse_node_token("n1", "d", {"spec": {"boundObjectRef": reference}}, find)

    assert ask({"kind": "Pod", "name": "p", "uid": "u1"}) is None
    assert ask({"kind": "Pod", "name": "p", "uid": "u1"}, runs_on="n2")
    assert ask({"kind": "Pod", "name": "p", "uid": "u2"})
    assert ask({"kind": "Pod", "name": "gone", "uid": "u1"})
    assert ask({"kind": "Pod", "name": "p"})
    assert ask({"kind": "Secret", "name": "p", "uid": "u1"})
    assert ask(None)


def feature(name: str = "n1", about: str = "n1", **labels: str) -> Object:
    meta = {"name": name, "labels": {"nfd.node.kubernetes.io/node-name": about}}
    return {"metadata": meta, "spec": {"features": {}, "labels": labels}}


@pytest.mark.parametrize("group", ["nfd.openshift.io", "nfd.k8s-sigs.io"])
@pytest.mark.parametrize(
    ("new", "old", "why"),
    [
        (feature(), None, None),
        (feature(), feature(), None),
        (None, feature(), None),
        (feature("n2", "n2"), None, "own name"),
        (feature("n1", "n2"), None, "only about itself"),
        (feature("n1", ""), None, "only about itself"),
        (feature("n1", "n2"), feature(), "only about itself"),
        (None, feature("n2", "n2"), "own name"),
        (feature("other"), None, "own name"),
    ],
)
def test_node_tells_only_about_itself_what_was_found(
    group: str, new: Object | None, old: Object | None, why: str | None
) -> None:
    operation = "DELETE" if new is None else "CREATE" if old is None else "UPDATE"
    reason = refuse_node_write("n1", operation, group, "nodefeatures", "", new, old)
    assert reason is None if why is None else why in words(reason)


@pytest.mark.parametrize(
    ("label", "allowed"),
    [
        ("plain", True), ("feature.node.kubernetes.io/x", True), ("intel.feature.node.kubernetes.io/tdx", True),
        ("profile.node.kubernetes.io/x", True), ("example.com/rack", True), ("node-role.kubernetes.io/master", False),
        ("attested.fastness.dev/tee", False), ("kataconfiguration.openshift.io/kata-ds-rpm-install", False),
        ("node-restriction.kubernetes.io/x", False),
    ],
)  # fmt: skip
def test_node_asks_through_its_features_for_no_more_than_it_may_set(label: str, allowed: bool) -> None:
    reason = refuse_node_write("n1", "CREATE", "nfd.openshift.io", "nodefeatures", "", feature(**{label: "true"}), None)
    assert (reason is None) is allowed
