"""Values of an image that a pool has left stay as long as somebody boots it, would go back to it, or starts machines with it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.kubernetes.core import NODE
from fastness.kinds.machineconfiguration import names
from fastness.kinds.machineconfiguration.os_config import MACHINE_OS_CONFIG
from fastness.kinds.openshift.machines import MACHINE_SET
from fastness.kube.port import PatchType, WriteOptions
from tests.component.attestation import test_image_rollout
from tests.component.attestation.test_image_rollout import WATCHED, A, B, Fleet, fleet
from tests.embedded.fixtures import Embedded

CONFIGS, SETS_OF_MACHINES = MACHINE_OS_CONFIG.resource, MACHINE_SET.resource
STATUS = WriteOptions(subresource="status")


@asynccontextmanager
async def left(embedded: Embedded, monkeypatch: pytest.MonkeyPatch, **notes: str) -> AsyncIterator[Fleet]:
    """A pool whose nodes went from A to B."""
    more: tuple[Resource, ...] = (CONFIGS, SETS_OF_MACHINES)
    monkeypatch.setattr(test_image_rollout, "WATCHED", (*WATCHED, *more))
    async with fleet(embedded.cluster) as here:
        await here.approve(A, "a", **notes)
        await here.approve(B, "b")
        await here.settle()
        await here.aim("cb")
        await here.settle()
        await here.finish()
        yield here


async def after_a_soak(here: Fleet) -> tuple[str, bool]:
    """The values of A, when somebody looked, and once more when its soak would be over."""
    await here.settle()
    here.clock.ahead += timedelta(minutes=61)
    await here.settle()
    return await here.values(A)


@pytest.mark.parametrize("note", [names.CURRENT_IMAGE, names.BOOTED_IMAGE, names.BASE_IMAGE])
async def test_it_stays_while_a_node_boots_it_or_would_go_back_to_it(
    embedded_server: Embedded, monkeypatch: pytest.MonkeyPatch, note: str
) -> None:
    async with left(embedded_server, monkeypatch) as here:
        await here.cluster.patch(NODE.resource, "n0", {"metadata": {"annotations": {note: A}}}, PatchType.MERGE)
        assert await after_a_soak(here) == ("Retiring", True)
        await here.cluster.patch(NODE.resource, "n0", {"metadata": {"annotations": {note: B}}}, PatchType.MERGE)
        assert (await after_a_soak(here))[1] is False


async def test_it_stays_while_a_pool_goes_to_it_as_what_was_built(
    embedded_server: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    described = {
        "apiVersion": names.API_VERSION, "kind": "MachineOSConfig", "metadata": {"name": "other"},
        "spec": {
            "machineConfigPool": {"name": "other"}, "imageBuilder": {"imageBuilderType": "Job"},
            "renderedImagePushSecret": {"name": "push"}, "renderedImagePushSpec": "registry.example/os:latest",
        },
    }  # fmt: skip
    async with left(embedded_server, monkeypatch) as here:
        await here.cluster.create(CONFIGS, described)
        status = {"status": {"currentImagePullSpec": A}}
        await here.cluster.patch(CONFIGS, "other", status, PatchType.MERGE, "", STATUS)
        assert (await after_a_soak(here))[1] is True
        await here.cluster.delete(CONFIGS, "other")
        assert (await after_a_soak(here))[1] is False


def machine_set(note: str | None) -> JsonObject:
    notes = {} if note is None else {names.BOOT_IMAGE: note}
    return {
        "apiVersion": MACHINE_SET.api_version, "kind": "MachineSet",
        "metadata": {"name": "more", "namespace": "openshift-machine-api", "annotations": notes},
        "spec": {"replicas": 0, "selector": {}, "template": {"spec": {"providerSpec": {"value": {}}}}},
    }  # fmt: skip


@pytest.mark.parametrize("note", ["4.20 sha256:x", None])
async def test_it_stays_while_a_machine_set_starts_with_its_release_or_nobody_can_tell(
    embedded_server: Embedded, monkeypatch: pytest.MonkeyPatch, note: str | None
) -> None:
    async with left(embedded_server, monkeypatch, **{names.BOOT_IMAGE: "4.20"}) as here:
        await here.cluster.create(SETS_OF_MACHINES, machine_set(note))
        assert await after_a_soak(here) == ("Current", True)
        newer = {"metadata": {"annotations": {names.BOOT_IMAGE: "4.21 sha256:y"}}}
        await here.cluster.patch(SETS_OF_MACHINES, "more", newer, PatchType.MERGE, "openshift-machine-api")
        assert (await after_a_soak(here))[1] is False


async def test_a_machine_set_of_another_release_keeps_nothing(
    embedded_server: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with left(embedded_server, monkeypatch, **{names.BOOT_IMAGE: "4.2"}) as here:
        await here.cluster.create(SETS_OF_MACHINES, machine_set("4.20 sha256:x"))
        assert (await after_a_soak(here))[1] is False
