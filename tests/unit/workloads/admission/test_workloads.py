"""What a namespace asks of confidential workloads, and where they must not be."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fastness.admission.table import BEHIND_WEBHOOK, PODDED
from fastness.formats.initdata import encode_init_data, write_init_data
from fastness.kube.admission import Allowed, Answer, Denied, PolicyTrial
from fastness.workloads.admission.workloads import CLASSES, ENFORCEMENT, OPERATOR_NAMESPACES, REQUIRE, requirements_of
from fastness.workloads.agent_policy.generate import policy_of
from fastness.workloads.initdata.workload import ANNOTATION, OLD_ANNOTATIONS
from tests.unit.admission.writes import World, review, write

Object = dict[str, Any]
OPEN = "package agent_policy\n\ndefault ExecProcessRequest := true\n"


def container(name: str = "a") -> Object:
    return {"name": name, "image": "example.com/a@sha256:" + "0" * 64, "command": ["sleep"]}


def pod(initdata: str = "", runtime: str = "kata-cc", **annotations: str) -> Object:
    notes = {**annotations, **({ANNOTATION: initdata} if initdata else {})}
    spec = {"containers": [container()], **({"runtimeClassName": runtime} if runtime else {})}
    return {"metadata": {"name": "p", "namespace": "d", "annotations": notes}, "spec": spec}


def packed(policy: str | None) -> str:
    return encode_init_data(write_init_data("sha256", {"policy.rego": policy} if policy is not None else {}).encode())


RESTRICTIVE = packed(policy_of({**pod(), "kind": "Pod", "apiVersion": "v1"}))


def namespace(level: str = "deny", **annotations: str) -> Object:
    named = {REQUIRE: annotations.get("require"), CLASSES: annotations.get("classes")}
    return {
        "metadata": {
            "name": "d",
            "labels": {ENFORCEMENT: level} if level else {},
            "annotations": {name: value for name, value in named.items() if value is not None},
        }
    }


def world(**changes: Any) -> World:
    given: Object = {
        "namespaces": {"d": namespace()},
        "classes": {"kata": {"handler": "kata"}, "kata-cc": {"handler": "kata-tdx"}, "gvisor": {"handler": "runsc"}},
    }
    return World(**{**given, **changes})


def created(obj: Object, where: World, namespace: str = "d", trial: PolicyTrial | None = None) -> Answer:
    return review(replace(write("CREATE", "pods", obj, namespace=namespace, kind="Pod"), trial=trial), where)


def test_pod_with_everything_that_is_asked_for_passes_without_a_word() -> None:
    assert created(pod(RESTRICTIVE), world()) == Allowed()


@pytest.mark.parametrize(
    ("obj", "field", "reason"),
    [
        (pod(RESTRICTIVE, runtime=""), "spec.runtimeClassName", "it has no runtime class and is not confidential"),
        (
            pod(RESTRICTIVE, runtime="kata"),
            "spec.runtimeClassName",
            "runtime class kata is not allowed here (Use kata-cc.)",
        ),
        (pod(RESTRICTIVE, runtime="gvisor"), "spec.runtimeClassName", "runtime class gvisor is not allowed here"),
        (pod(), ANNOTATION, "it carries no init data (Add it with `fastness initdata apply`.)"),
        (pod(**{OLD_ANNOTATIONS[1]: "x"}), ANNOTATION, f"nothing reads the annotation {OLD_ANNOTATIONS[1]}"),
        (pod("%%%"), ANNOTATION, "base64"),
        (pod(RESTRICTIVE[:-9]), ANNOTATION, ""),
        (pod(packed(None)), ANNOTATION, "no agent policy"),
        (pod(packed(OPEN)), ANNOTATION, "not restrictive: ExecProcessRequest (default in line 3)"),
        (pod(packed("package other\n")), ANNOTATION, "the agent asks agent_policy"),
        (pod(encode_init_data(b'version = "0.1.0"\nalgorithm = "md5"\n[data]\n')), ANNOTATION, "algorithm is 'md5'"),
    ],
)
def test_pod_that_lacks_something_is_refused_with_field_reason_and_advice(obj: Object, field: str, reason: str) -> None:
    answer = created(obj, world())
    assert isinstance(answer, Denied)
    assert (answer.code, answer.reason) == (403, "Forbidden")
    assert answer.message.startswith('pods "p" is forbidden: namespace d does not allow it: ')
    assert reason in answer.message
    assert any(field in cause.field for cause in answer.causes)


def test_warnings_take_the_place_of_refusals_where_the_namespace_only_warns() -> None:
    answer = created(pod(packed(OPEN)), world(namespaces={"d": namespace("warn")}))
    assert isinstance(answer, Allowed)
    assert "not restrictive" in answer.warnings[0]


def test_a_switch_that_nobody_understands_counts_as_deny() -> None:
    assert isinstance(created(pod(), world(namespaces={"d": namespace("audit")})), Denied)
    requirements = requirements_of(namespace(require="nonsense"))
    assert requirements is not None
    assert requirements.requirements == ("initdata", "agent-policy", "runtime-class")


def test_only_what_is_required_is_asked_for() -> None:
    only = world(namespaces={"d": namespace(require="runtime-class")})
    assert created(pod(), only) == Allowed()
    data = world(namespaces={"d": namespace(require=" initdata ,")})
    assert created(pod(packed(OPEN)), data) == Allowed()
    assert isinstance(created(pod(), data), Denied)


def test_a_namespace_can_name_its_classes() -> None:
    named = world(namespaces={"d": namespace(require="runtime-class", classes="gvisor, kata")})
    assert created(pod(runtime="gvisor"), named) == Allowed()
    refused = created(pod(runtime="kata-cc"), named)
    assert isinstance(refused, Denied)
    assert "Use gvisor or kata." in refused.message


def test_what_the_engine_finds_counts_as_well() -> None:
    answer = created(pod(RESTRICTIVE), world(), trial=PolicyTrial(("ExecProcessRequest",)))
    assert isinstance(answer, Denied)
    assert "a rule that anything satisfies" in answer.message
    assert isinstance(created(pod(RESTRICTIVE), world(), trial=PolicyTrial((), "line 3: unexpected token")), Denied)


@pytest.mark.parametrize(("group", "resource"), PODDED)
def test_every_kind_of_workload_is_judged_by_its_template(group: str, resource: str) -> None:
    kinds = {"pods": "Pod", "replicationcontrollers": "ReplicationController", "deployments": "Deployment",
             "replicasets": "ReplicaSet", "statefulsets": "StatefulSet", "daemonsets": "DaemonSet", "jobs": "Job",
             "cronjobs": "CronJob", "deploymentconfigs": "DeploymentConfig"}  # fmt: skip
    template = pod(packed(OPEN))
    spec: Object = {"template": template}
    whole = {"pods": template, "cronjobs": {"spec": {"jobTemplate": {"spec": spec}}}}.get(resource, {"spec": spec})
    obj = {**whole, "metadata": {**template["metadata"]}}
    name = f"{resource}.{group}" if group else resource
    answer = review(write("CREATE", name, obj, namespace="d", kind=kinds[resource]), world())
    assert isinstance(answer, Denied)
    assert "not restrictive" in answer.message


def test_update_that_changes_neither_class_nor_init_data_never_gets_stuck() -> None:
    old = pod(packed(OPEN))
    new = {**old, "metadata": {**old["metadata"], "labels": {"a": "b"}}}
    assert review(write("UPDATE", "pods", new, old, namespace="d", kind="Pod"), world()) == Allowed()
    worse = pod("%%%")
    assert isinstance(review(write("UPDATE", "pods", worse, old, namespace="d", kind="Pod"), world()), Denied)
    going = {**worse, "metadata": {**worse["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}
    assert review(write("UPDATE", "pods", going, old, namespace="d", kind="Pod"), world()) == Allowed()


@pytest.mark.parametrize("name", sorted(OPERATOR_NAMESPACES | {"with-an-operator"}))
def test_sandboxed_workload_in_the_namespace_of_an_operator_is_refused(name: str) -> None:
    where = world(namespaces={name: {"metadata": {"name": name}}}, operator_groups=("with-an-operator",))
    for obj in (pod(), pod(runtime="kata"), pod(RESTRICTIVE, runtime="")):
        answer = created(obj, where, name)
        assert isinstance(answer, Denied)
        assert "create a namespace of its own" in answer.message
    assert created(pod(runtime=""), where, name) == Allowed()
    assert created(pod(runtime="gvisor"), where, name) == Allowed()


def test_namespace_that_asks_for_nothing_gets_nothing() -> None:
    assert created(pod(packed(OPEN), runtime=""), world(namespaces={"d": namespace("")})) == Allowed()


@pytest.mark.parametrize(
    ("labels", "annotations", "message"),
    [
        ({ENFORCEMENT: "on"}, {}, "use warn or deny"),
        ({"workloads.fastness.dev/enforcment": "deny"}, {}, f"did you mean {ENFORCEMENT}?"),
        ({REQUIRE: "initdata"}, {}, "nobody reads"),
        ({}, {REQUIRE: "initdata,polcy"}, "use initdata, agent-policy, runtime-class"),
        ({}, {ENFORCEMENT: "deny"}, "nobody reads"),
    ],
)
def test_namespace_with_a_switch_that_protects_nothing_is_refused(
    labels: Object, annotations: Object, message: str
) -> None:
    obj = {"metadata": {"name": "d", "labels": labels, "annotations": annotations}}
    answer = review(write("CREATE", "namespaces", obj, kind="Namespace"), world())
    assert isinstance(answer, Denied)
    assert answer.code == 422
    assert message in answer.message


def test_template_with_an_unknown_class_is_accepted_with_what_exists() -> None:
    deployment = {"metadata": {"name": "p"}, "spec": {"template": pod(runtime="kata-xx")}}
    where = world(namespaces={"d": {"metadata": {"name": "d"}}})
    answer = review(write("CREATE", "deployments.apps", deployment, namespace="d", kind="Deployment"), where)
    warning = 'its pods will be refused: RuntimeClass "kata-xx" not found; there are: gvisor, kata, kata-cc'
    assert isinstance(answer, Allowed)
    assert warning in answer.warnings


@pytest.mark.parametrize(
    "spec", [None, "x", {"template": None}, {"template": {"spec": 5}}, {"template": {"spec": {}, "metadata": 1}}]
)
def test_shapes_that_validation_refuses_later_do_not_end_the_review(spec: Any) -> None:
    where = world(namespaces={"d": namespace("warn")})
    obj = {"metadata": {"name": "p"}, "spec": spec}
    answer = review(write("CREATE", "deployments.apps", obj, namespace="d", kind="Deployment"), where)
    assert isinstance(answer, Allowed)


def test_webhook_asks_what_a_real_server_does_not_know_itself() -> None:
    names = {row.rule.__name__ for row in BEHIND_WEBHOOK.rows}
    assert "class_is_applied" not in names
    assert {"namespace_gets_what_it_asks", "not_beside_an_operator", "lowering_is_confirmed"} <= names
