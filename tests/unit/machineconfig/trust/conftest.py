"""Certificates by the signers that OpenShift has."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from fastness.crypto.x509 import CertificateAuthority
from tests.virtual import SeededEntropy

SIGNERS = {
    "localhost": "kube-apiserver-localhost-signer",
    "recovery": "localhost-recovery-serving-signer@1700000000",
    "lb": "kube-apiserver-lb-signer",
}


@pytest.fixture(scope="session")
def signers() -> dict[str, str]:
    """A certificate of each signer whose news may wait."""
    now, entropy = datetime(2026, 1, 1, tzinfo=UTC), SeededEntropy(7)
    return {
        key: CertificateAuthority.create(name, now, entropy).certificate.pem.decode() for key, name in SIGNERS.items()
    }
