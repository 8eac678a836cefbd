"""What controllers write about a person's act names the person and the reason, whatever objects claim and whoever else writes."""

from __future__ import annotations

from typing import Any

import pytest

from fastness.attestation.live.named_record import UNKNOWN, NamedRecord
from fastness.crypto.eddsa import Ed25519Signer
from fastness.crypto.secret import SecretBytes
from fastness.formats import json
from fastness.kinds.fastness_dev.audit import AUDIT_BATCH
from fastness.kinds.objects import rfc3339
from fastness.kube.port import WriteOptions
from fastness.record.entry import RecordEntry, because
from fastness.record.live.head import read_head
from fastness.record.live.log import LogView
from fastness.record.live.record import ClusterRecord
from fastness.record.loops.sequencer import KEY, Sequencer
from fastness.record.signing import signed
from fastness.runtime.clock import SystemClock
from tests.component.attacks.people import person, recorded, user_name
from tests.component.attacks.test_lowering import DISTRUST, DISTRUSTS
from tests.component.record.conftest import MemoryTiles
from tests.embedded.fixtures import Embedded
from tests.virtual import SeededEntropy

MACHINES = "/apis/trusted-execution-clusters.io/v1alpha1/namespaces/fastness-system/machines"
MACHINE: dict[str, Any] = {
    "apiVersion": "trusted-execution-clusters.io/v1alpha1", "kind": "Machine", "metadata": {"name": "m"},
    "spec": {"id": "11111111-1111-4111-8111-111111111111", "registrationAddress": "", "approval": "Pending"},
}  # fmt: skip
OBJECT = "machines/fastness-system/m"
MERGE = {"content-type": "application/merge-patch+json"}
ADA = user_name("ada")
WHO = "sha256:" + "a" * 64


class Controllers:
    """The record of the controllers beside that of the API."""

    def __init__(self, embedded: Embedded) -> None:
        self.embedded = embedded
        self.tiles = MemoryTiles()
        self.start()

    def start(self) -> None:
        """A process of the controllers that remembers nothing."""
        cluster, clock = self.embedded.cluster, SystemClock()
        own = ClusterRecord(cluster, clock, SeededEntropy(3), "controllers")
        self.record = NamedRecord(own, cluster, self.tiles)
        self.sequencer = Sequencer(cluster, self.tiles, clock, SeededEntropy(1))

    async def fold(self) -> None:
        """Let the sequencer take in what waits."""
        await self.sequencer.reconcile(KEY)

    async def about(self, what: str) -> dict[str, Any]:
        """The newest entry of a kind, folded in or waiting."""
        head = await read_head(self.embedded.cluster)
        folded = [json.decode(data) async for _, data in LogView(self.tiles, head.size).entries()] if head.size else []
        entries = [*folded, *await recorded(self.embedded)]
        newest: dict[str, Any] = [entry for entry in entries if entry["what"] == what][-1]
        return newest


@pytest.fixture
async def controllers(embedded_server: Embedded) -> Controllers:
    return Controllers(embedded_server)


@pytest.mark.parametrize("folded", [False, True], ids=["waiting", "folded in"])
async def test_an_entry_about_a_machine_names_who_decided_and_why(controllers: Controllers, folded: bool) -> None:
    async with (
        controllers.embedded.client() as admin,
        person(controllers.embedded, "ada", role="fastness-approver") as ada,
    ):
        (await admin.post(MACHINES, json=MACHINE)).raise_for_status()
        for approval, what in (("Approved", "approve"), ("Quarantined", "quarantine"), ("Approved", "approve")):
            change = {"spec": {"approval": approval, "approvalReason": f"because of {what}"}}
            answer = await ada.patch(f"{MACHINES}/m", json=change, headers=MERGE)
            assert answer.status_code == 200, answer.text
            if folded:
                controllers.start()  # the pace of the sequencer is a process's own
                await controllers.fold()
                assert await recorded(controllers.embedded) == []
            await controllers.record.append(RecordEntry(f"machine-{what}", WHO, "machine/m", detail={"pool": "worker"}))
            entry = await controllers.about(f"machine-{what}")
            assert (entry["who"], entry["detail"]["person"]) == (WHO, ADA)
            assert (entry["detail"]["reason"], entry["detail"]["pool"]) == (f"because of {what}", "worker")
            assert because(entry) == f"{ADA}: because of {what}"
    assert entry["detail"]["act"].startswith("act-release-machine "), "the third one ends the quarantine"


async def test_entries_about_a_distrust_name_who_made_it_and_who_took_it_back(controllers: Controllers) -> None:
    async with person(controllers.embedded, "ada", role="fastness-approver") as ada:
        assert (await ada.post(DISTRUSTS, json=DISTRUST)).status_code == 201
        await controllers.record.append(
            RecordEntry("machine-distrusted", WHO, "machine/m", detail={"by": "lost, other"})
        )
        await controllers.record.append(RecordEntry("distrust-begins", "lost", "distrust/lost"))
        assert (await ada.delete(f"{DISTRUSTS}/lost")).status_code == 200
        await controllers.record.append(RecordEntry("machine-trusted-again", WHO, "machine/m", detail={"by": "lost"}))
        await controllers.record.append(RecordEntry("distrust-deleted", "lost", "distrust/lost"))
    for what in ("machine-distrusted", "distrust-begins", "machine-trusted-again", "distrust-deleted"):
        detail = (await controllers.about(what))["detail"]
        assert (detail["person"], detail["reason"]) == (ADA, "stolen"), what


async def test_nobody_is_named_by_a_batch_that_another_wrote(controllers: Controllers) -> None:
    """Somebody who may create AuditBatches and nothing else writes an act in the name of the API's door."""
    door = "api-" + "f" * 16
    act = {"time": rfc3339(SystemClock().now()), "what": "act-quarantine-machine", "who": "grace", "resource": OBJECT}
    spec = signed({"door": door, "sequence": 1, "entries": [act]}, Ed25519Signer(SecretBytes(bytes(32))))
    forged = {
        "apiVersion": AUDIT_BATCH.api_version, "kind": AUDIT_BATCH.kind, "metadata": {"name": f"{door}-{1:012d}"}, "spec": spec,
    }  # fmt: skip
    await controllers.embedded.cluster.create(AUDIT_BATCH.resource, forged, WriteOptions(manager="mallory"))
    await controllers.record.append(RecordEntry("machine-quarantine", WHO, "machine/m"))
    assert (await controllers.about("machine-quarantine"))["detail"]["person"] == UNKNOWN
    await controllers.fold()
    await controllers.record.append(RecordEntry("machine-quarantine", WHO, "machine/m"))
    assert (await controllers.about("machine-quarantine"))["detail"]["person"] == UNKNOWN


async def test_what_is_nobodys_act_names_nobody(controllers: Controllers) -> None:
    await controllers.record.append(RecordEntry("machine-superseded", WHO, "machine/m"))
    assert "detail" not in await controllers.about("machine-superseded")
