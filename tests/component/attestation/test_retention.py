"""Old verdicts and their evidence leave the cluster; what explains a refusal stays."""

from __future__ import annotations

from datetime import timedelta

from fastness.attestation.loops.retention import EVIDENCE, GRACE, Retention
from fastness.kinds.fastness_dev.evidence import EVIDENCE_BLOB
from fastness.kinds.fastness_dev.verdict import VERDICT
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import ObjectName
from fastness.kube.informers import Informers
from fastness.runtime.clock import SystemClock
from tests.embedded.fixtures import Embedded
from tests.enrolling import ENTROPY, MovedClock

UID = "0b0e7f0e-0000-4000-8000-000000000001"


def verdict(number: int, result: str) -> JsonObject:
    return {
        "apiVersion": VERDICT.api_version, "kind": VERDICT.kind, "metadata": {"name": f"v-{number:02d}"},
        "spec": {
            "subject": {"machine": UID, "keyThumbprint": "sha256:" + "a" * 64}, "result": result,
            "evidence": {"type": "tpm", "digest": f"sha256:{number:064d}"},
        },
    }  # fmt: skip


def blob(number: int) -> JsonObject:
    return {
        "apiVersion": EVIDENCE_BLOB.api_version, "kind": EVIDENCE_BLOB.kind, "metadata": {"name": f"b-{number:02d}"},
        "spec": {"digest": f"sha256:{number:064d}", "type": "tpm", "encoding": "gzip", "data": "AAAA"},
    }  # fmt: skip


async def test_only_what_is_needed_stays(embedded_server: Embedded) -> None:
    cluster, clock = embedded_server.cluster, MovedClock()
    for number in range(13):
        await cluster.create(VERDICT.resource, verdict(number, "Refused" if number == 0 else "Affirmed"))
        await cluster.create(EVIDENCE_BLOB.resource, blob(number))
    async with Informers(cluster, clock=SystemClock(), entropy=ENTROPY) as informers:
        loop = Retention(cluster, informers, clock)
        await informers.synced()
        await loop.reconcile(ObjectName("subject", UID))
        remaining = {obj["metadata"]["name"] for obj in (await cluster.list(VERDICT.resource)).items}
        assert len(remaining) == 11
        assert "v-00" in remaining
        clock.ahead = GRACE + timedelta(seconds=1)
        await loop.reconcile(EVIDENCE)
        blobs = {
            blob["metadata"]["name"].replace("b-", "v-") for blob in (await cluster.list(EVIDENCE_BLOB.resource)).items
        }
        assert blobs == remaining
