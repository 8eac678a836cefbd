"""Ignition's side of a first boot, without I/O: which request is answered, with what, and how often.

    waiting ─ a request of Ignition ─▶ working ─▶ ready ─ 200 ─▶ answering ─ all bytes left ─▶ answered
                                                   └─▶ refused ─ 403, with the code ─▶ (the machine stops there)

* Where the image carries the pointer there is one request, /config without credentials: pool, ticket and server are none of its
  business, because Ignition would have them from the host. One that brings some is not of this image, and is refused.
* Where stock Ignition carries the ticket, /config/<pool>, the first request decides it; afterwards only that ticket and that pool
  are answered, compared in constant time.
* 503 until there is a config: Ignition asks again after 5xx, for ever, and ends at the first 4xx.
* The config leaves once. A delivery that broke before its last byte was none, and is repeated for the same ticket.

`forwarder.py` brings requests here and carries answers out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from fastness.agent.boot.boot import BootRequest
from fastness.crypto.secret import SecretText
from fastness.formats import json, url_path
from fastness.protocol.delivered import MAX_ACCEPT
from fastness.protocol.door import is_origin
from fastness.protocol.pointer import CONFIG, SERVER_HEADER

RETRY_SECONDS: Final = 1
MAX_TICKET: Final = 512
# Ignition prints it on the console, where one line is what an operator sees.
MAX_DETAIL: Final = 160
ERRORS: Final = "https://fastness.dev/errors/"


class Stage(StrEnum):
    """How far a first boot is."""

    WAITING = "waiting"
    WORKING = "working"
    READY = "ready"
    ANSWERING = "answering"
    ANSWERED = "answered"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class IgnitionRequest:
    """A request as it came: method, target, and headers with names in lower case; a repeated header is a list of two."""

    method: str
    target: str
    headers: Mapping[str, tuple[str, ...]]

    def header(self, name: str) -> str:
        """A header that is there once; empty otherwise."""
        values = self.headers.get(name.lower(), ())
        # Of two, one reader takes the first and another the last; a ticket that is there twice is none.
        return values[0] if len(values) == 1 else ""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer; `delivers` marks the one that carries the config, `refuses` the one that says that there will be none."""

    status: int
    body: bytes
    retry_after: int = 0
    delivers: bool = False
    refuses: bool = False


class Boot:
    """One first boot, as Ignition sees it."""

    def __init__(self, *, of_image: bool = False) -> None:
        self.stage = Stage.WAITING
        self.ask: BootRequest | None = None
        self.accept = ""
        self._of_image = of_image
        self._config = b""
        self._refusal = _problem(403, "refused", "this machine gets no configuration", refuses=True)

    @property
    def over(self) -> bool:
        """Whether there is nothing left to wait for but Ignition itself."""
        return self.stage in (Stage.READY, Stage.ANSWERING, Stage.ANSWERED, Stage.REFUSED)

    def answer(self, request: IgnitionRequest) -> Reply:
        """The answer to a request; the first one starts the boot."""
        segments = url_path.split(request.target.partition("?")[0])
        if request.method != "GET":
            return _problem(405, "method-not-allowed", "only GET")
        return self._answer_image(segments, request) if self._of_image else self._answer_ticket(segments, request)

    def _answer_image(self, segments: list[str] | None, request: IgnitionRequest) -> Reply:
        if segments != [CONFIG]:
            return _problem(404, "not-found", f"there is /{CONFIG}")
        if request.headers.keys() & {"authorization", SERVER_HEADER.lower()}:
            return _problem(403, "other-pointer", "this request was not made by the pointer of this image")
        if self.stage is Stage.WAITING:
            self._begin(request)
        return self._reply()

    def _answer_ticket(self, segments: list[str] | None, request: IgnitionRequest) -> Reply:
        if segments is None or len(segments) != 2 or segments[0] != CONFIG or not segments[1]:
            return _problem(404, "not-found", f"there is /{CONFIG}/<pool>")
        scheme, _, ticket = request.header("authorization").partition(" ")
        ticket = ticket.strip()
        if scheme.lower() != "bearer" or not ticket or len(ticket) > MAX_TICKET or not ticket.isascii():
            return _problem(401, "ticket-required", "the user-data carries no ticket in its Authorization header")
        if self.ask is None:
            return self._begin_with_ticket(segments[1], SecretText(ticket), request)
        # Another program on the loopback must not fetch what this boot came by. SecretText compares in constant time.
        if self.ask.ticket != SecretText(ticket) or self.ask.pool != segments[1]:
            return _problem(403, "other-ticket", "this boot belongs to another ticket or pool")
        return self._reply()

    def ready(self, config: bytes) -> None:
        """The config has arrived and is handed out to the next request."""
        self._config, self.stage = config, Stage.READY

    def refused(self, code: str, detail: str) -> None:
        """The machine gets no config: every request is answered with this code from now on."""
        self._refusal, self.stage = _problem(403, code, detail, refuses=True), Stage.REFUSED

    def delivered(self, *, whole: bool) -> None:
        """How the delivery went: it was the one, or it broke and may be repeated."""
        if self.stage is Stage.ANSWERING:
            self.stage = Stage.ANSWERED if whole else Stage.READY
        if self.stage is Stage.ANSWERED:
            # It holds secrets of the pool, and nobody may ask for it again.
            self._config = b""

    def _begin_with_ticket(self, pool: str, ticket: SecretText, request: IgnitionRequest) -> Reply:
        server = request.header(SERVER_HEADER)
        if not is_origin(server):
            return _problem(400, "server-missing", f"the user-data names no https server in {SERVER_HEADER}")
        self._begin(request)
        self.ask = BootRequest(pool, ticket, server.rstrip("/"), self.accept)
        return self._reply()

    def _begin(self, request: IgnitionRequest) -> None:
        accept = request.header("accept")
        self.accept = accept if len(accept) <= MAX_ACCEPT else ""
        self.stage = Stage.WORKING

    def _reply(self) -> Reply:
        match self.stage:
            case Stage.READY:
                self.stage = Stage.ANSWERING
                return Reply(200, self._config, delivers=True)
            case Stage.REFUSED:
                return self._refusal
            case Stage.ANSWERED:
                return _problem(403, "answered", "the configuration was handed out once already")
            case _:
                return _problem(503, "attesting", "the machine is proving itself: ask again", RETRY_SECONDS)


def _problem(status: int, code: str, detail: str, retry_after: int = 0, *, refuses: bool = False) -> Reply:
    body = {"type": ERRORS + code, "code": code, "detail": detail[:MAX_DETAIL]}
    return Reply(status, json.encode(body), retry_after, refuses=refuses)
