"""The client certificate in files that somebody renews, as that of a node is every half hour.

The files are looked at again after a minute. What they hold then is shown in new connections, and those from before are not used
for another request: an API server that finds a certificate expired refuses requests on a connection that it accepted with it.
Files that cannot be read or used are tried again; the certificate of before is shown on.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import httpx

from fastness.crypto.secret import SecretBytes
from fastness.kube.client.connection import Connection, show_certificate
from fastness.kube.client.pool import ConnectionPool
from fastness.kube.errors import BadConfig
from fastness.observe.logs import logger
from fastness.runtime.clock import Clock

FRESH_SECONDS = 60.0
_log = logger("kube.client")


class RenewedCertificate:
    """The client certificate of one connection."""

    def __init__(
        self, connection: Connection, context: ssl.SSLContext, clock: Clock, read: Callable[[Path], bytes]
    ) -> None:
        self._connection = connection
        self._context = context
        self._clock = clock
        self._read = read
        self._read_at = clock.monotonic()

    def changed(self) -> bool:
        """Whether the files hold another certificate since a moment, which new connections show from now on."""
        files, now = self._connection.certificate_files, self._clock.monotonic()
        if files is None or now - self._read_at < FRESH_SECONDS:
            return False
        self._read_at = now
        try:
            certificate, key = (self._read(file) for file in files)
            # The key is read with it and not compared: a new certificate over the old key is a renewal, too.
            if certificate == self._connection.certificate:
                return False
            renewed = replace(self._connection, certificate=certificate, key=SecretBytes(key))
            show_certificate(self._context, renewed)
        except (OSError, BadConfig) as error:
            _log.warning("cluster.certificate_unusable", file=files[0], error=error)
            return False
        self._connection = renewed
        return True


class RenewingPool(httpx.AsyncBaseTransport):
    """Connections that show the client certificate of now."""

    def __init__(self, pool: ConnectionPool, certificate: RenewedCertificate) -> None:
        self._pool = pool
        self._certificate = certificate

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send over a connection that shows the certificate of now; raises PoolTimeout, TransportError."""
        if self._certificate.changed():
            await self._pool.renew()
        return await self._pool.handle_async_request(request)

    async def aclose(self) -> None:
        """Close every connection, busy ones too."""
        await self._pool.aclose()
