"""Every kind of credential that a door can be shown, good and bad.

Each credential is an HTTP client. Those who are refused by TLS itself never reach the application: their outcome is `cut`.
"""

from __future__ import annotations

import json
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx

from fastness.apiserver.auth import issue_token
from fastness.crypto.x509 import CertificateAuthority, Credential
from fastness.runtime.clock import SystemEntropy
from tests.component.apiserver.door.objects import ACCOUNTS, create
from tests.embedded.fixtures import Embedded

HOUR = timedelta(hours=1)
STRANGERS = ("none", "garbage", "expired", "deleted")
CUT = ("old-cert", "foreign")
KNOWN = ("n1", "n2", "viewer", "nobody", "admin", "as-vera", "sneaky")


class Callers:
    """Clients by the name of their credential."""

    def __init__(self, embedded: Embedded, directory: Path) -> None:
        self._embedded = embedded
        self._directory = directory
        self._clients: dict[str, httpx.AsyncClient] = {}

    async def __aenter__(self) -> Callers:
        now = datetime.now(UTC)
        authority = self._embedded.server.pki.authority
        foreign = CertificateAuthority.create("fastness api", now, SystemEntropy())
        past = now - 48 * HOUR
        self._certificate("admin", self._embedded.server.pki.admin)
        self._certificate("n1", self._embedded.server.pki.issue_node("n1", now))
        self._certificate("n2", self._embedded.server.pki.issue_node("n2", now))
        self._certificate("old-cert", authority.issue_client("fastness-admin", ["system:masters"], HOUR, past))
        self._certificate("foreign", foreign.issue_client("fastness-admin", ["system:masters"], HOUR, now))
        self._token("none", "")
        self._token("garbage", "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZG1pbiJ9.")
        self._token("viewer", await self._issued("viewer"))
        self._token("nobody", await self._issued("nobody"))
        self._token("sneaky", await self._issued("viewer"), {"impersonate-user": "fastness-admin"})
        self._token("expired", self._outlived())
        self._token("deleted", await self._orphaned())
        self._certificate("as-vera", self._embedded.server.pki.admin, {"impersonate-user": "vera"})
        return self

    async def __aexit__(self, *_: object) -> None:
        for client in self._clients.values():
            await client.aclose()

    async def outcome(self, caller: str, method: str, path: str, body: Any, content_type: str) -> str:
        """The code of an answer, or `cut` when the handshake is refused."""
        headers = {"content-type": content_type} if body is not None else {}
        try:
            async with self._clients[caller].stream(method, path, json=body, headers=headers) as answer:
                return str(answer.status_code)
        except (httpx.ReadError, httpx.ConnectError, httpx.RemoteProtocolError):
            return "cut"

    def client(self, caller: str) -> httpx.AsyncClient:
        """The client with that credential."""
        return self._clients[caller]

    def _context(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self._embedded.ca_file))

    def _certificate(self, name: str, credential: Credential, headers: dict[str, str] | None = None) -> None:
        pem = self._directory / f"{name}.pem"
        pem.write_bytes(credential.key_pem.reveal() + credential.certificate.pem)
        context = self._context()
        context.load_cert_chain(pem)
        self._clients[name] = httpx.AsyncClient(
            base_url=self._embedded.url, verify=context, headers=headers, timeout=20
        )

    def _token(self, name: str, token: str, headers: dict[str, str] | None = None) -> None:
        credential = {"authorization": f"Bearer {token}"} if token else {}
        self._clients[name] = httpx.AsyncClient(
            base_url=self._embedded.url, verify=self._context(), headers={**credential, **(headers or {})}, timeout=20
        )

    async def _issued(self, account: str) -> str:
        path = f"/api/v1/namespaces/default/serviceaccounts/{account}/token"
        answer = await self._clients["admin"].post(path, json={"spec": {"expirationSeconds": 3600}})
        assert answer.status_code == 201, answer.text
        token: str = answer.json()["status"]["token"]
        return token

    async def _orphaned(self) -> str:
        admin = self._clients["admin"]
        await create(admin, ACCOUNTS, {"metadata": {"name": "gone"}})
        token = await self._issued("gone")
        assert (await admin.delete(f"{ACCOUNTS}/gone")).status_code == 200
        return token

    def _outlived(self) -> str:
        """A token that was good two days ago."""
        api = self._embedded.server.api
        account = json.loads(api.get(api.served("", "v1", "serviceaccounts"), "default", "viewer"))
        past = datetime.now(UTC) - 48 * HOUR
        tokens = self._embedded.server.guard._tokens
        issued = issue_token({"spec": {"expirationSeconds": 3600}}, account, past, tokens, SystemEntropy())
        return str(issued["status"]["token"])
