"""Which nodes come on day two without ever having attested (pools of model None, hosts of containers that cannot), and may they?

    node certificate → whose node → Machine not barred → Node: pool, desired and current → `release.door.config_server.day_two`

| shows                 | ordinary pool               | confidential pool                     |
| --------------------- | --------------------------- | ------------------------------------- |
| a node's certificate  | its own configs, others 403 | 403: machines fetch at gate or broker |
| a ticket              | 403                         | 403                                   |
| nothing               | 401                         | 401                                   |

No credential of a node reads MachineConfigs at a Kubernetes API, because RBAC cannot tell pools apart. So these nodes come here
with the certificate that they show to the API (`system:node:<name>`, of an authority whose clients the API believes).

* TLS has seen the key. The certificate is verified once more, against the authorities of now: OpenSSL cannot forget one.
* Node and Machine are read at the API for each request: a config that was taken back, and a machine in quarantine, are refused
  at once. What may leave is decided in `machineconfig.rollout.assigned`; a config of a confidential pool never does.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from fastness.crypto.errors import CryptoError
from fastness.crypto.x509 import Certificate, verify_client
from fastness.http.opening import Authorities
from fastness.http.refusals import Refusal
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.cluster import NAME
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.kubernetes.core import NODE
from fastness.kinds.objects import view
from fastness.kinds.trusted_execution.machine import MACHINE, Machine
from fastness.kinds.trusted_execution.membership import Membership, membership_of
from fastness.kube.access.user import NODE_PREFIX, User
from fastness.kube.errors import ApiError, NotFound
from fastness.kube.informers import Informer
from fastness.kube.port import Cluster
from fastness.machineconfig.rollout.assigned import NOT_ASSIGNED, withheld
from fastness.observe import logs
from fastness.pools.membership import PoolSelectors
from fastness.protocol.machine_names import machine_of_node
from fastness.release.live.releases import in_time
from fastness.runtime.clock import Clock

BARRED: Final = frozenset({Membership.QUARANTINED, Membership.REVOKED})
_log = logs.logger("configserver")


class NodeCaller(NamedTuple):
    """A node, and the digest of the certificate by which it is known."""

    node: str
    certificate: str

    @property
    def user(self) -> str:
        """Its name as the API knows it."""
        return f"{NODE_PREFIX}{self.node}"


class NodeCallers:
    """Knows nodes by their certificates, and what each may have."""

    def __init__(
        self, cluster: Cluster, pools: Informer, confidential: Informer, authorities: Authorities, clock: Clock
    ) -> None:
        self._cluster = cluster
        self._pools = pools
        self._confidential = confidential
        self._authorities = authorities
        self._clock = clock

    async def check(self, caller: NodeCaller, pool: str, rendered: str) -> None:
        """Return if a node may have a rendered config, as the API says at this moment; raises Refusal."""
        name = caller.node
        try:
            async with in_time():
                node = await self._read(NODE.resource, name)
                machine = machine_of_node(name)
                found = await self._read(MACHINE.resource, machine, NAMESPACE) if machine else None
        except ApiError as error:
            _log.warning("configserver.unavailable", code=error.reason, error=error)
            raise Refusal(503, "api-unavailable", "the cluster cannot be asked now") from error
        if node is None:
            raise Refusal(403, *NOT_ASSIGNED)
        if found is not None and _is_barred(view(found, Machine), name):
            raise Refusal(403, "revoked", "the machine of this node is no longer trusted")
        own = _pool_of(view(found, Machine), name) if found is not None else ""
        selectors, confidential = PoolSelectors(self._pools.list()), self._confidential.get("", NAME)
        problem = withheld(node, selectors, confidential, pool, rendered, own)
        if problem is not None:
            raise Refusal(403, *problem)

    def recognise(self, peer: bytes) -> NodeCaller:
        """The node that showed a certificate (DER) in the handshake; raises Refusal."""
        try:
            certificate = Certificate.from_der(peer)
            subject = verify_client(certificate, self._authorities(), self._clock.now())
        except CryptoError as error:
            raise Refusal(401, "bad-certificate", error.message) from error
        node = User(subject.common_name, subject.organizations).node
        if not node:
            raise Refusal(403, "wrong-credential", "rendered configs are given to nodes: this certificate is of none")
        return NodeCaller(node, str(certificate.fingerprint))

    async def _read(self, resource: Resource, name: str, namespace: str = "") -> JsonObject | None:
        try:
            return await self._cluster.get(resource, name, namespace)
        except NotFound:
            return None


def _is_barred(machine: Machine, node: str) -> bool:
    return machine.status.node_name == node and membership_of(machine) in BARRED


def _pool_of(machine: Machine, node: str) -> str:
    return machine.status.pool if machine.status.node_name == node else ""
