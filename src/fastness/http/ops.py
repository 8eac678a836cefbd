"""The door for operators of a process without an API of its own: health and metrics, on loopback, without TLS.

It says nothing that is secret and changes nothing; bind it elsewhere only behind something that authenticates.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastness.http import Answer, Request, send_answer
from fastness.http.health import TEXT, Health
from fastness.http.route import READING, allow_header
from fastness.observe import metrics

_PROBES = ("healthz", "livez", "readyz")


class OpsApp:
    """Health and metrics."""

    def __init__(self, health: Health) -> None:
        self._health = health

    async def __call__(self, scope: Mapping[str, Any], receive: Any, send: Any) -> None:
        """One request."""
        if scope["type"] == "http":
            request = Request(scope, receive)
            await send_answer(self._answer(request), send, head=request.method == "HEAD")

    def _answer(self, request: Request) -> Answer:
        if request.method not in READING:
            return Answer(405, b"only GET\n", TEXT, (allow_header(READING),))
        parts = request.path.strip("/").split("/")
        if parts == ["metrics"]:
            return Answer(200, metrics.exposition(), b"text/plain; version=0.0.4; charset=utf-8")
        if parts[0] in _PROBES and len(parts) <= 2:
            single = parts[1] if len(parts) == 2 else ""
            answer = self._health.answer(parts[0], single, verbose=b"verbose" in request.raw_query)
            if answer is not None:
                return answer
        return Answer(404, b"not found\n", TEXT)
