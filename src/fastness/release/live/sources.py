"""The config server behind its internal port, as gate and broker reach it.

They show a certificate of their own and forward what the machine showed, which the config server verifies itself. What else a
machine sent is never passed on: only the pool, the Ignition version it understands, the name of a rendered config, and its nonce.
The last answers are kept: the config server is asked about every request and signs for it, but sends the bytes only when they
changed. Configurations with overlays are some machine's own and are not kept.
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
from fastness.kube.client.https import HttpsLines
from fastness.protocol.config_proof import HEADER, MAX_SIGNATURE
from fastness.protocol.door_role import DoorRole
from fastness.release.configs import NONCE, OVERLAYS, RENDERED, UNTIL, Config, ConfigRequest
from fastness.runtime.cache import BoundedCache

MAX_CONFIG: Final = 64 * 1024 * 1024
MAX_NAME: Final = 253
MAX_OVERLAYS: Final = 4096
SECONDS: Final = 15.0
MOST_KEPT: Final = 64


class RemoteConfigs:
    """The config server's internal port."""

    def __init__(self, url: str, context: Callable[[], ssl.SSLContext]) -> None:
        self._url = url
        self._context = context
        self._shown: ssl.SSLContext | None = None
        self._http: httpx.AsyncClient | None = None
        self._kept = BoundedCache[tuple[str, str, str], Config](MOST_KEPT)

    async def fetch(self, wanted: ConfigRequest) -> Config:
        """The configuration, signed for the machine that asks; raises Refusal."""
        shown = {"authorization": wanted.credential, NONCE.decode(): wanted.nonce}
        return await self._ask(wanted.pool, wanted.accept, wanted.rendered, shown)

    async def copy(self, pool: str, accept: str, rendered: str = "") -> Config:
        """A configuration to keep; raises Refusal."""
        return await self._ask(pool, accept, rendered, {})

    async def _ask(self, pool: str, accept: str, rendered: str, shown: dict[str, str]) -> Config:
        key = (pool, accept, rendered)
        http, kept = await self._client(), self._kept.get(key)
        headers = {"accept": accept, **shown}
        if kept is not None:
            headers["if-none-match"] = kept.etag.decode()
        try:
            answer = await http.get(
                f"/config/{pool}", params={"rendered": rendered} if rendered else None, headers=headers
            )
        except (httpx.HTTPError, ssl.SSLError) as error:
            raise Refusal(503, "config-server-unreachable", "the config server does not answer") from error
        if answer.status_code == 200 and len(answer.content) <= MAX_CONFIG:
            name = answer.headers.get(RENDERED.decode(), "")[:MAX_NAME]
            config = _signed(answer, Config(answer.content, answer.headers.get("etag", "").encode(), name))
            return config if config.overlays else self._keep(key, config)
        if answer.status_code == 304 and kept is not None:
            return self._keep(key, _signed(answer, kept))
        raise _refused(answer)

    def _keep(self, key: tuple[str, str, str], found: Config) -> Config:
        """Remember an answer, and forget the one that was not asked for the longest."""
        self._kept.pop(key)
        if found.etag:
            self._kept.put(key, found)
        return found

    async def close(self) -> None:
        """Close connections."""
        if self._http is not None:
            await self._http.aclose()
            self._http = None

    async def _client(self) -> httpx.AsyncClient:
        """A client with the certificate of now: a new one when that was renewed."""
        context = self._context()
        if self._http is None or context is not self._shown:
            await self.close()
            self._http = httpx.AsyncClient(
                base_url=self._url,
                transport=HttpsLines(context, role=DoorRole.CONFIG_SERVER),
                timeout=SECONDS,
                trust_env=False,
            )
            self._shown = context
        return self._http


def _signed(answer: httpx.Response, config: Config) -> Config:
    """A configuration with what the config server says of it in this answer; raises Refusal."""
    signature = answer.headers.get(HEADER, "")
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
    if answer.status_code in (400, 404) and code:
        return Refusal(answer.status_code, code, "the config server refused this request")
    return Refusal(503, code or "config-server", "the config server cannot serve this now")
