"""What the owner of one namespace can do to the cluster with objects of that namespace: nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from fastness.agent.boot.prove import BrokerRefused
from fastness.agent.host.features import discover
from fastness.agent.host.host_tree import recorded
from fastness.agent.kata.features import node_feature
from fastness.attestation.machine.proof_age import LABEL_PREFIX, TAINT_KEY
from fastness.formats import json
from fastness.kinds.fastness_dev.reference_values import REFERENCE_VALUE_SET
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.nfd.discovery import NODE_FEATURE_DISCOVERY
from fastness.kinds.nfd.feature import NODE_FEATURE
from fastness.kinds.objects import condition, labels_of, rfc3339
from fastness.kinds.registry import all_kinds
from fastness.kinds.trusted_execution.approvals import APPROVED_IMAGE
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.controllers.misplaced import COUNTS, REASON
from fastness.kube.controllers.misplaced import KINDS as TOLD
from fastness.kube.places import EMBEDDED, HOME
from fastness.sim.tee.images import BootImage, changed, default_image
from tests.component.insiders.owner import KINDS, NODES, TEAM, House, occupied
from tests.joining import certificate_of, client_request, new_key, outcome

MACHINES = MACHINE.resource
IMAGES = APPROVED_IMAGE.resource
SETS = REFERENCE_VALUE_SET.resource
REFERENCE = "registry.example/os@sha256:"
FLEET = "ab" * 32
ID = "00000000-0000-4000-8000-00000000000{}"
THUMBPRINT = f"sha256:{'c' * 64}"
REVOKED = {"standing": "Revoked", "standingReason": "Revoked"}


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    """A cluster that enforces, whose control-plane nodes have nothing to prove."""
    async with occupied(tmp_path, pools=[{"name": "master", "trustModel": "None"}]) as opened:
        yield opened


def measured(image: BootImage) -> JsonObject:
    """The annotation that says what machines measure when they boot an image."""
    return {"fastness.dev/measurements": json.encode({"values": image.reference_values("tpm")}).decode()}


def met(house: House, **conditions: str) -> list[JsonObject]:
    """Conditions of these types, as the control plane would write them."""
    now = rfc3339(house.world.clock.now())
    return [
        {"type": kind, "status": "True", "reason": reason, "message": "", "lastTransitionTime": now}
        for kind, reason in conditions.items()
    ]


def proved(house: House, node: str, **more: Any) -> JsonObject:
    """The status of a Machine that proved everything, on real hardware, and is a node."""
    now = rfc3339(house.world.clock.now())
    return {
        "pool": "worker", "nodeName": node, "keyThumbprint": THUMBPRINT, "tee": "snp", "endorsedBy": "evidence",
        "simulated": False, "lastAttested": now, "attestedUntil": "2099-01-01T00:00:00Z",
        "properties": {"tee": "snp", "endorsement": "evidence", "chip-generation": "milan"},
        # As the loop would write it, so that it has nothing left to write on the Machine before it turns to the node.
        "standing": "Proved", "standingReason": "Affirmed",
        "conditions": met(house, Enrolled="KeyProved", Approved="Approved", Attested="Affirmed"), **more,
    }  # fmt: skip


async def claim(house: House, name: str, status: JsonObject) -> None:
    """A Machine of the owner's namespace."""
    spec = {"id": ID.format(len(name) % 10), "approval": "Approved", "approvalReason": "mine"}
    await house.owner.create(MACHINES, name, status, spec=spec)


async def of_node(house: House, name: str) -> JsonObject:
    return await house.world.cluster.get(NODES, name)


async def test_an_approval_in_an_own_namespace_affirms_no_boot_loader(house: House) -> None:
    world, loader = house.world, changed(default_image(), boot_loader=b"mine")
    await world.approve("tpm")
    spec = {"image": f"{REFERENCE}{'cd' * 32}"}
    await house.owner.create(IMAGES, "mine", spec=spec, metadata={"annotations": measured(loader)})
    await house.settle()
    machine = await world.enrolled("tpm", loader)
    async with world.broker(machine) as broker:
        with pytest.raises(BrokerRefused) as refused:
            await broker.attest()
    assert refused.value.status == 403
    assert [values["metadata"]["name"] for values in (await world.cluster.list(SETS)).items] == ["values-tpm"]
    counted = condition(await world.cluster.get(IMAGES, "mine", TEAM), COUNTS)
    assert counted is not None
    assert (counted["status"], counted["reason"]) == ("False", REASON)
    assert "fastness-system" in counted["message"]


@pytest.mark.parametrize("where", [TEAM, HOME])
async def test_an_approval_of_a_digest_that_begins_alike_withdraws_nothing(house: House, where: str) -> None:
    """Also from whoever may approve images: that is no right to take back another's approval."""
    world, image = house.world, default_image()
    meta = {"name": "fleet", "namespace": HOME, "annotations": measured(image)}
    body = {"apiVersion": IMAGES.api_version, "kind": IMAGES.kind}
    await world.cluster.create(IMAGES, {**body, "metadata": meta, "spec": {"image": REFERENCE + FLEET}})
    await house.settle()
    alike = {"image": f"{REFERENCE}{FLEET[:20]}{'0' * 44}"}
    broken = {"annotations": {"fastness.dev/measurements": "no JSON"}}
    if where == TEAM:
        await house.owner.create(IMAGES, "aaa", spec=alike, metadata=broken)
    else:
        await world.cluster.create(
            IMAGES, {**body, "metadata": {"name": "aaa", "namespace": HOME, **broken}, "spec": alike}
        )
    await house.settle()
    machine = await world.enrolled("tpm", image)
    async with world.broker(machine) as broker:
        await broker.attest()
    (values,) = [
        entry for entry in (await world.cluster.list(SETS)).items if entry["spec"]["image"] == REFERENCE + FLEET
    ]
    assert "withdrawn" not in values["spec"]


async def test_features_of_another_namespace_label_no_node(house: House) -> None:
    await house.node("worker-0")
    features = node_feature("worker-0", discover(recorded("tdx-host")), TEAM)
    spec = {**features["spec"], "labels": {"team.example/mine": "true", "feature.node.kubernetes.io/mine": "true"}}
    await house.owner.create(NODE_FEATURE.resource, "worker-0", spec=spec, metadata={"labels": labels_of(features)})
    await house.owner.create(NODE_FEATURE_DISCOVERY.resource, "mine", spec={"extraLabelNs": ["team.example"]})
    await house.settle()
    assert set(labels_of(await of_node(house, "worker-0"))) == {"node-role.kubernetes.io/worker"}
    # With discovery by the administrator, the other namespace's settings and features still say nothing.
    meta = {"name": "nfd", "namespace": "openshift-nfd"}
    kind = {"apiVersion": NODE_FEATURE_DISCOVERY.api_version, "kind": NODE_FEATURE_DISCOVERY.kind}
    await house.world.cluster.create(NODE_FEATURE_DISCOVERY.resource, {**kind, "metadata": meta, "spec": {}})
    await house.settle()
    assert set(labels_of(await of_node(house, "worker-0"))) == {"node-role.kubernetes.io/worker"}


async def test_the_status_of_a_machine_elsewhere_attests_no_node(house: House) -> None:
    await house.node("worker-0")
    await claim(house, "mine", proved(house, "worker-0"))
    await house.settle()
    node = await of_node(house, "worker-0")
    assert not [name for name in labels_of(node) if name.startswith(LABEL_PREFIX)]
    assert TAINT_KEY in {taint["key"] for taint in node["spec"]["taints"]}, "it never attested"


async def test_the_status_of_a_machine_elsewhere_takes_no_node_out_of_service(house: House) -> None:
    await house.node("control-0", "master")
    revoked = proved(house, "control-0", **REVOKED, conditions=met(house, Enrolled="x", Approved="x", Revoked="x"))
    await claim(house, "mine", revoked)
    await house.settle()
    spec = (await of_node(house, "control-0")).get("spec") or {}
    assert TAINT_KEY not in {taint["key"] for taint in spec.get("taints") or ()}
    assert not spec.get("unschedulable")


async def test_the_status_of_a_machine_elsewhere_denies_no_renewal(house: House, tmp_path: Path) -> None:
    site, world = house.site, house.world
    await world.approve("tpm")
    machine, key = await site.attested(), new_key()
    node = await site.node(machine)
    revoked = proved(house, node, conditions=met(house, Enrolled="x", Approved="x", Revoked="x"))
    await claim(house, "aaa", revoked)
    await house.settle()
    token = await site.token(machine, key)
    async with site.client(token) as bootstrap:
        first = await site.ask(bootstrap, client_request(key, node))
    assert outcome(first) == ("Approved", "Attested")
    fresh = new_key()
    await site.named(machine, fresh)
    async with site.node_client(tmp_path, key, certificate_of(first)) as kubelet:
        renewed = await site.ask(kubelet, client_request(fresh, node))
    assert outcome(renewed) == ("Approved", "Attested")


async def test_the_status_of_a_machine_elsewhere_writes_nothing_on_the_record(house: House) -> None:
    distrusted = met(house, Enrolled="x", Approved="x", Revoked="Distrusted")
    await claim(house, "mine", proved(house, "worker-0", conditions=distrusted))
    await house.settle()
    assert house.recorded("machine-trusted-again", "machine-distrusted", "machine-approve") == []


async def test_a_thousand_machines_elsewhere_close_no_enrolment(house: House) -> None:
    waiting = {"pool": "worker", "keyThumbprint": THUMBPRINT, "endorsedBy": "ek-certificate"}

    async def some(start: int) -> None:
        for number in range(start, 1000, 8):
            await claim(house, f"m-{number:04}", waiting)

    async with asyncio.TaskGroup() as group:
        for start in range(8):
            group.create_task(some(start))
    await house.world.approve("tpm")
    machine = await house.world.enrolled("tpm")
    async with house.world.broker(machine) as broker:
        await broker.attest()


def _name(resource: Resource) -> str:
    return resource.group.replace(".", "-")


def _bodies() -> dict[str, JsonObject]:
    return {
        "machines": {"spec": {"id": ID.format(1), "approval": "Approved", "approvalReason": "mine"}},
        "approvedimages": {
            "spec": {"image": REFERENCE + FLEET},
            "metadata": {"annotations": measured(default_image())},
        },
        "attestationkeys": {"spec": {"publicKey": "x" * 100, "uuid": ID.format(1)}},
        "trustedexecutionclusters": {"spec": {"publicTrusteeAddr": "evil.example"}},
        "kbsconfigs": {"spec": {"kbsSecretResources": ["mine"]}},
        "trusteeconfigs": {"spec": {"profileType": "Restricted"}},
        "nodefeatures": {"spec": {"features": {}}, "metadata": {"labels": {"nfd.node.kubernetes.io/node-name": "w"}}},
        "nodefeaturediscoveries": {"spec": {"extraLabelNs": ["team.example"]}},
        "machinesets": {"spec": {}},
        "controlplanemachinesets": {"spec": {}},
        "baremetalhosts": {"spec": {}},
        "fastnessconfigs": {"spec": {"pool": "worker"}},
    }


async def test_an_object_elsewhere_changes_nothing_but_its_own_condition(house: House) -> None:
    """One of every kind that counts somewhere, in a namespace where it does not; then the whole store is compared."""
    await house.node("w")
    await house.settle()
    before = await everything(house)
    own = {
        (await house.owner.create(entry, _name(entry), **_bodies()[entry.plural]))["metadata"]["uid"]: entry
        for entry in KINDS
    }
    await house.settle()
    after = await everything(house)
    assert {uid: version for uid, version in after.items() if uid not in own} == before
    fields = {kind.resource: kind.schema["properties"]["status"]["properties"] for kind in TOLD}
    for resource in KINDS:
        status = (await house.world.cluster.get(resource, _name(resource), TEAM)).get("status") or {}
        written = {"conditions", "isReady"} & set(fields.get(resource, ()))
        assert set(status) == written, resource
        assert status.get("isReady") is (False if "isReady" in written else None), resource
        conditions = [(entry["type"], entry["status"], entry["reason"]) for entry in status.get("conditions", ())]
        assert conditions == ([(COUNTS, "False", REASON)] if "conditions" in written else []), resource


async def everything(house: House) -> dict[str, str]:
    """Every object of the store and its version, but leases and events, which tell the time and tell people."""
    server = house.site.world.cluster
    versions: dict[str, str] = {}
    for resource in stored_kinds():
        for obj in (await server.list(resource)).items:
            versions[obj["metadata"]["uid"]] = obj["metadata"]["resourceVersion"]
    return versions


def stored_kinds() -> list[Resource]:
    """Every kind that is stored, once."""
    kinds = [kind for kind in all_kinds() if not kind.computed and "list" in kind.verbs and kind.served]
    once = {kind.storage: kind.resource for kind in kinds if kind.storage_version}
    return [resource for resource in once.values() if resource.plural not in ("events", "leases")]


async def test_every_informer_names_its_namespaces(house: House) -> None:
    """All caches of all loops and doors: of what speaks for the cluster, only the places that count, or those that do not."""
    scopes = [(resource, scope) for resource, listed in house.world.informers.watched() for scope in listed]
    assert {resource.plural for resource, _ in scopes} >= {kind.plural for kind in KINDS} - {"baremetalhosts"}
    for resource, scope in scopes:
        if EMBEDDED.of(resource):
            away = scope.fields.startswith("metadata.namespace!=")
            assert away or scope.namespace in EMBEDDED.of(resource), resource
