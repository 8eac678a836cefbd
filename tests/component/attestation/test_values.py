"""What a machine must show, over the wire: one approved image as a whole, and every register that counts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from fastness.agent.boot.enrol import EnrolmentFailed
from fastness.agent.boot.prove import BrokerRefused
from fastness.kinds.fastness_dev.audit import AUDIT_BATCH
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER
from fastness.kinds.fastness_dev.reference_values import REFERENCE_VALUE_SET
from fastness.kinds.fastness_dev.resource_binding import RESOURCE_BINDING
from fastness.kinds.fastness_dev.verdict import VERDICT
from fastness.kinds.kind import JsonObject
from fastness.kube.port import PatchType
from fastness.sim.tee import tamper
from fastness.sim.tee.attester import SimAttester
from fastness.sim.tee.images import BootImage, changed, default_image
from tests.attesting import SIMULATED, AttestingWorld, attesting_world, until
from tests.embedded.fixtures import Embedded

STATUS = "default/attestation-status/status"
OTHER = changed(default_image(), command_line="root=/dev/mapper/root ro other")


@pytest.fixture
async def here(embedded_server: Embedded) -> AsyncIterator[AttestingWorld]:
    async with attesting_world(embedded_server.cluster) as world:
        yield world


def mixed() -> BootImage:
    """Registers of two images: the boot loader's of one, the kernel's of the other, and no log that would tell."""
    image = replace(default_image())
    pcrs, rtmrs = list(image.pcrs), list(image.rtmrs)
    pcrs[11], rtmrs[2] = OTHER.pcrs[11], OTHER.rtmrs[2]
    assert (pcrs, rtmrs) != (list(image.pcrs), list(image.rtmrs))
    image.__dict__.update(pcrs=tuple(pcrs), rtmrs=tuple(rtmrs), event_log=b"", cc_event_log=b"")
    return image


async def refused(world: AttestingWorld, machine: SimAttester) -> tuple[int, str]:
    async with world.broker(machine) as broker:
        with pytest.raises(BrokerRefused) as refusal:
            await broker.attest()
        with pytest.raises(BrokerRefused) as nothing:
            await broker.resource(STATUS)
        assert nothing.value.status == 401
    return refusal.value.status, refusal.value.reason


async def verdict_of(world: AttestingWorld) -> JsonObject:
    (verdict,) = (await world.cluster.list(VERDICT.resource)).items
    return verdict


@pytest.mark.parametrize("tee", ["tpm", "tdx"])
async def test_registers_of_two_approved_images_open_nothing_and_are_on_the_record(
    here: AttestingWorld, tee: str
) -> None:
    await here.approve(tee)
    await here.approve(tee, OTHER, "values-other")
    machine = await here.enrolled(tee, mixed())
    assert await refused(here, machine) == (403, "value-of-another-image")
    verdict = await verdict_of(here)
    assert verdict["spec"]["result"] == "Refused"
    image = next(check for check in verdict["spec"]["checks"] if check["name"] == "approved image")
    assert image["code"] == "image-differs"
    assert "came nearest" in image["seen"]
    assert (await here.machine_object(machine))["status"]["lastVerdict"] == verdict["metadata"]["name"]
    batches = (await here.cluster.list(AUDIT_BATCH.resource)).items
    (entry,) = [recorded for batch in batches for recorded in batch["spec"]["entries"] if recorded["what"] == "refusal"]
    assert (entry["verdict"], entry["who"]) == (verdict["metadata"]["name"], machine.machine.thumbprint)
    assert entry["detail"] == {"code": "value-of-another-image", "tee": tee}
    for image_itself in (default_image(), OTHER):
        good = await here.enrolled(tee, image_itself)
        async with here.broker(good) as broker:
            await broker.attest()
            assert (await broker.resource(STATUS)).reveal() == b"success"


async def test_a_quote_that_leaves_out_what_the_host_handed_in_is_refused(here: AttestingWorld) -> None:
    await here.approve("tpm")
    chosen = [index for index in range(24) if index != 8]
    machine = SimAttester(here.vendor.chip("tpm").boot(default_image(), registers=chosen))
    await here.enrol(machine, await here.ticket())
    assert await refused(here, machine) == (403, "register-missing")


async def test_values_for_one_pool_let_no_machine_of_another_in(here: AttestingWorld) -> None:
    name = await here.approve("tpm")
    await here.approve("tpm", OTHER, "values-other")
    await here.cluster.patch(REFERENCE_VALUE_SET.resource, name, {"spec": {"pools": ["infra"]}}, PatchType.MERGE)
    sets = here.informers.of(REFERENCE_VALUE_SET.resource)

    async def heard() -> bool:
        return bool((sets.get("", name) or {})["spec"].get("pools") == ["infra"])

    await until(heard)
    assert (await refused(here, await here.enrolled("tpm", pool="worker")))[0] == 403
    async with here.broker(await here.enrolled("tpm", pool="infra")) as broker:
        await broker.attest()


async def test_what_counts_for_a_pool_is_asked_at_enrolment_and_at_every_attestation(embedded_server: Embedded) -> None:
    spec: JsonObject = {
        **SIMULATED,
        "pools": [{"name": "secret", "trustModel": "ConfidentialCluster", "evidence": ["snp"]}],
    }
    async with attesting_world(embedded_server.cluster, spec) as world:
        for tee in ("tpm", "snp"):
            await world.approve(tee)
        with pytest.raises(EnrolmentFailed, match="evidence-not-accepted"):
            await world.enrolled("tpm", pool="secret")
        machine = await world.enrolled("snp", pool="secret")
        elsewhere = await world.enrolled("tpm", pool="worker")
        for guest in (machine, elsewhere):
            async with world.broker(guest) as broker:
                await broker.attest()
        # From now on something else counts: a machine that enrolled before is refused from its next proof on.
        worker = {"name": "worker", "trustModel": "ConfidentialCluster", "evidence": ["tdx", "snp"]}
        patch = {"spec": {"pools": [*spec["pools"], worker]}}
        await world.cluster.patch(CONFIDENTIAL_CLUSTER.resource, "cluster", patch, PatchType.MERGE)
        clusters = world.informers.of(CONFIDENTIAL_CLUSTER.resource)

        async def heard() -> bool:
            return bool((clusters.get("", "cluster") or {})["spec"]["pools"] == patch["spec"]["pools"])

        await until(heard)
        assert await refused(world, elsewhere) == (403, "evidence-not-accepted")


@pytest.mark.parametrize("allowed", [False, True])
async def test_a_trust_domain_with_exceptions_of_pages_counts_where_the_cluster_says_so(
    embedded_server: Embedded, allowed: bool
) -> None:
    async with attesting_world(
        embedded_server.cluster, {**SIMULATED, "attestation": {"tdx": {"allowSeptVe": allowed}}}
    ) as world:
        await world.approve("tdx")
        machine = SimAttester(world.vendor.chip("tdx").boot(default_image(), attributes=0))
        await world.enrol(machine, await world.ticket())
        if not allowed:
            assert await refused(world, machine) == (403, "sept-ve-enabled")
            return
        async with world.broker(machine) as broker:
            await broker.attest()


async def test_firmware_that_proves_nothing_is_refused_though_the_cluster_asks_for_no_minimum(
    here: AttestingWorld,
) -> None:
    await here.approve("snp")
    machine = SimAttester(tamper.old_firmware(here.vendor.chip("snp")).boot(default_image()))
    await here.enrol(machine, await here.ticket())
    assert await refused(here, machine) == (403, "tcb-behind")


async def test_where_two_kinds_of_evidence_count_a_binding_keeps_the_weaker_one_out(here: AttestingWorld) -> None:
    await here.keep("default/db/password", b"secret")
    spec = {"resource": "default/db/*", "subjects": {"pools": ["worker"]}, "requires": {"tee": True}}
    binding = {
        "apiVersion": RESOURCE_BINDING.api_version, "kind": RESOURCE_BINDING.kind, "metadata": {"name": "db"}, "spec": spec,
    }  # fmt: skip
    await here.cluster.create(RESOURCE_BINDING.resource, binding)
    bindings = here.informers.of(RESOURCE_BINDING.resource)

    async def heard() -> bool:
        return bindings.get("", "db") is not None

    await until(heard)
    for tee in ("tpm", "snp"):
        await here.approve(tee)
    async with here.broker(await here.enrolled("snp")) as broker:
        await broker.attest()
        assert (await broker.resource("default/db/password")).reveal() == b"secret"
    weaker = await here.enrolled("tpm")
    async with here.broker(weaker) as broker:
        await broker.attest()
        with pytest.raises(BrokerRefused) as refusal:
            await broker.resource("default/db/password")
        assert (refusal.value.status, refusal.value.reason) == (403, "evidence-too-weak")
    batches = (await here.cluster.list(AUDIT_BATCH.resource)).items
    entries = [line for batch in batches for line in batch["spec"]["entries"]]
    (entry,) = [line for line in entries if line["what"] == "refusal" and line.get("resource") == "default/db/password"]
    assert (entry["who"], entry["detail"]["code"]) == (weaker.machine.thumbprint, "evidence-too-weak")
