"""Server-side apply: create or merge, by what the applier states.

An apply of an object that does not exist creates it. Otherwise the configuration is merged by `fields/` into the latest state and
goes down the same pipeline as every change; an apply that changes nothing writes nothing.
"""

from __future__ import annotations

from typing import Any

from fastness.apiserver.call import Call
from fastness.apiserver.catalog import Served
from fastness.apiserver.refusals import conflict, not_found
from fastness.apiserver.verbs import drafts
from fastness.apiserver.verbs.writes import Writer, Written
from fastness.kinds.kind import JsonObject
from fastness.kube.errors import BadRequest


async def apply(
    writer: Writer, call: Call, served: Served, namespace: str, name: str, config: Any, subresource: str = ""
) -> Written:
    """Apply a configuration; raises Conflict, BadRequest, Invalid, NotFound."""
    if not isinstance(config, dict):
        raise BadRequest("an apply configuration is an object")
    if not config.get("apiVersion") or not config.get("kind"):
        raise BadRequest("an apply configuration names its apiVersion and kind")
    drafts.check_identity(served, config)
    _check_metadata(served, namespace, name, config)
    if not writer.exists(served, namespace, name):
        if subresource:
            raise not_found(served, name)
        return await _create(writer, call, served, namespace, name, config)

    def edit(live: JsonObject | None) -> JsonObject:
        return writer.applied(call, served, live, config, subresource)

    return await writer.change(call, served, namespace, name, edit, subresource, applied=True)


def _check_metadata(served: Served, namespace: str, name: str, config: JsonObject) -> None:
    meta = config.get("metadata") or {}
    if not isinstance(meta, dict):
        raise BadRequest("metadata: must be an object")
    if meta.get("name") not in (None, "", name):
        raise BadRequest(f"metadata.name: {meta.get('name')!r:.80} is not the name in the path ({name})")
    if served.kind.namespaced and meta.get("namespace") not in (None, "", namespace):
        raise BadRequest("the namespace of the provided object does not match the namespace sent on the request")


async def _create(writer: Writer, call: Call, served: Served, namespace: str, name: str, config: JsonObject) -> Written:
    meta = config.get("metadata") or {}
    # The applier means an object that was there; making another one under its name would be what it asked not to happen.
    if meta.get("uid"):
        raise conflict(
            served, name, f"uid mismatch: the provided object specified uid {meta['uid']}, and no uid was found"
        )

    def draft() -> JsonObject:
        read = drafts.read(call, served, writer.applied(call, served, None, config, ""))
        drafts.check_name(name, read["metadata"])
        drafts.check_namespace(served, namespace, read["metadata"])
        return read

    return await writer.insert(call, served, draft, applied=True)
