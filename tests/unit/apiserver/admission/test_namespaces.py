"""Nothing is created where nothing may live."""

from __future__ import annotations

import pytest

from fastness.kube.admission import Allowed, Denied, DeniedCause
from tests.unit.admission.writes import World, review, write

CONFIG_MAP = {"metadata": {"name": "c"}}
DYING = {"gone": {"metadata": {"name": "gone", "deletionTimestamp": "2026-11-15T00:00:00Z"}},
         "ending": {"metadata": {"name": "ending"}, "status": {"phase": "Terminating"}}}  # fmt: skip


def test_missing_namespace_is_not_found() -> None:
    answer = review(write("CREATE", "configmaps", CONFIG_MAP, namespace="nowhere"), World())
    assert answer == Denied('namespaces "nowhere" not found', 404, "NotFound", about=("namespaces", "nowhere"))


@pytest.mark.parametrize("namespace", ["gone", "ending"])
def test_terminating_namespace_takes_no_new_objects(namespace: str) -> None:
    answer = review(write("CREATE", "configmaps", CONFIG_MAP, namespace=namespace), World(namespaces=DYING))
    message = f'configmaps "c" is forbidden: unable to create new content in namespace {namespace} because it is being terminated'
    cause = DeniedCause("metadata.namespace", "NamespaceTerminating", f"namespace {namespace} is being terminated")
    assert answer == Denied(message, causes=(cause,))


@pytest.mark.parametrize("operation", ["UPDATE", "DELETE"])
def test_terminating_namespace_lets_its_objects_go(operation: str) -> None:
    request = write(operation, "configmaps", CONFIG_MAP, CONFIG_MAP, namespace="gone")
    assert review(request, World(namespaces=DYING)) == Allowed()


def test_objects_of_the_cluster_need_no_namespace() -> None:
    assert review(write("CREATE", "nodes", {"metadata": {"name": "n"}}), World(namespaces={})) == Allowed()
    assert review(write("CREATE", "namespaces", {"metadata": {"name": "n"}}, namespace="n"), World()) == Allowed()


def test_questions_may_name_any_namespace() -> None:
    request = write("CREATE", "localsubjectaccessreviews.authorization.k8s.io", {}, namespace="nowhere")
    assert review(request, World()) == Allowed()


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public", "kube-node-lease"])
def test_namespaces_of_the_cluster_itself_stay(name: str) -> None:
    answer = review(write("DELETE", "namespaces", None, {"metadata": {"name": name}}), World())
    assert answer == Denied(f'namespaces "{name}" is forbidden: this namespace may not be deleted')


def test_other_namespaces_may_go() -> None:
    assert review(write("DELETE", "namespaces", None, {"metadata": {"name": "mine"}}), World()) == Allowed()
