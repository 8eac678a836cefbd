"""Who describes images, writes configs or writes statuses makes no machine attest: over HTTPS, with these rights and no other."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from fastness.attestation.loops.images import IMAGES, SETS
from fastness.attestation.values.pushed_here import PUSHED_HERE, vouch
from fastness.crypto.eddsa import Ed25519Signer
from fastness.crypto.secret import SecretBytes
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from tests.component.attacks.people import person, recorded, user_name
from tests.component.attestation.approvals import IMAGE
from tests.component.attestation.test_image_values import Reading, built, reading, vouched
from tests.embedded.fixtures import Embedded

GROUP = "machineconfiguration.openshift.io"
API = f"/apis/{GROUP}/v1"
MERGE = {"content-type": "application/merge-patch+json"}
STANDING = {"approval": "BuiltHere", "pools": ["worker"]}
OTHER = f"registry.example/evil@sha256:{'e' * 64}"
WRITES = ("get", "list", "create", "update", "patch", "delete")
DESCRIBES = (GROUP, ("machineosconfigs",), WRITES)
BUILDS = (GROUP, ("machineosconfigs", "machineosbuilds", "machineosbuilds/status", "machineosconfigs/status"), WRITES)


async def approvals(here: Reading) -> list[str]:
    """The images that anybody or anything approved."""
    return [each["spec"]["image"] for each in (await here.cluster.list(IMAGES)).items]


async def patched(client: httpx.AsyncClient, path: str, patch: JsonObject) -> int:
    """The status of an answer to a patch."""
    return (await client.patch(path, json=patch, headers=MERGE)).status_code


async def test_who_describes_images_approves_none_and_changes_nothing_that_would(embedded_server: Embedded) -> None:
    async with reading(embedded_server) as here, person(embedded_server, "ada", DESCRIBES) as ada:
        await built(here)
        layer = {"spec": {"containerFile": [{"containerfileArch": "NoArch", "content": "RUN true"}]}}
        assert await patched(ada, f"{API}/machineosconfigs/worker", layer) == 200
        approval = {
            "apiVersion": "trusted-execution-clusters.io/v1alpha1", "kind": "ApprovedImage", "metadata": {"name": "mine"},
            "spec": {"image": IMAGE},
        }  # fmt: skip
        place = "/apis/trusted-execution-clusters.io/v1alpha1/namespaces/fastness-system/approvedimages"
        assert (await ada.post(place, json=approval)).status_code == 403
        cluster = "/apis/fastness.dev/v1alpha1/confidentialclusters/cluster"
        assert await patched(ada, cluster, {"spec": {"images": STANDING}}) == 403
        status = {"status": {"digestedImagePushSpec": OTHER}}
        assert await patched(ada, f"{API}/machineosbuilds/worker-1/status", status) == 403
        note = {"metadata": {"annotations": {PUSHED_HERE: "x"}}}
        assert await patched(ada, f"{API}/machineosbuilds/worker-1", note) == 403
        await here.settle()
        assert await approvals(here) == []
        assert (await here.counting()).empty
        layers = [each for each in await recorded(embedded_server) if each["what"] == "act-change-description"]
        assert [each["who"] for each in layers] == [user_name("ada")]


async def test_a_status_that_names_another_image_is_not_approved(embedded_server: Embedded) -> None:
    async with reading(embedded_server, images=STANDING) as here, person(embedded_server, "eve", BUILDS) as eve:
        await built(here)
        word = await vouched(here)
        assert (
            await patched(eve, f"{API}/machineosbuilds/worker-1/status", {"status": {"digestedImagePushSpec": OTHER}})
            == 200
        )
        await here.settle()
        assert await approvals(here) == []
        (values,) = (await here.cluster.list(SETS)).items
        assert values["spec"]["image"] == OTHER, "it was computed, and counts for nothing"
        assert (await here.counting()).empty
        for note in ("", word[:-8], f"{word} ", vouch("worker", OTHER, Ed25519Signer(SecretBytes(b"e" * 32)))):
            assert (
                await patched(
                    eve, f"{API}/machineosbuilds/worker-1", {"metadata": {"annotations": {PUSHED_HERE: note}}}
                )
                == 200
            )
            await here.settle()
            assert await approvals(here) == []
        keys = "/api/v1/namespaces/fastness-system/configmaps/controllers-record-key"
        assert await patched(eve, keys, {"data": {"jwks": "{}"}}) == 403

        # As it was: what the controllers pushed is approved.
        truth = {"metadata": {"annotations": {PUSHED_HERE: word}}}
        assert await patched(eve, f"{API}/machineosbuilds/worker-1", truth) == 200
        assert (
            await patched(eve, f"{API}/machineosbuilds/worker-1/status", {"status": {"digestedImagePushSpec": IMAGE}})
            == 200
        )
        await here.settle()
        assert await approvals(here) == [IMAGE]


async def test_what_was_pushed_for_another_pool_is_not_approved_for_this_one(embedded_server: Embedded) -> None:
    async with reading(embedded_server, images=STANDING) as here:
        await built(here, note=await vouched(here, "gpu"))
        await here.settle()
        assert await approvals(here) == []


async def test_an_image_that_was_built_elsewhere_waits_for_a_person(embedded_server: Embedded) -> None:
    """Whoever describes images names one in an annotation, and the pool starts on it; that it was built here nobody said."""
    async with reading(embedded_server, images=STANDING) as here:
        await built(here, note="")
        await here.settle()
        assert await approvals(here) == []
        assert (await here.counting()).empty


CONFIG: dict[str, Any] = {
    "apiVersion": names.API_VERSION, "kind": "MachineConfig",
    "metadata": {"name": "50-secret", "labels": {names.ROLE_LABEL: "worker"}},
    "spec": {"config": {"ignition": {"version": "3.4.0"}}},
}  # fmt: skip


@pytest.mark.parametrize("verb", ["create", "patch"])
async def test_who_makes_a_config_public_is_on_the_record_before_it_happens(
    embedded_server: Embedded, verb: str
) -> None:
    """Also of somebody else's config: whoever may write configs may publish them, under their own name."""
    writes = (GROUP, ("machineconfigs",), WRITES)
    public = {"annotations": {names.PUBLIC: "true"}}
    async with person(embedded_server, "bob", writes) as bob:
        if verb == "create":
            made = {**CONFIG, "metadata": {**CONFIG["metadata"], **public}}
            assert (await bob.post(f"{API}/machineconfigs", json=made)).status_code == 201
        else:
            async with embedded_server.client() as admin:
                assert (await admin.post(f"{API}/machineconfigs", json=CONFIG)).status_code == 201
            assert await patched(bob, f"{API}/machineconfigs/50-secret", {"metadata": public}) == 200
        acts = [each for each in await recorded(embedded_server) if each["resource"] == "machineconfigs/50-secret"]
        assert [(each["what"], each["who"]) for each in acts] == [("act-publish-config", user_name("bob"))]
        assert await patched(bob, f"{API}/machineosconfigs/worker", {"spec": {}}) == 403
