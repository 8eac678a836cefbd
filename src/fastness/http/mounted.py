"""A certificate that somebody else issues and renews, as files of a mounted Secret: `tls.crt` with its chain, and `tls.key`.

The page may show one, so that browsers believe it. Machines know doors by our own authority and by the role in their
certificates, so the doors of machines show ours (decision 84). A kubelet replaces mounted files in one step and tells nobody, so
they are looked at again and again. Files that cannot be understood, or whose key is another certificate's, change nothing: the
last good ones are shown on.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from fastness.crypto.errors import BadCertificate, CryptoError
from fastness.crypto.keys import PrivateKey
from fastness.crypto.secret import SecretBytes
from fastness.crypto.x509 import Credential, split_pem
from fastness.observe import logs

CERTIFICATE: Final = "tls.crt"
KEY: Final = "tls.key"
LOOK_SECONDS: Final = 30.0
MOST_BYTES: Final = 64 * 1024
_log = logs.logger("rotation")


class MountedCertificate:
    """The certificate in a directory, as it was when it could last be understood."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._seen: tuple[bytes, bytes] | None = None
        self._held: Credential | None = None

    def current(self) -> Credential:
        """The certificate of now; raises CryptoError, OSError where there has never been a good one."""
        try:
            self._look()
        except (CryptoError, OSError) as error:
            if self._held is None:
                raise
            _log.warning("certificates.failed", what=str(self._directory), error=error)
        assert self._held is not None  # noqa: S101  # it was read, or the error was raised
        return self._held

    def _look(self) -> None:
        content = self._read(CERTIFICATE), self._read(KEY)
        if content == self._seen:
            return
        self._held = credential_of(*content)
        self._seen = content

    def _read(self, name: str) -> bytes:
        with (self._directory / name).open("rb") as file:
            return file.read(MOST_BYTES)


def credential_of(chain: bytes, key: bytes) -> Credential:
    """A certificate with its chain and its key out of PEM; raises CryptoError."""
    certificates = split_pem(chain)
    if not certificates:
        raise BadCertificate(f"{CERTIFICATE} holds no certificate")
    private = PrivateKey.from_pem(SecretBytes(key))
    # One is renewed before the other where somebody writes them by hand: shown together they would end every handshake.
    if not certificates[0].belongs_to(private):
        raise BadCertificate(f"{KEY} is not the key of the first certificate in {CERTIFICATE}")
    return Credential(certificates[0], private, tuple(certificates[1:]))
