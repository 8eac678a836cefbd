"""The authority between our own parts: who may ask the config server for the config of a confidential pool.

Gate and broker attest a machine and fetch its config for it. They show a certificate of this authority, good for a day, which
names their role; nobody else has one. The config server shows one of the same authority on that port, with its own role. The
controllers alone hold the authority's key (`certificates.py`): a gate cannot make itself a broker.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from fastness.crypto.x509 import Certificate, Credential, verify_client
from fastness.keys.authorities import AuthoritySecret, Lineage
from fastness.kube.port import Cluster
from fastness.protocol.door import DoorRole, role_named
from fastness.runtime.clock import Entropy

INTERNAL: Final = AuthoritySecret("internal-ca", "fastness internal", overlap=timedelta(days=2))
# Nothing revokes them: a stolen one ends by itself within the day.
LEAF_LIFETIME: Final = timedelta(hours=24)
GROUP: Final = "fastness:internal"
ASKING: Final = (DoorRole.GATE, DoorRole.BROKER)
"""Roles that fetch configs for machines which they have attested."""


@dataclass(frozen=True, slots=True)
class InternalAuthority:
    """The authority that issues to gate, broker and config server."""

    lineage: Lineage

    @property
    def bundle(self) -> str:
        """What the parts trust, as PEM."""
        return self.lineage.bundle

    def client(self, role: DoorRole, now: datetime) -> Credential:
        """What a part shows when it asks; good for a day."""
        return self.lineage.issuing.issue_client(f"fastness:{role}", [GROUP], LEAF_LIFETIME, now, [role.uri])

    def serving(self, hosts: Sequence[str], now: datetime) -> Credential:
        """What the config server shows on its internal port."""
        return self.lineage.issuing.issue_server(list(hosts), LEAF_LIFETIME, now, [DoorRole.CONFIG_SERVER.uri])


def asking_role(certificate: Certificate, trusted: Sequence[Certificate], now: datetime) -> DoorRole | None:
    """Which of the parts that may ask shows a certificate; None for another one. Raises UntrustedCertificate, BadCertificate."""
    subject = verify_client(certificate, trusted, at=now)
    role = role_named(certificate.uris)
    # The config server's own certificate is of this authority as well, and must not open the port that it serves.
    return role if role in ASKING and subject.organizations == (GROUP,) else None


def is_due(credential: Credential, now: datetime) -> bool:
    """Whether a credential has less than a third of its life left, or counts only from a time that has not come.

    The latter is what a clock that was ahead and was set right leaves behind: nobody else believes such a certificate.
    """
    certificate = credential.certificate
    if now < certificate.not_before:
        return True
    return certificate.not_after - now < (certificate.not_after - certificate.not_before) / 3


async def internal_authority(cluster: Cluster, entropy: Entropy, now: datetime) -> InternalAuthority:
    """The authority out of the cluster, made if there is none; raises DamagedAuthority, ApiError."""
    return InternalAuthority(await INTERNAL.open(cluster, entropy, now))
