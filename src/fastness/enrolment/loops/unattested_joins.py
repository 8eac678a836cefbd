"""Joining without a proof: kubelets of pools that do not attest get their certificates, and each name goes to one machine.

    CertificateSigningRequest ─ decide ─ Admit ─ token and name bound ─ on the record ─ Approved
                                       ├ Deny  ─ on the record ─ Denied, with the reason
                                       └ Wait  ─ an event; looked at again when the Node changes
                              issued ─ when it ends is on the record of the node (`enrolment.live.joined_nodes`)

The decision is `enrolment.unattested`; it holds in every mode, because a cluster without attestation has such pools too.

* Token, node and record are read from the API when a request is decided, never from a cache.
* First the token is bound to name and key, then the name to the token, then the decision is written down, then the request is
  approved. Each is one write that depends on what was read, and doing it again changes nothing: whoever dies between two of them
  leaves nothing that a second machine could use.
* A use of the ticket is counted with the name that it brought.
* A stranger with a token may ask as often as the API lets them. A refusal of the same kind is on the record once a minute.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final

from fastness.crypto.errors import CryptoError
from fastness.crypto.x509 import Certificate
from fastness.enrolment.kubelet_certificates import NotOurs, Wait
from fastness.enrolment.live import pool_tokens as tokens
from fastness.enrolment.live.approvals import REQUESTS, about, write_decision
from fastness.enrolment.live.bootstrap_tokens import NAMESPACE as PUBLIC
from fastness.enrolment.live.bootstrap_tokens import PREFIX
from fastness.enrolment.live.joined_nodes import CONFIG_MAPS, JOINED, Claim, JoinedNodes, nodes_of
from fastness.enrolment.live.pool_tokens import pool_token
from fastness.enrolment.live.tickets import used_of
from fastness.enrolment.unattested import (
    Admit,
    Circumstances,
    Decision,
    JoinedNode,
    PoolToken,
    decide,
    is_by_token,
)
from fastness.keys.authorities import SECRETS
from fastness.kinds.fastness_dev.audit import AUDIT_BATCH
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER, NAME
from fastness.kinds.fastness_dev.join_ticket import JOIN_TICKET
from fastness.kinds.fastness_dev.trust_model import TrustModel, enforces, trust_model
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.kubernetes.core import NODE
from fastness.kinds.machineconfiguration.pool import MACHINE_CONFIG_POOL
from fastness.kinds.objects import ObjectName, metadata, object_name, rfc3339
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.access.kubelet_requests import Deny, KubeletRequest, is_decided, read_asked
from fastness.kube.controllers.controller import GONE, Done, Object, Source
from fastness.kube.controllers.reads import fields
from fastness.kube.errors import Conflict, NotFound
from fastness.kube.events import EVENTS, Recorder
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster, PatchType, WriteOptions
from fastness.pools.membership import MemberPools
from fastness.protocol.node_certificates import CLIENT_SIGNER, NODE_USER, addresses_of
from fastness.record.entry import Record, RecordEntry
from fastness.runtime.cache import BoundedCache
from fastness.runtime.clock import Clock

LOOK_SECONDS: Final = 60.0
SAME_REFUSAL_SECONDS: Final = 60.0
MOST_REFUSALS: Final = 1024
MISUSED: Final = "BootstrapTokenMisused"
BY_NODE, BY_MACHINE_NODE, BY_ADDRESS = "unattested/node", "unattested/machine", "unattested/address"
_AS: Final = WriteOptions(manager="unattested-joins")
_STATUS: Final = WriteOptions(manager="unattested-joins", subresource="status")
_POOLS: Final = MACHINE_CONFIG_POOL.resource


def _waits_for(csr: Object) -> Iterable[str]:
    """The node that an undecided request of a kubelet is for."""
    request = None if is_decided(csr) else read_asked(csr)
    return (request.node,) if request is not None and request.node else ()


def _node_name(machine: Object) -> Iterable[str]:
    name = (machine.get("status") or {}).get("nodeName")
    return (str(name),) if name else ()


_REQUESTS: Final = {BY_NODE: _waits_for}
_MACHINES: Final = {BY_MACHINE_NODE: _node_name}
_NODES: Final = {BY_ADDRESS: addresses_of}


class UnattestedJoins:
    """Decides about the certificates of kubelets of pools that do not attest."""

    name = "unattested-joins"
    writes: Sequence[Resource] = (
        REQUESTS, SECRETS, CONFIG_MAPS, JOIN_TICKET.resource, EVENTS, AUDIT_BATCH.resource,
    )  # fmt: skip

    def __init__(self, cluster: Cluster, informers: Informers, record: Record, clock: Clock) -> None:
        self.sources: Sequence[Source] = (
            Source(REQUESTS, indexes=_REQUESTS),
            Source(
                NODE.resource, keys=self._of_node, indexes=_NODES, reads=fields("metadata.labels", "status.addresses")
            ),
            Source(CONFIG_MAPS, keys=self._of_record, scope=JOINED),
            Source(MACHINE.resource, keys=lambda _: (), indexes=_MACHINES),
            Source(_POOLS, keys=lambda _: ()),
            Source(CONFIDENTIAL_CLUSTER.resource, keys=self._undecided),
        )
        self._cluster = cluster
        self._record = record
        self._clock = clock
        self._joined = JoinedNodes(cluster)
        self._requests = informers.of(REQUESTS, indexers=_REQUESTS)
        self._nodes = informers.of(NODE.resource, indexers=_NODES)
        self._machines = informers.of(MACHINE.resource, indexers=_MACHINES)
        self._pools = informers.of(_POOLS)
        self._recorder = Recorder(cluster, self.name, clock)
        self._refusals = BoundedCache[tuple[str, str], float](MOST_REFUSALS)

    def _undecided(self, _: Object) -> Iterable[ObjectName]:
        return [object_name(csr) for csr in self._requests.list() if not is_decided(csr)]

    def _of_node(self, node: Object) -> Iterable[ObjectName]:
        """The requests for a node that wait."""
        return [object_name(csr) for csr in self._requests.by_index(BY_NODE, object_name(node).name)]

    def _of_record(self, record: Object) -> Iterable[ObjectName]:
        waiting = (self._requests.by_index(BY_NODE, node) for node in nodes_of(record))
        return [object_name(csr) for requests in waiting for csr in requests]

    async def reconcile(self, key: ObjectName) -> Done:
        """Decide about one request; raises RecordError, ApiError, which are tried again."""
        csr = await self._read(REQUESTS, key.name)
        if csr is None:
            return GONE
        request = read_asked(csr)
        if request is None:
            return Done()
        try:
            if is_decided(csr):
                return await self._ends(csr, request)
            token, secret = await self._token(request)
            facts = await self._facts(request, token)
            return await self._carry_out(csr, request, facts, secret)
        except (Conflict, NotFound):
            return Done(again_after=0.5)

    async def _token(self, request: KubeletRequest) -> tuple[PoolToken | None, JsonObject | None]:
        """The token that a request was made with, and its Secret."""
        if not is_by_token(request):
            return None, None
        secret = await self._read(SECRETS, f"{PREFIX}{request.token_id}", PUBLIC)
        return (pool_token(secret), secret) if secret is not None else (None, None)

    async def _facts(self, request: KubeletRequest, token: PoolToken | None) -> Circumstances:
        """What the cluster says now about the names, the pools and the addresses of a request."""
        asker = request.username.removeprefix(NODE_USER) if request.username.startswith(NODE_USER) else ""
        joined = await self._joined.of(request.node)
        if not is_by_token(request) and joined is None:
            return Circumstances(asker=await self._joined.of(asker))
        node = await self._read(NODE.resource, request.node) if request.node else None
        confidential = await self._read(CONFIDENTIAL_CLUSTER.resource, NAME)
        machines = self._machines.by_index(BY_MACHINE_NODE, request.node) if request.node else ()
        return Circumstances(
            token, joined,
            node_uid=str(metadata(node)["uid"]) if node is not None else "",
            machine=object_name(machines[0]).name if machines else "",
            pool_exists=token is None or await self._read(_POOLS, token.pool) is not None,
            attesting=self._attesting(confidential, token, joined, node),
            addresses=addresses_of(node) if node is not None else None,
            shared=frozenset(host for host in request.hosts if self._is_shared(host, request.node)),
        )  # fmt: skip

    def _attesting(
        self,
        confidential: JsonObject | None,
        token: PoolToken | None,
        joined: JoinedNode | None,
        node: JsonObject | None,
    ) -> tuple[str, ...]:
        """The pools of a token or a node that are for machines with a proof."""
        if token is not None:
            model = trust_model(confidential, token.pool)
            return (token.pool,) if model is TrustModel.CONFIDENTIAL_CLUSTER else ()
        pools = {joined.pool} if joined is not None else set()
        # By its labels as well: whoever moved the node to a pool that enforces wants a proof from it.
        if node is not None:
            pools |= set(MemberPools(self._pools.list(), {}, confidential).claiming(node))
        return tuple(sorted(pool for pool in pools if enforces(confidential, pool)))

    def _is_shared(self, address: str, node: str) -> bool:
        return any(object_name(neighbour).name != node for neighbour in self._nodes.by_index(BY_ADDRESS, address))

    async def _read(self, resource: Resource, name: str, namespace: str = "") -> JsonObject | None:
        try:
            return await self._cluster.get(resource, name, namespace)
        except NotFound:
            return None

    async def _carry_out(
        self, csr: JsonObject, request: KubeletRequest, facts: Circumstances, secret: JsonObject | None
    ) -> Done:
        decision: Decision = decide(request, facts, self._clock.now())
        match decision:
            case NotOurs():
                pass
            case Wait(reason, message):
                await self._recorder.warning(about(csr), f"Waits{reason}", message)
                return Done(again_after=LOOK_SECONDS)
            case Deny():
                await self._deny(csr, request, facts, decision)
            case Admit(pool):
                taken = await self._bind(request, facts.token, secret)
                if taken is not None:
                    await self._deny(csr, request, facts, taken)
                    return Done()
                # The record before the approval: a certificate cannot be taken back, so its reason must be there first.
                await self._append("join", csr, request, facts, "")
                message = f"{request.node} is a node of the pool {pool}, which does not attest"
                await write_decision(self._cluster, csr, "Approved", "NotAttested", message, self._clock.now())
                await self._recorder.normal(about(csr), "Approved", message)
        return Done()

    async def _bind(self, request: KubeletRequest, token: PoolToken | None, secret: JsonObject | None) -> Deny | None:
        """Bind a token to name and key, and the name to the token; raises Conflict when somebody else is at it."""
        if token is None or secret is None:
            return None
        if not token.spent:
            notes = {tokens.NODE: request.node, tokens.KEY: request.key}
            patch = {"metadata": {"resourceVersion": metadata(secret)["resourceVersion"], "annotations": notes}}
            await self._cluster.patch(SECRETS, object_name(secret).name, patch, PatchType.MERGE, PUBLIC, _AS)
        joined = JoinedNode(request.node, token.pool, token.id, request.key, token.expires, token.ticket)
        claim = await self._joined.claim(joined)
        if claim is Claim.NEW:
            await self._count(token.ticket)
        if claim is not Claim.TAKEN:
            return None
        return Deny("NameTaken", f"another machine came as {request.node} at the same time", alarm=True)

    async def _count(self, ticket: str) -> None:
        """One more use of a ticket; a count that cannot be written now is lost, as nothing depends on it."""
        stored = await self._read(JOIN_TICKET.resource, ticket) if ticket else None
        if stored is None:
            return
        status = {"used": used_of(stored) + 1, "lastUsed": rfc3339(self._clock.now())}
        patch = {"metadata": {"resourceVersion": metadata(stored)["resourceVersion"]}, "status": status}
        with suppress(Conflict, NotFound):
            await self._cluster.patch(JOIN_TICKET.resource, ticket, patch, PatchType.MERGE, "", _STATUS)

    async def _deny(self, csr: JsonObject, request: KubeletRequest, facts: Circumstances, deny: Deny) -> None:
        now, kind = self._clock.monotonic(), (request.username, deny.reason)
        if (self._refusals.get(kind) or 0.0) <= now:
            await self._append("join-refused", csr, request, facts, deny.reason)
            self._refusals.put(kind, now + SAME_REFUSAL_SECONDS)
        await write_decision(self._cluster, csr, "Denied", deny.reason, deny.message, self._clock.now())
        await self._recorder.warning(about(csr), f"Denied{deny.reason}", deny.message)
        pool = facts.token.pool if facts.token else facts.joined.pool if facts.joined else ""
        if deny.alarm and pool:
            # On the pool, where people look: requests are gone after an hour.
            owner = {"apiVersion": MACHINE_CONFIG_POOL.api_version, "kind": _POOLS.kind, "metadata": {"name": pool}}
            await self._recorder.warning(owner, MISUSED, f"{request.username} asked for {request.node}: {deny.message}")

    async def _ends(self, csr: JsonObject, request: KubeletRequest) -> Done:
        """Note when a client certificate ends that a node got: until then nobody else gets its name."""
        issued = (csr.get("status") or {}).get("certificate")
        if not issued or request.signer != CLIENT_SIGNER or await self._joined.of(request.node) is None:
            return Done()
        try:
            ends = Certificate.from_pem(base64.b64decode(issued)).not_after
        except (CryptoError, ValueError):
            return Done()  # the signer is somebody else's; what it wrote is for the kubelet to complain about
        await self._joined.extend(request.node, ends)
        return Done()

    async def _append(
        self, what: str, csr: JsonObject, request: KubeletRequest, facts: Circumstances, reason: str
    ) -> None:
        token, joined = facts.token, facts.joined
        pool = token.pool if token else joined.pool if joined else ""
        details = {
            "csr": object_name(csr).name, "signer": request.signer, "node": request.node, "requester": request.username,
            "key": request.key, "reason": reason, "pool": pool, "basis": "not-attested",
            "ticket": token.ticket if token else "", "stub": token.stub if token else "",
        }  # fmt: skip
        detail = {name: value for name, value in details.items() if value}
        await self._record.append(RecordEntry(what, request.username, resource=f"pool/{pool}/join", detail=detail))
