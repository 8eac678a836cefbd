"""Machines that proved themselves, written by hand: for tests of what follows from a proof, not of proving."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.objects import rfc3339
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.port import Cluster, PatchType, WriteOptions
from fastness.protocol.machine_names import machine_of_node

STATUS = WriteOptions(subresource="status")


async def proven_machine(cluster: Cluster, node: str, number: int, lasts: timedelta = timedelta(hours=1)) -> str:
    """A Machine that proved itself a moment ago and is this node."""
    digest = f"{number:064x}"
    name, now = machine_of_node(node) or f"machine-{node}", datetime.now(UTC)
    body = {
        "apiVersion": MACHINE.api_version, "kind": MACHINE.kind, "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"id": f"00000000-0000-4000-8000-{number:012d}", "approval": "Approved"},
    }  # fmt: skip
    await cluster.create(MACHINE.resource, body)
    met = [
        {"type": kind, "status": "True", "reason": "Test", "message": "", "lastTransitionTime": rfc3339(now)}
        for kind in ("Enrolled", "Approved", "Attested")
    ]
    status = {
        "pool": "worker", "nodeName": node, "keyThumbprint": f"sha256:{digest}", "tee": "tpm",
        "endorsedBy": "ek-certificate", "conditions": met,
        "lastAttested": rfc3339(now), "attestedUntil": rfc3339(now + lasts),
    }  # fmt: skip
    await cluster.patch(MACHINE.resource, name, {"status": status}, PatchType.MERGE, NAMESPACE, STATUS)
    return name
