"""Users' own kinds: a definition makes a kind at once, and deleting it takes the objects along."""

from __future__ import annotations

import pytest

from tests.e2e.kubectl.conftest import Kubectl
from tests.e2e.kubectl.objects import definition


@pytest.fixture
def group(kubectl: Kubectl, unique: str) -> str:
    """A group of this test's own, with the kind Widget."""
    group = f"{unique}.example.dev"
    kubectl.ok("apply", "-f", "-", stdin=definition(f"widget{unique}s", f"Widget{unique}", group, f"w{unique}"))
    kubectl.ok("wait", "--for=condition=Established", f"crd/widget{unique}s.{group}", "--timeout=10s")
    return group


def widget(group: str, unique: str, **spec: object) -> dict[str, object]:
    return {
        "apiVersion": f"{group}/v1",
        "kind": f"Widget{unique}",
        "metadata": {"name": "w"},
        "spec": {"size": 2, **spec},
    }


def test_built_in_kinds_stand_in_the_list_of_definitions(kubectl: Kubectl) -> None:
    names = kubectl.ok("get", "crd", "-o", "name").lines
    assert "customresourcedefinition.apiextensions.k8s.io/machineconfigs.machineconfiguration.openshift.io" in names


def test_a_definition_of_ours_cannot_be_deleted_by_mistake(kubectl: Kubectl) -> None:
    refusal = kubectl.refused("delete", "crd", "machineconfigs.machineconfiguration.openshift.io", "--timeout=5s")
    assert "machineconfigs.machineconfiguration.openshift.io" in refusal
    assert kubectl.ok("get", "mc").code == 0


def test_a_new_kind_is_served_with_defaults_columns_and_short_name(kubectl: Kubectl, unique: str, group: str) -> None:
    kubectl.ok("apply", "-f", "-", stdin=widget(group, unique))
    assert kubectl.ok("get", f"w{unique}").rows == [["NAME", "SIZE"], ["w", "2"]]
    assert kubectl.ok("get", f"w{unique}", "w", "-o", "jsonpath={.spec.color}").out == "green"


def test_explain_knows_a_new_kind(kubectl: Kubectl, unique: str, group: str) -> None:
    explanation = kubectl.ok("explain", f"widget{unique}s.spec.size").out
    assert "How many." in explanation


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ({"size": 0}, "spec.size: Invalid value: 0: spec.size must be at least 1"),
        ({"color": "blue"}, 'spec.color: Unsupported value: "blue": supported values: "red", "green"'),
        ({"color": "red", "size": 7}, "red ones are small"),
        ({"siz": 1}, 'unknown field "spec.siz"'),
    ],
)
def test_its_schema_and_rules_hold(
    kubectl: Kubectl, unique: str, group: str, spec: dict[str, object], complaint: str
) -> None:
    assert complaint in kubectl.refused("create", "-f", "-", stdin=widget(group, unique, **spec))


def test_scale_and_status_work_as_declared(kubectl: Kubectl, unique: str, group: str) -> None:
    kubectl.ok("create", "-f", "-", stdin=widget(group, unique))
    kubectl.ok("scale", f"w{unique}/w", "--replicas", "4")
    kubectl.ok("patch", f"w{unique}", "w", "--subresource", "status", "--type", "merge", "-p", '{"status":{"ready":3}}')
    numbers = kubectl.ok("get", f"w{unique}", "w", "-o", "jsonpath={.spec.size} {.status.ready} {.metadata.generation}")
    assert numbers.out == "4 3 2"


def test_deleting_a_definition_deletes_its_objects_and_the_kind(kubectl: Kubectl, unique: str, group: str) -> None:
    kubectl.ok("create", "-f", "-", stdin=widget(group, unique))
    kubectl.ok("delete", "crd", f"widget{unique}s.{group}", "--timeout=20s")
    refusal = kubectl.refused("get", f"widget{unique}s.{group}")
    assert "doesn't have a resource type" in refusal or "could not find the requested resource" in refusal
