"""What a runtime class does to a pod."""

from __future__ import annotations

from typing import Any

import pytest

from fastness.kube.admission import Allowed, Answer, Denied, Patched
from tests.unit.admission.writes import World, review, write

Object = dict[str, Any]
KATA_CC: Object = {
    "handler": "kata-tdx",
    "overhead": {"podFixed": {"cpu": "250m", "memory": "350Mi", "tdx.intel.com/keys": "1"}},
    "scheduling": {
        "nodeSelector": {"node-role.kubernetes.io/kata-oc": ""},
        "tolerations": [{"key": "tee", "operator": "Exists"}],
    },
}


def created(spec: Object, **classes: Object) -> Answer:
    world = World(classes={"kata-cc": KATA_CC, "plain": {"handler": "runc"}, **classes})
    return review(write("CREATE", "pods", {"metadata": {"name": "p"}, "spec": spec}, namespace="d", kind="Pod"), world)


def test_pod_gets_overhead_selector_and_tolerations_of_its_class() -> None:
    answer = created({"runtimeClassName": "kata-cc", "nodeSelector": {"a": "b"}, "tolerations": [{"key": "x"}]})
    assert isinstance(answer, Patched)
    assert {operation["path"]: operation["value"] for operation in answer.patch} == {
        "/spec/overhead": KATA_CC["overhead"]["podFixed"],
        "/spec/nodeSelector": {"a": "b", "node-role.kubernetes.io/kata-oc": ""},
        "/spec/tolerations": [{"key": "x"}, {"key": "tee", "operator": "Exists"}],
    }


def test_pod_that_has_it_all_already_is_left_alone() -> None:
    same = {"cpu": "0.25", "memory": "358400Ki", "tdx.intel.com/keys": 1}
    scheduling = KATA_CC["scheduling"]
    spec = {"runtimeClassName": "kata-cc", "overhead": same, **scheduling}
    assert created(spec) == Allowed()


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"runtimeClassName": "nope"}, 'pod rejected: RuntimeClass "nope" not found (there are: kata-cc, plain)'),
        ({"overhead": {"cpu": "1"}}, "pod rejected: Pod Overhead set without corresponding RuntimeClass"),
        (
            {"runtimeClassName": "plain", "overhead": {"cpu": "1"}},
            "without corresponding RuntimeClass defined Overhead",
        ),
        (
            {"runtimeClassName": "kata-cc", "overhead": {"cpu": "1"}},
            "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
        ),
        (
            {"runtimeClassName": "kata-cc", "overhead": {"cpu": "x", "memory": "350Mi", "tdx.intel.com/keys": "1"}},
            "doesn't match",
        ),
        (
            {"runtimeClassName": "kata-cc", "nodeSelector": {"node-role.kubernetes.io/kata-oc": "no"}},
            "conflict: runtimeClass.scheduling.nodeSelector[node-role.kubernetes.io/kata-oc] = ; "
            "pod.spec.nodeSelector[node-role.kubernetes.io/kata-oc] = no",
        ),
    ],
)
def test_pod_that_contradicts_its_class_is_refused_in_the_words_of_kubernetes(spec: Object, message: str) -> None:
    answer = created(spec)
    assert isinstance(answer, Denied)
    assert answer.code == 403
    assert answer.message.startswith('pods "p" is forbidden: ')
    assert message in answer.message


def test_first_class_must_come_from_somewhere() -> None:
    world = World()
    obj = {"metadata": {"name": "p"}, "spec": {"runtimeClassName": "kata-cc"}}
    answer = review(write("CREATE", "pods", obj, namespace="d", kind="Pod"), world)
    assert isinstance(answer, Denied)
    assert "there are none: create a KataConfig first" in answer.message
