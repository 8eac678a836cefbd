"""A running embedded API: in process for component tests, with everything that a client needs to reach it."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from fastness.apiserver import ApiServer, LocalCluster, ServerOptions, open_apiserver
from fastness.app.product import PRODUCT
from tests.patience import PATIENCE


@dataclass
class Embedded:
    """An embedded API that listens on loopback."""

    server: ApiServer
    directory: Path

    @property
    def url(self) -> str:
        """Where it listens."""
        return self.server.url

    @property
    def ca_file(self) -> Path:
        """What its clients trust."""
        return self.directory / "pki" / "ca.crt"

    @property
    def cluster(self) -> LocalCluster:
        """The in-process adapter."""
        return self.server.cluster

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig as a file."""
        path = self.directory / "kubeconfig"
        path.write_bytes(self.server.kubeconfig())
        path.chmod(0o600)
        return path

    def client(self, *, certificate: bool = True, token: str = "") -> httpx.AsyncClient:
        """An HTTP client: the administrator, a bearer of a token, or nobody."""
        context = ssl.create_default_context(cafile=str(self.ca_file))
        if certificate:
            context.load_cert_chain(str(self.directory / "pki" / "admin.pem"))
        headers = {"authorization": f"Bearer {token}"} if token else {}
        return httpx.AsyncClient(base_url=self.url, verify=context, headers=headers, timeout=PATIENCE)


@pytest.fixture
async def embedded_server(tmp_path: Path) -> AsyncIterator[Embedded]:
    """A fresh embedded API in a directory of its own."""
    directory = tmp_path / "state"
    async with open_apiserver(ServerOptions(directory), PRODUCT) as server:
        yield Embedded(server, directory)
