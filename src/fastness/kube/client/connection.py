"""All that is needed to talk to one API server, read and checked: where it is, whom to trust, who we are; and TLS made of it.

A `Connection` holds bytes and paths, never file names of certificates: whoever made it has read them. The token is the exception,
since tokens in files are renewed while we run.

Python loads client keys only by file name. A key that came as data goes through an anonymous file in memory where the system has
those, and through a private temporary file otherwise, which is gone before the first connection.
"""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from fastness.crypto.secret import SecretBytes, SecretText
from fastness.kube.errors import BadConfig
from fastness.observe.logs import logger


@dataclass(frozen=True, slots=True)
class Impersonation:
    """Whom to act as (`--as`); the credential needs the right to impersonate."""

    user: str = ""
    groups: tuple[str, ...] = ()
    uid: str = ""

    def headers(self) -> list[tuple[str, str]]:
        """The request headers that ask for it."""
        if not self.user:
            return []
        headers = [("Impersonate-User", self.user), *(("Impersonate-Group", group) for group in self.groups)]
        return [*headers, ("Impersonate-Uid", self.uid)] if self.uid else headers


@dataclass(frozen=True, slots=True)
class Connection:
    """Where the API server is, whom we trust there, and as whom we come.

    `certificate_files` are where certificate and key came from, when both are files: somebody may renew them.
    """

    server: str
    ca: bytes = b""
    server_name: str = ""
    insecure: bool = False
    certificate: bytes = b""
    key: SecretBytes = field(default_factory=lambda: SecretBytes(b""))
    certificate_files: tuple[Path, Path] | None = None
    token: SecretText = field(default_factory=lambda: SecretText(""))
    token_file: Path | None = None
    impersonation: Impersonation = Impersonation()
    namespace: str = "default"
    origin: str = ""


_log = logger("kube.client")


def context_for(connection: Connection) -> ssl.SSLContext:
    """Trust and client certificate of a connection; raises BadConfig."""
    try:
        context = ssl.create_default_context(cadata=connection.ca.decode("ascii") if connection.ca else None)
    except (ssl.SSLError, UnicodeDecodeError, ValueError) as error:
        hint = "Copy the authority's PEM from the cluster again."
        raise BadConfig(f"{connection.origin}: the certificate authority is not PEM: {error}", hint) from error
    # Every supported kube-apiserver speaks it or better, and what is older is deprecated (RFC 8996).
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if connection.insecure:
        _log.warning("cluster.insecure", server=connection.server, origin=connection.origin)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if connection.certificate:
        show_certificate(context, connection)
    return context


def show_certificate(context: ssl.SSLContext, connection: Connection) -> None:
    """Show the client certificate of a connection to whoever asks for one; raises BadConfig."""
    try:
        with _file(connection.certificate + b"\n" + connection.key.reveal()) as path:
            # Without a function OpenSSL asks for the password on the terminal, and a service waits for ever.
            context.load_cert_chain(path, password=_no_password)
    except (ssl.SSLError, OSError, _Encrypted) as error:
        hint = "Both are PEM, the key is not encrypted, and they belong together."
        raise BadConfig(f"{connection.origin}: client certificate or key cannot be used: {error}", hint) from error


class _Encrypted(Exception):
    """The key wants a password that nobody could type."""


def _no_password() -> str:
    raise _Encrypted("the key is encrypted")


@contextmanager
def _file(content: bytes) -> Iterator[str]:
    """A file with this content, for as long as the block runs."""
    if hasattr(os, "memfd_create"):
        # In memory, so that the key of a data field never touches a disk; and closed for programs that we start.
        with os.fdopen(os.memfd_create("client-certificate", os.MFD_CLOEXEC), "wb") as memory:
            memory.write(content)
            memory.flush()
            yield f"/proc/self/fd/{memory.fileno()}"
    else:
        with tempfile.NamedTemporaryFile(prefix="client-certificate-") as file:
            file.write(content)
            file.flush()
            yield file.name
