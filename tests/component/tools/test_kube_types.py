"""The checked-in table of native types says what the real server says."""

from __future__ import annotations

import os
from typing import Any

import httpx
import pytest

from tests.realkube import RealKube
from tools.kube_types import TARGET, UnknownFact, collect, facts, fetch_settled_roles, reachable, render, unsettled


def test_table_is_what_the_real_server_says(real_kube: RealKube) -> None:
    with real_kube.client() as api:
        table = collect(api)
    written = TARGET.read_text(encoding="utf-8")
    if f'"kubernetes":"{table["kubernetes"]}"' not in written and os.environ.get("CI") != "true":
        pytest.skip(f"the kube-apiserver here is {table['kubernetes']}, the table is of another release")
    assert written.splitlines() == render(table).splitlines(), "stale: run `python tools/kube_types.py`"


def test_prose_goes_and_names_of_properties_stay() -> None:
    schema = {"description": "p", "properties": {"description": {"type": "string", "description": "p"}}, "default": {}}
    assert facts(schema) == {"properties": {"description": {"type": "string"}}, "default": {}}


def test_prose_goes_at_any_depth() -> None:
    schema: dict[str, Any] = {"type": "string", "description": "p"}
    for keyword in ("items", "additionalProperties", "not"):
        schema = {keyword: schema, "description": "p"}
    schema = {"allOf": [schema], "anyOf": [schema], "oneOf": [schema], "description": "p"}
    assert "description" not in str(facts(schema))


def test_keyword_without_a_rule_stops_the_tool() -> None:
    with pytest.raises(UnknownFact, match="x-kubernetes-new"):
        facts({"properties": {"a": {"x-kubernetes-new": True}}})


def test_only_what_is_reachable_is_kept_also_in_circles() -> None:
    schemas: dict[str, Any] = {
        "a": {"items": {"$ref": "#/components/schemas/b"}},
        "b": {"properties": {"a": {"allOf": [{"$ref": "#/components/schemas/a"}]}}},
        "c": {"type": "string"},
    }
    assert reachable(schemas, ["a"]).keys() == {"a", "b"}


def test_text_does_not_depend_on_the_order_of_answers() -> None:
    first = {"definitions": {"b": {"x": 1, "a": 2}, "a": {}}, "resources": [{"b": 1, "a": 2}]}
    other = {"definitions": {"a": {}, "b": {"a": 2, "x": 1}}, "resources": [{"a": 2, "b": 1}]}
    assert render(first) == render(other)
    assert '"b":{"a":2,"x":1}\n' in render(first)


VIEW = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
PART = {"kind": "ClusterRole", "metadata": {"name": "part", "labels": {"to-view": "true"}}, "rules": [VIEW]}
WHOLE: dict[str, Any] = {
    "kind": "ClusterRole",
    "metadata": {"name": "view"},
    "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"to-view": "true"}}]},
}


def test_aggregated_role_is_unsettled_until_it_has_all_rules() -> None:
    assert unsettled([PART, WHOLE]) == ["view"]
    assert unsettled([PART, {**WHOLE, "rules": [VIEW]}]) == []


def test_roles_that_never_settle_are_an_error_that_names_them() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json={"items": [PART, WHOLE] if request.url.path.endswith("roles") else []})

    transport = httpx.MockTransport(answer)
    with httpx.Client(transport=transport, base_url="http://server") as api, pytest.raises(UnknownFact, match="view"):
        fetch_settled_roles(api, patience=0)
