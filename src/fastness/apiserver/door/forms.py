"""The form in which a client wants its answer: objects, metadata only, or a table.

Objects go out as the stored bytes. A list is those bytes joined, which is why listing thousands of objects costs little more than
copying them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from fastness.apiserver.accept import Media
from fastness.apiserver.catalog import Served
from fastness.apiserver.tables import ListMeta, TableRequest, encode_table, partial_object, render_table, representation
from fastness.apiserver.verbs.convert import is_stored_form, outward
from fastness.apiserver.verbs.reads import Listed
from fastness.formats import json
from fastness.http import Answer, Request
from fastness.kube.errors import ApiError


class NotAcceptable(ApiError):
    """The client accepts nothing that this server can say."""

    code, reason = 406, "NotAcceptable"
    hint = "Accept application/json."


def form_of(request: Request) -> Media:
    """The form that the `Accept` header asks for; raises NotAcceptable."""
    media = representation(request.header(b"accept"))
    if media is None:
        raise NotAcceptable(
            "only the following media types are accepted: application/json, "
            "application/json;as=Table;g=meta.k8s.io;v=v1, application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
        )
    return media


def object_answer(request: Request, served: Served, body: bytes, now: datetime, code: int = 200) -> Answer:
    """One object in the form that was asked for."""
    media = form_of(request)
    if not media.as_kind:
        return Answer(code, body)
    table = TableRequest.of(media, request.query.get("includeObject", ""))
    if table is not None:
        obj = json.decode(body)
        meta = ListMeta(obj["metadata"].get("resourceVersion", ""))
        content = render_table(served.printer, [obj], table, meta, now)
    else:
        content = partial_object(json.decode(body), f"{media.group}/{media.version}")
    return Answer(code, json.encode(content), media.type.encode())


def list_answer(request: Request, served: Served, listed: Listed, now: datetime) -> Answer:
    """A list in the form that was asked for."""
    media = form_of(request)
    meta = ListMeta(str(listed.revision), listed.token, listed.remaining)
    table = TableRequest.of(media, request.query.get("includeObject", ""))
    if table is not None:
        return Answer(
            200, encode_table(served.printer, _bodies(served, listed.bodies), table, meta, now), media.type.encode()
        )
    # Kubernetes writes `continue` into the lists of custom kinds even when it is empty.
    about = meta.to_json() if served.kind.native else {"continue": "", **meta.to_json()}
    head = {"kind": served.kind.list_kind, "apiVersion": served.kind.api_version, "metadata": about}
    if media.as_kind == "PartialObjectMetadata":
        # A real server refuses the singular form of a list as well.
        raise NotAcceptable("PartialObjectMetadata is one object: ask for PartialObjectMetadataList")
    if media.as_kind:
        api_version = f"{media.group}/{media.version}"
        head = {**head, "kind": "PartialObjectMetadataList", "apiVersion": api_version}
        items = [json.encode(partial_object(json.decode(body), api_version)) for body in listed.bodies]
        return Answer(200, _joined(head, items), media.type.encode())
    return Answer(200, _joined(head, _items(served, _bodies(served, listed.bodies))))


def _bodies(served: Served, bodies: Sequence[bytes]) -> Sequence[bytes]:
    return bodies if is_stored_form(served) else [outward(served, body) for body in bodies]


def _items(served: Served, bodies: Sequence[bytes]) -> Sequence[bytes]:
    """Objects as items: a native list says apiVersion and kind once, at its head, and not in every item."""
    if not served.kind.native:
        return bodies
    type_meta = json.encode({"apiVersion": served.kind.api_version, "kind": served.kind.kind})[:-1] + b","
    return [b"{" + body[len(type_meta) :] if body.startswith(type_meta) else body for body in bodies]


def _joined(head: Mapping[str, object], items: Sequence[bytes]) -> bytes:
    return b'%b,"items":[%b]}' % (json.encode(head)[:-1], b",".join(items))
