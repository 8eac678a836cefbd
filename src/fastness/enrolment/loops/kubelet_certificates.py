"""Attested join: kubelets get their certificates when, and only when, their machine has proved itself.

    CertificateSigningRequest ─ decide ─ Approve ─ on the record ─ Approved     the signer of Kubernetes does the rest
                                       ├ Deny    ─ on the record ─ Denied, with the reason
                                       └ Wait    ─ an event; looked at again when the Machine or the Node changes
                              issued ─ when it ends is on the Machine

The decision is `enrolment.kubelet_certificates`. The tokens with which machines ask first are the business of `join_tokens.py`.

* Machine and token are read from the API when a request is decided, never from a cache: what was revoked a moment ago counts.
* Without a ConfidentialCluster, or with mode Disabled, nothing is decided here. In mode Audit nothing is denied: what would be is
  an event, and the request is left to others.
* A decision is conditional on the request that was read, so of two who decide one wins.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Final

from fastness.attestation.live.caches import Distrusts
from fastness.attestation.status.cluster import interval_of
from fastness.attestation.verdict.distrust import about_machine
from fastness.crypto.errors import CryptoError
from fastness.crypto.x509 import Certificate
from fastness.enrolment.kubelet_certificates import Approve, Decision, JoinToken, Known, NotOurs, Wait, decide
from fastness.enrolment.live import bootstrap_tokens as bootstrap
from fastness.enrolment.live.approvals import REQUESTS, write_decision
from fastness.enrolment.live.approvals import about as about_request
from fastness.enrolment.live.bootstrap_tokens import join_token
from fastness.keys.authorities import SECRETS
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.audit import AUDIT_BATCH
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER, NAME, ConfidentialCluster
from fastness.kinds.fastness_dev.distrust import DISTRUST
from fastness.kinds.fastness_dev.trust_model import Mode, mode_of
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.kubernetes.core import NODE
from fastness.kinds.objects import (
    ObjectName,
    annotations_of,
    condition,
    metadata,
    object_name,
    rfc3339,
    view,
    with_condition,
)
from fastness.kinds.trusted_execution.machine import MACHINE, SENT, Machine
from fastness.kube.access.kubelet_requests import Deny, KubeletRequest, is_decided, read_asked
from fastness.kube.controllers.controller import GONE, Done, Object, Source
from fastness.kube.controllers.reads import fields
from fastness.kube.errors import Conflict, NotFound
from fastness.kube.events import EVENTS, Recorder
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster, PatchType, WriteOptions
from fastness.protocol.node_certificates import CLIENT_SIGNER, addresses_of
from fastness.protocol.node_keys import KEY_REUSED, alarm
from fastness.record.entry import Record, RecordEntry
from fastness.runtime.clock import Clock

LOOK_SECONDS: Final = 60.0
TRIES: Final = 5
_STATUS: Final = WriteOptions(manager="joins", subresource="status")


def _waits_for(csr: Object) -> Iterable[str]:
    """The node that an undecided request of a kubelet is for."""
    request = None if is_decided(csr) else read_asked(csr)
    return (request.node,) if request is not None and request.node else ()


def _node_name(machine: Object) -> Iterable[str]:
    name = (machine.get("status") or {}).get("nodeName")
    return (name,) if name else ()


def _certified(csr: Object) -> Iterable[str]:
    """The key that an approved request of a kubelet is for."""
    request = read_asked(csr) if condition(csr, "Approved") is not None else None
    return (request.key,) if request is not None and request.key else ()


BY_NODE: Final = "joins/node"
BY_KEY: Final = "joins/key"
BY_ADDRESS: Final = "joins/address"
_REQUESTS: Final = {BY_NODE: _waits_for, BY_KEY: _certified}
_MACHINES: Final = {BY_NODE: _node_name}
_NODES: Final = {BY_ADDRESS: addresses_of}


class Joins:
    """Decides about the certificates of kubelets."""

    name = "joins"
    writes: Sequence[Resource] = (REQUESTS, MACHINE.resource, EVENTS, AUDIT_BATCH.resource)

    def __init__(self, cluster: Cluster, informers: Informers, record: Record, clock: Clock) -> None:
        self.sources: Sequence[Source] = (
            Source(REQUESTS, indexes=_REQUESTS),
            Source(MACHINE.resource, keys=self._of_machine, indexes=_MACHINES, unread=SENT),
            Source(NODE.resource, keys=self._of_node, indexes=_NODES, reads=fields("status.addresses")),
            Source(CONFIDENTIAL_CLUSTER.resource, keys=self._all),
            Source(DISTRUST.resource, keys=self._all),
        )
        self._cluster = cluster
        self._record = record
        self._clock = clock
        self._requests = informers.of(REQUESTS, indexers=_REQUESTS)
        self._machines = informers.of(MACHINE.resource, indexers=_MACHINES)
        self._nodes = informers.of(NODE.resource, indexers=_NODES)
        self._clusters = informers.of(CONFIDENTIAL_CLUSTER.resource)
        self._distrusts = Distrusts(informers)
        self._recorder = Recorder(cluster, self.name, clock)

    def _all(self, _: Object) -> Iterable[ObjectName]:
        return [object_name(csr) for csr in self._requests.list() if not is_decided(csr)]

    def _of_node(self, node: Object) -> Iterable[ObjectName]:
        """The requests for a node that wait."""
        return [object_name(csr) for csr in self._requests.by_index(BY_NODE, object_name(node).name)]

    def _of_machine(self, machine: Object) -> Iterable[ObjectName]:
        pending = (self._requests.by_index(BY_NODE, name) for name in _node_name(machine))
        return [object_name(csr) for requests in pending for csr in requests]

    async def reconcile(self, key: ObjectName) -> Done:
        """Decide about one request; raises RecordError, Conflict, which are tried again."""
        try:
            csr = await self._cluster.get(REQUESTS, key.name)
        except NotFound:
            return GONE
        confidential = self._clusters.get("", NAME)
        mode, request = mode_of(confidential), read_asked(csr)
        if request is None or mode is Mode.DISABLED:
            return Done()
        if is_decided(csr):
            return await self._ends(csr, request)
        facts = await self._facts(key.name, request, confidential)
        decision = decide(request, facts, self._clock.now())
        try:
            return await self._carry_out(csr, request, facts, decision, mode)
        except (Conflict, NotFound):
            return Done(again_after=0.5)

    async def _facts(self, request: str, asked: KubeletRequest, confidential: JsonObject | None) -> Known:
        token, machine = await self._of_token(asked.token_id)
        # By the token first: a request with somebody's token is about the machine of the token, whatever node it names.
        if token is None:
            machine = await self._of_node_name(asked.node)
        against = self._distrusts.against(about_machine(machine), self._clock.now()) if machine else []
        node = self._nodes.get("", asked.node) if asked.node else None
        spec = view(confidential or {}, ConfidentialCluster).spec
        return Known(
            interval_of(confidential), spec.simulated, spec.join.trust_on_first_use, token, machine,
            f"distrusted: {against[0].reason or against[0].name}" if against else "",
            addresses_of(node) if node else None, frozenset(host for host in asked.hosts if self._is_shared(host, asked.node)),
            self._certified_by(request, asked),
        )  # fmt: skip

    def _certified_by(self, request: str, asked: KubeletRequest) -> str:
        """Another request that was approved for the same key."""
        approved = self._requests.by_index(BY_KEY, asked.key) if asked.key else ()
        return next((object_name(csr).name for csr in approved if object_name(csr).name != request), "")

    def _is_shared(self, address: str, node: str) -> bool:
        return any(object_name(neighbour).name != node for neighbour in self._nodes.by_index(BY_ADDRESS, address))

    async def _of_token(self, identity: str) -> tuple[JoinToken | None, Machine | None]:
        """A token of ours and its Machine."""
        if not identity:
            return None, None
        try:
            secret = await self._cluster.get(SECRETS, f"{bootstrap.PREFIX}{identity}", bootstrap.NAMESPACE)
        except NotFound:
            return None, None
        return join_token(secret), await self._machine(annotations_of(secret).get(bootstrap.MACHINE_NAME, ""))

    async def _machine(self, name: str) -> Machine | None:
        """A Machine as it is now; None when there is none."""
        if not name:
            return None
        try:
            return view(await self._cluster.get(MACHINE.resource, name, NAMESPACE), Machine)
        except NotFound:
            return None

    async def _of_node_name(self, node: str) -> Machine | None:
        machines = self._machines.by_index(BY_NODE, node) if node else ()
        return await self._machine(object_name(machines[0]).name) if machines else None

    async def _carry_out(
        self, csr: JsonObject, request: KubeletRequest, facts: Known, decision: Decision, mode: Mode
    ) -> Done:
        about = about_request(csr)
        match decision:
            case NotOurs():
                return Done()
            case Wait(reason, message):
                await self._recorder.warning(about, f"Waits{reason}", message)
                return Done(again_after=LOOK_SECONDS)
            # Denied is for good in Kubernetes: in a mode that only looks on, somebody else may still approve it.
            case Deny(reason, message, _) if mode is not Mode.ENFORCE:
                await self._recorder.warning(about, f"WouldDeny{reason}", message)
                return Done()
            case Deny(reason, message, raise_alarm):
                await self._append("key-reused" if raise_alarm else "join-refused", csr, request, facts, reason)
                if raise_alarm and facts.machine is not None:
                    await self._alarm(
                        facts.machine, f"{object_name(csr).name} asks with the key {request.key}: {message}"
                    )
                await self._decide(csr, "Denied", reason, message)
                await self._recorder.warning(about, f"Denied{reason}", message)
            case Approve(machine):
                # The record before the approval: a certificate cannot be taken back, so its reason must be there first.
                await self._append("join", csr, request, facts, "")
                rests = f"{machine.status.tee}, {machine.status.endorsed_by}"
                message = f"{machine.metadata.name} ({rests}) is attested by {machine.status.last_verdict}"
                await self._decide(csr, "Approved", "Attested", message)
                await self._recorder.normal(about, "Approved", message)
                await self._joined(machine, request)
        return Done()

    async def _decide(self, csr: JsonObject, kind: str, reason: str, message: str) -> None:
        await write_decision(self._cluster, csr, kind, reason, message, self._clock.now())

    async def _joined(self, machine: Machine, request: KubeletRequest) -> None:
        """Say on the Machine that it became a node."""

        def change(stored: JsonObject) -> JsonObject:
            before = (stored.get("status") or {}).get("conditions") or []
            conditions = with_condition(
                before, kind="Joined", status="True", reason="CertificateApproved",
                message=f"it may be the node {request.node}", now=self._clock.now(),
            )  # fmt: skip
            return {} if conditions == before else {"conditions": conditions}

        await self._say(machine.metadata.name, change)

    async def _alarm(self, machine: Machine, message: str) -> None:
        """Say on the Machine, and in an event about it, that a key of its node is in other hands."""
        stored = await self._say(
            machine.metadata.name, lambda stored: alarm(stored.get("status") or {}, message, self._clock.now())
        )
        about = {"apiVersion": MACHINE.api_version, "kind": MACHINE.kind, **stored}
        await self._recorder.warning(about, KEY_REUSED, message)

    async def _ends(self, csr: JsonObject, request: KubeletRequest) -> Done:
        """Say on the Machine when the client certificate ends that its node got: until then it opens an API that asks nobody."""
        issued = (csr.get("status") or {}).get("certificate")
        machine = await self._of_node_name(request.node) if issued and request.signer == CLIENT_SIGNER else None
        if machine is None:
            return Done()
        try:
            ends = rfc3339(Certificate.from_pem(base64.b64decode(issued or "")).not_after)
        except (CryptoError, ValueError):
            return Done()  # the signer is somebody else's; what it wrote is for the kubelet to complain about
        await self._say(
            machine.metadata.name,
            lambda stored: {"credentialEnds": ends} if _ends_before(stored, ends) else {},
        )
        return Done()

    async def _say(self, name: str, change: Callable[[JsonObject], JsonObject]) -> JsonObject:
        """Change the status of a Machine by what it says now, while the verifier writes it too; raises Conflict, NotFound."""
        for _ in range(TRIES):
            stored = await self._cluster.get(MACHINE.resource, name, NAMESPACE)
            status = change(stored)
            if not status:
                return stored
            patch = {"metadata": {"resourceVersion": metadata(stored)["resourceVersion"]}, "status": status}
            with suppress(Conflict):
                return await self._cluster.patch(MACHINE.resource, name, patch, PatchType.MERGE, NAMESPACE, _STATUS)
        raise Conflict(f"machine {name} changes too fast")

    async def _append(self, what: str, csr: JsonObject, asks: KubeletRequest, known: Known, reason: str) -> None:
        machine = known.machine
        facts = {
            "csr": object_name(csr).name, "signer": asks.signer, "node": asks.node, "requester": asks.username,
            "key": str(asks.request.key) if asks.request else "", "reason": reason,
            "tee": machine.status.tee if machine else "", "endorsement": machine.status.endorsed_by if machine else "",
        }  # fmt: skip
        await self._record.append(
            RecordEntry(
                what, machine.status.key_thumbprint if machine else asks.username,
                resource=f"machine/{machine.metadata.uid}/join" if machine else "",
                verdict=machine.status.last_verdict if machine else "",
                detail={name: value for name, value in facts.items() if value},
            )
        )  # fmt: skip


def _ends_before(machine: JsonObject, ends: str) -> bool:
    """Whether the credential that a Machine tells of ends earlier; times of one form sort as they follow one another."""
    return str((machine.get("status") or {}).get("credentialEnds") or "") < ends
