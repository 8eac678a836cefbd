"""The authority of the doors (gate, config server, broker, enrolment) and what each shows.

The authority lives in a Secret of the cluster, so that replicas share it; it is made once, by whoever comes first. A door gets a
serving certificate of its own from it and keeps that in memory.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from fastness.cluster.clock import Entropy
from fastness.cluster.errors import AlreadyExists, NotFound
from fastness.cluster.port import Cluster, WriteOptions
from fastness.crypto.secret import SecretBytes
from fastness.crypto.x509 import CertificateAuthority, Credential
from fastness.model.kind import JsonObject, Resource

SECRETS: Final = Resource("", "v1", "secrets", "Secret", True)
NAMESPACE: Final = "fastness-system"
NAME: Final = "doors-ca"
CA_LIFETIME: Final = timedelta(days=3650)
SERVING_LIFETIME: Final = timedelta(days=90)
_AS: Final = WriteOptions(manager="doors")


@dataclass(frozen=True, slots=True)
class DoorsAuthority:
    """The authority that all doors of a cluster share."""

    authority: CertificateAuthority

    @property
    def bundle(self) -> str:
        """What machines trust, as PEM."""
        return self.authority.certificate.pem.decode()

    def serving(self, hosts: Sequence[str], now: datetime) -> Credential:
        """A serving certificate for one door."""
        return self.authority.issue_server(list(hosts), SERVING_LIFETIME, now)


async def doors_authority(cluster: Cluster, entropy: Entropy, now: datetime) -> DoorsAuthority:
    """The authority out of the cluster, made if there is none; of two who make it at once, one wins."""
    try:
        return _loaded(await cluster.get(SECRETS, NAME, NAMESPACE), entropy)
    except NotFound:
        made = CertificateAuthority.create("fastness doors", now, entropy, CA_LIFETIME)
    try:
        await cluster.create(SECRETS, _secret(made), _AS)
    except AlreadyExists:
        return _loaded(await cluster.get(SECRETS, NAME, NAMESPACE), entropy)
    return DoorsAuthority(made)


def _secret(authority: CertificateAuthority) -> JsonObject:
    data = {"tls.crt": authority.certificate.pem, "tls.key": authority.key_pem.reveal()}
    return {
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": {"name": NAME, "namespace": NAMESPACE},
        "data": {name: base64.b64encode(value).decode() for name, value in data.items()},
    }  # fmt: skip


def _loaded(secret: JsonObject, entropy: Entropy) -> DoorsAuthority:
    data = {name: base64.b64decode(value) for name, value in (secret.get("data") or {}).items()}
    return DoorsAuthority(CertificateAuthority.load(data["tls.crt"], SecretBytes(data["tls.key"]), entropy))
