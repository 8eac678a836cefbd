"""Listeners that can show another certificate without a restart.

`TlsListener` is what `rotation.py` asks of a listener. `LoopListener` is the one of all doors, in our own loop, with the
peer's certificate; `rustls.py` has a faster one for doors that need no peer's certificate.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from fastness.crypto.digests import Digest
from fastness.crypto.x509 import Certificate, Credential
from fastness.http.bounds import Bounds
from fastness.http.faces import Faces
from fastness.http.listener import Listener, server_context


class TlsListener(Protocol):
    """A port that accepts once it has a certificate, and takes another at any time."""

    @property
    def port(self) -> int:
        """The port that is bound."""

    async def show(self, credential: Credential, trusted: Sequence[Certificate] = ()) -> None:
        """Show this certificate to new connections, and believe peers of these authorities."""

    async def stop(self) -> None:
        """Stop accepting."""


class LoopListener:
    """A listener of our own loop; with `mutual` a peer without a certificate of `trusted` gets no connection.

    With `peers` one may come without a certificate, or with one of those authorities; what it is worth the application decides.
    """

    def __init__(
        self,
        app: Any,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        mutual: bool = False,
        peers: Callable[[], Sequence[Certificate]] | None = None,
        bounds: Bounds | None = None,
        faces: Faces | None = None,
    ) -> None:
        self._context = server_context()
        self._mutual = mutual
        if mutual:
            self._context.verify_mode = ssl.CERT_REQUIRED
        elif peers is not None:
            # Optional, because ports are shared; the row of a route demands what it needs (pitfall 7 is what happens when nobody
            # does).
            self._context.verify_mode = ssl.CERT_OPTIONAL
            # A bundle may name an authority that another one issued, and not that one.
            self._context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
            self._believed: set[Digest] = set()
            # Asked in every handshake, with a server name or without, before the peer shows anything.
            self._context.sni_callback = lambda _tls, _name, _context: self._believe(peers())
        self._listener = Listener(app, host=host, port=port, tls=self._context, bounds=bounds, faces=faces)
        self._started = False

    @property
    def port(self) -> int:
        """The port that is bound, also when any free one was asked for."""
        return self._listener.port

    async def show(self, credential: Credential, trusted: Sequence[Certificate] = ()) -> None:
        """Replace what the live context shows; handshakes from now on use it, connections stay."""
        load(self._context, credential)
        if self._mutual:
            self._context.load_verify_locations(cadata=b"".join(entry.pem for entry in trusted).decode())
        if not self._started:
            self._started = True
            await self._listener.start()

    def _believe(self, authorities: Sequence[Certificate]) -> None:
        """Let peers of these authorities show themselves, from this handshake on."""
        for certificate in authorities:
            if certificate.fingerprint not in self._believed:
                self._context.load_verify_locations(cadata=certificate.pem.decode())
                self._believed.add(certificate.fingerprint)

    async def stop(self) -> None:
        """Stop accepting, let running requests end within a few seconds, close what is left."""
        await self._listener.stop()


def tls_context(credential: Credential) -> ssl.SSLContext:
    """A server context that shows a credential which no file holds."""
    context = server_context()
    load(context, credential)
    return context


def load(context: ssl.SSLContext, credential: Credential) -> None:
    """Have a context show a credential from the next handshake on."""
    shown = b"".join(certificate.pem for certificate in (credential.certificate, *credential.chain))
    with anonymous(credential.key_pem.reveal() + shown) as path:
        context.load_cert_chain(path)


@contextmanager
def anonymous(content: bytes) -> Iterator[Path]:
    """A path to bytes in memory for the time of the block: libraries of TLS read files, and a key must not lie in one."""
    # Closed for programs that we start: a child that inherited it could read the key of the door out of /proc/self/fd.
    descriptor = os.memfd_create("fastness", os.MFD_CLOEXEC)
    try:
        with os.fdopen(os.dup(descriptor), "wb") as file:
            file.write(content)
        yield Path(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)
