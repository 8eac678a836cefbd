"""What a cluster believes of real machines comes and goes with them, and nothing else is touched."""

from __future__ import annotations

from typing import Any

import pytest

from fastness.crypto.silicon.chains import load_certificates
from fastness.crypto.x509 import Certificate
from fastness.enrolment.live import tpm_makers as tpmmakers
from fastness.images.measurement import Measurement
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER, NAME
from fastness.kinds.kind import JsonObject
from fastness.kinds.trusted_execution.approvals import APPROVED_IMAGE
from fastness.kube.port import Cluster, PatchType, Scope
from fastness.sim.tee.vendor import SimVendor
from fastness.sim.vms import trusted
from tests.embedded.fixtures import Embedded

MEASURED = Measurement({4: bytes(32)}, ())
OWN: JsonObject = {"sha256": "ab" * 32, "for": "tpm", "reason": "our own machines"}


@pytest.fixture
async def cluster(embedded_server: Embedded) -> Cluster:
    """A cluster that enforces and has a root of its own."""
    enforcing = embedded_server.server.cluster
    body: JsonObject = {
        "apiVersion": CONFIDENTIAL_CLUSTER.api_version, "kind": CONFIDENTIAL_CLUSTER.kind, "metadata": {"name": NAME},
        "spec": {"mode": "Enforce", "simulated": True, "attestation": {"extraRoots": [OWN]}},
    }  # fmt: skip
    await enforcing.create(CONFIDENTIAL_CLUSTER.resource, body)
    return enforcing


def maker() -> list[Certificate]:
    """The authority of some TPMs."""
    return load_certificates(SimVendor().tpm.root.certificate)


async def roots(cluster: Cluster) -> list[str]:
    settings = await cluster.get(CONFIDENTIAL_CLUSTER.resource, NAME)
    return [str(entry["reason"]) for entry in settings["spec"]["attestation"]["extraRoots"]]


async def approved(cluster: Cluster) -> list[str]:
    listed = await cluster.list(APPROVED_IMAGE.resource, Scope(NAMESPACE))
    return [str(image["metadata"]["name"]) for image in listed.items]


async def pinned_makers(cluster: Cluster) -> dict[str, Any]:
    makers = await cluster.get(trusted.CONFIG_MAPS, tpmmakers.NAME, NAMESPACE)
    return dict(makers.get("data") or {})


async def test_a_root_an_authority_and_an_image_are_believed(cluster: Cluster) -> None:
    await trusted.grant(cluster, maker(), b"image", MEASURED)
    assert await roots(cluster) == [OWN["reason"], trusted.REASON]
    assert len(await approved(cluster)) == 1
    assert "BEGIN CERTIFICATE" in (await pinned_makers(cluster))[trusted.PEM]


async def test_exactly_that_is_withdrawn(cluster: Cluster) -> None:
    await trusted.grant(cluster, maker(), b"image", MEASURED)
    await cluster.patch(trusted.CONFIG_MAPS, tpmmakers.NAME, {"data": {"other.pem": "x"}}, PatchType.MERGE, NAMESPACE)
    await trusted.withdraw(cluster)
    assert await roots(cluster) == [OWN["reason"]]
    assert await approved(cluster) == []
    assert await pinned_makers(cluster) == {"other.pem": "x"}


async def test_another_image_replaces_the_one_before(cluster: Cluster) -> None:
    await trusted.grant(cluster, maker(), b"image", MEASURED)
    (before,) = await approved(cluster)
    await trusted.grant(cluster, maker(), b"another", MEASURED)
    (after,) = await approved(cluster)
    assert before != after
    assert await roots(cluster) == [OWN["reason"], trusted.REASON]


async def test_believing_twice_changes_nothing(cluster: Cluster) -> None:
    await trusted.grant(cluster, maker(), b"image", MEASURED)
    before = await cluster.get(CONFIDENTIAL_CLUSTER.resource, NAME)
    await trusted.grant(cluster, maker(), b"image", MEASURED)
    assert (await cluster.get(CONFIDENTIAL_CLUSTER.resource, NAME))["metadata"]["resourceVersion"] == (
        before["metadata"]["resourceVersion"]
    )


async def test_there_is_nothing_to_withdraw_where_nothing_was_believed(embedded_server: Embedded) -> None:
    await trusted.withdraw(embedded_server.server.cluster)
    assert await approved(embedded_server.server.cluster) == []
