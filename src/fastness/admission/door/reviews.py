"""AdmissionReview v1, read and answered.

An API server sends one object per review and wants the same uid back. A body that is not a review is a client's mistake (400),
not a refusal: nobody waits for a uid there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from fastness.formats import json
from fastness.formats.errors import JsonError
from fastness.kinds.kind import JsonObject
from fastness.kube.access.user import User
from fastness.kube.admission import AdmissionRequest, Allowed, Answer, Denied, Operation, shortened
from fastness.runtime.errors import FastnessError

API_VERSION: Final = "admission.k8s.io/v1"
KIND: Final = "AdmissionReview"
MAX_WARNINGS: Final = 16


class BadReview(FastnessError):
    """A body that is not an AdmissionReview v1."""

    code = "bad-review"
    hint = f"Send {KIND} of {API_VERSION}, with a request."


@dataclass(frozen=True, slots=True)
class Review:
    """One question and the uid under which the answer is awaited."""

    uid: str
    request: AdmissionRequest


def read_review(body: bytes) -> Review:
    """The question in a body; raises BadReview."""
    try:
        raw = json.decode(body)
    except JsonError as error:
        raise BadReview(f"not JSON: {error}") from error
    if not isinstance(raw, dict) or (raw.get("apiVersion"), raw.get("kind")) != (API_VERSION, KIND):
        raise BadReview(f"not an {KIND} of {API_VERSION}")
    fields = _table(raw, "request")
    uid, operation = fields.get("uid"), fields.get("operation")
    if not isinstance(uid, str) or not uid:
        raise BadReview("the request has no uid")
    if operation not in tuple(Operation):
        raise BadReview(f"the operation is {operation!r}")
    resource, kind = _table(fields, "resource"), _table(fields, "kind")
    obj, old = _object(fields, "object"), _object(fields, "oldObject")
    request = AdmissionRequest(
        operation=Operation(operation), user=_user(_table(fields, "userInfo")), group=_text(resource, "group"),
        version=_text(resource, "version"), kind=_text(kind, "kind"), resource=_text(resource, "resource"),
        name=_text(fields, "name") or _made_name(obj or old or {}), namespace=_text(fields, "namespace"),
        subresource=_text(fields, "subResource"), object=obj, old=old, dry_run=fields.get("dryRun") is True,
    )  # fmt: skip
    return Review(uid, request)


def encode_answer(uid: str, answer: Answer) -> bytes:
    """The answer as the API server reads it."""
    response: JsonObject = {"uid": uid, "allowed": not isinstance(answer, Denied)}
    if isinstance(answer, Denied):
        response["status"] = {"code": answer.code, "reason": answer.reason, "message": answer.message}
    elif isinstance(answer, Allowed) and answer.warnings:
        response["warnings"] = [shortened(text) for text in answer.warnings[:MAX_WARNINGS]]
    return json.encode({"apiVersion": API_VERSION, "kind": KIND, "response": response})


def _made_name(obj: Mapping[str, Any]) -> str:
    """What a nameless object will be called, as far as it is known: the server adds the end later."""
    meta = obj.get("metadata")
    given = meta if isinstance(meta, Mapping) else {}
    return str(given.get("name") or given.get("generateName") or "")


def _user(raw: Mapping[str, Any]) -> User:
    groups = raw.get("groups")
    return User(
        _text(raw, "username"),
        tuple(str(group) for group in groups) if isinstance(groups, list) else (),
        _text(raw, "uid"),
        {
            str(name): tuple(str(value) for value in values)
            for name, values in _table(raw, "extra").items()
            if isinstance(values, list)
        },
    )


def _object(raw: Mapping[str, Any], name: str) -> JsonObject | None:
    obj = raw.get(name)
    if obj is not None and not isinstance(obj, dict):
        raise BadReview(f"{name} is not an object")
    meta = (obj or {}).get("metadata", {})
    if not isinstance(meta, dict):
        raise BadReview(f"the metadata of {name} are not an object")
    return obj


def _table(raw: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    table = raw.get(name)
    return table if isinstance(table, dict) else {}


def _text(raw: Mapping[str, Any], name: str) -> str:
    text = raw.get(name)
    return text if isinstance(text, str) else ""
