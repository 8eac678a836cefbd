"""What is refused in native objects, and for which field."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from fastness.apiserver.strategies import rules
from fastness.kube.errors import Cause

PEM = base64.b64encode(b"-----BEGIN CERTIFICATE REQUEST-----\n").decode()
REQUEST: dict[str, Any] = {"spec": {"request": PEM, "signerName": "example.com/s", "usages": ["client auth"]}}
REF = {"apiGroup": rules.RBAC_GROUP, "kind": "Role", "name": "r"}


def cause_fields(causes: list[Cause]) -> set[tuple[str, str]]:
    return {(cause.field, cause.reason.removeprefix("FieldValue")) for cause in causes}


def test_a_selector_selects_its_template_and_stays() -> None:
    spec = {"selector": {"matchLabels": {"a": "1"}}, "template": {"metadata": {"labels": {"a": "1"}}}}
    other = {**spec, "selector": {"matchLabels": {"a": "2"}}}
    assert not rules.deployment({"spec": spec}, {"spec": spec})
    assert cause_fields(rules.deployment({"spec": other}, None)) == {("spec.template.metadata.labels", "Invalid")}
    assert ("spec.selector", "Invalid") in cause_fields(rules.deployment({"spec": other}, {"spec": spec}))


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ({"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}, set()),
        ({"apiGroups": [""], "resources": ["pods"]}, {("rules[0].verbs", "Required")}),
        ({"verbs": ["get"]}, {("rules[0].apiGroups", "Required"), ("rules[0].resources", "Required")}),
        ({"verbs": ["get"], "nonResourceURLs": ["/x"]}, {("rules[0].nonResourceURLs", "Invalid")}),
    ],
)
def test_rules_of_a_role_are_about_resources(rule: dict[str, Any], expected: set[tuple[str, str]]) -> None:
    assert cause_fields(rules.role({"rules": [rule]}, None)) == expected


def test_a_cluster_role_may_speak_of_paths_but_not_of_both() -> None:
    paths = {"verbs": ["get"], "nonResourceURLs": ["/x"]}
    assert not rules.cluster_role({"rules": [paths]}, None)
    assert cause_fields(rules.cluster_role({"rules": [{**paths, "resources": ["pods"]}]}, None)) == {
        ("rules[0].nonResourceURLs", "Invalid")
    }


def test_a_cluster_binding_refers_to_a_cluster_role() -> None:
    assert not rules.role_binding({"roleRef": REF}, None)
    assert cause_fields(rules.cluster_role_binding({"roleRef": REF}, None)) == {("roleRef.kind", "NotSupported")}


def test_what_a_binding_refers_to_does_not_change() -> None:
    changed = {"roleRef": {**REF, "name": "more"}}
    assert cause_fields(rules.role_binding(changed, {"roleRef": REF})) == {("roleRef", "Invalid")}


def test_an_account_in_a_cluster_binding_has_a_namespace() -> None:
    binding = {"roleRef": {**REF, "kind": "ClusterRole"}, "subjects": [{"kind": "ServiceAccount", "name": "s"}]}
    assert cause_fields(rules.cluster_role_binding(binding, None)) == {("subjects[0].namespace", "Required")}


def test_a_signing_request_is_complete_from_the_start() -> None:
    assert not rules.signing_request(REQUEST, None)
    assert cause_fields(rules.signing_request({"spec": {"request": "!!", "signerName": "nobody"}}, None)) == {
        ("spec.request", "Invalid"), ("spec.usages", "Required"), ("spec.signerName", "Invalid"),
    }  # fmt: skip


def test_a_request_is_not_approved_and_denied_at_once() -> None:
    status = {"conditions": [{"type": "Approved"}, {"type": "Denied"}], "certificate": "bm9wZQ=="}
    assert cause_fields(rules.signing_request({**REQUEST, "status": status}, REQUEST)) == {
        ("status.conditions", "Invalid"), ("status.certificate", "Invalid"),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "data", "fields"),
    [
        ("kubernetes.io/tls", {"tls.crt": ""}, {"data[tls.key]"}),
        ("kubernetes.io/dockerconfigjson", {}, {"data[.dockerconfigjson]"}),
        ("kubernetes.io/dockerconfigjson", {".dockerconfigjson": "eA=="}, {"data[.dockerconfigjson]"}),
        ("kubernetes.io/dockerconfigjson", {".dockerconfigjson": "e30="}, set()),
        ("kubernetes.io/service-account-token", {}, {"metadata.annotations[kubernetes.io/service-account.name]"}),
        ("Opaque", {}, set()),
    ],
)
def test_a_secret_has_what_its_type_promises(kind: str, data: dict[str, str], fields: set[str]) -> None:
    assert {cause.field for cause in rules.secret_type({"metadata": {}, "type": kind, "data": data})} == fields


def test_a_refused_secret_does_not_show_its_value() -> None:
    hidden = base64.b64encode(b"hunter2").decode()
    causes = list(rules.secret_type({"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": hidden}}))
    assert causes
    assert not any("hunter2" in cause.message or hidden in cause.message for cause in causes)


def test_leases_last_and_priorities_stay() -> None:
    assert cause_fields(rules.lease({"spec": {"leaseDurationSeconds": 0, "leaseTransitions": -1}}, None)) == {
        ("spec.leaseDurationSeconds", "Invalid"), ("spec.leaseTransitions", "Invalid"),
    }  # fmt: skip
    assert cause_fields(rules.priority_class({"value": 2}, {"value": 1})) == {("value", "Forbidden")}
    assert not rules.priority_class({"value": 1}, {"value": 1})


def test_the_provider_of_a_node_is_set_once() -> None:
    first, two = {"spec": {"providerID": "x://1"}}, {"spec": {"providerID": "x://2"}}
    assert not rules.node(first, {})
    assert cause_fields(rules.node(two, first)) == {("spec.providerID", "Forbidden")}


def test_the_pods_of_a_job_end() -> None:
    def job(policy: str) -> dict[str, Any]:
        return {"spec": {"template": {"spec": {"restartPolicy": policy}}}}

    assert not rules.job(job("Never"), None)
    assert cause_fields(rules.job(job("Always"), None)) == {("spec.template.spec.restartPolicy", "Required")}
