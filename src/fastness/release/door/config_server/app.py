"""`/config/<pool>` for machines that boot, `/config/<pool>?rendered=<name>` and `/trust/<pool>` for agents of those that run.

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
from fastness.kinds.trusted_execution.subject import Grant
from fastness.kube.errors import ApiError
from fastness.observe import logs, metrics
from fastness.protocol.kbs_path import pool_config, pool_trust
from fastness.release.configs import Config, PlainConfigs
from fastness.release.door.config_server.day_two import NodeReleases, NodeRequest
from fastness.release.live.join_credentials import JoinCredentials
from fastness.release.live.releases import demand, rendered_in
from fastness.runtime.clock import Entropy

Admit = Callable[[Request, str], Grant | Awaitable[Grant]]
"""Leave for the caller to have the configuration of a pool, at once where the caches know; raises Refusal."""
TICKET_SUBJECT: Final = "ticket:"
"""How the subject of a caller with a ticket begins; the name of the ticket follows."""
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
    **nothing_but("there are /config/<pool> and /trust/<pool>"),
    ApiError: _unavailable,
    RecordError: _unrecorded,
}


class ConfigServer:
    """The ticket port: `app` is its application."""

    def __init__(
        self,
        configs: PlainConfigs,
        admit: Admit,
        touch: Touch,
        entropy: Entropy,
        nodes: NodeReleases | None = None,
        credentials: JoinCredentials | None = None,
    ) -> None:
        """Serve what is in `configs` to those whom `admit` lets in; without `nodes` no certificate counts.

        With `credentials` a machine that boots also gets what it joins by.
        """
        self._configs = configs
        self._admit = admit
        self._touch = touch
        self._nodes = nodes
        self._credentials = credentials
        caller = Auth("ticket; on day two the certificate of a node", self._recognise)
        routes = (
            Route("health", READING, "/healthz", OPEN, UNLIMITED, healthy),
            Route("config", READING, "/config/<pool>", caller, UNLIMITED, self._answer),
            Route(
                "trust", READING, "/trust/<pool>", Auth("certificate of a node", self._running), UNLIMITED, self._beside
            ),
        )
        self.app = application(DOOR, routes, ERRORS, entropy)

    async def _recognise(self, request: Request) -> NodeRequest | Grant:
        """The node that asks for a rendered config, or leave for a machine that boots with a ticket; raises Refusal."""
        rendered = rendered_in(request)
        if rendered:
            return self._node(request, rendered)
        grant = self._admit(request, request.values[0])
        return grant if isinstance(grant, Grant) else await grant

    async def _running(self, request: Request) -> NodeRequest:
        return self._node(request, "")

    async def _beside(self, request: Request, caller: NodeRequest) -> Answer:
        """What the node has beside its config."""
        document = await caller.release(pool_trust(request.values[0]))
        return Answer(200, document.body, headers=document.headers())

    def _node(self, request: Request, rendered: str) -> NodeRequest:
        # A ticket lies in user-data, which the host can read for as long as the machine lives; on day two it must open nothing
        # (decision 23).
        if request.peer is None and request.header(b"authorization"):
            raise Refusal(
                403, "wrong-credential", "a ticket is for machines that boot: rendered configs are not given for it"
            )
        if self._nodes is None:
            raise Refusal(401, "certificate-required", "show the certificate of the node")
        return self._nodes.recognise(request, rendered)

    async def _answer(self, request: Request, caller: NodeRequest | Grant) -> Answer:
        pool = request.values[0]
        if isinstance(caller, NodeRequest):
            config = await caller.release(pool_config(pool))
            return Answer(200, config.body, headers=config.headers())
        # After recognition, before the first byte: a door without news cannot know which pools became confidential (decision 21).
        demand(self._touch)
        query = {"accept": request.header(b"accept")}
        if self._credentials is None:
            return config_answer(request, await self._configs.read(caller, pool_config(pool), query))
        query["kubeconfig"] = self._credentials.kubeconfig()
        config = await self._configs.read(caller, pool_config(pool), query)
        if request.method == "HEAD" or has_it(request, config):
            return config_answer(request, config)
        ticket = caller.subject.name.removeprefix(TICKET_SUBJECT)
        filled = await self._credentials.filled(config.body, pool, ticket=ticket)
        return config_answer(request, config._replace(body=filled))


def config_answer(request: Request, config: Config) -> Answer:
    """A configuration, or that it is the one that the caller has; what fits depends on what it accepts."""
    headers = (*config.headers(), (b"vary", b"Accept"))
    # After authorisation: 304 tells that a caller has the current bytes, which is an answer like any other.
    if has_it(request, config):
        return Answer(304, b"", headers=headers)
    return Answer(200, config.body, headers=headers)


def has_it(request: Request, config: Config) -> bool:
    """Whether a caller says that it has this configuration."""
    return request.header(b"if-none-match").encode() == config.etag
