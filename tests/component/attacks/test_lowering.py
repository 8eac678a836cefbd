"""Lowering protection with the right to write the ConfidentialCluster and nothing else: never by accident, never unseen."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from fastness.kinds.fastness_dev.cluster import CONFIRM_LOWER, REASON
from fastness.kube.errors import Unavailable
from tests.component.attacks.people import CLUSTER, person, recorded, user_name
from tests.embedded.fixtures import Embedded

Object = dict[str, Any]
PATH = f"{CLUSTER}/cluster"
BODY: Object = {
    "apiVersion": "fastness.dev/v1alpha1", "kind": "ConfidentialCluster", "metadata": {"name": "cluster"},
    "spec": {"mode": "Enforce", "simulated": True},
}  # fmt: skip
RIGHTS = ("fastness.dev", ("confidentialclusters",), ("get", "update", "patch", "delete"))
OLGA = user_name("olga")


@pytest.fixture
async def olga(embedded_server: Embedded) -> AsyncIterator[httpx.AsyncClient]:
    async with embedded_server.client() as admin:
        (await admin.post(CLUSTER, json=BODY)).raise_for_status()
    async with person(embedded_server, "olga", RIGHTS) as client:
        yield client


async def written(client: httpx.AsyncClient, way: str, spec: Object, notes: Object) -> httpx.Response:
    """One write in one of the ways that there are."""
    change: Object = {"metadata": {"annotations": notes}, "spec": spec}
    if way == "merge":
        return await client.patch(PATH, json=change, headers={"content-type": "application/merge-patch+json"})
    if way == "json":
        steps: list[Object] = [{"op": "add", "path": f"/spec/{name}", "value": value} for name, value in spec.items()]
        steps.append({"op": "add", "path": "/metadata/annotations", "value": notes})
        return await client.patch(PATH, json=steps, headers={"content-type": "application/json-patch+json"})
    present = (await client.get(PATH)).json()
    whole = {**BODY, "metadata": {"name": "cluster", "annotations": notes}, "spec": {**present["spec"], **spec}}
    if way == "apply":
        headers = {"content-type": "application/apply-patch+yaml"}
        return await client.patch(f"{PATH}?fieldManager=o&force=true", content=json.dumps(whole), headers=headers)
    whole["metadata"] = {**present["metadata"], "annotations": notes}
    return await client.put(PATH, json=whole)


def word_of(refused: httpx.Response) -> str:
    assert refused.status_code == 403, refused.text
    return str(refused.json()["message"]).partition(f"{CONFIRM_LOWER}=")[2].split()[0]


@pytest.mark.parametrize("way", ["merge", "json", "apply", "replace"])
async def test_every_way_to_write_asks_for_the_word_of_this_change_once(olga: httpx.AsyncClient, way: str) -> None:
    word = word_of(await written(olga, way, {"mode": "Audit"}, {}))
    other = await written(olga, way, {"mode": "Disabled"}, {CONFIRM_LOWER: word})
    assert other.status_code == 403, "the word of another change"
    assert (await written(olga, way, {"mode": "Audit"}, {CONFIRM_LOWER: word})).status_code == 200
    assert (await written(olga, way, {"mode": "Enforce"}, {CONFIRM_LOWER: word})).status_code == 200
    again = await written(olga, way, {"mode": "Audit"}, {CONFIRM_LOWER: word})
    assert again.status_code == 403, "the same change, a second time"


async def test_down_and_up_again_is_on_the_record_with_the_person_and_the_reason(
    olga: httpx.AsyncClient, embedded_server: Embedded
) -> None:
    """No controller runs here: what the API let through is on the record by itself."""
    word = word_of(await written(olga, "merge", {"mode": "Disabled"}, {}))
    assert not [entry for entry in await recorded(embedded_server) if entry["what"] == "act-lower-protection"]
    notes = {CONFIRM_LOWER: word, REASON: "the vendor's servers are down"}
    assert (await written(olga, "merge", {"mode": "Disabled"}, notes)).status_code == 200
    assert (await written(olga, "merge", {"mode": "Enforce"}, {})).status_code == 200
    down, up = [entry for entry in await recorded(embedded_server) if entry["who"] == OLGA]
    assert (down["what"], down["resource"]) == ("act-lower-protection", "confidentialclusters/cluster")
    assert down["detail"]["lowered"] == "mode goes from Enforce to Disabled"
    assert (down["detail"]["confirmation"], down["detail"]["reason"]) == (word, "the vendor's servers are down")
    assert up["what"] == "act-change-protection"


async def test_a_deletion_is_on_the_record_before_the_object_is_gone(
    olga: httpx.AsyncClient, embedded_server: Embedded
) -> None:
    word = word_of(await olga.delete(PATH))
    headers = {"content-type": "application/merge-patch+json"}
    await olga.patch(PATH, json={"metadata": {"annotations": {CONFIRM_LOWER: word}}}, headers=headers)
    dry = await olga.delete(f"{PATH}?dryRun=All")
    assert (dry.status_code, await lowerings(embedded_server)) == (200, []), "a trial run is no act"
    assert (await olga.delete(PATH)).status_code == 200
    (entry,) = await lowerings(embedded_server)
    assert (entry["who"], entry["detail"]["fields"]) == (OLGA, "deleted")


async def lowerings(embedded: Embedded) -> list[Object]:
    return [entry for entry in await recorded(embedded) if entry["what"] == "act-lower-protection"]


async def test_what_cannot_be_recorded_does_not_happen(
    olga: httpx.AsyncClient, embedded_server: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    word = word_of(await written(olga, "merge", {"mode": "Audit"}, {}))

    async def full(*arguments: Any, **more: Any) -> None:
        raise Unavailable("the disk is full")

    create = type(embedded_server.cluster).create
    monkeypatch.setattr(type(embedded_server.cluster), "create", full)
    refused = await written(olga, "merge", {"mode": "Audit"}, {CONFIRM_LOWER: word})
    assert refused.status_code == 503
    assert (await olga.get(PATH)).json()["spec"]["mode"] == "Enforce"
    monkeypatch.setattr(type(embedded_server.cluster), "create", create)
    assert (await written(olga, "merge", {"mode": "Audit"}, {CONFIRM_LOWER: word})).status_code == 200


IMAGES = "/apis/trusted-execution-clusters.io/v1alpha1/namespaces/fastness-system/approvedimages"
IMAGE: Object = {
    "apiVersion": "trusted-execution-clusters.io/v1alpha1", "kind": "ApprovedImage",
    "metadata": {"name": "web", "annotations": {REASON: "reviewed by two"}},
    "spec": {"image": f"example.com/web@sha256:{'ab' * 32}"},
}  # fmt: skip
DISTRUSTS = "/apis/fastness.dev/v1alpha1/distrusts"
DISTRUST: Object = {
    "apiVersion": "fastness.dev/v1alpha1", "kind": "Distrust", "metadata": {"name": "lost"},
    "spec": {"machine": "b4b1b6a0-0000-4000-8000-000000000000", "reason": "stolen"},
}  # fmt: skip


async def test_everyday_acts_name_the_person_and_the_reason(embedded_server: Embedded) -> None:
    async with person(embedded_server, "ada", role="fastness-approver") as ada:
        assert (await ada.post(IMAGES, json=IMAGE)).status_code == 201
        made = await ada.post(DISTRUSTS, json=DISTRUST)
        assert made.status_code == 201, made.text
        assert (await ada.delete(f"{DISTRUSTS}/lost")).status_code == 200
        assert (await ada.delete(f"{IMAGES}/web")).status_code == 200
    entries = [entry for entry in await recorded(embedded_server) if entry["who"] == user_name("ada")]
    assert [(entry["what"], entry["resource"], entry["detail"]["reason"]) for entry in entries] == [
        ("act-approve-image", "approvedimages/fastness-system/web", "reviewed by two"),
        ("act-distrust", "distrusts/lost", "stolen"),
        ("act-take-distrust-back", "distrusts/lost", "stolen"),
        ("act-withdraw-image", "approvedimages/fastness-system/web", "reviewed by two"),
    ]


@pytest.mark.parametrize("role", ["fastness-decider", "fastness-reader", "admin", "edit"])
async def test_other_roles_than_the_approvers_say_nothing_of_what_counts(embedded_server: Embedded, role: str) -> None:
    async with person(embedded_server, "nobody", role=role) as client:
        assert (await client.post(IMAGES, json=IMAGE)).status_code == 403
        assert (await client.post(DISTRUSTS, json=DISTRUST)).status_code == 403
        for kind in ("appraisalpolicies", "referencevaluesets", "resourcebindings"):
            refused = await client.post(
                f"/apis/fastness.dev/v1alpha1/{kind}", json={"metadata": {"name": "x"}, "spec": {}}
            )
            assert refused.status_code == 403, kind
    assert [entry for entry in await recorded(embedded_server) if entry["who"] == user_name("nobody")] == []
