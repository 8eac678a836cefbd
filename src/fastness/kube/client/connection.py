"""All that is needed to talk to one API server, read and checked: where it is, whom to trust, who we are.

A `Connection` holds bytes and paths, never file names of certificates: whoever made it has read them. The token is the exception,
since tokens in files are renewed while we run.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from fastness.crypto.secret import SecretBytes, SecretText


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
