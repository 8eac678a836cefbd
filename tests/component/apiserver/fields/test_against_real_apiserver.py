"""Our ownership and apply beside those of a real kube-apiserver, request by request.

Every step of `script.py` is sent to the real server. What it answers is compared with what our code makes of the same request
on the same live object: the merged object, all of managedFields but the times, whether anything changed at all, and for
refusals code, message and causes. The next step starts from the real answer, so that one difference does not hide another.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import httpx
import pytest

from fastness.apiserver.fields import Applied, FieldsError, TypedSchema, Writer, apply, reset_fields, track_update
from tests.component.apiserver.fields.chance import Chance
from tests.component.apiserver.fields.script import (
    CRD,
    GROUP,
    PLURAL,
    SCHEMA,
    VERSION,
    Conversation,
    JsonObject,
    Step,
    conversations,
)
from tests.patience import PATIENCE
from tests.realkube.cluster import RealKube

BASE = f"/apis/{GROUP}/v1/namespaces/default/{PLURAL}"
TYPE = TypedSchema(SCHEMA, api_versions=frozenset({VERSION}))
SERVER_SET = ("resourceVersion", "generation", "uid", "creationTimestamp", "managedFields", "namespace", "name")


@pytest.fixture(scope="module")
def client(real_kube: RealKube) -> Iterator[httpx.Client]:
    """A client of the real server, which serves widgets by now."""
    with real_kube.client() as admin:
        admin.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", json=CRD).raise_for_status()
        deadline = time.monotonic() + PATIENCE
        while admin.get(BASE).status_code != httpx.codes.OK and time.monotonic() < deadline:
            time.sleep(0.05)
        yield admin


@pytest.mark.parametrize("conversation", conversations(), ids=lambda each: each.name)
def test_ownership_is_that_of_a_real_api_server(client: httpx.Client, conversation: Conversation) -> None:
    _forget(client, conversation.name)
    for step in conversation.steps:
        live = _get(client, conversation.name)
        request = step.body(deepcopy(live)) if step.verb == "update" else step.body
        answer = _send(client, conversation.name, step, request)
        if step.verb == "apply":
            _compare_apply(step, live, request, answer)
        else:
            assert answer.is_success, (step.what, answer.text)
            _compare_update(step, live, request, answer.json())


@pytest.mark.parametrize("seed", range(40 if os.environ.get("FASTNESS_SOAK") else 4))
def test_ownership_is_that_of_a_real_api_server_whatever_managers_do(client: httpx.Client, seed: int) -> None:
    name = f"chance-{seed}"
    chance = Chance(seed, name)
    for _ in range(24):
        live = _get(client, name)
        step = chance.step(exists=live is not None)
        request = step.body(deepcopy(live)) if step.verb == "update" else step.body
        answer = _send(client, name, step, request)
        if answer.status_code == httpx.codes.UNPROCESSABLE_ENTITY:
            continue  # null where a container lost its last part: see NULLED in the script
        if step.verb == "apply":
            _compare_apply(step, live, request, answer, in_free_form=_alike)
        else:
            _compare_update(step, live, request, answer.json())


def _forget(client: httpx.Client, name: str) -> None:
    """Begin anew, after a first attempt that failed."""
    headers = {"Content-Type": "application/merge-patch+json"}
    client.patch(f"{BASE}/{name}", content=b'{"metadata": {"finalizers": null}}', headers=headers)
    client.delete(f"{BASE}/{name}")
    deadline = time.monotonic() + PATIENCE
    while _get(client, name) is not None and time.monotonic() < deadline:
        time.sleep(0.05)


def _get(client: httpx.Client, name: str) -> JsonObject | None:
    answer = client.get(f"{BASE}/{name}")
    return answer.json() if answer.is_success else None


def _send(client: httpx.Client, name: str, step: Step, request: JsonObject) -> httpx.Response:
    path = f"{BASE}/{name}" + (f"/{step.subresource}" if step.subresource else "")
    query = {"fieldManager": step.manager}
    if step.verb == "create":
        return client.post(BASE, params=query, json=request)
    if step.verb == "update":
        return client.put(path, params=query, json=request)
    return client.patch(
        path,
        params={**query, "force": str(step.force).lower()},
        content=json.dumps(request),
        headers={"Content-Type": "application/apply-patch+yaml"},
    )


def _writer(step: Step) -> Writer:
    return Writer(step.manager, VERSION, "2030-01-01T00:00:00Z", step.subresource)


def _compare_update(step: Step, live: JsonObject | None, request: JsonObject, answer: JsonObject) -> None:
    """The real answer, with the lines that the client sent, is what our code is told was written."""
    new = deepcopy(answer)
    new["metadata"].pop("managedFields", None)
    if "managedFields" in request["metadata"]:
        new["metadata"]["managedFields"] = request["metadata"]["managedFields"]
    ours = track_update(live, new, _writer(step), TYPE, reset_fields(step.subresource))
    assert _lines(ours) == _lines(answer["metadata"].get("managedFields", [])), step.what


def _alike(value: Any) -> Any:
    """Free-form JSON in which null, {} and [] are the same: null needs no permission there, see NULLED in the script."""
    if isinstance(value, dict):
        return {name: _alike(part) for name, part in value.items()} or None
    return [_alike(part) for part in value] or None if isinstance(value, list) else value


def _compare_apply(
    step: Step,
    live: JsonObject | None,
    request: JsonObject,
    answer: httpx.Response,
    in_free_form: Callable[[Any], Any] = lambda value: value,
) -> None:
    before = json.dumps([live, request])
    try:
        ours: Applied | FieldsError = apply(
            live, request, _writer(step), TYPE, force=step.force, reset=reset_fields(step.subresource)
        )
    except FieldsError as refusal:
        ours = refusal
    assert json.dumps([live, request]) == before
    computed, answered = _computed(ours, step, live), _answered(answer)
    for each in (computed, answered):
        for name in ("free", "half"):
            if name in (each.get("obj", {}).get("spec") or {}):
                each["obj"]["spec"][name] = in_free_form(each["obj"]["spec"][name])
    if step.differs:
        assert computed != answered, f"{step.what}: no longer different: {step.differs}"
    else:
        assert computed == answered, step.what
        if isinstance(ours, Applied) and live is not None:
            _compare_stored(step, live, ours, answer.json())


def _computed(ours: Applied | FieldsError, step: Step, live: JsonObject | None) -> JsonObject:
    if isinstance(ours, FieldsError):
        causes = [cause.to_json() for cause in getattr(ours, "causes", ())]
        return {"code": ours.status, "message": ours.message, "causes": sorted(causes, key=json.dumps)}
    return {"obj": _core(_through(step.subresource, ours.obj, live or {})), "managed": _lines(ours.managed)}


def _through(subresource: str, obj: JsonObject, live: JsonObject) -> JsonObject:
    """What a door lets through: the REST engine's part, done here in its simplest form."""
    if subresource == "status":
        return {**live, "status": obj["status"]}
    without_status = {name: value for name, value in obj.items() if name != "status"}
    return {**without_status, **({"status": live["status"]} if "status" in live else {})}


def _answered(answer: httpx.Response) -> JsonObject:
    body = answer.json()
    if not answer.is_success:
        causes = (body.get("details") or {}).get("causes") or []
        return {"code": answer.status_code, "message": body["message"], "causes": sorted(causes, key=json.dumps)}
    return {"obj": _core(body), "managed": _lines(body["metadata"].get("managedFields", []))}


def _compare_stored(step: Step, live: JsonObject, ours: Applied, answer: JsonObject) -> None:
    written = answer["metadata"]["resourceVersion"] != live["metadata"]["resourceVersion"]
    assert ours.changed == written, step.what
    dated = sorted("time" in line for line in answer["metadata"].get("managedFields", []))
    assert sorted("time" in line for line in ours.managed) == dated, step.what


def _lines(managed: list[JsonObject]) -> list[JsonObject]:
    bare = [{name: value for name, value in line.items() if name != "time"} for line in managed]
    return sorted(bare, key=lambda line: (line["operation"], line["manager"], line.get("subresource", "")))


def _core(obj: JsonObject) -> JsonObject:
    """What apply decides: without what the server sets, defaults written, empty metadata left out."""
    core = deepcopy(obj)
    core["metadata"] = {name: value for name, value in obj["metadata"].items() if name not in SERVER_SET and value}
    for port in (core.get("spec") or {}).get("ports") or ():
        port.setdefault("protocol", "TCP")
    return core


def test_the_script_covers_every_kind_of_place() -> None:
    """A conversation that lost its steps would pass; this one does not."""
    steps: list[Any] = [step for each in conversations() for step in each.steps]
    assert len(steps) > 120
    assert {step.verb for step in steps} == {"create", "update", "apply"}
    assert sum(step.force for step in steps) >= 2
