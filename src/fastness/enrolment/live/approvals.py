"""What is decided about a kubelet's request, written where the signer of Kubernetes reads it."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from fastness.kinds.kind import JsonObject
from fastness.kinds.kubernetes.native import CERTIFICATE_SIGNING_REQUEST
from fastness.kinds.objects import metadata, object_name, rfc3339
from fastness.kube.port import Cluster, PatchType, WriteOptions

REQUESTS: Final = CERTIFICATE_SIGNING_REQUEST.resource
_APPROVAL: Final = WriteOptions(manager="joins", subresource="approval")


def about(csr: JsonObject) -> JsonObject:
    """A request as events name it: lists leave kind and version out."""
    return {"apiVersion": "certificates.k8s.io/v1", "kind": REQUESTS.kind, **csr}


async def write_decision(
    cluster: Cluster, csr: JsonObject, kind: str, reason: str, message: str, now: datetime
) -> None:
    """Approve or deny (`kind`) a request; raises Conflict, NotFound."""
    time = rfc3339(now)
    decided = {
        "type": kind, "status": "True", "reason": reason, "message": message, "lastUpdateTime": time,
        "lastTransitionTime": time,
    }  # fmt: skip
    conditions = (csr.get("status") or {}).get("conditions") or []
    patch = {
        # The very request that was read: the spec of one cannot change, but another approver may have decided meanwhile.
        "metadata": {"resourceVersion": metadata(csr)["resourceVersion"]},
        "status": {"conditions": [*conditions, decided]},
    }
    await cluster.patch(REQUESTS, object_name(csr).name, patch, PatchType.MERGE, "", _APPROVAL)
