"""A worker pool whose user-data is looked at: the doors as a test moves them, stubs of installers, machine sets, boot images."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any

from fastness.enrolment.trusted_cluster import Doors
from fastness.formats import data_url as dataurl
from fastness.formats import json
from fastness.keys.doors import NAME, NAMESPACE, doors_authority
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.registry import find
from fastness.kube.errors import AlreadyExists, NotFound
from fastness.kube.port import PatchType
from fastness.runtime.clock import SystemClock, SystemEntropy
from tests.component.machineconfig.worker_pool import POOL, WorkerPool, open_worker_pool, until
from tests.embedded.fixtures import Embedded
from tests.unit.machineconfig.boot_images.sets import stream_document

SECRET = find("", "v1", "secrets").resource
SPACE = find("", "v1", "namespaces").resource
EVENT = find("", "v1", "events").resource
TICKET = find("fastness.dev", "v1alpha1", "jointickets").resource
CONFIDENTIAL = find("fastness.dev", "v1alpha1", "confidentialclusters").resource
MACHINE_SET = find("machine.openshift.io", "v1beta1", "machinesets").resource
CONTROL_PLANE_SET = find("machine.openshift.io", "v1", "controlplanemachinesets").resource
CONFIG_MAP = find("", "v1", "configmaps").resource
HERE = names.USER_DATA_NAMESPACE
STREAM_SPACE = "openshift-machine-config-operator"
OLD_CA, NEW_CA = "-----BEGIN CERTIFICATE----- old", "-----BEGIN CERTIFICATE----- new"


class Story:
    """The workers, and the doors as the test moves them."""

    def __init__(self, workers: WorkerPool) -> None:
        self.workers = workers
        self.cluster = workers.cluster
        self.doors = Doors("https://gate.example:22623", "https://config.example:22624", OLD_CA)

    async def secret(self, name: str) -> JsonObject | None:
        try:
            return await self.cluster.get(SECRET, name, HERE)
        except NotFound:
            return None

    async def managed(self, pool: str = "worker") -> JsonObject:
        async def secret_there() -> JsonObject | None:
            return await self.secret(f"{pool}-user-data-managed")

        return await until(secret_there, f"{pool} has no user-data")  # type: ignore[no-any-return]

    async def event(self, reason: str, count: int = 1) -> JsonObject:
        async def event_there() -> JsonObject | None:
            events = [event for event in (await self.cluster.list(EVENT)).items if event["reason"] == reason]
            return events[0] if sum(int(event.get("count") or 1) for event in events) >= count else None

        return await until(event_there, f"nobody says {reason}")  # type: ignore[no-any-return]

    async def events(self, reason: str) -> int:
        return sum(event["reason"] == reason for event in (await self.cluster.list(EVENT)).items)

    async def rotate(self, ca: str) -> None:
        """The doors show another authority; its Secret changes, as every rotation does."""
        self.doors = replace(self.doors, ca=ca)
        await doors_authority(self.cluster, SystemEntropy(), SystemClock().now())
        await self.cluster.patch(
            SECRET, NAME, {"metadata": {"annotations": {"rotated": ca}}}, PatchType.MERGE, NAMESPACE
        )

    async def edit(self, name: str, patch: JsonObject) -> None:
        await self.cluster.patch(SECRET, name, patch, PatchType.MERGE, HERE)


@asynccontextmanager
async def open_story(embedded_server: Embedded) -> AsyncIterator[Story]:
    """The pools of an API with all loops, whose doors are open."""
    box: list[Story] = []
    async with open_worker_pool(embedded_server, lambda: box[0].doors if box else None) as workers:
        with suppress(AlreadyExists):
            await workers.cluster.create(SPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HERE}})
        box.append(Story(workers))
        # Pools that came before the doors are looked at again, as in a cluster whose doors open later.
        for pool in ("master", "worker"):
            await until(lambda pool=pool: exists(workers, pool), pool)  # type: ignore[misc]
            await workers.cluster.patch(POOL, pool, {"metadata": {"annotations": {"doors": "open"}}}, PatchType.MERGE)
        yield box[0]


async def exists(workers: WorkerPool, pool: str) -> bool:
    return any(entry["metadata"]["name"] == pool for entry in (await workers.cluster.list(POOL)).items)


def pointer(secret: JsonObject | None) -> Any:
    assert secret is not None
    return json.decode(base64.b64decode(secret["data"]["userData"]))


def ca_of(secret: JsonObject | None) -> str:
    [entry] = pointer(secret)["ignition"]["security"]["tls"]["certificateAuthorities"]
    return dataurl.decode(entry["source"]).decode()


def ticket_of(secret: JsonObject) -> str:
    return str(pointer(secret)["ignition"]["config"]["merge"][0]["httpHeaders"][0]["value"])


def stub(
    name: str = "worker-user-data", version: str = "2.2.0", ca: str = "of the installer", **more: Any
) -> JsonObject:
    """What an old installer left behind."""
    tls = {"certificateAuthorities": [{"source": dataurl.encode(ca.encode()), "verification": {}}]}
    append = [{"source": "https://api-int.example:22623/config/worker", "verification": {}}]
    body = {"ignition": {"version": version, "config": {"append": append}, "security": {"tls": tls}}, **more}
    data = {"userData": base64.b64encode(json.encode(body)).decode(), "disableTemplating": "dHJ1ZQo="}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": HERE}, "data": data}


def machine_set(name: str, user_data: str, version: str = "") -> JsonObject:
    value = {"userDataSecret": {"name": user_data}, "ami": {"id": "ami-1"}}
    notes = {names.POINTER_VERSION: version} if version else {}
    return {
        "apiVersion": "machine.openshift.io/v1beta1", "kind": "MachineSet",
        "metadata": {"name": name, "namespace": HERE, "annotations": notes},
        "spec": {"replicas": 1, "selector": {}, "template": {"spec": {"providerSpec": {"value": value}}}},
    }  # fmt: skip


async def publish(story: Story, release: str) -> None:
    """What an upgrade brings: the boot images of a release."""
    await publish_text(story, json.encode(stream_document(release)).decode())


async def publish_text(story: Story, text: str) -> None:
    with suppress(AlreadyExists):
        await story.cluster.create(SPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": STREAM_SPACE}})
    meta = {"name": "coreos-bootimages", "namespace": STREAM_SPACE}
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"stream": text}}
    try:
        await story.cluster.create(CONFIG_MAP, made)
    except AlreadyExists:
        await story.cluster.patch(CONFIG_MAP, meta["name"], {"data": made["data"]}, PatchType.MERGE, STREAM_SPACE)
