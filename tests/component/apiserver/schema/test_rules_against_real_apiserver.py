"""Expressions that are true for our engine are true for a real API server, and what fails here fails there."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from fastness.apiserver.schema import CompiledSchema, structural_problems
from tests.component.apiserver.schema.specimen import GROUP, definition
from tests.realkube import RealKube
from tests.unit.apiserver.schema.cel.test_library import FAILING, TRUE

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CHUNK = 16
BRIEF = {"type": "string", "maxLength": 8}
FIELDS: dict[str, Any] = {
    "a": {"type": "integer"}, "l": {"type": "array", "maxItems": 3, "items": {"type": "integer"}}, "s": BRIEF,
    "d": {"type": "number"},
    "m": {"type": "object", "maxProperties": 3, "additionalProperties": {"type": "integer"}}, "n": {**BRIEF,
    "nullable": True},
    "w": {"type": "array", "maxItems": 3, "items": BRIEF}, "b": {**BRIEF, "format": "byte"}, "zz": BRIEF, "x": BRIEF,
    "nokey": {"type": "integer"},
}  # fmt: skip
SPEC: dict[str, Any] = {
    "a": 2, "l": [1, 2, 3], "s": "hello", "m": {"a": 1}, "d": 1.0, "n": None, "w": ["x", "y"], "b": "YWJj",
}  # fmt: skip
# a real API server wants the entries of a literal to be of one type, and judges literal formats before a rule runs
STRICTER = ("[1, 'a']", "{'k': null}", "['a', 3", "[2, [3]]", "[[1, [2]]]", "[[1]].flatten(-1)", "self.l.join()",
"compareTo(ip(",
            "'%d'.format(['x'])", "'%s'.format([])", "'%y'.format([1])")  # fmt: skip
REFUSED = ["self.n == null", "self.d == 1", "'a'.find('(') == ''", "self.s.matches('(?=a)')", "self.nope == 1",
"self.a == 'x'",
           "self.l.all(x, x == 'a')", "self.m.a == 'x'", "size(self.w) == '1'", "self.a + 1.5 > 2.0",
           "self.l"]  # fmt: skip


def schema_of(rules: list[str]) -> dict[str, Any]:
    spec = {"type": "object", "properties": FIELDS, "x-kubernetes-validations": [{"rule": rule} for rule in rules]}
    return {"type": "object", "properties": {"spec": spec}}


def comparable(expressions: list[str]) -> list[str]:
    return [text for text in expressions if text not in REFUSED and not any(part in text for part in STRICTER)]


@pytest.fixture(scope="module")
def api(real_kube: RealKube) -> Iterator[httpx.Client]:
    with real_kube.client() as client:
        yield client


def broken_rules(api: httpx.Client, plural: str, rules: list[str]) -> set[str]:
    """The rules that the real API server finds broken by the object."""
    kind = plural.capitalize()
    answer = api.post(CRDS, json=definition(plural, kind, schema_of(rules)))
    assert answer.status_code == 201, answer.text
    obj = {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": {"name": "x"}, "spec": SPEC}
    try:
        for _ in range(1800):
            answer = api.post(f"/apis/{GROUP}/v1/namespaces/default/{plural}", json=obj, params={"dryRun": "All"})
            if answer.status_code in (201, 422):
                break
            time.sleep(0.05)
        assert answer.status_code in (201, 422), answer.text
        messages = [cause["message"] for cause in answer.json().get("details", {}).get("causes", ())]
        return {rule for rule in rules if any(rule in message for message in messages)}
    finally:
        api.delete(f"{CRDS}/{plural}.{GROUP}")


def ours_broken(rules: list[str]) -> set[str]:
    messages = [cause.message for cause in CompiledSchema(schema_of(rules)).validate({"spec": SPEC})]
    return {rule for rule in rules if any(rule in message for message in messages)}


def test_every_expression_compiles_at_both(api: httpx.Client) -> None:
    disagreements = []
    for expression in comparable([*TRUE, *FAILING]):
        schema = schema_of([expression])
        answer = api.post(CRDS, json=definition("rules", "Rules", schema), params={"dryRun": "All"})
        if answer.status_code != 201 or structural_problems(schema):
            disagreements.append(
                f"{expression}: {answer.text[:400] if answer.status_code != 201 else structural_problems(schema)}"
            )
    assert not disagreements, "\n".join(disagreements)


def test_what_does_not_fit_is_refused_by_both(api: httpx.Client) -> None:
    accepted = []
    for expression in REFUSED:
        schema = schema_of([expression])
        answer = api.post(CRDS, json=definition("rules", "Rules", schema), params={"dryRun": "All"})
        accepted += [f"real: {expression}"] if answer.status_code == 201 else []
        accepted += [] if structural_problems(schema) else [f"ours: {expression}"]
    assert not accepted


def test_every_expression_has_the_same_value_at_both(api: httpx.Client) -> None:
    disagreements = []
    expressions = comparable([*TRUE, *FAILING])
    for start in range(0, len(expressions), CHUNK):
        rules = expressions[start : start + CHUNK]
        real, mine = broken_rules(api, f"chunk{start}", rules), ours_broken(rules)
        disagreements += [f"{rule}: real {'breaks' if rule in real else 'holds'}" for rule in sorted(real ^ mine)]
    assert not disagreements, "\n".join(disagreements)
