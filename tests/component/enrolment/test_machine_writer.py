"""Who wrote a Machine first decides what its key is: the same key does not come again with another story."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fastness.apiserver import LocalCluster
from fastness.attestation.live.machines import IdentityConflict, MachineWriter
from fastness.attestation.live.statuses import signed_statuses
from fastness.attestation.machine.machine import Newcomer
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.trusted_execution.approvals import ATTESTATION_KEY
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.errors import Conflict
from fastness.kube.port import PatchType, WriteOptions
from tests.embedded.fixtures import Embedded
from tests.virtual import SeededEntropy, VirtualClock

STATUS = WriteOptions(subresource="status")
TPM = Newcomer(
    f"sha256:{'a' * 64}", b"key", "tpm", "worker", "ticket", True, f"sha256:{'b' * 64}", f"sha256:{'c' * 64}",
)  # fmt: skip


def writer(here: Embedded) -> MachineWriter:
    return MachineWriter(here.cluster, VirtualClock(), SeededEntropy(1))


async def test_a_key_does_not_change_how_it_was_endorsed(embedded_server: Embedded) -> None:
    machines = writer(embedded_server)
    first_use = replace(TPM, first_use=True, root="")
    await machines.write(first_use)
    assert not (await machines.write(first_use)).created
    with pytest.raises(IdentityConflict, match="another endorsement"):
        await machines.write(TPM)


async def test_a_key_does_not_change_its_pool_by_a_ticket(embedded_server: Embedded) -> None:
    machines = writer(embedded_server)
    await machines.write(TPM)
    with pytest.raises(IdentityConflict, match="another pool"):
        await machines.write(replace(TPM, pool="infra"))


async def test_a_key_whose_machine_somebody_else_wrote_on_does_not_enrol_again(embedded_server: Embedded) -> None:
    clock, entropy = VirtualClock(), SeededEntropy(1)
    signing = signed_statuses("enrolment", embedded_server.cluster, clock, entropy)
    machines = MachineWriter(signing, clock, entropy)
    name = (await machines.write(TPM)).machine["metadata"]["name"]
    forged = {"status": {"lastAttested": "2026-06-01T00:00:00Z"}}
    await embedded_server.cluster.patch(MACHINE.resource, name, forged, PatchType.MERGE, NAMESPACE, STATUS)
    with pytest.raises(Conflict, match="a person has to look"):
        await machines.write(TPM)


async def test_a_name_that_another_key_has_taken_is_not_given_to_this_one(embedded_server: Embedded) -> None:
    machines = writer(embedded_server)
    await machines.write(TPM)
    (key,) = (await embedded_server.cluster.list(ATTESTATION_KEY.resource)).items
    await embedded_server.cluster.delete(ATTESTATION_KEY.resource, key["metadata"]["name"], NAMESPACE)
    meta = {"name": key["metadata"]["name"], "namespace": NAMESPACE}
    planted = {**key, "metadata": meta, "spec": {**key["spec"], "publicKey": "cGxhbnRlZA=="}}
    await embedded_server.cluster.create(ATTESTATION_KEY.resource, planted)
    with pytest.raises(IdentityConflict, match="another AttestationKey"):
        await machines.write(TPM)


async def test_a_machine_that_comes_and_goes_while_it_is_written_is_a_conflict(
    embedded_server: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another replica is first to write it, and somebody deletes it before this one has read it: the machine tries again."""
    create = LocalCluster.create

    async def late(self: LocalCluster, resource: Any, body: Any, *more: Any) -> Any:
        if resource != MACHINE.resource:
            return await create(self, resource, body, *more)
        await create(self, resource, body, *more)
        try:
            return await create(self, resource, body, *more)
        finally:
            await self.delete(resource, body["metadata"]["name"], NAMESPACE)

    with monkeypatch.context() as racing:
        racing.setattr(LocalCluster, "create", late)
        with pytest.raises(Conflict, match="deleted at this moment"):
            await writer(embedded_server).write(TPM)
    assert (await embedded_server.cluster.list(MACHINE.resource)).items == []
    assert (await writer(embedded_server).write(TPM)).created
