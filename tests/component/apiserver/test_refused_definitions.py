"""A definition that may not be served is refused before it is stored, and leaves nothing behind."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.embedded.fixtures import Embedded

PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def definition(name: str = "widgets.example.com", **spec: Any) -> dict[str, Any]:
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
    names = {"plural": "widgets", "kind": "Widget"}
    body = {"group": "example.com", "scope": "Cluster", "names": names, "versions": [version], **spec}
    return {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": name}, "spec": body,
    }  # fmt: skip


async def fields(answer: httpx.Response) -> set[str]:
    return {cause["field"] for cause in answer.json()["details"]["causes"]}


@pytest.mark.parametrize(
    ("bad", "field"),
    [
        (definition("other.example.com"), "metadata.name"),
        (definition(scope="Universe"), "spec.scope"),
        (definition(names={"plural": "widgets"}), "spec.names.kind"),
        (definition("widgets.k8s.io", group="k8s.io"), "metadata.annotations[api-approved.kubernetes.io]"),
    ],
)
async def test_a_bad_definition_is_not_stored_and_good_ones_still_work(
    embedded_server: Embedded, bad: dict[str, Any], field: str
) -> None:
    async with embedded_server.client() as admin:
        refused = await admin.post(PATH, json=bad)
        assert refused.status_code == 422
        assert field in await fields(refused)
        assert (await admin.get(f"{PATH}/{bad['metadata']['name']}")).status_code == 404
        assert (await admin.post(PATH, json=definition())).status_code == 201
        assert (await admin.get("/apis/example.com/v1/widgets")).status_code == 200


async def test_a_bad_change_leaves_the_definition_as_it_was(embedded_server: Embedded) -> None:
    async with embedded_server.client() as admin:
        await admin.post(PATH, json=definition())
        patch = {"content-type": "application/merge-patch+json"}
        changed = await admin.patch(
            f"{PATH}/widgets.example.com", json={"spec": {"scope": "Namespaced"}}, headers=patch
        )
        assert changed.status_code == 422
        assert await fields(changed) == {"spec.scope"}
        assert (await admin.get(f"{PATH}/widgets.example.com")).json()["spec"]["scope"] == "Cluster"
