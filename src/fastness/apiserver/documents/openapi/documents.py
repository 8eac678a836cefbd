"""The answers below `/openapi/v3`, built when they are first asked for and kept for the generation.

A request that carries the right digest may be kept for ever by the client; one with an old digest is sent on to the present
document; one without a digest gets it with its tag. The index needs all digests and therefore builds all documents once.

`/openapi/v2` exists for one caller: kubectl asks for it, as protobuf, before it sends a `List`, and gives up without it. It
checks the items against the definitions in there and lets pass what it does not find, so that an empty document leaves
the judgement to the server, which has been asked for strict validation anyway.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from fastness.apiserver.catalog import Catalog
from fastness.apiserver.documents.document import Document
from fastness.apiserver.documents.openapi.paths import paths_of
from fastness.apiserver.documents.openapi.schemas import RESOURCE_LIST, Components, reference
from fastness.kinds.kind import JsonObject

ROOT: Final = "/openapi/v3"
OLD_ROOT: Final = "/openapi/v2"
OLD_TYPE: Final = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
FOR_EVER: Final = {"Cache-Control": "public, immutable", "Vary": "Accept"}


class OpenApi:
    """All OpenAPI answers of one catalog."""

    def __init__(self, catalog: Catalog, version: str = "v1") -> None:
        self._catalog = catalog
        self._version = version
        self._documents: dict[str, Document] = {}

    def answer(self, path: str, digest: str = "") -> Document | None:
        """The answer for a path below `/openapi`; `digest` is the query's `hash`. None: no such document."""
        path = path.rstrip("/")
        if path == OLD_ROOT:
            return _old(self._version)
        if path == ROOT:
            return self._index()
        name = path.removeprefix(f"{ROOT}/")
        document = self._documents.get(name) or self._build(name)
        if document is None or not digest:
            return document
        if digest != document.digest:
            return replace(document, location=f"{ROOT}/{name}?hash={document.digest}")
        return replace(document, headers=FOR_EVER)

    def _index(self) -> Document:
        index = self._documents.get("")
        if index is None:
            paths = {}
            for group in self._catalog.groups():
                for version in group.versions:
                    name = f"apis/{group.name}/{version}" if group.name else f"api/{version}"
                    document = self._documents.get(name) or self._build(name)
                    if document is not None:
                        paths[name] = {"serverRelativeURL": f"{ROOT}/{name}?hash={document.digest}"}
            index = self._documents[""] = Document.of({"paths": paths})
        return index

    def _build(self, name: str) -> Document | None:
        match name.split("/"):
            case ["api", version]:
                group = ""
            case ["apis", group, version] if group:
                pass
            case _:
                return None
        served = self._catalog.kinds(group, version)
        if not served:
            return None
        components = Components()
        paths: JsonObject = {f"/{name}/": _listing(group, version)}
        components.add(RESOURCE_LIST, "", "v1", "APIResourceList")
        for served_kind in served:
            paths |= paths_of(served_kind.kind, components)
        document = Document.of(
            {
                "openapi": "3.0.0",
                "info": {"title": "Fastness", "version": self._version},
                "paths": dict(sorted(paths.items())),
                "components": {"schemas": components.closed(), "securitySchemes": SECURITY},
            }
        )
        self._documents[name] = document
        return document


SECURITY: Final[JsonObject] = {
    "BearerToken": {"type": "apiKey", "name": "authorization", "in": "header", "description": "A bearer token."}
}


def _old(version: str) -> Document:
    """The smallest OpenAPI v2 document as protobuf: `swagger` is field 1, `info` 2 with title 1 and version 2, `paths` 8."""
    info = _text(1, "Fastness") + _text(2, version)
    body = _text(1, "2.0") + bytes((2 << 3 | 2, len(info))) + info + bytes((8 << 3 | 2, 0))
    return Document.encoded(body, OLD_TYPE)


def _text(number: int, value: str) -> bytes:
    return bytes((number << 3 | 2, len(value))) + value.encode()


def _listing(group: str, version: str) -> JsonObject:
    tag = f"{group.split('.')[0] or 'core'}_{version}"
    answer = {"description": "OK", "content": {"application/json": {"schema": reference(RESOURCE_LIST)}}}
    return {
        "get": {
            "tags": [tag],
            "description": "the resources of this group version",
            "operationId": f"get{tag.title().replace('_', '')}APIResources",
            "responses": {"200": answer, "401": {"description": "Unauthorized"}},
        }
    }
