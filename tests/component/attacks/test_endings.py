"""Trust that is taken away stays away: deleting past the record, through an owner, a finalizer or the whole namespace."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from fastness.apiserver.inventory import Inventory
from fastness.apiserver.loops.garbage import GarbageCollector
from fastness.apiserver.store import Key
from fastness.attestation.admission.trusted_objects import WITHOUT_OWNERS
from fastness.attestation.machine.chip import BARRED
from fastness.attestation.machine.decisions import DECISIONS, decision_patch
from fastness.keys.home import GOING, Home
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.cluster import CONFIRM_LOWER
from fastness.kinds.fastness_dev.distrust import DISTRUST
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import object_name
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.errors import Forbidden, NotFound
from fastness.kube.port import PatchType
from tests.component.attacks.people import person, recorded, user_name
from tests.component.attestation.test_chips import Site, site
from tests.component.attestation.test_distrust import caches_caught_up
from tests.embedded.fixtures import Embedded

__all__ = ["site"]

MACHINES = f"/apis/trusted-execution-clusters.io/v1alpha1/namespaces/{NAMESPACE}/machines"
DECIDES = ("trusted-execution-clusters.io", ("machines",), ("get", "list", "patch", "update"))
HOME = f"/api/v1/namespaces/{NAMESPACE}"
MERGE = {"content-type": "application/merge-patch+json"}
NOBODY = {"apiVersion": "v1", "kind": "ConfigMap", "name": "none", "uid": "11111111-1111-4111-8111-111111111111"}
WATCHER = "/apis/fastness.dev/v1alpha1"


async def quarantined(site: Site, tee: str = "snp") -> tuple[Any, JsonObject]:
    """A machine that attested and was put into quarantine, and its object."""
    bad = await site.enrolled(tee, guest=0)
    assert await site.attest(bad) == (200, "")
    await site.decide("quarantine", bad, "odd traffic")
    return bad, await site.machine(bad)


async def changed(client: httpx.AsyncClient, name: str, meta: dict[str, Any]) -> httpx.Response:
    return await client.patch(f"{MACHINES}/{name}", json={"metadata": meta}, headers=MERGE)


async def test_an_owner_that_does_not_exist_deletes_no_machine(site: Site, embedded_server: Embedded) -> None:
    _, machine = await quarantined(site)
    name = object_name(machine).name
    async with person(embedded_server, "dora", DECIDES) as dora:
        refused = await changed(dora, name, {"ownerReferences": [NOBODY]})
        assert refused.status_code == 403, refused.text
        assert "unrecorded" in refused.json()["message"]
        assert (await dora.delete(f"{MACHINES}/{name}")).status_code == 403


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("distrusts", {"kind": "Distrust", "spec": {"tenant": "red", "reason": "theft"}}),
        ("resourcebindings", {"kind": "ResourceBinding", "spec": {"resource": "a/b/c", "subjects": {"pools": ["w"]}}}),
    ],
)
async def test_what_trust_rests_on_has_no_owners(embedded_server: Embedded, kind: str, body: dict[str, Any]) -> None:
    async with person(embedded_server, "ada", ("fastness.dev", (kind,), ("create", "patch", "get"))) as ada:
        made = {"apiVersion": "fastness.dev/v1alpha1", **body, "metadata": {"name": "a", "ownerReferences": [NOBODY]}}
        assert (await ada.post(f"{WATCHER}/{kind}", json=made)).status_code == 403
        made["metadata"] = {"name": "a"}
        assert (await ada.post(f"{WATCHER}/{kind}", json=made)).status_code == 201
        patch = {"metadata": {"ownerReferences": [NOBODY]}}
        assert (await ada.patch(f"{WATCHER}/{kind}/a", json=patch, headers=MERGE)).status_code == 403


async def test_the_collector_leaves_a_machine_alone_that_got_an_owner_before_it_was_refused(
    site: Site, embedded_server: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, machine = await quarantined(site)
    name = object_name(machine).name
    with monkeypatch.context() as before:
        before.setattr("fastness.attestation.admission.trusted_objects.metadata", lambda _: {})
        patch = {"metadata": {"ownerReferences": [NOBODY]}}
        await site.world.cluster.patch(MACHINE.resource, name, patch, PatchType.MERGE, NAMESPACE)
    collector = GarbageCollector(embedded_server.cluster, Inventory(embedded_server.server.api), WITHOUT_OWNERS)
    await collector.reconcile(Key(MACHINE.group, MACHINE.plural, NAMESPACE, name))
    left = await site.world.cluster.get(MACHINE.resource, name, NAMESPACE)
    assert (left["metadata"]["ownerReferences"], "deletionTimestamp" in left["metadata"]) == ([NOBODY], False)


@pytest.mark.parametrize("tee", ["snp", "tdx"])
async def test_the_chip_of_a_quarantined_machine_stays_barred_when_the_machine_is_deleted(site: Site, tee: str) -> None:
    _, machine = await quarantined(site, tee)
    name = object_name(machine).name
    await site.world.cluster.delete(MACHINE.resource, name, NAMESPACE)
    await site.follow()
    with pytest.raises(NotFound):
        await site.world.cluster.get(MACHINE.resource, name, NAMESPACE)
    bar = await site.world.cluster.get(DISTRUST.resource, f"kept-{machine['metadata']['uid']}")
    assert "odd traffic" in bar["spec"]["reason"]
    noted = [entry.detail["kept"] for entry in site.record.entries if entry.what == "machine-deleted"]
    assert noted == [bar["metadata"]["name"]]
    newcomer = await site.enrolled(tee, guest=2)
    assert await site.attest(newcomer) == (503, "approval-pending")
    await site.follow()
    assert await site.attest(newcomer) == (503, "approval-pending")
    await site.world.cluster.delete(DISTRUST.resource, bar["metadata"]["name"])
    await site.follow()
    assert await site.attest(newcomer) == (200, "")


async def test_a_machine_is_not_deleted_before_its_bar_is_noted(site: Site, embedded_server: Embedded) -> None:
    """By hand, past `fastness machine`: no finalizer comes with the decision, and the controllers are busy."""
    bad = await site.enrolled("snp", guest=0)
    assert await site.attest(bad) == (200, "")
    name = object_name(await site.machine(bad)).name
    patch = {"spec": {"approval": "Quarantined"}}
    await site.world.cluster.patch(MACHINE.resource, name, patch, PatchType.MERGE, NAMESPACE)
    with pytest.raises(Forbidden, match="not noted yet"):
        await site.world.cluster.delete(MACHINE.resource, name, NAMESPACE)
    await site.follow()
    assert BARRED in (await site.machine(bad))["metadata"]["finalizers"]
    await site.world.cluster.delete(MACHINE.resource, name, NAMESPACE)
    async with person(embedded_server, "dora", DECIDES) as dora:
        assert (await changed(dora, name, {"finalizers": None})).status_code == 403


async def test_a_released_machine_bars_nothing_and_goes_without_a_trace_of_a_bar(site: Site) -> None:
    bad, machine = await quarantined(site)
    await site.decide("release", bad, "it was a backup")
    assert not (await site.machine(bad))["metadata"].get("finalizers")
    await site.world.cluster.delete(MACHINE.resource, object_name(machine).name, NAMESPACE)
    await caches_caught_up(site.world)
    assert (await site.world.cluster.list(DISTRUST.resource)).items == []
    newcomer = await site.enrolled("snp", guest=2)
    assert await site.attest(newcomer) == (200, "")


async def test_our_own_namespace_goes_with_the_word_of_that_deletion_and_on_the_record(
    embedded_server: Embedded,
) -> None:
    rights = ("", ("namespaces",), ("get", "patch", "delete"))
    async with person(embedded_server, "nina", rights) as nina:
        refused = await nina.delete(HOME)
        assert refused.status_code == 403
        word = refused.json()["message"].partition(f"{CONFIRM_LOWER}=")[2].split()[0]
        noted = {"metadata": {"annotations": {CONFIRM_LOWER: "0" * 64}}}
        assert (await nina.patch(HOME, json=noted, headers=MERGE)).status_code == 200
        assert (await nina.delete(HOME)).status_code == 403
        home = Home(embedded_server.cluster, None)  # type: ignore[arg-type]
        await home.look()
        assert home.problem() is None
        noted = {"metadata": {"annotations": {CONFIRM_LOWER: word}}}
        assert (await nina.patch(HOME, json=noted, headers=MERGE)).status_code == 200
        assert (await nina.delete(HOME)).status_code == 200
    await home.look()
    assert home.problem() == GOING
    entries = [entry for entry in await recorded(embedded_server) if entry["what"] == "act-lower-protection"]
    assert [(entry["who"], entry["resource"]) for entry in entries] == [(user_name("nina"), f"namespaces/{NAMESPACE}")]


def test_a_quarantine_by_the_command_comes_with_its_finalizer() -> None:
    machine: JsonObject = {
        "metadata": {"name": "m", "resourceVersion": "3", "finalizers": ["example.com/other"]}, "spec": {"id": "x"},
        "status": {"chip": "snp:" + "ab" * 64},
    }  # fmt: skip
    patch = decision_patch(machine, DECISIONS["quarantine"], "why")
    assert patch["metadata"]["finalizers"] == ["example.com/other", BARRED]
    assert "finalizers" not in decision_patch(machine, DECISIONS["approve"], "")["metadata"]
