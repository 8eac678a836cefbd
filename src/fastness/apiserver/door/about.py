"""What is served beside resources: health, version, metrics, the index, discovery and OpenAPI.

Documents are encoded once for each generation of the catalog (`documents/document.py`); a client that has one already gets 304.
"""

from __future__ import annotations

from fastness import __version__
from fastness.apiserver.documents.document import Document
from fastness.apiserver.engine import EmbeddedApi
from fastness.apiserver.refusals import no_such_resource
from fastness.formats import json
from fastness.http import Answer, Request
from fastness.http.health import TEXT, Health
from fastness.observe import metrics

KUBERNETES = {"major": "1", "minor": "36", "gitVersion": f"v1.36.0+fastness.{__version__}"}
_VERSION = json.encode({**KUBERNETES, "platform": "linux/amd64", "goVersion": "", "compiler": "python"})
_FIXED = ("/api", "/api/v1", "/apis", "/healthz", "/livez", "/metrics", "/openapi/v3", "/readyz", "/version")


class About:
    """Handlers; each is given a caller that its route let in."""

    def __init__(self, api: EmbeddedApi, health: Health) -> None:
        self._api = api
        self._health = health

    async def probe(self, request: Request, _caller: object) -> Answer:
        """`/healthz`, `/livez`, `/readyz`, or one check of it; raises NotFound for a check that there is not."""
        probe, *check = request.segments
        answer = self._health.answer(probe, check[0] if check else "", verbose="verbose" in request.query)
        if answer is None:
            raise no_such_resource()
        return answer

    async def version(self, _request: Request, _caller: object) -> Answer:
        """`/version`, which kubectl compares with its own."""
        return Answer(200, _VERSION)

    async def metrics(self, _request: Request, _caller: object) -> Answer:
        """`/metrics`, as Prometheus reads them."""
        return Answer(200, metrics.exposition(), b"text/plain; version=0.0.4; charset=utf-8")

    async def index(self, _request: Request, _caller: object) -> Answer:
        """`/`: which paths there are."""
        groups = [f"/apis/{group.name}" for group in self._api.catalog.groups() if group.name]
        return Answer(200, json.encode({"paths": sorted([*_FIXED, *groups])}))

    async def discovery(self, request: Request, _caller: object) -> Answer:
        """`/api`, `/apis` and the groups and versions below."""
        document = self._api.discovery.answer(_path(request), request.header(b"accept"))
        return document_answer(request, document)

    async def openapi(self, request: Request, _caller: object) -> Answer:
        """`/openapi/v3` and the documents below."""
        return document_answer(request, self._api.openapi.answer(_path(request), request.query.get("hash", "")))


def _path(request: Request) -> str:
    return "/" + "/".join(request.segments)


def document_answer(request: Request, document: Document | None) -> Answer:
    """A document that is encoded once, or 304 when the client has it."""
    if document is None:
        return Answer(404, b"404 page not found\n", TEXT)
    if document.location:
        return Answer(301, b"", TEXT, ((b"location", document.location.encode()),))
    extra = tuple((name.lower().encode(), value.encode()) for name, value in document.headers.items())
    headers = ((b"etag", document.etag.encode()), (b"vary", b"Accept"), *extra)
    if document.known_to(request.header(b"if-none-match")):
        return Answer(304, b"", document.content_type.encode(), headers)
    return Answer(200, document.body, document.content_type.encode(), headers)
