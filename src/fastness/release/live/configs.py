"""Configurations as the gate hands them out, and the config server behind its internal port, as gate and broker reach it.

    GateConfigs      a ResourceSource: what the config server signs for the machine that a Grant is for
    RemoteConfigs    a ConfigService: the internal port of the config server

Gate and broker show a certificate of their own and forward what the machine showed, which the config server verifies itself. What
else a machine sent is never passed on: only the pool, the Ignition version it understands, the name of a rendered config, and its
nonce. The last answers are kept: the config server is asked about every request and signs for it, but sends the bytes only when
they changed. Configurations with overlays are some machine's own and are not kept.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from datetime import datetime
from typing import Final

import httpx

from fastness.formats import json
from fastness.formats.errors import JsonError
from fastness.http.refusals import Refusal
from fastness.kinds.trusted_execution.subject import Basis, Grant
from fastness.kube.client.pool import ConnectionPool
from fastness.protocol.config_proof import HEADER, MAX_SIGNATURE
from fastness.protocol.door import DoorRole
from fastness.protocol.kbs_path import ResourcePath, is_pool_config, is_pool_trust
from fastness.release.configs import NONCE, OVERLAYS, RENDERED, STUB, UNTIL, Config, ConfigRequest, ConfigService
from fastness.release.live.releases import Assignments
from fastness.release.source import Query, require_for
from fastness.runtime.cache import BoundedCache

MAX_CONFIG: Final = 64 * 1024 * 1024
MAX_NAME: Final = 253
MAX_OVERLAYS: Final = 4096
SECONDS: Final = 15.0
MOST_KEPT: Final = 64


class GateConfigs:
    """The configurations that the gate hands out."""

    def __init__(self, service: ConfigService, assignments: Assignments) -> None:
        self._service = service
        self._assignments = assignments

    def serves(self, path: ResourcePath) -> bool:
        """Whether a path is the configuration of a pool, or what its nodes have beside it."""
        return is_pool_config(path) or is_pool_trust(path)

    async def read(self, grant: Grant, path: ResourcePath, query: Query) -> Config:
        """The configuration, signed for the machine and the nonce of the query; raises Refusal, ApiError.

        A machine that boots says what its Ignition `accept`s. One that runs names the `rendered` config that it was sent to.
        """
        require_for(grant, path)
        rendered, trust = query.get("rendered", ""), is_pool_trust(path)
        if (rendered or trust) and grant.basis is not Basis.VERDICT:
            raise Refusal(403, "attestation-required", "a ticket is for machines that boot: attest", grant.verdict)
        if rendered:
            await self._assignments.check(grant.subject, rendered, grant.verdict)
        accept = "" if rendered or trust else query.get("accept", "")
        request = ConfigRequest(path.type, accept, grant.caller.credential, query.get("nonce", ""), rendered, trust)
        return await self._service.fetch(request)


class RemoteConfigs:
    """The config server's internal port."""

    def __init__(self, url: str, context: Callable[[], ssl.SSLContext]) -> None:
        self._url = url
        self._context = context
        self._client_context: ssl.SSLContext | None = None
        self._http: httpx.AsyncClient | None = None
        self._answers = BoundedCache[tuple[str, str, str, str], Config](MOST_KEPT)

    async def fetch(self, request: ConfigRequest) -> Config:
        """The configuration, signed for the machine that asks; raises Refusal."""
        # Two headers, made here: nothing that a machine sent reaches the config server as it was.
        forwarded = {"authorization": request.credential, NONCE.decode(): request.nonce}
        route = "trust" if request.trust else "config"
        return await self._ask(route, request.pool, request.accept, request.rendered, forwarded)

    async def copy(self, pool: str, accept: str, rendered: str = "") -> Config:
        """A configuration to keep; raises Refusal."""
        return await self._ask("config", pool, accept, rendered, {})

    async def stub(self, pool: str, accept: str, server_name: str) -> Config:
        """The configuration for a stub that came under a name; raises Refusal. Never kept: there is a token in it."""
        answer = await self._get("config", pool, "", {"accept": accept, STUB.decode(): server_name})
        if answer.status_code != 200 or len(answer.content) > MAX_CONFIG:
            raise _refused(answer)
        name = answer.headers.get(RENDERED.decode(), "")[:MAX_NAME]
        return Config(answer.content, answer.headers.get("etag", "").encode(), name)

    async def _get(self, route: str, pool: str, rendered: str, headers: dict[str, str]) -> httpx.Response:
        http = await self._client()
        try:
            return await http.get(
                f"/{route}/{pool}", params={"rendered": rendered} if rendered else None, headers=headers
            )
        except (httpx.HTTPError, ssl.SSLError) as error:
            raise Refusal(503, "config-server-unreachable", "the config server does not answer") from error

    async def _ask(self, route: str, pool: str, accept: str, rendered: str, forwarded: dict[str, str]) -> Config:
        key = (route, pool, accept, rendered)
        last = self._answers.get(key)
        headers = {"accept": accept, **forwarded}
        if last is not None:
            # Pools share one config of megabytes; asked for by its digest it travels once for all machines of a boot storm.
            headers["if-none-match"] = last.etag.decode()
        answer = await self._get(route, pool, rendered, headers)
        if answer.status_code == 200 and len(answer.content) <= MAX_CONFIG:
            name = answer.headers.get(RENDERED.decode(), "")[:MAX_NAME]
            config = _signed(answer, Config(answer.content, answer.headers.get("etag", "").encode(), name))
            # With overlays it is one machine's own: kept under the pool it would go to the next one.
            return config if config.overlays else self._keep(key, config)
        # The bytes are those of before, the signature is of this answer: it names this machine and this nonce.
        if answer.status_code == 304 and last is not None:
            return self._keep(key, _signed(answer, last))
        raise _refused(answer)

    def _keep(self, key: tuple[str, str, str, str], config: Config) -> Config:
        """Remember an answer, and forget the one that was not asked for the longest."""
        self._answers.pop(key)
        if config.etag:
            self._answers.put(key, config)
        return config

    async def close(self) -> None:
        """Close connections."""
        if self._http is not None:
            await self._http.aclose()
            self._http = None

    async def _client(self) -> httpx.AsyncClient:
        """A client with the certificate of now: a new one when that was renewed."""
        context = self._context()
        if self._http is None or context is not self._client_context:
            await self.close()
            self._http = httpx.AsyncClient(
                base_url=self._url,
                transport=ConnectionPool(context, role=DoorRole.CONFIG_SERVER),
                timeout=SECONDS,
                # A proxy from the environment would see configurations, and a netrc would add credentials to what a machine
                # showed.
                trust_env=False,
            )
            self._client_context = context
        return self._http


def _signed(answer: httpx.Response, config: Config) -> Config:
    """A configuration with what the config server says of it in this answer; raises Refusal."""
    signature = answer.headers.get(HEADER, "")
    # The machine would refuse it, and could only say that something is wrong; here the log names the part that did not sign.
    if not signature or len(signature) > MAX_SIGNATURE:
        raise Refusal(503, "config-unsigned", "the config server did not sign its answer")
    overlays = tuple(answer.headers.get(OVERLAYS.decode(), "")[:MAX_OVERLAYS].split())
    try:
        until = answer.headers.get(UNTIL.decode())
        return config._replace(
            signature=signature, overlays=overlays, until=datetime.fromisoformat(until) if until else None
        )
    except ValueError as error:
        raise Refusal(503, "config-server", "the answer of the config server cannot be understood") from error


def _refused(answer: httpx.Response) -> Refusal:
    """A refusal of the config server in the gate's own words; trouble with our own credentials is not the machine's."""
    try:
        code = str(json.decode(answer.content[:4096]).get("code", ""))
    except (JsonError, AttributeError):
        code = ""
    # Not 401 and 403: those are about our certificate, and Ignition gives up for good at a 4xx that is not the machine's fault.
    if answer.status_code in (400, 404) and code:
        return Refusal(answer.status_code, code, "the config server refused this request")
    return Refusal(503, code or "config-server", "the config server cannot serve this now")
