"""Whom nodes believe, with all loops: what is read, what is told of a bad source, and which document nodes hear of."""

from __future__ import annotations

import base64
from contextlib import suppress
from typing import Any

import pytest

from fastness.formats import json
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.machineconfiguration.os_config import MACHINE_OS_CONFIG
from fastness.kinds.objects import annotations_of, condition
from fastness.kinds.registry import find
from fastness.kube.errors import AlreadyExists, NotFound
from fastness.kube.port import PatchType, WriteOptions
from fastness.machineconfig.trust.image_pull import with_credential
from fastness.machineconfig.trust.node_trust import API_AUTHORITY, node_trust
from tests.component.machineconfig.worker_pool import CONFIG, NODE, POOL, WorkerPool, config, until
from tests.component.release.delivery.test_image_pull import os_config, pull_secret
from tests.enrolling import settle_cluster
from tests.lowering import lowered
from tests.unit.machineconfig.build import CERTIFICATE, OTHER_CERTIFICATE

CONTROLLERS = find("machineconfiguration.openshift.io", "v1", "controllerconfigs").resource
MAPS = find("", "v1", "configmaps").resource
SECRETS = find("", "v1", "secrets").resource
ACCOUNTS = find("", "v1", "serviceaccounts").resource
NAMESPACES = find("", "v1", "namespaces").resource
IMAGES = find("config.openshift.io", "v1", "images").resource
EVENTS = find("", "v1", "events").resource
NAME = "machine-config-controller"
MANAGED = "openshift-config-managed"
BROKEN = CERTIFICATE.replace("MII", "???")


async def write(workers: WorkerPool, namespace: str, name: str, data: JsonObject) -> None:
    """Write a ConfigMap as an administrator does, in a namespace that is there from then on."""
    with suppress(AlreadyExists):
        await workers.cluster.create(
            NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        )
    made = {
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}, "data": data,
    }  # fmt: skip
    options = WriteOptions(manager="administrator", force=True)
    await workers.cluster.patch(MAPS, name, made, PatchType.APPLY, namespace, options)


async def controller(workers: WorkerPool) -> JsonObject:
    try:
        return await workers.cluster.get(CONTROLLERS, NAME)
    except NotFound:
        return {"metadata": {}, "spec": {}}


async def bundles(workers: WorkerPool, field: str, expected: dict[str, str]) -> None:
    async def so() -> bool:
        entries = (await controller(workers))["spec"].get(field) or []
        return {entry["file"]: base64.b64decode(entry["data"]).decode() for entry in entries} == expected

    await until(so, f"{field} is not {sorted(expected)}")


async def failing(workers: WorkerPool, says: str) -> None:
    async def so() -> bool:
        stated = condition(await controller(workers), "NodeTrustFailing") or {}
        return stated.get("status") == ("True" if says else "False") and says in str(stated.get("message"))

    await until(so, f"the ControllerConfig does not say {says!r}")


async def told(workers: WorkerPool, node: str, registries: set[str]) -> str:
    """Wait until a node was told the document with these registries; its name."""

    async def so() -> str:
        copy = await workers.cluster.get(MAPS, API_AUTHORITY[1], API_AUTHORITY[0])
        trust, problems = node_trust(await controller(workers), copy)
        notes = annotations_of(await workers.cluster.get(NODE, node))
        good = not problems and set(trust.registries) == registries and notes.get(names.DESIRED_TRUST) == trust.name
        return trust.name if good else ""

    return str(await until(so, f"{node} was not told of {registries}"))


async def ready(workers: WorkerPool) -> None:
    await workers.add_node("w0")
    await workers.settled()


async def test_a_config_map_of_registries_reaches_every_node_without_a_new_config_even_in_a_paused_pool(
    workers: WorkerPool,
) -> None:
    await ready(workers)
    before, goal = await told(workers, "w0", set()), await workers.goal()
    await workers.cluster.patch(POOL, "worker", {"spec": {"paused": True}}, PatchType.MERGE)
    encoded = base64.b64encode(CERTIFICATE.encode()).decode()
    await write(workers, MANAGED, "image-registry-ca", {"r.example..5000": encoded})
    await bundles(workers, "imageRegistryBundleData", {"r.example..5000": CERTIFICATE})
    assert await told(workers, "w0", {"r.example:5000"}) != before
    assert await workers.goal() == goal, "no rollout"
    listed = (await controller(workers))["status"]["controllerCertificates"]
    assert {"r.example..5000", "KubeAPIServerServingCAData"} <= {entry["bundleFile"] for entry in listed}
    (authority,) = (entry for entry in listed if entry["bundleFile"] == "KubeAPIServerServingCAData")
    expiry = {"bundle": authority["bundleFile"], "subject": authority["subject"], "expiry": authority["notAfter"]}
    assert (await workers.pool())["status"]["certExpirys"] == [expiry], (
        "certificates of registries are no concern of pools"
    )
    merged = await workers.cluster.get(MAPS, "merged-trusted-image-registry-ca", MANAGED)
    assert merged["data"]["ca-bundle.crt"] == CERTIFICATE
    await workers.cluster.delete(MAPS, "image-registry-ca", MANAGED)
    assert await told(workers, "w0", set()) == before


async def test_a_bad_certificate_is_told_by_its_place_nodes_keep_what_they_have_and_pools_are_rendered(
    workers: WorkerPool,
) -> None:
    await ready(workers)
    await write(workers, MANAGED, "image-registry-ca", {"r.example": CERTIFICATE})
    good = await told(workers, "w0", {"r.example"})
    await write(workers, MANAGED, "image-registry-ca", {"r.example": CERTIFICATE + BROKEN})
    await failing(workers, "image-registry-ca, key 'r.example' has a certificate that cannot be read: number 2 of 2")
    await bundles(workers, "imageRegistryBundleData", {"r.example": CERTIFICATE})
    assert annotations_of(await workers.cluster.get(NODE, "w0"))[names.DESIRED_TRUST] == good
    before = await workers.goal()
    await workers.cluster.create(CONFIG, config("50-motd"))
    settled = await workers.settled(goal_is_not=before)
    assert (condition(settled, "RenderDegraded") or {})["status"] == "False", "no config has that bundle in it"
    assert (condition(await controller(workers), "TemplateControllerFailing") or {})["status"] == "False"
    await write(workers, MANAGED, "image-registry-ca", {"r.example": OTHER_CERTIFICATE})
    await failing(workers, "")
    assert await told(workers, "w0", {"r.example"}) != good


async def test_a_bundle_that_configs_have_in_them_still_keeps_pools_from_rendering(workers: WorkerPool) -> None:
    await ready(workers)
    await write(workers, "openshift-config", "user-ca-bundle", {"ca-bundle.crt": BROKEN})

    async def stopped() -> bool:
        stated = condition(await controller(workers), "TemplateControllerFailing") or {}
        return stated.get("status") == "True" and "user-ca-bundle" in stated["message"]

    await until(stopped, "the ControllerConfig does not fail")
    await failing(workers, "")


async def test_a_path_in_place_of_a_registry_is_refused_wherever_it_stands(workers: WorkerPool) -> None:
    await ready(workers)
    good = await told(workers, "w0", set())
    entry = {"file": "../../etc/passwd", "data": base64.b64encode(CERTIFICATE.encode()).decode()}
    await workers.cluster.patch(CONTROLLERS, NAME, {"spec": {"imageRegistryBundleUserData": [entry]}}, PatchType.MERGE)
    await failing(workers, "has a slash, and would lead out of the directory of registries")
    assert annotations_of(await workers.cluster.get(NODE, "w0"))[names.DESIRED_TRUST] == good


async def test_a_user_s_bundle_that_is_missing_only_warns_and_counts_as_soon_as_it_is_there(
    workers: WorkerPool,
) -> None:
    await ready(workers)
    image: JsonObject = {"apiVersion": "config.openshift.io/v1", "kind": "Image", "metadata": {"name": "cluster"}}
    await workers.cluster.create(IMAGES, {**image, "spec": {"additionalTrustedCA": {"name": "mine"}}})

    async def warned() -> bool:
        events = (await workers.cluster.list(EVENTS)).items
        return any(
            event["reason"] == "TrustSourceMissing" and "openshift-config/mine" in event["message"] for event in events
        )

    await until(warned, "nobody was told")
    await failing(workers, "")
    await write(workers, "openshift-config", "mine", {"mine.example": CERTIFICATE})
    await told(workers, "w0", {"mine.example"})


async def test_credentials_of_the_internal_registry_come_from_its_service_account(workers: WorkerPool) -> None:
    await ready(workers)
    namespace = "openshift-machine-config-operator"
    await write(workers, namespace, "unrelated", {})
    config = base64.b64encode(json.encode({"internal:5000": {"auth": "eA=="}})).decode()
    secret: JsonObject = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "puller-1", "namespace": namespace},
    }
    await workers.cluster.create(SECRETS, {**secret, "type": "kubernetes.io/dockercfg", "data": {".dockercfg": config}})
    account: JsonObject = {
        "apiVersion": "v1", "kind": "ServiceAccount", "imagePullSecrets": [{"name": "puller-1"}],
        "metadata": {"name": "machine-os-puller", "namespace": namespace},
    }  # fmt: skip
    await workers.cluster.create(ACCOUNTS, account)

    async def there() -> Any:
        value = (await controller(workers))["spec"].get("internalRegistryPullSecret")
        return value and json.decode(base64.b64decode(value)) == {"auths": {"internal:5000": {"auth": "eA=="}}}

    await until(there, "the credentials are not there")


@pytest.mark.parametrize("held", [False, True])
async def test_the_authority_of_the_api_server_is_copied_and_a_person_can_hold_it_back(
    workers: WorkerPool, held: bool
) -> None:
    await ready(workers)
    before = await told(workers, "w0", set())
    if held:
        notes = {"metadata": {"annotations": {names.SERVICE_CA_ROTATE: "false"}}}
        await workers.cluster.patch(CONTROLLERS, NAME, notes, PatchType.MERGE)
        before = await told(workers, "w0", set())
    await write(workers, MANAGED, "kube-apiserver-server-ca", {"ca-bundle.crt": OTHER_CERTIFICATE})

    async def copied() -> bool:
        copy = await workers.cluster.get(MAPS, API_AUTHORITY[1], API_AUTHORITY[0])
        return bool(copy["data"]["ca-bundle.crt"] == OTHER_CERTIFICATE)

    await until(copied, "it is not copied")
    assert (await told(workers, "w0", set()) == before) is held


async def test_a_pool_that_comes_later_says_when_its_certificates_expire(workers: WorkerPool) -> None:
    await ready(workers)

    async def listed(pool: str) -> list[JsonObject]:
        status = (await workers.cluster.get(POOL, pool)).get("status") or {}
        return list(status.get("certExpirys") or ())

    first = await until(lambda: listed("worker"), "the first pool says nothing")
    selector = {"matchExpressions": [{"key": names.ROLE_LABEL, "operator": "In", "values": ["worker", "infra"]}]}
    node_selector = {"matchLabels": {f"{names.NODE_ROLE_PREFIX}infra": ""}}
    spec = {"machineConfigSelector": selector, "nodeSelector": node_selector}
    meta = {"name": "infra"}
    await workers.cluster.create(
        POOL,
        {
            "apiVersion": "machineconfiguration.openshift.io/v1",
            "kind": "MachineConfigPool",
            "metadata": meta,
            "spec": spec,
        },
    )
    assert await until(lambda: listed("infra"), "the pool says nothing") == first


async def test_nodes_of_a_pool_with_a_credential_hear_of_another_document_and_only_while_the_pool_enforces(
    workers: WorkerPool,
) -> None:
    await ready(workers)
    before = await told(workers, "w0", set())
    await settle_cluster(workers.cluster, {"mode": "Enforce", "simulated": True})
    place = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": names.OPERATOR_NAMESPACE}}
    with suppress(AlreadyExists):
        await workers.cluster.create(NAMESPACES, place)
    for secret in (pull_secret("push", "writes", "builder"), pull_secret("nodes", "reads")):
        await workers.cluster.create(SECRETS, secret)
    await workers.cluster.create(MACHINE_OS_CONFIG.resource, os_config("worker", **{names.IMAGE_PULL: "nodes"}))
    trust, _ = node_trust(
        await controller(workers), await workers.cluster.get(MAPS, API_AUTHORITY[1], API_AUTHORITY[0])
    )
    login = base64.b64encode(b"nodes:reads").decode()
    own = with_credential(trust, f'{{"auths":{{"r.example":{{"auth":"{login}"}}}}}}').name
    assert own != before

    async def hears(name: str) -> None:
        async def so() -> bool:
            return annotations_of(await workers.cluster.get(NODE, "w0")).get(names.DESIRED_TRUST) == name

        await until(so, f"w0 was not told of {name}")

    await hears(own)
    await lowered(workers.cluster, {"mode": "Audit"})
    await hears(before)
