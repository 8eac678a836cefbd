"""Client certificates: CN is the user, O are the groups.

The handshake proves possession of the key; path, dates and purpose are checked here, once per certificate, whatever the TLS
layer has checked itself: a connection may outlive its certificate, and authorities change without a restart.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from fastness.apiserver.auth.errors import NamelessCertificate
from fastness.crypto.digests import fingerprint
from fastness.crypto.x509 import Certificate, verify_client
from fastness.kube.access.user import AUTHENTICATED, User
from fastness.runtime.cache import ExpiringCache

CACHE_CAPACITY: Final = 4096
CREDENTIAL_ID: Final = "authentication.kubernetes.io/credential-id"
_SECOND: Final = timedelta(seconds=1)


class ClientCertificates:
    """Verifies client certificates against the authorities of the API."""

    def __init__(self, authorities: Sequence[Certificate]) -> None:
        self._authorities = tuple(authorities)
        self._verified: ExpiringCache[User] = ExpiringCache(CACHE_CAPACITY)

    def replace(self, authorities: Sequence[Certificate]) -> None:
        """Trust these authorities from now on: rotation without a restart."""
        self._authorities = tuple(authorities)
        # What the old authorities vouched for must not outlive them in the cache.
        self._verified.clear()

    def authenticate(self, der: bytes, now: datetime) -> User:
        """The user that the certificate names; raises CryptoError, NamelessCertificate."""
        key = fingerprint(der)
        user = self._verified.get(key, now)
        if user is not None:
            return user
        certificate = Certificate.from_der(der)
        subject = verify_client(certificate, self._authorities, at=now)
        if not subject.common_name:
            raise NamelessCertificate("a client certificate has no common name")
        user = User(
            subject.common_name,
            (*subject.organizations, AUTHENTICATED),
            extra={CREDENTIAL_ID: (f"X509SHA256={key.hex()}",)},
        )
        # notAfter is the last valid second; an authority that expires earlier ends the answer too.
        ends = [certificate.not_after, *(entry.not_after for entry in self._authorities if entry.not_after >= now)]
        self._verified.put(key, user, certificate.not_before, min(ends) + _SECOND)
        return user
