"""What clients send: JSON, YAML, or the protobuf of kubectl's typed commands.

A body is read up to the limit of Kubernetes (3 MiB), decoded strictly and handed on as JSON values. Duplicate keys do not stop a
request here: the client's `fieldValidation` decides about them.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from fastness.apiserver.call import Call
from fastness.apiserver.large_objects import HeavyWork
from fastness.formats import json
from fastness.formats.errors import FormatError
from fastness.formats.protobuf import decode_object
from fastness.formats.yaml import load_documents
from fastness.http import Request
from fastness.kube.errors import BadRequest, UnsupportedMedia
from fastness.kube.port import PatchType

MAX_BODY = 3 * 1024 * 1024
PROTOBUF = "application/vnd.kubernetes.protobuf"
_JSON_TYPES = frozenset({"application/json", "", "*/*"})
_YAML_TYPES = frozenset({"application/yaml", "text/yaml", "application/x-yaml"})
_PATCH_TYPES = {kind.value: kind for kind in PatchType} | {"application/apply-patch+cbor": None}


def media_type(request: Request) -> str:
    """The content type without its parameters."""
    return request.header(b"content-type").partition(";")[0].strip().lower()


async def read_object(request: Request, heavy: HeavyWork, call: Call) -> Any:
    """The object in the body (None when there is none); the call is told its size and its duplicate keys.

    Raises BadRequest, TooLarge, TooManyRequests.
    """
    data = await request.body(MAX_BODY)
    if not data:
        return None
    call.size = len(data)
    value, call.duplicates[:] = await heavy.run(len(data), partial(_decoded, media_type(request), data))
    return value


def _decoded(kind: str, data: bytes) -> tuple[Any, list[str]]:
    try:
        if kind in _JSON_TYPES:
            return json.decode_reporting_duplicates(data)
        # The envelope of Kubernetes' protobuf begins with these four bytes, whatever the header says.
        if kind == PROTOBUF or data.startswith(b"k8s\x00"):
            return decode_object(data).value, []
        if kind in _YAML_TYPES:
            return _single(data), []
    except FormatError as error:
        raise BadRequest(f"the body of the request cannot be read: {error}") from error
    raise UnsupportedMedia(
        f"the body of the request was in an unknown format ({kind[:60]}) - accepted media types include: "
        f"application/json, application/yaml, {PROTOBUF}"
    )


class UnknownPatch(UnsupportedMedia):
    """A patch in a language that nobody here reads."""

    always_details = True


async def read_patch(request: Request, heavy: HeavyWork, call: Call) -> tuple[PatchType, Any]:
    """Type and content of a patch; the call is told its size and its duplicate keys.

    Raises UnsupportedMedia, BadRequest, TooLarge, TooManyRequests.
    """
    kind = _PATCH_TYPES.get(media_type(request))
    if kind is None:
        accepted = ", ".join(patch_type.value for patch_type in PatchType)
        raise UnknownPatch(
            f"the body of the request was in an unknown format - accepted media types include: {accepted}"
        )
    data = await request.body(MAX_BODY)
    call.size = len(data)
    value, call.duplicates[:] = await heavy.run(len(data), partial(_decoded_patch, kind, data))
    return kind, value


def _decoded_patch(kind: PatchType, data: bytes) -> tuple[Any, list[str]]:
    try:
        # An apply is YAML by its media type (application/apply-patch+yaml); JSON is a subset of it.
        return (_single(data), []) if kind is PatchType.APPLY else json.decode_reporting_duplicates(data)
    except FormatError as error:
        raise BadRequest(f"error decoding patch: {error}") from error


def _single(data: bytes) -> Any:
    documents = load_documents(data)
    if len(documents) != 1:
        raise BadRequest(f"the body holds {len(documents)} documents: send one object at a time")
    return documents[0].value
