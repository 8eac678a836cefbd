"""The signer of kubelets' certificates, for the embedded API.

What was approved for one of the two signers of kubelets is signed with the authority of the API, for an hour at most. Who is
approved is the business of `enrolment.loops.kubelet_certificates`, or of a person.

* An approval does not make a bad request good: what no kubelet asks for gets the condition Failed, as in Kubernetes. So nobody
  who may only approve kubelets gets a certificate of an administrator.
* Other signers have nobody here who signs for them.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, Protocol

from fastness.crypto.x509 import Certificate
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.kubernetes.native import CERTIFICATE_SIGNING_REQUEST
from fastness.kinds.objects import ObjectName, condition, metadata, rfc3339
from fastness.kube.access.kubelet_requests import KubeletRequest, malformed, read_asked
from fastness.kube.controllers.controller import GONE, Done, Source
from fastness.kube.errors import Conflict, NotFound
from fastness.kube.port import Cluster, PatchType, WriteOptions
from fastness.protocol.node_certificates import CLIENT_SIGNER, LONGEST
from fastness.runtime.clock import Clock

REQUESTS: Final = CERTIFICATE_SIGNING_REQUEST.resource
_STATUS: Final = WriteOptions(manager="signer", subresource="status")


class NodeSigner(Protocol):
    """Signs for nodes; `keys.pki.ApiPki` is one."""

    def sign_for_node(self, request: bytes, *, client: bool, lifetime: timedelta, now: datetime) -> Certificate:
        """A certificate for a request in PEM that was found to be good."""


class NodeSigning:
    """Signs approved requests of kubelets."""

    name = "node-signing"
    sources: Sequence[Source] = (Source(REQUESTS),)
    writes: Sequence[Resource] = (REQUESTS,)

    def __init__(self, cluster: Cluster, signer: NodeSigner, clock: Clock) -> None:
        self._cluster = cluster
        self._signer = signer
        self._clock = clock

    async def reconcile(self, key: ObjectName) -> Done:
        """Sign one request that was approved and has no certificate."""
        try:
            csr = await self._cluster.get(REQUESTS, key.name)
        except NotFound:
            return GONE
        status = csr.get("status") or {}
        request = read_asked(csr)
        # Once: no second certificate for one request, and none for what was denied.
        decided = status.get("certificate") or condition(csr, "Failed") or condition(csr, "Denied")
        if request is None or decided or condition(csr, "Approved") is None:
            return Done()
        patch = {
            "metadata": {"resourceVersion": metadata(csr)["resourceVersion"]},
            "status": self._answer(csr, request),
        }
        try:
            await self._cluster.patch(REQUESTS, key.name, patch, PatchType.MERGE, "", _STATUS)
        except NotFound:
            return GONE
        except Conflict:
            return Done(again_after=0.2)
        return Done()

    def _answer(self, csr: JsonObject, request: KubeletRequest) -> JsonObject:
        now = self._clock.now()
        # An approval is a right that may be granted for this signer alone; it must not be a way to a certificate of an
        # administrator.
        wrong = malformed(request)
        if wrong is not None:
            failed = {
                "type": "Failed", "status": "True", "reason": "SignerValidationFailure", "message": wrong.message,
                "lastUpdateTime": rfc3339(now), "lastTransitionTime": rfc3339(now),
            }  # fmt: skip
            return {"conditions": [*((csr.get("status") or {}).get("conditions") or ()), failed]}
        lifetime = timedelta(seconds=request.seconds) if request.seconds else LONGEST
        pem = base64.b64decode(csr["spec"]["request"])
        made = self._signer.sign_for_node(pem, client=request.signer == CLIENT_SIGNER, lifetime=lifetime, now=now)
        return {"certificate": base64.b64encode(made.pem).decode()}
