"""What a cluster believes of its real machines, and for how long: the root of their TPMs, and the image that they boot.

`grant` writes both down as an administrator would, `withdraw` takes back exactly that. A cluster that was started without real
machines believes nothing of them, also after one that was killed: `fastness up` withdraws first.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from fastness.attestation.values.from_images import MEASUREMENTS
from fastness.crypto.digests import sha256
from fastness.crypto.x509 import Certificate
from fastness.enrolment.live import tpm_makers as tpmmakers
from fastness.formats import json
from fastness.images.measurement import Measurement
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER, CONFIRM_LOWER, NAME
from fastness.kinds.kind import JsonObject
from fastness.kinds.kubernetes.core import CONFIG_MAP
from fastness.kinds.trusted_execution.approvals import APPROVED_IMAGE
from fastness.kube.confirmation import confirmation
from fastness.kube.errors import AlreadyExists, NotFound
from fastness.kube.port import Cluster, PatchType, Scope

REASON: Final = "the local TPM authority of `fastness up --vms`: trusted because that flag was given, and as long"
MARK: Final = "fastness.dev/real-machines"
PEM: Final = "fastness-up-vms.pem"
CONFIG_MAPS: Final = CONFIG_MAP.resource


async def grant(cluster: Cluster, maker: list[Certificate], uki: bytes, measured: Measurement) -> None:
    """Believe in TPMs of a maker (issuer first, root last) and in one image; whatever was believed before of others is gone."""
    await _approve(cluster, uki, measured)
    await _maker_known(cluster, "".join(entry.pem.decode() for entry in maker))
    await _roots(cluster, [{"sha256": maker[-1].fingerprint.hex, "for": "tpm", "reason": REASON}])


async def withdraw(cluster: Cluster) -> None:
    """Believe nothing of real machines."""
    await _roots(cluster, [])
    await _retire(cluster, keep="")
    with suppress(NotFound):
        await cluster.patch(CONFIG_MAPS, tpmmakers.NAME, {"data": {PEM: None}}, PatchType.MERGE, NAMESPACE)


async def _roots(cluster: Cluster, ours: list[JsonObject]) -> None:
    try:
        stored = await cluster.get(CONFIDENTIAL_CLUSTER.resource, NAME)
    except NotFound:
        return
    listed = ((stored.get("spec") or {}).get("attestation") or {}).get("extraRoots") or []
    roots = [entry for entry in listed if entry.get("reason") != REASON] + ours
    if roots != listed:
        # Another root lowers protection, which has to be said twice. The confirmation goes with the change: controllers take
        # it off once the lowering is on the record.
        spec = {
            **stored["spec"],
            "attestation": {**(stored["spec"].get("attestation") or {}), "extraRoots": roots},
        }
        confirmed = {CONFIRM_LOWER: confirmation(stored, {"spec": spec})} if ours else {}
        patch = {"metadata": {"annotations": confirmed}, "spec": {"attestation": {"extraRoots": roots}}}
        await cluster.patch(CONFIDENTIAL_CLUSTER.resource, NAME, patch, PatchType.MERGE)


async def _maker_known(cluster: Cluster, pem: str) -> None:
    body: JsonObject = {
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": tpmmakers.NAME, "namespace": NAMESPACE},
        "data": {PEM: pem},
    }  # fmt: skip
    try:
        await cluster.create(CONFIG_MAPS, body)
    except AlreadyExists:
        await cluster.patch(CONFIG_MAPS, tpmmakers.NAME, {"data": {PEM: pem}}, PatchType.MERGE, NAMESPACE)


async def _approve(cluster: Cluster, uki: bytes, measured: Measurement) -> None:
    digest = sha256(uki)
    name = f"real-machine-{digest.hex[:12]}"
    await _retire(cluster, keep=name)
    manifest = json.canonical(measured.to_manifest()).decode()
    body: JsonObject = {
        "apiVersion": APPROVED_IMAGE.api_version, "kind": APPROVED_IMAGE.kind,
        "metadata": {
            "name": name, "namespace": NAMESPACE, "labels": {MARK: "true"}, "annotations": {MEASUREMENTS: manifest},
        },
        "spec": {"image": f"local.fastness.dev/real-machine@{digest}"},
    }  # fmt: skip
    with suppress(AlreadyExists):
        await cluster.create(APPROVED_IMAGE.resource, body)


async def _retire(cluster: Cluster, keep: str) -> None:
    listed = await cluster.list(APPROVED_IMAGE.resource, Scope(NAMESPACE, f"{MARK}=true"))
    for stored in listed.items:
        name = str(stored["metadata"]["name"])
        if name != keep:
            with suppress(NotFound):
                await cluster.delete(APPROVED_IMAGE.resource, name, NAMESPACE)
