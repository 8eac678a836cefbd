"""The embedded API stores every example and refuses every refusal, over HTTPS, as the real API server does."""

from __future__ import annotations

import httpx

from fastness.formats.patch.merge import apply_merge_patch
from fastness.kinds import registry
from fastness.kinds.kind import JsonObject
from tests.embedded.fixtures import Embedded
from tests.unit.kinds.examples import EXAMPLES, SELECTIONS, Refusal
from tests.unit.kinds.refusals import REFUSALS

MERGE = {"Content-Type": "application/merge-patch+json"}


def path_of(obj: JsonObject, name: str = "") -> str:
    """Where an example is served; namespaced ones live in `default`."""
    group, _, version = obj["apiVersion"].rpartition("/")
    return registry.find(group, version, obj["kind"]).resource.path("default", name)


async def ask(client: httpx.AsyncClient, refusal: Refusal) -> httpx.Response:
    """Try the change: as a new object, or on the stored one when a rule compares with that."""
    example = EXAMPLES[refusal.crd]
    if refusal.by == "transition":
        location = path_of(example, example["metadata"]["name"])
        return await client.patch(location, headers=MERGE, json=refusal.change)
    changed = apply_merge_patch(example, refusal.change)
    return await client.post(path_of(example), params={"dryRun": "All"}, json=changed)


async def test_every_example_is_stored_and_every_refusal_is_refused(embedded_server: Embedded) -> None:
    async with embedded_server.client() as client:
        for crd, example in EXAMPLES.items():
            # An embedded API states facts about itself: the one ControllerConfig is there from the beginning.
            await client.delete(f"{path_of(example)}/{example['metadata']['name']}")
            created = await client.post(path_of(example), json=example)
            assert created.status_code == 201, f"{crd}: {created.text}"
        for refusal in REFUSALS:
            answer = await ask(client, refusal)
            assert answer.status_code == 422, f"{refusal}: {answer.status_code} {answer.text}"
            assert refusal.field in answer.json()["message"].replace('\\"', '"'), f"{refusal}: {answer.text}"


async def test_verdicts_can_be_selected_by_machine_and_result(embedded_server: Embedded) -> None:
    verdict = EXAMPLES["verdicts.fastness.dev"]
    machine = verdict["spec"]["subject"]["machine"]
    async with embedded_server.client() as client:
        assert (await client.post(path_of(verdict), json=verdict)).status_code == 201
        for selector, names in SELECTIONS.items():
            query = {"fieldSelector": selector.format(machine=machine)}
            verdicts = (await client.get(path_of(verdict), params=query)).json()["items"]
            assert [item["metadata"]["name"] for item in verdicts] == names, selector
        refused = await client.get(path_of(verdict), params={"fieldSelector": "spec.reason=x"})
        assert refused.status_code == 400
