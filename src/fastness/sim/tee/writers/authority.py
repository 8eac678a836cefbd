"""Certificate authorities of the simulated vendor: certificates and revocation lists in DER, byte for byte repeatable.

    root = Authority.root("ARK-Milan", key, serial=1, validity=period)
    middle = root.subordinate("SEV-Milan", other, serial=2)
    leaf = middle.issue(name("SEV-VCEK"), chip_key.public_der(), serial=0, extensions=[…])

Certificates are written here and not by the cryptography library, because its builder neither takes keys like `RsaKey` nor
repeats a PSS salt. The library reads every one of them back in the tests. Common names are those that verifiers look for; the
organization says that all of this is made up.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from fastness.attestation.evidence.proofs import SIMULATED_ORGANIZATION
from fastness.formats.der import encoded
from fastness.sim.tee.writers import asn1
from fastness.sim.tee.writers.keys import Signer

ORGANIZATION: Final = SIMULATED_ORGANIZATION
CRL_LIFETIME: Final = timedelta(days=30)
_BASIC: Final = "2.5.29.19"
_KEY_USAGE: Final = "2.5.29.15"
_SUBJECT_KEY: Final = "2.5.29.14"
_AUTHORITY_KEY: Final = "2.5.29.35"
_CRL_NUMBER: Final = "2.5.29.20"


class Period(NamedTuple):
    """From when to when a certificate is valid."""

    start: datetime
    end: datetime


class Extension(NamedTuple):
    """One extension: its number, its DER, and whether a reader must know it."""

    number: str
    value: bytes
    critical: bool = False

    def der(self) -> bytes:
        """The extension as a certificate carries it."""
        flag = asn1.boolean(True) if self.critical else b""
        return asn1.sequence(asn1.oid(self.number), flag, asn1.octets(self.value))


def name(common: str, organization: str = ORGANIZATION) -> bytes:
    """A distinguished name."""
    pairs = (("2.5.4.10", organization), ("2.5.4.3", common))
    return asn1.sequence(
        *(asn1.collection(asn1.sequence(asn1.oid(kind), asn1.utf8(text))) for kind, text in pairs if text)
    )


def basic_constraints(ca: bool) -> Extension:
    """Whether the key may issue."""
    return Extension(_BASIC, asn1.sequence(asn1.boolean(True) if ca else b""), critical=True)


def key_usage(*numbers: int) -> Extension:
    """What the key may do, by the bit numbers of RFC 5280 (0 to 7)."""
    value = sum(0x80 >> number for number in numbers)
    unused = 7 - max(numbers)
    return Extension(_KEY_USAGE, asn1.bits(bytes((value,)), unused), critical=True)


@dataclass(frozen=True, slots=True)
class Authority:
    """An authority with its certificate."""

    subject: bytes
    key: Signer
    validity: Period
    certificate: bytes
    serial: int

    @classmethod
    def root(cls, common: str, key: Signer, *, serial: int, validity: Period) -> Authority:
        """An authority that vouches for itself."""
        subject = name(common)
        return cls(subject, key, validity, _certify(subject, key, subject, key, serial, validity, _ca(key)), serial)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the certificate, as pins are written."""
        return hashlib.sha256(self.certificate).hexdigest()

    def subordinate(self, common: str, key: Signer, *, serial: int) -> Authority:
        """An authority below this one."""
        subject = name(common)
        extensions = [*_ca(key), self._authority_key()]
        certificate = _certify(subject, key, self.subject, self.key, serial, self.validity, extensions)
        return Authority(subject, key, self.validity, certificate, serial)

    def issue(
        self,
        subject: bytes,
        public_der: bytes,
        *,
        serial: int,
        extensions: Iterable[Extension] = (),
        validity: Period | None = None,
    ) -> bytes:
        """A certificate for somebody's key."""
        whole = [basic_constraints(ca=False), self._authority_key(), *extensions]
        return _certify(subject, public_der, self.subject, self.key, serial, validity or self.validity, whole)

    def revocations(
        self, at: datetime, serials: Iterable[int] = (), *, number: int = 1, lifetime: timedelta = CRL_LIFETIME
    ) -> bytes:
        """A revocation list that began a day before `at`."""
        start = at - timedelta(days=1)
        entries = [asn1.sequence(asn1.integer(serial), asn1.instant(start)) for serial in sorted(serials)]
        extensions = (self._authority_key(), Extension(_CRL_NUMBER, asn1.integer(number)))
        listed = asn1.sequence(
            asn1.integer(1),
            self.key.algorithm,
            self.subject,
            asn1.instant(start),
            asn1.instant(at + lifetime),
            asn1.sequence(*entries) if entries else b"",
            asn1.tagged(0, asn1.sequence(*(extension.der() for extension in extensions))),
        )
        return _signed(listed, self.key)

    def _authority_key(self) -> Extension:
        return Extension(_AUTHORITY_KEY, asn1.sequence(encoded(0x80, _key_id(self.key.public_der()))))


def _ca(key: Signer) -> list[Extension]:
    identifier = Extension(_SUBJECT_KEY, asn1.octets(_key_id(key.public_der())))
    return [basic_constraints(ca=True), key_usage(5, 6), identifier]


def _key_id(public_der: bytes) -> bytes:
    return hashlib.sha256(public_der).digest()[:20]


def _certify(
    subject: bytes,
    public: Signer | bytes,
    issuer: bytes,
    key: Signer,
    serial: int,
    validity: Period,
    extensions: Sequence[Extension],
) -> bytes:
    body = asn1.sequence(
        asn1.tagged(0, asn1.integer(2)),
        asn1.integer(serial),
        key.algorithm,
        issuer,
        asn1.sequence(asn1.instant(validity.start), asn1.instant(validity.end)),
        subject,
        public if isinstance(public, bytes) else public.public_der(),
        asn1.tagged(3, asn1.sequence(*(extension.der() for extension in extensions))),
    )
    return _signed(body, key)


def _signed(body: bytes, key: Signer) -> bytes:
    return asn1.sequence(body, key.algorithm, asn1.bits(key.sign(body)))
