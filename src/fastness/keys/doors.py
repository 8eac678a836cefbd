"""The authority of the doors (gate, config server, broker, enrolment) and what each shows.

The authority lives in a Secret of the cluster that the controllers alone read (`authorities.py`). They issue to each role a
serving certificate that names it (`certificates.py`). Machines learn the authority from their user-data or from their image, so
two generations overlap for a month at least, and a successor does not issue before all images know it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from fastness.crypto.x509 import Credential
from fastness.keys.authorities import SECRETS, AuthoritySecret, Lineage
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kube.port import Cluster
from fastness.protocol.door import DoorRole
from fastness.runtime.clock import Entropy

# Images carry the authority, and are rebuilt and rolled out by people: a month, and `may_promote` asks whether all know it.
DOORS: Final = AuthoritySecret("doors-ca", "fastness doors", overlap=timedelta(days=30))
NAME: Final = DOORS.name
# No list of revoked certificates is looked at by machines that boot, so a stolen key must end by itself.
SERVING_LIFETIME: Final = timedelta(days=90)

__all__ = ["DOORS", "NAME", "NAMESPACE", "SECRETS", "DoorsAuthority", "doors_authority"]


@dataclass(frozen=True, slots=True)
class DoorsAuthority:
    """The authority that all doors of a cluster share."""

    lineage: Lineage

    @property
    def bundle(self) -> str:
        """What machines trust, as PEM."""
        return self.lineage.bundle

    def serving(self, role: DoorRole, hosts: Sequence[str], now: datetime) -> Credential:
        """A serving certificate for the doors of one role."""
        return self.lineage.issuing.issue_server(list(hosts), SERVING_LIFETIME, now, [role.uri])


async def doors_authority(cluster: Cluster, entropy: Entropy, now: datetime) -> DoorsAuthority:
    """The authority out of the cluster, made if there is none; raises DamagedAuthority, ApiError."""
    return DoorsAuthority(await DOORS.open(cluster, entropy, now))
