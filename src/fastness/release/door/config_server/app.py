"""`/config/<pool>` for machines that boot, `/config/<pool>?rendered=<name>` for agents of machines that run.

Answers follow the table that all doors share: 401 without a good credential, 403 for a final refusal (a ticket of another pool,
a confidential pool), 404 for an unknown pool after authorization, 503 with Retry-After while there is nothing rendered, 400
for what cannot be understood. Ignition retries 5xx for ever and gives up at the first 4xx, so a state that will pass is
never a 4xx. A config server that has lost touch with the API cannot know which pools need a proof, and serves none (503). Errors
carry a small JSON body with a code; HEAD never has a body.

The internal port, for gate and broker, is another application (`internal.py`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from fastness.http import Answer, Request
from fastness.http.edge import Door, ErrorTable, Outage, application, healthy, nothing_but
from fastness.http.freshness import Touch
from fastness.http.refusals import Refusal
from fastness.http.route import OPEN, READING, UNLIMITED, Auth, Route
from fastness.keys.errors import RecordError
from fastness.kube.errors import ApiError
from fastness.machineconfig.serving import CannotServe, UnsupportedAccept, negotiate
from fastness.observe import logs, metrics
from fastness.release.configs import RENDERED
from fastness.release.door.config_server.day_two import SIGNATURE, NodeReleases, NodeRequest
from fastness.release.live.assignments import rendered_in
from fastness.release.live.releases import demand
from fastness.release.live.replies import NoConfig, Replies, Reply
from fastness.runtime.clock import Entropy

Admit = Callable[[Request, str], Awaitable[None] | None]
"""Lets the caller in for a pool, or raises Refusal."""
_log = logs.logger("configserver")


def _count(_route: str, code: int) -> None:
    metrics.CONFIG_SERVED.inc(str(code))


def _unavailable(error: ApiError, _route: str) -> Refusal:
    _log.warning("configserver.unavailable", code=error.reason, error=error)
    return Outage(503, "api-unavailable", "the cluster cannot be asked now")


def _unrecorded(error: RecordError, _route: str) -> Refusal:
    _log.error("configserver.unavailable", code=error.code, error=error, hint=error.hint)
    return Outage(503, error.code, "the record cannot be written now")


DOOR: Final = Door("configserver", answered=_count)
ERRORS: Final[ErrorTable] = {
    **nothing_but("there is /config/<pool>"),
    ApiError: _unavailable,
    RecordError: _unrecorded,
}


class ConfigServer:
    """The ticket port: `app` is its application."""

    def __init__(
        self, replies: Replies, admit: Admit, touch: Touch, entropy: Entropy, nodes: NodeReleases | None = None
    ) -> None:
        """Serve what is in `replies` to those whom `admit` lets in; without `nodes` no certificate counts."""
        self._replies = replies
        self._admit = admit
        self._touch = touch
        self._nodes = nodes
        known = Auth("ticket; on day two the certificate of a node", self._recognised)
        routes = (
            Route("health", READING, "/healthz", OPEN, UNLIMITED, healthy),
            Route("config", READING, "/config/<pool>", known, UNLIMITED, self._answer),
        )
        self.app = application(DOOR, routes, ERRORS, entropy)

    async def _recognised(self, request: Request) -> NodeRequest | None:
        """The node that asks for a rendered config, None for a machine that boots with a ticket; raises Refusal."""
        rendered = rendered_in(request)
        if rendered:
            return self._node(request, rendered)
        waiting = self._admit(request, request.values[0])
        if waiting is not None:
            await waiting
        return None

    def _node(self, request: Request, rendered: str) -> NodeRequest:
        if request.peer is None and request.header(b"authorization"):
            raise Refusal(
                403, "wrong-credential", "a ticket is for machines that boot: rendered configs are not given for it"
            )
        if self._nodes is None:
            raise Refusal(401, "certificate-required", "show the certificate of the node")
        return self._nodes.recognise(request, rendered)

    async def _answer(self, request: Request, node: NodeRequest | None) -> Answer:
        pool = request.values[0]
        if node is None:
            demand(self._touch)
            return self._config(request, pool)
        config = await node.release(pool)
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
