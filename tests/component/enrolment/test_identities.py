"""Keys that are passed off as a machine's: of another maker, weak, of another TPM, or of a machine that exists."""

from __future__ import annotations

import base64
from pathlib import Path

from fastness.apiserver import ServerOptions, open_apiserver
from fastness.app.product import PRODUCT
from fastness.attestation.live.machines import find_machine
from fastness.formats.evidence.tpm.public import Attributes
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kinds.trusted_execution.subject import KeyKind
from fastness.kube.port import PatchType, WriteOptions
from fastness.sim.tee.attester import SimAttester
from fastness.sim.tee.vendor import SimVendor
from fastness.sim.tee.writers import tpm2
from tests.embedded.fixtures import Embedded
from tests.enrolling import ENTROPY, change_cluster, code, doors, nothing_was_made


async def test_evidence_that_the_cluster_does_not_take_is_refused_at_once(embedded_server: Embedded) -> None:
    spec = {"mode": "Enforce", "simulated": True, "attestation": {"evidence": ["snp"]}}
    async with doors(embedded_server.cluster, spec) as world:
        ticket = await world.ticket()
        assert code(await world.begin(world.machine("tpm"), ticket)) == (403, "evidence-not-accepted")
        assert (await world.enrol(world.machine("snp"), ticket)).approved


async def test_an_endorsement_of_another_maker_is_refused_and_recorded(embedded_server: Embedded) -> None:
    async with doors(embedded_server.cluster) as world:
        foreign = SimAttester(SimVendor(ENTROPY).chip("tpm").boot())
        answer = await world.begin(foreign, await world.ticket())
        assert code(answer) == (403, "endorsement-refused")
        (entry,) = world.record.of("enrol-refused")
        assert entry.who == foreign.machine.thumbprint
        assert entry.detail["code"] == "endorsement-refused"
        assert entry.detail["checks"]
        await nothing_was_made(world)


async def test_a_simulated_tpm_is_refused_by_a_cluster_that_is_not_simulated(tmp_path: Path) -> None:
    async with (
        open_apiserver(ServerOptions(tmp_path / "state", simulated=False), PRODUCT) as server,
        doors(server.cluster, {"mode": "Enforce", "simulated": False}) as world,
    ):
        assert code(await world.begin(world.machine(), await world.ticket())) == (403, "endorsement-refused")
        await nothing_was_made(world)


async def test_a_key_that_could_sign_foreign_bytes_or_leave_its_tpm_is_no_identity(embedded_server: Embedded) -> None:
    spec = {"mode": "Enforce", "simulated": True, "join": {"trustOnFirstUse": True}}
    needed = (
        Attributes.RESTRICTED, Attributes.FIXED_TPM, Attributes.FIXED_PARENT, Attributes.SENSITIVE_DATA_ORIGIN, Attributes.SIGN,
    )  # fmt: skip
    async with doors(embedded_server.cluster, spec) as world:
        ticket = await world.ticket()
        for missing in needed:
            for certified in (True, False):
                weak = tpm2.AK_ATTRIBUTES & ~int(missing)
                answer = await world.begin(world.machine("tpm", certified=certified, ak_attributes=weak), ticket)
                assert code(answer) == (403, "endorsement-refused"), missing
                assert "attestation-key-attributes" in answer.json()["detail"]
        await nothing_was_made(world)


async def test_a_credential_opens_only_in_the_tpm_that_it_was_made_for(embedded_server: Embedded) -> None:
    async with doors(embedded_server.cluster) as world:
        ticket = await world.ticket(uses=1)
        machine, thief = world.machine(), world.machine()
        begun = await world.begin(machine, ticket)
        for guess in (b"\0" * 32, b"", b"x"):
            body = {"enrolment": begun.json()["enrolment"], "activated": base64.b64encode(guess or b"y" * 32).decode()}
            assert code(await world.post("/v1/enrol/complete", body)) == (403, "activation-failed")
        other = await world.begin(thief, ticket)
        stolen = {**await world.proof(thief, other), "enrolment": begun.json()["enrolment"]}
        assert code(await world.post("/v1/enrol/complete", stolen)) == (403, "activation-failed")
        wrong_kind = {"enrolment": begun.json()["enrolment"], "signature": base64.b64encode(b"s" * 64).decode()}
        assert code(await world.post("/v1/enrol/complete", wrong_kind)) == (403, "activation-failed")
        await nothing_was_made(world)
        assert "status" not in await world.ticket_object(ticket)
        assert len(world.record.of("enrol-refused")) == 5


async def test_a_guest_key_must_sign_its_own_challenge(embedded_server: Embedded) -> None:
    async with doors(embedded_server.cluster) as world:
        ticket, machine, other = await world.ticket(), world.machine("snp"), world.machine("snp")
        begun, foreign = await world.begin(machine, ticket), await world.begin(other, ticket)
        swapped = {**await world.proof(other, foreign), "enrolment": begun.json()["enrolment"]}
        assert code(await world.post("/v1/enrol/complete", swapped)) == (403, "signature-invalid")
        plain = await machine.sign(base64.b64decode(begun.json()["challenge"]))
        bare = {"enrolment": begun.json()["enrolment"], "signature": base64.b64encode(plain).decode()}
        assert code(await world.post("/v1/enrol/complete", bare)) == (403, "signature-invalid")
        await nothing_was_made(world)


async def test_switching_trust_on_first_use_off_stops_an_enrolment_that_began(embedded_server: Embedded) -> None:
    spec = {"mode": "Enforce", "simulated": True, "join": {"trustOnFirstUse": True}}
    async with doors(embedded_server.cluster, spec) as world:
        machine = world.machine("tpm", certified=False)
        begun = await world.begin(machine, await world.ticket())
        await change_cluster(world, join={"trustOnFirstUse": False})
        assert code(await world.complete(machine, begun)) == (403, "first-use-not-allowed")
        await nothing_was_made(world)


async def test_a_machine_under_the_name_of_this_key_that_has_another_key_is_never_taken_over(
    embedded_server: Embedded,
) -> None:
    async with doors(embedded_server.cluster) as world:
        machine, ticket = world.machine(), await world.ticket(uses=1)
        name = f"machine-{machine.machine.thumbprint[7:27]}"
        body = {
            "apiVersion": MACHINE.api_version, "kind": MACHINE.kind,
            "metadata": {"name": name, "namespace": "fastness-system"}, "spec": {"id": ENTROPY.uid()},
        }  # fmt: skip
        await world.cluster.create(MACHINE.resource, body)
        foreign = {"status": {"keyThumbprint": f"{machine.machine.thumbprint[:27]}{'0' * 44}", "pool": "worker"}}
        options = WriteOptions(subresource="status")
        await world.cluster.patch(MACHINE.resource, name, foreign, PatchType.MERGE, "fastness-system", options)
        assert await find_machine(world.cluster, KeyKind.AK, machine.machine.thumbprint) is None
        answer = await world.complete(machine, await world.begin(machine, ticket))
        assert code(answer) == (403, "identity-conflict")
        assert "status" not in await world.ticket_object(ticket)
