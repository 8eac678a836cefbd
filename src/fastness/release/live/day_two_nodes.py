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
  at once. Who may have what is decided in `release.authorise`; a config of a confidential pool never leaves for a certificate.
"""

from __future__ import annotations

from datetime import datetime
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
from fastness.kinds.trusted_execution.subject import Basis, Grant, ProvenCaller, Subject
from fastness.kube.access.user import NODE_PREFIX, User
from fastness.kube.errors import ApiError, NotFound
from fastness.kube.informers import Informer
from fastness.kube.port import Cluster
from fastness.machineconfig.rollout.assigned import names_config, pool_of_node
from fastness.observe import logs
from fastness.pools.membership import PoolSelectors
from fastness.protocol.kbs_path import ResourcePath, is_pool_config
from fastness.protocol.machine_names import machine_of_node
from fastness.release.live.releases import grant_here, in_time
from fastness.release.live.settings import Settings
from fastness.runtime.clock import Clock

BARRED: Final = frozenset({Membership.QUARANTINED, Membership.REVOKED})
NOT_ASSIGNED: Final = ("not-assigned", "this is neither the desired nor the current config of the node")
_OTHER_POOL: Final = {"other-pool": ("wrong-pool", "the node of this certificate is in another pool")}
_log = logs.logger("configserver")


class NodeCaller(NamedTuple):
    """A node, the digest of the certificate by which it is known, and when that ends."""

    node: str
    certificate: str
    expires: datetime

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
        self._settings = Settings(confidential)
        self._authorities = authorities
        self._clock = clock

    async def grant(self, caller: NodeCaller, path: ResourcePath, rendered: str) -> Grant:
        """Leave for a node to have a rendered config, or what is beside it, as the API says at this moment; raises Refusal."""
        node, machine = await self._look(caller.node)
        own_pool = _pool_of(machine, caller.node) if machine is not None else ""
        selectors, confidential = PoolSelectors(self._pools.list()), self._confidential.get("", NAME)
        # By labels and by its Machine, never by the pool in the address: that one is what the node asks for, not what it is.
        subject = Subject("", caller.node, caller.certificate, pool_of_node(node, selectors, confidential, own_pool))
        grant = grant_here(
            ProvenCaller(subject, "", {}, caller.expires, Basis.NODE_CERTIFICATE), path,
            self._settings.current.rules, self._clock.now(),
            revoked=machine is not None and _is_barred(machine, caller.node), words=_OTHER_POOL,
        )  # fmt: skip
        if is_pool_config(path) and not names_config(node, path.type, rendered):
            raise Refusal(403, *NOT_ASSIGNED)
        return grant

    async def _look(self, name: str) -> tuple[JsonObject, Machine | None]:
        """The Node, and the Machine that it is if it is one, as the API has them; raises Refusal."""
        try:
            async with in_time():
                node = await self._read(NODE.resource, name)
                machine_name = machine_of_node(name)
                machine = await self._read(MACHINE.resource, machine_name, NAMESPACE) if machine_name else None
        except ApiError as error:
            _log.warning("configserver.unavailable", code=error.reason, error=error)
            raise Refusal(503, "api-unavailable", "the cluster cannot be asked now") from error
        # The same words as for a config that is not the node's: whether a Node exists is nobody's business here.
        if node is None:
            raise Refusal(403, *NOT_ASSIGNED)
        return node, view(machine, Machine) if machine is not None else None

    def recognise(self, peer: bytes) -> NodeCaller:
        """The node that showed a certificate (DER) in the handshake; raises Refusal."""
        try:
            certificate = Certificate.from_der(peer)
            subject = verify_client(certificate, self._authorities(), self._clock.now())
        except CryptoError as error:
            raise Refusal(401, "bad-certificate", error.message) from error
        # A certificate of the same authority may be anybody's, an administrator's among them; only `system:node:` in its group
        # counts.
        node = User(subject.common_name, subject.organizations).node
        if not node:
            raise Refusal(403, "wrong-credential", "rendered configs are given to nodes: this certificate is of none")
        return NodeCaller(node, str(certificate.fingerprint), certificate.not_after)

    async def _read(self, resource: Resource, name: str, namespace: str = "") -> JsonObject | None:
        try:
            return await self._cluster.get(resource, name, namespace)
        except NotFound:
            return None


def _is_barred(machine: Machine, node: str) -> bool:
    # By what enrolment wrote on the Machine: a node whose name only looks like a machine's is not that machine.
    return machine.status.node_name == node and membership_of(machine) in BARRED


def _pool_of(machine: Machine, node: str) -> str:
    return machine.status.pool if machine.status.node_name == node else ""
