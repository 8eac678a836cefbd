"""Certificates that are wrong on purpose: any name, key, extension and date, signed by whoever is told to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from itertools import count

from fastness.sim.tee.tdx import pem as bundle
from fastness.sim.tee.writers.authority import Authority, Extension, Period, name
from fastness.sim.tee.writers.keys import EcKey, Seed, Signer

START, END = datetime(2024, 1, 1, tzinfo=UTC), datetime(2034, 1, 1, tzinfo=UTC)
_NUMBERS = count(100)


def new_key() -> EcKey:
    """A P-256 key that no other call gives."""
    return EcKey(Seed(b"keys of tests").branch(next(_NUMBERS)))


def issue(
    subject: str,
    key: Signer,
    issuer: str,
    issuer_key: Signer,
    *,
    ca: bool = False,
    extensions: Mapping[str, bytes] | None = None,
    start: datetime = START,
    end: datetime = END,
    serial: int | None = None,
) -> bytes:
    """One certificate in DER; the issuer need not exist."""
    period = Period(start, end)
    authority = Authority(name(issuer), issuer_key, period, b"", 0)
    number = serial or next(_NUMBERS)
    if ca:
        return authority.subordinate(subject, key, serial=number).certificate
    listed = [Extension(oid, value) for oid, value in (extensions or {}).items()]
    return authority.issue(name(subject), key.public_der(), serial=number, extensions=listed)


def revocations(issuer: str, key: Signer, revoked: Iterable[int] = (), *, start: datetime, end: datetime) -> bytes:
    """A revocation list in DER with exactly these dates."""
    at = start + timedelta(days=1)
    return Authority(name(issuer), key, Period(start, end), b"", 0).revocations(at, revoked, lifetime=end - at)


def pem(*certificates: bytes) -> bytes:
    """A PEM bundle."""
    return bundle(*certificates).encode()
