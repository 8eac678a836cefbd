"""Our schema engine and a real kube-apiserver judge the same objects and schemas alike: same fields, same reasons."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from fastness.apiserver.schema import CompiledSchema, structural_problems
from tests.component.apiserver.schema.specimen import GROUP, OBJECTS, SCHEMA, SCHEMAS, UPDATES, definition
from tests.realkube import RealKube

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SPECIMENS = f"/apis/{GROUP}/v1/namespaces/default/specimens"
SCHEMA_PATH = "spec.validation.openAPIV3Schema"

Verdict = set[tuple[str, str]]


@pytest.fixture(scope="module")
def api(real_kube: RealKube) -> Iterator[httpx.Client]:
    """The real API with the specimen's definition served."""
    with real_kube.client() as client:
        answer = client.post(CRDS, json=definition("specimens", "Specimen", SCHEMA))
        assert answer.status_code in (201, 409), answer.text
        for _ in range(1800):
            if client.get(SPECIMENS).status_code == 200:
                break
            time.sleep(0.05)
        yield client
        client.delete(f"{CRDS}/specimens.{GROUP}")


@pytest.fixture(scope="module")
def ours() -> CompiledSchema:
    return CompiledSchema(SCHEMA)


def specimen(spec: Any, name: str) -> dict[str, Any]:
    return {"apiVersion": f"{GROUP}/v1", "kind": "Specimen", "metadata": {"name": name}, "spec": spec}


def real_verdict(answer: httpx.Response) -> Verdict:
    body = answer.json()
    return {(cause["field"], cause["reason"]) for cause in body.get("details", {}).get("causes", ())}


def judged(schema: CompiledSchema, obj: dict[str, Any], old: dict[str, Any] | None = None) -> tuple[Any, Verdict]:
    pruned, _ = schema.prune(obj)
    full = schema.default(pruned)
    return full, {(cause.field, cause.reason) for cause in schema.validate(full, old)}


def differences(disagreements: list[str]) -> None:
    assert not disagreements, "\n".join(["differs from the real API server:", *disagreements])


def test_every_object_is_accepted_or_refused_for_the_same_reasons(api: httpx.Client, ours: CompiledSchema) -> None:
    disagreements = []
    for i, spec in enumerate(OBJECTS):
        obj = specimen(spec, f"o{i}")
        answer = api.post(SPECIMENS, json=obj, params={"dryRun": "All"})
        full, verdict = judged(ours, copy.deepcopy(obj))
        if answer.status_code == 201:
            if verdict or answer.json()["spec"] != full["spec"]:
                disagreements.append(f"{spec}: accepted as {answer.json()['spec']}, ours {full['spec']} {verdict}")
        elif answer.status_code == 400:
            if not ours.type_errors(obj):
                disagreements.append(f"{spec}: does not decode, ours does: {answer.text[:300]}")
        elif real_verdict(answer) != verdict or ours.type_errors(obj):
            disagreements.append(
                f"{spec}: {sorted(real_verdict(answer))}\n      ours {sorted(verdict)}\n      {answer.text[:600]}"
            )
    differences(disagreements)


def test_unknown_fields_are_named_alike(api: httpx.Client, ours: CompiledSchema) -> None:
    spec = {
        "nope": 1,
        "deep": {"more": 2, "list": [{"q": 1}, {"x": "y", "r": {"s": 1}}]},
        "kept": {"any": 1, "known": {"b": 1}},
    }
    answer = api.post(SPECIMENS, json=specimen(spec, "strict"), params={"dryRun": "All", "fieldValidation": "Strict"})
    assert answer.status_code == 400
    _, unknown = ours.prune(specimen(spec, "strict"))
    assert unknown
    for path in unknown:
        assert f'unknown field "{path}"' in answer.json()["message"]
    assert answer.json()["message"].count("unknown field") == len(unknown)


def test_every_update_is_accepted_or_refused_for_the_same_reasons(api: httpx.Client, ours: CompiledSchema) -> None:
    disagreements = []
    for i, (before, after) in enumerate(UPDATES):
        created = api.post(SPECIMENS, json=specimen(before, f"u{i}"))
        assert created.status_code == 201, created.text
        stored = created.json()
        answer = api.put(f"{SPECIMENS}/u{i}", json={**stored, "spec": after}, params={"dryRun": "All"})
        _, verdict = judged(ours, {**stored, "spec": after}, stored)
        real = set() if answer.status_code == 200 else real_verdict(answer)
        if real != verdict:
            disagreements.append(
                f"{before} -> {after}: {sorted(real)}\n      ours {sorted(verdict)}\n      {answer.text[:300]}"
            )
        api.delete(f"{SPECIMENS}/u{i}")
    differences(disagreements)


def test_problems_of_old_objects_are_forgiven_where_nothing_changed(api: httpx.Client) -> None:
    """An object from before a schema became stricter may be written again, but not made worse."""
    loose = {"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "a": {"type": "string"}, "b": {"type": "string"}, "l": {"type": "array", "items": {"type": "string"}},
        "m": {"type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}}}}}}}  # fmt: skip
    strict = copy.deepcopy(loose)
    fields = strict["properties"]["spec"]["properties"]  # type: ignore[index]
    fields["a"]["maxLength"] = 2
    fields["l"]["items"]["maxLength"] = 2
    fields["m"]["x-kubernetes-validations"] = [{"rule": "self.x > 5"}]
    path, name = f"/apis/{GROUP}/v1/namespaces/default/ratchets", f"ratchets.{GROUP}"
    assert api.post(CRDS, json=definition("ratchets", "Ratchet", loose)).status_code == 201
    old = {"apiVersion": f"{GROUP}/v1", "kind": "Ratchet", "metadata": {"name": "r"},
           "spec": {"a": "long", "b": "x", "l": ["long", "b"], "m": {"x": 1, "y": 1}}}  # fmt: skip
    try:
        for _ in range(1800):
            created = api.post(path, json=old)
            if created.status_code == 201:
                break
            time.sleep(0.05)
        stored = created.json()
        current = api.get(f"{CRDS}/{name}").json()
        current["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = strict
        assert api.put(f"{CRDS}/{name}", json=current).status_code == 200
        fresh = {**old, "metadata": {"name": "fresh"}}
        for _ in range(1800):
            if api.post(path, json=fresh, params={"dryRun": "All"}).status_code == 422:
                break
            time.sleep(0.05)
        schema = CompiledSchema(strict)
        disagreements = []
        for change in (
            {},
            {"b": "y"},
            {"a": "longer"},
            {"l": ["long", "c"]},
            {"m": {"x": 1, "y": 2}},
            {"m": {"x": 2, "y": 1}},
        ):
            new = {**stored, "spec": {**stored["spec"], **change}}
            answer = api.put(f"{path}/r", json=new, params={"dryRun": "All"})
            verdict = {(cause.field, cause.reason) for cause in schema.validate(new, stored)}
            real = set() if answer.status_code == 200 else real_verdict(answer)
            if real != verdict:
                disagreements.append(f"{change}: {sorted(real)}\n      ours {sorted(verdict)}")
        differences(disagreements)
    finally:
        api.delete(f"{CRDS}/{name}")


def test_every_schema_is_accepted_or_refused_for_the_same_reasons(api: httpx.Client) -> None:
    disagreements = []
    for name, schema in SCHEMAS.items():
        answer = api.post(CRDS, json=definition("trials", "Trial", schema), params={"dryRun": "All"})
        real = real_verdict(answer) if answer.status_code == 422 else set()
        mine = {(cause.field, cause.reason) for cause in structural_problems(schema, SCHEMA_PATH)}
        if real != mine or answer.status_code not in (201, 422):
            disagreements.append(
                f"{name}: {answer.status_code} {sorted(real)}\n      ours {sorted(mine)}\n      {answer.text[:700]}"
            )
    differences(disagreements)
