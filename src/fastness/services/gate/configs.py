"""Where the gate gets configurations from: the config server behind it.

In one process that is a function call. Otherwise the gate asks the config server's internal port, with its own certificate
and with the machine's token, which the config server verifies once more. What a machine sent is never passed on: only the
pool, the Ignition version it understands, the name of a rendered config, and the token. The last answers are kept: the config
server is asked about every request, but sends the bytes only when they changed.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

import httpx

from fastness.cluster.https import HttpsLines
from fastness.domain.machineconfig.serving import CannotServe, UnsupportedAccept, negotiate
from fastness.formats import json
from fastness.formats.errors import JsonError
from fastness.services.configserver.app import RENDERED
from fastness.services.configserver.replies import NoConfig, Replies
from fastness.services.refusals import Refusal

MAX_CONFIG: Final = 64 * 1024 * 1024
MAX_NAME: Final = 253
SECONDS: Final = 15.0
MOST_KEPT: Final = 64


class Config(NamedTuple):
    """A configuration as it goes out, and the rendered config that it was made from."""

    body: bytes
    etag: bytes
    name: str = ""
    overlays: tuple[str, ...] = ()

    def described(self) -> dict[str, str]:
        """Which configuration this is, and which overlays of the machine are in it, for the record."""
        said = {"config": self.name, "overlays": " ".join(self.overlays)}
        return {
            "etag": self.etag.decode("ascii", "replace"),
            **{name: value for name, value in said.items() if value},
        }


class ConfigSource(Protocol):
    """Somebody who has the configurations of pools."""

    async def fetch(self, pool: str, accept: str, token: str, rendered: str = "") -> Config:
        """The configuration of a pool, or the rendered config of that name, for whoever the token names; raises Refusal."""


class LocalConfigs:
    """The config server in the same process."""

    def __init__(self, replies: Replies) -> None:
        self._replies = replies

    async def fetch(self, pool: str, accept: str, token: str, rendered: str = "") -> Config:
        """The configuration; raises Refusal."""
        if rendered:
            found = self._replies.rendered(rendered)
            if found is None:
                raise Refusal(503, "not-rendered", "the rendered config is not there yet")
            return Config(found.body, found.etag, found.config)
        try:
            reply = self._replies.of(pool, negotiate(accept))
        except UnsupportedAccept as error:
            raise Refusal(400, error.code, error.message) from error
        except NoConfig as error:
            if error.known:
                raise Refusal(503, "not-rendered", "the pool has no rendered config yet") from error
            raise Refusal(404, "unknown-pool", "there is no such pool") from error
        except CannotServe as error:
            raise Refusal(400, error.code, error.message) from error
        return Config(reply.body, reply.etag, reply.config)


class RemoteConfigs:
    """The config server's internal port."""

    def __init__(self, url: str, context: Callable[[], ssl.SSLContext]) -> None:
        self._url = url
        self._context = context
        self._shown: ssl.SSLContext | None = None
        self._http: httpx.AsyncClient | None = None
        self._kept: dict[tuple[str, str, str], Config] = {}

    async def fetch(self, pool: str, accept: str, token: str, rendered: str = "") -> Config:
        """The configuration; raises Refusal."""
        key = (pool, accept, rendered)
        http, kept = await self._client(), self._kept.get(key)
        headers = {"accept": accept}
        if token:
            headers["authorization"] = f"DPoP {token}"
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
            return self._keep(key, Config(answer.content, answer.headers.get("etag", "").encode(), name))
        if answer.status_code == 304 and kept is not None:
            return self._keep(key, kept)
        raise _refused(answer)

    def _keep(self, key: tuple[str, str, str], found: Config) -> Config:
        """Remember an answer, and forget the one that was not asked for the longest."""
        self._kept.pop(key, None)
        if found.etag:
            self._kept[key] = found
            if len(self._kept) > MOST_KEPT:
                del self._kept[next(iter(self._kept))]
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
                base_url=self._url, transport=HttpsLines(context), timeout=SECONDS, trust_env=False
            )
            self._shown = context
        return self._http


def _refused(answer: httpx.Response) -> Refusal:
    """A refusal of the config server in the gate's own words; trouble with our own credentials is not the machine's."""
    try:
        code = str(json.decode(answer.content[:4096]).get("code", ""))
    except (JsonError, AttributeError):
        code = ""
    if answer.status_code in (400, 404) and code:
        return Refusal(answer.status_code, code, "the config server refused this request")
    return Refusal(503, code or "config-server", "the config server cannot serve this now")
