"""Deleting: finalizers, owners and what they own, collections, namespaces."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.kubectl.conftest import Kubectl
from tests.e2e.kubectl.objects import config_map


def owned_pair(kubectl: Kubectl) -> None:
    """`owner`, and `owned` that goes with it."""
    kubectl.ok("create", "-f", "-", stdin=config_map("owner"))
    uid = kubectl.ok("get", "cm", "owner", "-o", "jsonpath={.metadata.uid}").out
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid, "blockOwnerDeletion": True}
    kubectl.ok("create", "-f", "-", stdin=config_map("owned", ownerReferences=[reference]))


def test_delete_says_what_it_deleted_and_waits(kubectl: Kubectl, unique: str) -> None:
    kubectl.ok("create", "-f", "-", stdin=config_map("c"))
    assert kubectl.ok("delete", "cm", "c").out == f'configmap "c" deleted from {unique} namespace\n'
    assert "not found" in kubectl.refused("delete", "cm", "c")
    assert kubectl.ok("delete", "cm", "c", "--ignore-not-found").out == ""


def test_a_finalizer_holds_an_object_until_it_is_removed(kubectl: Kubectl) -> None:
    kubectl.ok("create", "-f", "-", stdin=config_map("c", finalizers=["tests.example/hold"]))
    kubectl.ok("delete", "cm", "c", "--wait=false")
    assert kubectl.ok("get", "cm", "c", "-o", "jsonpath={.metadata.deletionTimestamp}").out
    kubectl.ok("patch", "cm", "c", "--type", "merge", "-p", '{"metadata":{"finalizers":null}}')
    assert "not found" in kubectl.refused("get", "cm", "c")


def test_no_finalizer_is_added_while_an_object_goes(kubectl: Kubectl) -> None:
    kubectl.ok("create", "-f", "-", stdin=config_map("c", finalizers=["tests.example/hold"]))
    kubectl.ok("delete", "cm", "c", "--wait=false")
    more = '{"metadata":{"finalizers":["tests.example/hold","tests.example/more"]}}'
    assert "metadata.finalizers" in kubectl.refused("patch", "cm", "c", "--type", "merge", "-p", more)


@pytest.mark.parametrize("cascade", ["background", "foreground"])
def test_what_is_owned_goes_with_its_owner(kubectl: Kubectl, cascade: str) -> None:
    owned_pair(kubectl)
    kubectl.ok("delete", "cm", "owner", f"--cascade={cascade}", "--timeout=20s")
    kubectl.ok("wait", "--for=delete", "cm/owned", "--timeout=20s")


def test_orphans_stay_without_their_owner(kubectl: Kubectl) -> None:
    owned_pair(kubectl)
    kubectl.ok("delete", "cm", "owner", "--cascade=orphan", "--timeout=20s")
    assert kubectl.ok("get", "cm", "owned", "-o", "jsonpath={.metadata.ownerReferences}").out == ""


def test_all_and_labels_delete_collections(kubectl: Kubectl) -> None:
    for name, color in (("a", "red"), ("b", "red"), ("c", "green")):
        kubectl.ok("create", "-f", "-", stdin=config_map(name, labels={"color": color}))
    kubectl.ok("delete", "cm", "-l", "color=red")
    assert kubectl.ok("get", "cm", "-l", "color", "-o", "name").lines == ["configmap/c"]
    kubectl.ok("delete", "cm", "--all")
    assert kubectl.ok("get", "cm", "-l", "color", "-o", "name").lines == []


def test_a_dry_run_deletes_nothing(kubectl: Kubectl) -> None:
    kubectl.ok("create", "-f", "-", stdin=config_map("c"))
    assert "(server dry run)" in kubectl.ok("delete", "cm", "c", "--dry-run=server").out
    assert kubectl.ok("get", "cm", "c", "-o", "name").out == "configmap/c\n"


def test_a_namespace_takes_everything_with_it(kubectl: Kubectl, unique: str) -> None:
    kubectl.ok("create", "-f", "-", stdin=config_map("c"))
    kubectl.ok("create", "deployment", "web", "--image", "registry.example/web:1")
    assert kubectl.ok("delete", "namespace", unique, "--timeout=30s").out == f'namespace "{unique}" deleted\n'
    assert kubectl.ok("get", "cm,deploy", "-o", "name").lines == []
    assert f'namespaces "{unique}" not found' in kubectl.refused("create", "-f", "-", stdin=config_map("c"))


def test_a_namespace_that_goes_accepts_nothing_new_and_tells_what_it_waits_for(kubectl: Kubectl, unique: str) -> None:
    kubectl.ok("create", "-f", "-", stdin=config_map("c", finalizers=["tests.example/hold"]))
    kubectl.ok("delete", "namespace", unique, "--wait=false")
    kubectl.ok("wait", "--for=condition=NamespaceContentRemaining", f"ns/{unique}", "--timeout=20s")
    assert kubectl.ok("get", "ns", unique, "--no-headers").rows[0][1] == "Terminating"
    assert "because it is being terminated" in kubectl.refused("create", "-f", "-", stdin=config_map("d"))
    kubectl.ok("patch", "cm", "c", "--type", "merge", "-p", '{"metadata":{"finalizers":null}}')
    kubectl.ok("wait", "--for=delete", f"ns/{unique}", "--timeout=20s")


@pytest.mark.parametrize("name", ["default", "kube-system"])
def test_namespaces_that_the_cluster_needs_cannot_be_deleted(live: Any, name: str) -> None:
    outcome = live.kubectl("delete", "namespace", name)
    assert outcome.code == 1
    assert f'namespaces "{name}" is forbidden: this namespace may not be deleted' in outcome.err
