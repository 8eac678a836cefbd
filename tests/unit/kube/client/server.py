"""A scripted API server: answers in order, requests remembered, nothing on a network."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx

from fastness.kube.client.client import KubeCluster, connect
from fastness.kube.client.connection import Connection
from tests.unit.kube.virtual import FixedEntropy, VirtualClock

Answer = httpx.Response | Exception | Callable[[httpx.Request], httpx.Response]
URL = "https://api.example:6443"


def status(code: int, reason: str, message: str = "no", **details: Any) -> httpx.Response:
    """A refusal as an API server words it."""
    body = {"kind": "Status", "code": code, "reason": reason, "message": message, "details": details}
    return httpx.Response(code, json=body)


def listing(*names: str, version: str = "10", token: str = "", remaining: int | None = None) -> httpx.Response:
    """A list of ConfigMaps as native kinds are listed: items without kind."""
    meta: dict[str, Any] = {"resourceVersion": version}
    if token:
        meta |= {"continue": token, "remainingItemCount": remaining}
    items = [{"metadata": {"name": name, "namespace": "n", "resourceVersion": "1"}} for name in names]
    return httpx.Response(200, json={"kind": "ConfigMapList", "apiVersion": "v1", "metadata": meta, "items": items})


class Stream(httpx.AsyncByteStream):
    """A watch: chunks, and then an end or a break."""

    def __init__(self, *chunks: bytes, breaks: Exception | None = None) -> None:
        self._chunks = chunks
        self._breaks = breaks
        self.closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self._chunks:
            yield chunk
        if self._breaks is not None:
            raise self._breaks

    async def aclose(self) -> None:
        """Remember that the reader let go."""
        self.closed = True


def event(kind: str, name: str, version: str, **meta: Any) -> bytes:
    """One line of a watch."""
    obj = {"kind": "ConfigMap", "metadata": {"name": name, "namespace": "n", "resourceVersion": version, **meta}}
    return json.dumps({"type": kind, "object": obj}).encode() + b"\n"


def synced(version: str) -> bytes:
    """The bookmark that ends the initial events."""
    return event("BOOKMARK", "", version, annotations={"k8s.io/initial-events-end": "true"})


def streaming(*chunks: bytes, breaks: Exception | None = None) -> httpx.Response:
    """An answer that is a watch."""
    return httpx.Response(200, stream=Stream(*chunks, breaks=breaks))


class Script:
    """Answers in order; too many requests are a failure of the test."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = [*answers]
        self.requests: list[httpx.Request] = []
        self.clock = VirtualClock()

    async def handle(self, request: httpx.Request) -> httpx.Response:
        """The next answer."""
        self.requests.append(request)
        assert self.answers, f"an unexpected request: {request.method} {request.url}"
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, httpx.Response) else answer(request)

    @asynccontextmanager
    async def cluster(
        self, connection: Connection | None = None, read: Callable[[Path], bytes] = Path.read_bytes
    ) -> AsyncIterator[KubeCluster]:
        """The adapter on this script."""
        chosen = replace(connection, server=URL) if connection is not None else Connection(URL)
        async with connect(
            chosen, clock=self.clock, entropy=FixedEntropy(), pool=httpx.MockTransport(self.handle), read=read
        ) as cluster:
            yield cluster

    def params(self, index: int) -> dict[str, str]:
        """The query of one request."""
        return dict(self.requests[index].url.params)
