"""From what a client sent to an object that may be stored.

The order is that of Kubernetes: identity (apiVersion and kind fit the path), metadata, unknown fields (dropped, and reported as
the client asked), types of native kinds (400), defaults. What comes out is a fresh top level whose nested values are shared with
the input; validation with causes (422) follows in the write pipeline, because it may need the old object.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastness.apiserver import meta as metadata
from fastness.apiserver.call import Call
from fastness.apiserver.catalog import Served
from fastness.apiserver.refusals import conceal, strict
from fastness.apiserver.strategies import strategy_of
from fastness.kinds.kind import JsonObject
from fastness.kube.errors import BadRequest


def read(call: Call, served: Served, sent: Any) -> JsonObject:
    """The draft of an object; raises BadRequest."""
    if not isinstance(sent, dict):
        raise BadRequest("the object provided is unrecognized: must be a JSON object")
    check_identity(served, sent)
    meta, unknown = metadata.read(sent)
    # Pruned before it is defaulted or judged: an unknown field must not reach a rule, a default or the store.
    body, dropped = served.schema.prune(sent)
    if unknown or dropped or call.duplicates:
        _report(call, served, list(dict.fromkeys([*unknown, *dropped])))  # schemas of native kinds know metadata, too
    if served.kind.native:
        problems = served.schema.type_errors(body)
        if problems:
            lines = "; ".join(f"{cause.field}: {cause.message}" for cause in conceal(served, problems[:10]))
            raise BadRequest(f"{served.kind.kind} in version {served.kind.version!r} cannot be handled: {lines}")
    body = served.schema.default(body)
    draft: JsonObject = {"apiVersion": served.kind.api_version, "kind": served.kind.kind, "metadata": meta}
    for name, value in body.items():
        if name not in draft and (value is not None or not served.kind.native):
            draft[name] = value
    strategy_of(served.kind).defaults(draft)
    return draft


def part(body: Any, name: str) -> JsonObject:
    """A member of a body that is an object, or empty when it is not there; raises BadRequest for anything else."""
    if not isinstance(body, dict):
        raise BadRequest("the object provided is unrecognized: must be a JSON object")
    value = body.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise BadRequest(f"{name}: must be an object")
    return value


def check_identity(served: Served, sent: Mapping[str, Any]) -> None:
    """The object is of the kind that the path names; raises BadRequest."""
    kind = served.kind
    version, name = sent.get("apiVersion"), sent.get("kind")
    if kind.native:  # what a client leaves out, the path says
        version, name = version or kind.api_version, name or kind.kind
    if not name or not isinstance(name, str):
        raise BadRequest("Object 'Kind' is missing: every object says its apiVersion and kind")
    if not version or not isinstance(version, str):
        raise BadRequest("Object 'apiVersion' is missing: every object says its apiVersion and kind")
    # The path was authorized, not the body: an object of another group or kind would pass under the rights for this one.
    if version != kind.api_version:
        raise BadRequest(
            f"the API version in the data ({version}) does not match the expected API version ({kind.api_version})"
        )
    if name != kind.kind:
        raise BadRequest(f"the kind in the data ({name}) does not match the expected kind ({kind.kind})")


def _report(call: Call, served: Served, unknown: list[str]) -> None:
    known_once = served.kind.renamed
    problems = [
        f'unknown field "{path}"' + (f" ({known_once[path]})" if path in known_once else "") for path in unknown
    ]
    problems += [f'duplicate field "{path}"' for path in call.duplicates]
    if call.validation == "Strict":
        raise strict(problems)
    if call.validation == "Warn":
        for problem in problems:
            call.warn(problem)


def check_namespace(served: Served, namespace: str, meta: JsonObject) -> None:
    """Put the namespace of the path into the metadata; raises BadRequest when the body says another."""
    if not served.kind.namespaced:
        meta.pop("namespace", None)
        return
    if not namespace:
        raise BadRequest("an empty namespace may not be set during creation")
    stated = meta.get("namespace")
    # RBAC decided on the namespace of the path.
    if stated and stated != namespace:
        raise BadRequest("the namespace of the provided object does not match the namespace sent on the request")
    meta["namespace"] = namespace


def check_name(name: str, meta: JsonObject) -> None:
    """The name in the body is the name in the path; raises BadRequest."""
    stated = meta.get("name")
    if stated and stated != name:
        raise BadRequest(f"the name of the object ({stated}) does not match the name on the URL ({name})")
    meta["name"] = name
