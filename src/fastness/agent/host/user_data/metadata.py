"""User-data from the metadata service of a cloud, at the link-local address that only the host can answer.

* The address is written down here, as a number: a name would be asked of a resolver that somebody else runs.
* No redirect is followed and no proxy is used, so the request never leaves the link.
* AWS is asked with a session token (IMDSv2). Asking without one would also work on old settings, and would work for anybody who
  can make a process on this machine send a request.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

import httpx

from fastness.agent.host.errors import BadUserData, UserDataFailure
from fastness.agent.host.user_data.files import bounded
from fastness.protocol.user_data import MAX_BYTES

SERVICE: Final = "http://169.254.169.254"
SECONDS: Final = 10.0
MAX_TOKEN: Final = 1024
NOTHING: Final = frozenset({204, 404})


@dataclass(frozen=True, slots=True)
class TokenRequest:
    """Where a session token is had, and in which header it is shown."""

    path: str
    headers: Mapping[str, str]
    header: str


@dataclass(frozen=True, slots=True)
class Metadata:
    """One metadata service."""

    name: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)
    token: TokenRequest | None = None
    encoded: bool = False
    answers: Mapping[str, str] = field(default_factory=dict)
    service: str = SERVICE

    def __post_init__(self) -> None:
        """Refuse an address that is not of this link; raises ValueError."""
        address = ip_address(urlsplit(self.service).hostname or "")
        # Loopback for tests alone: there is no route by which a link-local address leaves the machine's own link.
        if not (address.is_link_local or address.is_loopback):
            raise ValueError(f"{self.service} is not a link-local address")

    async def read(self) -> bytes | None:
        """What the service has; raises UserDataFailure."""
        try:
            async with asyncio.timeout(SECONDS), self._client() as http:
                session = await self._session(http)
                data = await self._get(http, "GET", self.path, {**self.headers, **session}, most=self._most)
        except (TimeoutError, httpx.HTTPError) as error:
            raise UserDataFailure(f"{self.name} does not answer ({type(error).__name__})") from error
        return self._unwrapped(data) if data else None

    @property
    def _most(self) -> int:
        return MAX_BYTES * 4 // 3 + 4 if self.encoded else MAX_BYTES

    def _client(self) -> httpx.AsyncClient:
        # Neither a proxy of the environment nor a redirect may see the ticket, or answer in the place of the service.
        return httpx.AsyncClient(base_url=self.service, trust_env=False, follow_redirects=False, timeout=SECONDS)

    async def _session(self, http: httpx.AsyncClient) -> dict[str, str]:
        if self.token is None:
            return {}
        token = await self._get(http, "PUT", self.token.path, self.token.headers, most=MAX_TOKEN)
        if not token or not token.isascii() or not token.decode("ascii").isprintable():
            raise UserDataFailure(f"{self.name} gives no session token")
        return {self.token.header: token.decode("ascii")}

    async def _get(
        self, http: httpx.AsyncClient, method: str, path: str, headers: Mapping[str, str], *, most: int
    ) -> bytes | None:
        async with http.stream(method, path, headers=dict(headers)) as answer:
            if answer.status_code in NOTHING:
                return None
            if answer.status_code != 200:
                raise UserDataFailure(f"{self.name} answered {answer.status_code}")
            # A proxy that answers every request with 200 is no metadata service; Google's says its name in the answer.
            if any(answer.headers.get(name) != value for name, value in self.answers.items()):
                raise UserDataFailure(f"{self.name} does not answer as that service does")
            body = bytearray()
            # Raw, not decoded: what is compressed would grow after it was counted.
            async for piece in answer.aiter_raw():
                body += piece
                if len(body) > most:
                    raise BadUserData(f"{self.name} sends more than {most} bytes")
            return bytes(body)

    def _unwrapped(self, data: bytes) -> bytes | None:
        if not self.encoded:
            return data
        try:
            return bounded(base64.b64decode(data.strip(), validate=True), self.name)
        except binascii.Error as error:
            raise BadUserData(f"{self.name} does not send base64") from error


def aws(service: str = SERVICE) -> Metadata:
    """Amazon EC2, IMDSv2."""
    token = TokenRequest(
        "/latest/api/token", {"X-aws-ec2-metadata-token-ttl-seconds": "60"}, "X-aws-ec2-metadata-token"
    )
    return Metadata("metadata service of AWS", "/latest/user-data", token=token, service=service)


def azure(service: str = SERVICE) -> Metadata:
    """Azure, field userData."""
    path = "/metadata/instance/compute/userData?api-version=2021-01-01&format=text"
    return Metadata("metadata service of Azure", path, {"Metadata": "true"}, encoded=True, service=service)


def gcp(service: str = SERVICE) -> Metadata:
    """Google Compute Engine, attribute user-data."""
    flavor = {"Metadata-Flavor": "Google"}
    path = "/computeMetadata/v1/instance/attributes/user-data"
    return Metadata("metadata service of Google", path, flavor, answers=flavor, service=service)


def openstack(service: str = SERVICE) -> Metadata:
    """OpenStack."""
    return Metadata("metadata service of OpenStack", "/openstack/latest/user_data", service=service)
