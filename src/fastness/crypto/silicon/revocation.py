"""Revocation lists of silicon vendors.

A list counts when the authority that it speaks for signed it and the time lies between its two dates. An old list is not a
list: it can hide what was revoked since.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm

from fastness.crypto.errors import BadCertificate
from fastness.crypto.silicon.chains import verified
from fastness.crypto.x509 import Certificate

_UNREADABLE: Final = (ValueError, TypeError, UnsupportedAlgorithm, x509.InvalidVersion, x509.DuplicateExtension)


class RevocationList:
    """One certificate revocation list."""

    __slots__ = ("_judged", "handle")

    def __init__(self, data: bytes) -> None:
        """Read DER or PEM; raises BadCertificate."""
        self._judged: dict[bytes, bool] = {}
        try:
            pem = data.lstrip().startswith(b"-----BEGIN")
            self.handle = x509.load_pem_x509_crl(data) if pem else x509.load_der_x509_crl(data)
        except _UNREADABLE as error:
            raise BadCertificate("the revocation list cannot be read") from error

    def signed_by(self, issuer: Certificate) -> bool:
        """Whether this authority issued the list. Remembered: one list is asked about for every report of a fleet."""
        genuine = self._judged.get(issuer.der)
        if genuine is None:
            # By name and by signature: a genuine list of another authority says nothing about certificates of this one.
            genuine = self.handle.issuer == issuer.handle.subject and verified(
                issuer, self.handle.signature, self.handle.tbs_certlist_bytes
            )
            self._judged[issuer.der] = genuine
        return genuine

    @property
    def number(self) -> int | None:
        """The list's own number, which only grows; None when it has none."""
        try:
            return self.handle.extensions.get_extension_for_class(x509.CRLNumber).value.crl_number
        except (x509.ExtensionNotFound, *_UNREADABLE):
            return None

    @property
    def issued(self) -> datetime:
        """From when it counts."""
        return self.handle.last_update_utc

    @property
    def ends(self) -> datetime | None:
        """Until when it counts."""
        return self.handle.next_update_utc

    def current(self, at: datetime) -> bool:
        """Whether the time lies within the dates of the list; a list without an end never does."""
        end = self.handle.next_update_utc
        # nextUpdate is optional in ASN.1 and demanded by RFC 5280 §5.1.2.5: a list that never ends could be shown for ever.
        return end is not None and self.handle.last_update_utc <= at <= end

    def revokes(self, certificate: Certificate) -> bool:
        """Whether the list names the certificate."""
        serial = certificate.handle.serial_number
        return self.handle.get_revoked_certificate_by_serial_number(serial) is not None

    @property
    def dates(self) -> str:
        """From when to when the list counts, for people."""
        end = self.handle.next_update_utc
        until = f"{end:%Y-%m-%dT%H:%M:%SZ}" if end else "no end"
        return f"{self.handle.last_update_utc:%Y-%m-%dT%H:%M:%SZ} to {until}"
