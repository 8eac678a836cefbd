"""Rows of the table of rules, sent to an API server over HTTPS."""

from __future__ import annotations

from typing import Any

import httpx

from fastness.kinds import registry
from fastness.kinds.kind import JsonObject
from tests.unit.kinds.rules.cases import Case
from tests.unit.kinds.rules.table import CASES

DRY_RUN = {"dryRun": "All"}


async def disagreements(client: httpx.AsyncClient, crd: str) -> list[str]:
    """What the server judges otherwise than the rows of a kind say."""
    wrong = []
    for case in CASES:
        if case.crd == crd:
            wrong += [f"{case}: {complaint}" for complaint in await Judged(client, case).complaints()]
    return wrong


class Judged:
    """One row at one server: the object lives under the name that it has in the row, and goes afterwards."""

    def __init__(self, client: httpx.AsyncClient, case: Case) -> None:
        self._client = client
        self._case = case
        plural, _, group = case.crd.partition(".")
        self._resource = registry.versions_of(group, plural)[0].resource

    async def complaints(self) -> list[str]:
        """What went otherwise than the row says."""
        case = self._case
        passed, refused = await self._ask(case.passes), await self._ask(case.fails)
        wrong = [] if passed.is_success else [f"should pass: {passed.text}"]
        causes = refused.json().get("details", {}).get("causes", []) if refused.status_code == 422 else []
        named = [
            cause for cause in causes if cause["field"] == case.place and cause["message"].endswith(f": {case.message}")
        ]
        return wrong if named else [*wrong, f"should be refused at {case.place}: {refused.text}"]

    async def _ask(self, patch: JsonObject) -> httpx.Response:
        """Try a document where its rule is judged: on create, or on update of the object or of its status."""
        case, document = self._case, self._case.document(patch)
        if case.old is None and not case.by_status:
            return await self._client.post(self._resource.path(), params=DRY_RUN, json=document)
        before = case.document(patch if case.old is None else case.old)
        stored = await self._stored(before, with_status=case.old is not None)
        try:
            stored |= {part: document[part] for part in ("spec", "status") if part in document}
            return await self._client.put(self._path("status" if case.by_status else ""), params=DRY_RUN, json=stored)
        finally:
            await self._drop(document)

    async def _stored(self, document: JsonObject, *, with_status: bool) -> JsonObject:
        await self._drop(document)
        without = {part: value for part, value in document.items() if part != "status"}
        made = await self._client.post(self._resource.path(), json=without)
        assert made.status_code == 201, f"{self._case}: {made.text}"
        self._name = str(document["metadata"]["name"])
        stored: dict[str, Any] = made.json()
        if with_status and "status" in document:
            answer = await self._client.put(self._path("status"), json={**stored, "status": document["status"]})
            assert answer.is_success, f"{self._case}: {answer.text}"
            stored = answer.json()
        return stored

    async def _drop(self, document: JsonObject) -> None:
        self._name = str(document["metadata"]["name"])
        await self._client.delete(self._path())

    def _path(self, subresource: str = "") -> str:
        return self._resource.path(name=self._name, subresource=subresource)
