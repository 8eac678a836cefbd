"""Who removes the operator is told what still needs it, and nobody else hears of it."""

from __future__ import annotations

import pytest

from fastness.kube.admission import Allowed
from tests.unit.admission.writes import Object, World, review, write

NS = "openshift-sandboxed-containers-operator"
CSV = "sandboxed-containers-operator.v1.12.0"
KATA: Object = {"metadata": {"name": "example-kataconfig"}}
GOING: Object = {"metadata": {"name": "example-kataconfig", "deletionTimestamp": "2026-01-01T00:00:00Z"}}


def warnings(resource: str, name: str, namespace: str, *configs: Object) -> tuple[str, ...]:
    answer = review(write("DELETE", resource, name=name, namespace=namespace), World(all_kata=list(configs)))
    assert isinstance(answer, Allowed)
    return answer.warnings


@pytest.mark.parametrize(
    ("resource", "name", "namespace"),
    [
        ("namespaces", NS, ""),
        ("subscriptions.operators.coreos.com", "sandboxed-containers-operator", NS),
        ("clusterserviceversions.operators.coreos.com", CSV, NS),
    ],
)
def test_removing_the_operator_before_the_kataconfig_warns(resource: str, name: str, namespace: str) -> None:
    (warning,) = warnings(resource, name, namespace, KATA)
    assert warning.startswith("KataConfig example-kataconfig still exists: delete it first")
    assert warnings(resource, name, namespace) == warnings(resource, name, namespace, GOING) == ()


@pytest.mark.parametrize(
    ("resource", "name", "namespace"),
    [
        ("namespaces", "payments", ""),
        ("subscriptions.operators.coreos.com", "nfd", "openshift-nfd"),
        ("subscriptions.operators.coreos.com", "other", NS),
    ],
)
def test_other_deletions_are_none_of_its_business(resource: str, name: str, namespace: str) -> None:
    assert warnings(resource, name, namespace, KATA) == ()
