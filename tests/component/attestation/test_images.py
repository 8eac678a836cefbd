"""Approving an image makes its values count; taking the approval away ends that at once, and stays explainable."""

from __future__ import annotations

from datetime import timedelta

from fastness.attestation.loops.images import IMAGES, SETS
from fastness.attestation.loops.values import KEPT
from fastness.attestation.values.values import Validity
from fastness.kinds.objects import condition
from fastness.kube.port import DELETE, PatchType
from tests.component.attestation.approvals import IMAGE, NAMESPACE, PCRS, SET, approved_image, manifest, quoted, world
from tests.embedded.fixtures import Embedded


async def test_an_approved_image_becomes_values_that_affirm_a_machine(embedded_server: Embedded) -> None:
    async with world(embedded_server.cluster) as here:
        assert not (await here.judge(quoted())).affirms("tpm")
        await here.cluster.create(IMAGES, approved_image())
        await here.settle()
        committed = await here.condition(IMAGES, "os", "Committed", NAMESPACE)
        assert (committed["status"], committed["reason"]) == ("True", "ImageCommitted")
        published = await here.condition(SETS, SET, "Published")
        assert (published["status"], published["reason"]) == ("True", "Counting")
        assert (await here.judge(quoted())).affirms("tpm")


async def test_deleting_the_approval_refuses_the_next_evidence_before_any_loop_has_run(
    embedded_server: Embedded,
) -> None:
    async with world(embedded_server.cluster) as here:
        await here.cluster.create(IMAGES, approved_image())
        await here.settle()
        assert (await here.judge(quoted())).affirms("tpm")
        await here.cluster.delete(IMAGES, "os", NAMESPACE, DELETE)
        assert not (await here.judge(quoted())).affirms("tpm")


async def test_a_withdrawn_set_says_whose_value_it_was_and_since_when_not(embedded_server: Embedded) -> None:
    async with world(embedded_server.cluster) as here:
        await here.cluster.create(IMAGES, approved_image())
        await here.settle()
        await here.cluster.delete(IMAGES, "os", NAMESPACE, DELETE)
        await here.settle()
        withdrawn_set = await here.cluster.get(SETS, SET)
        assert withdrawn_set["status"]["state"] == "Withdrawn"
        owner = (await here.book()).owner("tpm_pcr4", PCRS[4])
        assert owner is not None
        assert (owner.standing, owner.image) == (Validity.WITHDRAWN, IMAGE)
        assert owner.since[:10] == f"{here.clock.now():%Y-%m-%d}"
        assert "ApprovedImage" in owner.reason
        assert (await here.book()).query("tpm_pcr4") is None


async def test_a_withdrawn_set_is_forgotten_after_ninety_days(embedded_server: Embedded) -> None:
    async with world(embedded_server.cluster) as here:
        await here.cluster.create(IMAGES, approved_image())
        await here.settle()
        await here.cluster.delete(IMAGES, "os", NAMESPACE, DELETE)
        await here.settle()
        await here.clock.advance((KEPT - timedelta(hours=1)).total_seconds())
        await here.settle()
        assert len((await here.cluster.list(SETS)).items) == 1
        await here.clock.advance(timedelta(hours=2).total_seconds())
        await here.settle()
        assert (await here.cluster.list(SETS)).items == []


async def test_values_stay_until_the_last_approval_of_an_image_is_gone(embedded_server: Embedded) -> None:
    async with world(embedded_server.cluster) as here:
        await here.cluster.create(IMAGES, approved_image("os"))
        await here.cluster.create(IMAGES, approved_image("again"))
        await here.settle()
        await here.cluster.delete(IMAGES, "os", NAMESPACE, DELETE)
        await here.settle()
        assert (await here.judge(quoted())).affirms("tpm")
        await here.cluster.delete(IMAGES, "again", NAMESPACE, DELETE)
        assert not (await here.judge(quoted())).affirms("tpm")


async def test_approving_again_brings_a_withdrawn_set_back(embedded_server: Embedded) -> None:
    async with world(embedded_server.cluster) as here:
        await here.cluster.create(IMAGES, approved_image())
        await here.settle()
        await here.cluster.delete(IMAGES, "os", NAMESPACE, DELETE)
        await here.settle()
        await here.cluster.create(IMAGES, approved_image("anew"))
        await here.settle()
        assert "withdrawn" not in (await here.cluster.get(SETS, SET))["spec"]
        assert (await here.judge(quoted())).affirms("tpm")


async def test_a_changed_manifest_replaces_the_set_as_a_whole(embedded_server: Embedded) -> None:
    async with world(embedded_server.cluster) as here:
        await here.cluster.create(IMAGES, approved_image())
        await here.settle()
        changed = {**PCRS, 4: "f" * 64}
        patch = {"metadata": {"annotations": approved_image(measured=manifest(changed))["metadata"]["annotations"]}}
        await here.cluster.patch(IMAGES, "os", patch, PatchType.MERGE, NAMESPACE)
        await here.settle()
        assert (await here.book()).query("tpm_pcr4") == ["f" * 64]
        assert not (await here.judge(quoted())).affirms("tpm")
        assert (await here.judge(quoted(changed))).affirms("tpm")


async def test_an_image_that_nobody_read_yet_says_so_and_has_no_values(embedded_server: Embedded) -> None:
    async with world(embedded_server.cluster) as here:
        bare = approved_image()
        del bare["metadata"]["annotations"]
        await here.cluster.create(IMAGES, bare)
        await here.settle()
        committed = await here.condition(IMAGES, "os", "Committed", NAMESPACE)
        assert (committed["status"], committed["reason"]) == ("False", "Computing")
        assert "read from its registry" in committed["message"]
        assert (await here.cluster.list(SETS)).items == []


async def test_measurements_that_become_unreadable_take_the_values_away(embedded_server: Embedded) -> None:
    async with world(embedded_server.cluster) as here:
        await here.cluster.create(IMAGES, approved_image())
        await here.settle()
        broken = {"metadata": {"annotations": {"fastness.dev/measurements": "{"}}}
        await here.cluster.patch(IMAGES, "os", broken, PatchType.MERGE, NAMESPACE)
        await here.settle()
        assert (await here.condition(IMAGES, "os", "Committed", NAMESPACE))["status"] == "False"
        assert not (await here.judge(quoted())).affirms("tpm")


async def test_a_set_that_names_an_image_which_nobody_approves_counts_for_nothing(embedded_server: Embedded) -> None:
    async with world(embedded_server.cluster) as here:
        forged = {
            "apiVersion": SETS.api_version,
            "kind": "ReferenceValueSet",
            "metadata": {"name": "forged"},
            "spec": {"source": "image", "image": IMAGE, **manifest()},
        }
        await here.cluster.create(SETS, forged)
        await here.settle()
        assert not (await here.judge(quoted())).affirms("tpm")
        published = await here.condition(SETS, "forged", "Published")
        assert (published["status"], published["reason"]) == ("False", "NotApproved")


async def test_a_set_that_somebody_made_by_hand_is_not_taken_over(embedded_server: Embedded) -> None:
    async with world(embedded_server.cluster) as here:
        own = {
            "apiVersion": SETS.api_version,
            "kind": "ReferenceValueSet",
            "metadata": {"name": SET},
            "spec": {"source": "manual", "values": [{"name": "mine", "value": "1"}]},
        }
        await here.cluster.create(SETS, own)
        await here.cluster.create(IMAGES, approved_image())
        await here.settle()
        assert [value["name"] for value in (await here.cluster.get(SETS, SET))["spec"]["values"]] == ["mine"]
        assert (await here.condition(IMAGES, "os", "Committed", NAMESPACE))["status"] == "False"


async def test_an_approval_ends_after_a_year_and_the_status_follows(embedded_server: Embedded) -> None:
    async with world(embedded_server.cluster) as here:
        await here.cluster.create(IMAGES, approved_image())
        await here.settle()
        await here.clock.advance(timedelta(days=366).total_seconds())
        assert not (await here.judge(quoted())).affirms("tpm")
        await here.settle()
        assert (await here.condition(SETS, SET, "Published"))["reason"] == "Expired"


async def test_another_look_changes_nothing(embedded_server: Embedded) -> None:
    async with world(embedded_server.cluster) as here:
        await here.cluster.create(IMAGES, approved_image())
        await here.settle()
        before = embedded_server.server.api.store.revision
        await here.settle()
        assert embedded_server.server.api.store.revision == before


async def test_a_heap_of_values_says_that_nobody_is_compared_with_it(embedded_server: Embedded) -> None:
    async with world(embedded_server.cluster) as here:
        listed = [{"name": name, "value": value} for name in ("tpm_pcr4", "tpm_pcr11") for value in ("a", "b")]
        made = {
            "apiVersion": "fastness.dev/v1alpha1", "kind": "ReferenceValueSet", "metadata": {"name": "heap"},
            "spec": {"source": "import", "values": listed},
        }  # fmt: skip
        await here.cluster.create(SETS, made)
        await here.settle()
        published = condition(await here.cluster.get(SETS, "heap"), "Published")
        assert published is not None
        assert (published["status"], published["reason"]) == ("False", "Unclear")
        assert "tpm_pcr11, tpm_pcr4" in published["message"]
        named = [{**reference, "variants": [reference["value"]]} for reference in listed]
        await here.cluster.patch(SETS, "heap", {"spec": {"values": named}}, PatchType.MERGE)
        await here.settle()
        published = condition(await here.cluster.get(SETS, "heap"), "Published")
        assert published is not None
        assert (published["status"], published["reason"]) == ("True", "Counting")
