"""Approving, withdrawing and activating work the same on every API server: what a verifier concludes is compared."""

from __future__ import annotations

import hashlib

from fastness.attestation.loops.images import IMAGES, SETS
from fastness.attestation.loops.policies import POLICIES
from fastness.attestation.values.from_images import set_name
from fastness.attestation.values.values import Validity
from fastness.kinds.kind import JsonObject
from fastness.kube.places import Places
from fastness.kube.port import DELETE, Cluster, PatchType
from tests.component.attestation.approvals import approved_image, manifest, quoted, world

NOBODY = {"name": "nobody", "input": {}, "expect": "NotAffirmed"}
REGO = "package policy\nimport rego.v1\nexecutables := 3 if input.tpm.pcr04 == %s\n"


def measured(unique: str) -> dict[int, str]:
    """Registers that only this test's machines have."""
    return {pcr: hashlib.sha256(f"{unique} {pcr}".encode()).hexdigest() for pcr in (4, 7, 11, 12, 14)}


async def test_an_approval_lives_and_dies(cluster: Cluster, namespace: str, unique: str) -> None:
    pcrs = measured(unique)
    image = f"registry.example/os@sha256:{hashlib.sha256(unique.encode()).hexdigest()}"
    approval = approved_image(unique, image, manifest(pcrs))
    approval["metadata"]["namespace"] = namespace
    async with world(cluster, places=Places(adopted=frozenset({namespace}))) as here:
        await cluster.create(IMAGES, approval)
        await here.settle(2)
        assert (await here.judge(quoted(pcrs))).affirms("tpm")
        assert (await here.condition(SETS, set_name(image), "Published"))["status"] == "True"
        before = (await cluster.get(SETS, set_name(image)))["metadata"]["resourceVersion"]
        await here.settle(1)
        assert (await cluster.get(SETS, set_name(image)))["metadata"]["resourceVersion"] == before, "nothing to do"
        await cluster.delete(IMAGES, unique, namespace, DELETE)
        assert not (await here.judge(quoted(pcrs))).affirms("tpm")
        await here.settle(2)
        owner = (await here.book()).owner("tpm_pcr4", pcrs[4])
        assert owner is not None
        assert owner.standing is Validity.WITHDRAWN
        await cluster.delete(SETS, set_name(image), "", DELETE)


async def test_the_older_text_of_a_policy_stays_active(cluster: Cluster, unique: str) -> None:
    policy: JsonObject = {
        "apiVersion": POLICIES.api_version,
        "kind": "AppraisalPolicy",
        "metadata": {"name": unique},
        "spec": {"for": "nvidia", "rego": REGO % '"aa"', "active": True, "cases": [NOBODY]},
    }
    async with world(cluster) as here:
        await cluster.create(POLICIES, policy)
        await here.settle(2)
        first = (await cluster.get(POLICIES, unique))["status"]["active"]
        await cluster.patch(POLICIES, unique, {"spec": {"rego": "package policy\nexecutables := {"}}, PatchType.MERGE)
        await here.settle(2)
        status = (await cluster.get(POLICIES, unique))["status"]
        assert status["active"] == first
        assert {entry["type"]: entry["status"] for entry in status["conditions"]} == {
            "Parsed": "False",
            "CasesPass": "Unknown",
            "Active": "True",
        }
        await cluster.patch(POLICIES, unique, {"spec": {"active": False}}, PatchType.MERGE)
        await here.settle(2)
        assert "active" not in (await cluster.get(POLICIES, unique))["status"]
        await cluster.delete(POLICIES, unique, "", DELETE)
