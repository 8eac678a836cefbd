"""Certificates of the signers that OpenShift's API server has for its own hosts."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache

from fastness.crypto.x509 import CertificateAuthority
from tests.virtual import SeededEntropy

NAMES = {
    "localhost": "kube-apiserver-localhost-signer", "recovery": "localhost-recovery-serving-signer@1700000000",
    "lb": "kube-apiserver-lb-signer",
}  # fmt: skip


@cache
def signer(key: str) -> str:
    """The certificate of a signer whose news may wait, as PEM."""
    now = datetime(2026, 1, 1, tzinfo=UTC)
    return CertificateAuthority.create(NAMES[key], now, SeededEntropy(7)).certificate.pem.decode()
