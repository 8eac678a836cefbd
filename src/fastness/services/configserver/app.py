"""`/config/<pool>` for machines that boot, `/config/<pool>?rendered=<name>` for agents of machines that run.

Answers follow the table that all doors share: 401 without a good credential, 403 for a final refusal (a ticket of another pool,
a confidential pool), 404 for an unknown pool after authorization, 503 with Retry-After while there is nothing rendered, 400
for what cannot be understood. Ignition retries 5xx for ever and gives up at the first 4xx, so a state that will pass is
never a 4xx. A config server that has lost touch with the API cannot know which pools need a proof, and serves none (503). Errors
carry a small JSON body with a code; HEAD never has a body.

The internal port, for gate and broker, is another application (`internal.py`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from fastness.domain.machineconfig.serving import CannotServe, UnsupportedAccept, negotiate
from fastness.formats import urlpath
from fastness.observe import metrics
from fastness.services.assignments import rendered_in
from fastness.services.configs import RENDERED
from fastness.services.configserver.daytwo import SIGNATURE, NodeReleases
from fastness.services.configserver.replies import NoConfig, Replies, Reply
from fastness.services.http import Answer, Request, send_answer
from fastness.services.refusals import Refusal
from fastness.services.releases import demand
from fastness.trust.touch import Touch

"""The header that names the rendered config of an answer: a cache of one who asks may be ahead of ours, or behind."""
Admit = Callable[[Request, str], Awaitable[None] | None]
"""Lets the caller in for a pool, or raises Refusal."""


class Auth(StrEnum):
    """What a caller must show."""

    OPEN = "open"
    TICKET = "ticket; on day two the certificate of a node"
    INTERNAL = "internal certificate"


@dataclass(frozen=True, slots=True)
class Route:
    """One way in."""

    pattern: str
    methods: tuple[str, ...]
    auth: Auth


READING = ("GET", "HEAD")
TICKET_ROUTES = (Route("/healthz", READING, Auth.OPEN), Route("/config/<pool>", READING, Auth.TICKET))
INTERNAL_ROUTES = (Route("/healthz", READING, Auth.INTERNAL), Route("/config/<pool>", READING, Auth.INTERNAL))


class ConfigServer:
    """The config server as an application."""

    def __init__(self, replies: Replies, admit: Admit, touch: Touch, nodes: NodeReleases | None = None) -> None:
        """Serve what is in `replies` to those whom `admit` lets in; without `nodes` no certificate counts."""
        self._replies = replies
        self._admit = admit
        self._touch = touch
        self._nodes = nodes

    async def __call__(self, scope: Mapping[str, Any], receive: Any, send: Any) -> None:
        """One request."""
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        try:
            answer = await self._answer(request)
        except Refusal as refusal:
            answer = refusal.answer()
        metrics.CONFIG_SERVED.inc(str(answer.code))
        await send_answer(answer, send, head=request.method == "HEAD")

    async def _answer(self, request: Request) -> Answer:
        segments = urlpath.split(request.path)
        if request.method not in READING:
            raise Refusal(405, "method-not-allowed", "only GET and HEAD")
        if segments == ["healthz"]:
            return Answer(200, b"")
        if segments is None or len(segments) != 2 or segments[0] != "config":
            raise Refusal(404, "not-found", "there is /config/<pool>")
        rendered = rendered_in(request)
        if rendered:
            return await self._rendered(request, segments[1], rendered)
        waiting = self._admit(request, segments[1])
        if waiting is not None:
            await waiting
        demand(self._touch)
        return self._config(request, segments[1])

    async def _rendered(self, request: Request, pool: str, name: str) -> Answer:
        """A rendered config as the object that agents read."""
        if request.peer is None and request.header(b"authorization"):
            raise Refusal(
                403, "wrong-credential", "a ticket is for machines that boot: rendered configs are not given for it"
            )
        if self._nodes is None:
            raise Refusal(401, "certificate-required", "show the certificate of the node")
        config = await self._nodes.release(request, pool, name)
        headers = ((b"etag", config.etag), (RENDERED, config.name.encode()), (SIGNATURE, config.signature.encode()))
        return Answer(200, config.body, headers=headers)

    def _config(self, request: Request, pool: str) -> Answer:
        try:
            version = negotiate(request.header(b"accept"))
            reply = self._replies.of(pool, version)
        except UnsupportedAccept as error:
            raise Refusal(400, error.code, error.message) from error
        except NoConfig as error:
            if error.known:
                raise Refusal(503, "not-rendered", "the pool has no rendered config yet") from error
            raise Refusal(404, "unknown-pool", "there is no such pool") from error
        except CannotServe as error:
            raise Refusal(400, error.code, error.message) from error
        return _answer(request, reply)


def _answer(request: Request, reply: Reply) -> Answer:
    headers = ((b"etag", reply.etag), (b"vary", b"Accept"), (RENDERED, reply.config.encode()))
    if request.header(b"if-none-match").encode() == reply.etag:
        return Answer(304, b"", headers=headers)
    return Answer(200, reply.body, headers=headers)
