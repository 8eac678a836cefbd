"""AdmissionReview v1 in and out, and what the API server is told to ask."""

from __future__ import annotations

import base64
from contextlib import suppress
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.admission.door.configuration import KATA_PATH, OUTSIDE, Reachable, configuration
from fastness.admission.door.reviews import BadReview, encode_answer, read_review
from fastness.admission.table import BEHIND_WEBHOOK
from fastness.kube.admission import MAX_WARNING, Allowed, Denied, Operation

Object = dict[str, Any]


def body(**changes: Any) -> bytes:
    request = {
        "uid": "u1", "operation": "CREATE", "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"}, "namespace": "d", "name": "p", "dryRun": True,
        "userInfo": {"username": "eve", "groups": ["dev"], "uid": "7"}, "object": {"metadata": {"name": "p"}}, "oldObject": None,
    }  # fmt: skip
    return orjson.dumps(
        {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {**request, **changes}}
    )


def test_review_becomes_the_request_of_the_rules() -> None:
    review = read_review(body())
    request = review.request
    assert review.uid == "u1"
    assert (request.operation, request.kind, request.resource, request.namespace, request.name) == (
        Operation.CREATE, "Pod", "pods", "d", "p",
    )  # fmt: skip
    assert (request.user.name, request.user.groups, request.dry_run) == ("eve", ("dev",), True)
    assert request.old is None


def test_object_without_a_name_goes_by_what_it_will_begin_with() -> None:
    review = read_review(body(name="", object={"metadata": {"generateName": "web-"}}))
    assert review.request.target == 'pods "web-"'


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        (b"{", "not JSON"),
        (b"[]", "not an AdmissionReview"),
        (orjson.dumps({"apiVersion": "admission.k8s.io/v1beta1", "kind": "AdmissionReview"}), "admission.k8s.io/v1"),
        (body(uid=""), "no uid"),
        (body(uid=5), "no uid"),
        (body(operation="STEAL"), "STEAL"),
        (body(object=[]), "object is not an object"),
        (body(object={"metadata": 5}), "metadata"),
    ],
)
def test_body_that_is_no_review_is_a_clients_mistake(sent: bytes, message: str) -> None:
    with pytest.raises(BadReview, match=message):
        read_review(sent)


KEYS = st.sampled_from(["uid", "operation", "object", "kind", "metadata", "request"])
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner),
    max_leaves=8,
)


@given(ANYTHING)
def test_reading_a_review_ends_in_one_or_in_a_bad_review(raw: Any) -> None:
    sent = orjson.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": raw})
    with suppress(BadReview):
        assert read_review(sent).uid


def test_answers_carry_status_or_warnings_that_the_server_does_not_cut() -> None:
    refused = orjson.loads(encode_answer("u1", Denied("no, because", 422, "Invalid")))["response"]
    assert refused == {
        "uid": "u1",
        "allowed": False,
        "status": {"code": 422, "reason": "Invalid", "message": "no, because"},
    }
    allowed = orjson.loads(encode_answer("u1", Allowed(("x" * 999,) * 50)))["response"]
    assert allowed["allowed"] is True
    assert len(allowed["warnings"]) == 16
    assert {len(text.encode()) for text in allowed["warnings"]} == {MAX_WARNING}


def rules() -> list[tuple[Object, Object]]:
    return [(entry, rule) for entry in configuration(Reachable(), "PEM")["webhooks"] for rule in entry["rules"]]


def test_every_rule_behind_the_webhook_is_asked_about() -> None:
    for row in BEHIND_WEBHOOK.rows:
        covered = {
            operation
            for _, rule in rules()
            if row.group in rule["apiGroups"] and row.resource in rule["resources"]
            for operation in rule["operations"]
        }
        assert {str(verb) for verb in row.operations} <= covered, row.rule.__name__


def test_only_advice_alarms_and_names_of_authors_pass_when_nobody_answers() -> None:
    policies = {entry["name"]: entry["failurePolicy"] for entry in configuration(Reachable(), "PEM")["webhooks"]}
    assert {name for name, policy in policies.items() if policy == "Ignore"} == {
        "advice.fastness.dev",
        "alarms.fastness.dev",
        "authors.fastness.dev",
        "feature-rules.fastness.dev",
        "not-acted-on.fastness.dev",
    }
    assert set(policies.values()) == {"Fail", "Ignore"}


def test_webhook_never_waits_for_itself() -> None:
    for entry, rule in rules():
        if "pods" in rule["resources"]:
            expressions = entry["namespaceSelector"]["matchExpressions"]
            assert {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": list(OUTSIDE)} in expressions


def test_configuration_says_where_and_whom_to_trust() -> None:
    by_service = configuration(Reachable(), "PEM")["webhooks"][0]["clientConfig"]
    assert base64.b64decode(by_service.pop("caBundle")) == b"PEM"
    assert by_service == {
        "service": {"name": "fastness-webhook", "namespace": "fastness-system", "path": KATA_PATH, "port": 443}
    }
    by_url = configuration(Reachable("https://10.0.0.1:9443/"), "PEM")["webhooks"][1]["clientConfig"]
    assert by_url["url"] == "https://10.0.0.1:9443/review"
