"""A request as handlers see it.

The body is read once, up to a limit, and never buffered beyond it: a declared length over the limit is refused before a byte is
read, an undeclared one as soon as it is exceeded. Query parameters are parsed on first use.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import parse_qsl

from fastness.kube.errors import ApiError, BadRequest, TooLarge, UnsupportedMedia

Scope = Mapping[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]

MAX_QUERY = 64 * 1024
# kubectl sends fewer than ten; parsing and hashing thousands is work that a line of text can ask for.
MAX_PARAMETERS = 64
BODY_SECONDS = 60.0
MAX_LENGTH_DIGITS = 18


class ClientGone(Exception):
    """The client closed the connection before its request was complete."""


class SlowBody(ApiError):
    """The body did not arrive in time."""

    code, reason, hint = 408, "Timeout", "Send the whole body without long pauses."


class Request:
    """One HTTP request."""

    __slots__ = (
        "_body_seconds", "_headers", "_query", "_receive", "content", "method", "path", "peer", "raw_query", "scope",
        "segments", "values",
    )  # fmt: skip

    def __init__(self, scope: Scope, receive: Receive, body_seconds: float = BODY_SECONDS) -> None:
        self.scope = scope
        self.method: str = scope["method"]
        # The path as it was sent: decoded before it is split, %2F would make two segments of one name.
        self.path: str = scope["raw_path"].decode("ascii", "replace")
        self.raw_query: bytes = scope["query_string"]
        self.peer: bytes | None = scope.get("fastness.peer")
        self._receive = receive
        self._body_seconds = body_seconds
        self._headers: dict[bytes, bytes] | None = None
        self._query: dict[str, str] | None = None
        # The edge of a door sets these: the decoded path, what stands in it for the <> of the route, and the body if it read one.
        self.segments: tuple[str, ...] = ()
        self.values: tuple[str, ...] = ()
        self.content = b""

    @property
    def address(self) -> str:
        """Where it comes from; empty where nobody can tell."""
        client = self.scope.get("client")
        # The peer of the socket: `X-Forwarded-For` is not read, or whoever floods a door would choose its own address.
        return str(client[0]) if client else ""

    def recognised(self) -> None:
        """Whoever sent this proved itself: its address keeps a place at the listener while others flood it."""
        recognise = self.scope.get("fastness.known")
        if recognise is not None:
            recognise()

    def header(self, name: bytes) -> str:
        """A header by its lower-case name; empty when it is missing."""
        if self._headers is None:
            # Of a repeated header the last counts here; where two would be an attack, `headers` shows both.
            self._headers = dict(self.scope["headers"])
        return self._headers.get(name, b"").decode("latin-1")

    def headers(self, name: bytes) -> list[str]:
        """All values of a header that may be repeated."""
        return [value.decode("latin-1") for key, value in self.scope["headers"] if key == name]

    def header_items(self) -> list[tuple[str, str]]:
        """Every header, names in lower case."""
        return [(key.decode("latin-1"), value.decode("latin-1")) for key, value in self.scope["headers"]]

    @property
    def query(self) -> Mapping[str, str]:
        """Query parameters, the first of each name; raises BadRequest when they are beyond the limits."""
        if self._query is None:
            self._query = self._parse_query()
        return self._query

    def _parse_query(self) -> dict[str, str]:
        if not self.raw_query:
            return {}
        if len(self.raw_query) > MAX_QUERY:
            raise BadRequest(f"the query is longer than {MAX_QUERY} bytes")
        parameters: dict[str, str] = {}
        try:
            pairs = parse_qsl(
                self.raw_query.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=MAX_PARAMETERS
            )
        except ValueError as error:
            raise BadRequest(f"the query cannot be read: {error}") from error
        for name, value in pairs:
            # The first of a name counts, as in Go's url.Values.Get, by which kube-apiserver reads them.
            parameters.setdefault(name, value)
        return parameters

    @property
    def complete(self) -> bool:
        """Whether all of the body is here, so that reading it waits for nobody."""
        arrived = self.scope.get("fastness.arrived")
        return arrived is not None and arrived() is not None

    async def body(self, limit: int) -> bytes:
        """The whole body; raises TooLarge, UnsupportedMedia, SlowBody, BadRequest, ClientGone."""
        self._check_declared(limit)
        arrived = self.scope.get("fastness.arrived")
        whole: bytes | None = arrived() if arrived is not None else None
        if whole is not None:
            if len(whole) > limit:
                raise TooLarge(f"Request entity too large: limit is {limit}")
            return whole
        chunks: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self._body_seconds):
                while True:
                    message = await self._receive()
                    if message["type"] == "http.disconnect":
                        raise ClientGone
                    chunk = message.get("body", b"")
                    size += len(chunk)
                    if size > limit:
                        raise TooLarge(f"Request entity too large: limit is {limit}")
                    chunks.append(chunk)
                    if not message.get("more_body"):
                        break
        except TimeoutError as error:
            raise SlowBody(f"the body did not arrive within {self._body_seconds:g} seconds") from error
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    def _check_declared(self, limit: int) -> None:
        encoding = self.header(b"content-encoding")
        # A few kilobytes of gzip unpack to gigabytes: the bound on bytes would say nothing.
        if encoding and encoding.lower() != "identity":
            raise UnsupportedMedia("a body with a Content-Encoding is not accepted: send it as it is")
        declared = self.header(b"content-length")
        if not declared:
            return
        if not (declared.isascii() and declared.isdigit()):
            raise BadRequest("Content-Length is not a number")
        # Digits first: Python's int() of a long text is quadratic, and raises above 4,300 of them.
        if len(declared) > MAX_LENGTH_DIGITS or int(declared) > limit:
            raise TooLarge(f"Request entity too large: limit is {limit}")

    async def disconnected(self) -> None:
        """Return when the client has gone; only for requests whose body was read."""
        while (await self._receive())["type"] != "http.disconnect":
            pass
