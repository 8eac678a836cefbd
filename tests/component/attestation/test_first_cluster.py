"""The ConfidentialCluster that an installation asked for: made once, under its guard's eyes, never against an administrator."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from fastness.attestation.loops.first_cluster import KEY, FirstClusters
from fastness.attestation.status.first_cluster import CONFIG_MAP as ASKED
from fastness.attestation.status.first_cluster import NOTE, BadFirstCluster, FirstCluster
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER, CONFIRM_LOWER, NAME
from fastness.kinds.kubernetes.core import CONFIG_MAP
from fastness.kinds.objects import annotations_of
from fastness.kube.errors import ApiError, InternalError, NotFound
from fastness.kube.events import EVENTS
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster, PatchType
from fastness.runtime.clock import SystemClock
from tests.embedded.fixtures import Embedded
from tests.enrolling import ENTROPY

ENFORCE = {"mode": "Enforce", "simulated": "true"}
Look = Callable[[], Any]


def request(**data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": ASKED, "namespace": NAMESPACE}, "data": data}


@asynccontextmanager
async def looking(cluster: Cluster, watched: Callable[[], bool] = lambda: True) -> AsyncIterator[Look]:
    """Controllers of a process that just started, which look when they are told to."""
    async with Informers(cluster, clock=SystemClock(), entropy=ENTROPY) as informers:
        loop = FirstClusters(cluster, informers, SystemClock(), watched)
        await informers.synced()
        yield lambda: loop.reconcile(KEY)


async def spec(cluster: Cluster) -> Any:
    try:
        return (await cluster.get(CONFIDENTIAL_CLUSTER.resource, NAME))["spec"]
    except NotFound:
        return None


async def note(cluster: Cluster) -> str:
    return annotations_of(await cluster.get(CONFIG_MAP.resource, ASKED, NAMESPACE)).get(NOTE, "")


async def delete_cluster(cluster: Cluster) -> None:
    """As an administrator does it, who was told the word to say."""
    with pytest.raises(ApiError) as refused:
        await cluster.delete(CONFIDENTIAL_CLUSTER.resource, NAME)
    word = refused.value.message.partition(f"{CONFIRM_LOWER}=")[2].split()[0]
    patch = {"metadata": {"annotations": {CONFIRM_LOWER: word}}}
    await cluster.patch(CONFIDENTIAL_CLUSTER.resource, NAME, patch, PatchType.MERGE)
    await cluster.delete(CONFIDENTIAL_CLUSTER.resource, NAME)


async def test_it_is_made_once_and_one_that_was_deleted_does_not_come_back(embedded_server: Embedded) -> None:
    cluster = embedded_server.cluster
    await cluster.create(CONFIG_MAP.resource, request(**ENFORCE))
    async with looking(cluster) as look:
        await look()
        made = await spec(cluster)
        assert (made["mode"], made["simulated"], await note(cluster)) == ("Enforce", True, "made")
        await look()
        assert (await spec(cluster), await note(cluster)) == (made, "made")
    await delete_cluster(cluster)
    async with looking(cluster) as look:
        await look()
    assert await spec(cluster) is None


async def test_one_that_an_administrator_made_is_left_as_it_is_whatever_is_asked_for(embedded_server: Embedded) -> None:
    cluster = embedded_server.cluster
    body = FirstCluster("Enforce", simulated=True, await_webhook=True).body()
    await cluster.create(CONFIDENTIAL_CLUSTER.resource, body)
    before = await spec(cluster)
    await cluster.create(CONFIG_MAP.resource, request(mode="Disabled", simulated="true"))
    async with looking(cluster) as look:
        await look()
    assert (await spec(cluster), await note(cluster)) == (before, "there already")
    await delete_cluster(cluster)
    async with looking(cluster) as look:
        await look()
    assert await spec(cluster) is None


async def test_it_waits_for_the_webhook_unless_there_is_none_to_wait_for(embedded_server: Embedded) -> None:
    cluster, guards = embedded_server.cluster, [False]
    await cluster.create(CONFIG_MAP.resource, request(**ENFORCE))
    async with looking(cluster, lambda: guards[0]) as look:
        assert (await look()).again_after == 1.0
        assert (await spec(cluster), await note(cluster)) == (None, "")
        guards[0] = True
        await look()
        assert await note(cluster) == "made"


async def test_where_no_webhook_is_installed_nobody_waits_for_it(embedded_server: Embedded) -> None:
    cluster = embedded_server.cluster
    await cluster.create(CONFIG_MAP.resource, request(mode="Audit", simulated="true", awaitWebhook="false"))
    async with looking(cluster, lambda: False) as look:
        await look()
    assert (await spec(cluster))["mode"] == "Audit"


async def test_a_webhook_that_does_not_answer_yet_is_a_retry(
    embedded_server: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = embedded_server.cluster
    await cluster.create(CONFIG_MAP.resource, request(**ENFORCE))

    async def unanswered(*_: Any, **__: Any) -> None:
        raise InternalError('failed calling webhook "protection.fastness.dev"')

    async with looking(cluster) as look:
        with monkeypatch.context() as patched:
            patched.setattr(type(cluster), "create", unanswered)
            with pytest.raises(InternalError):
                await look()
        assert await note(cluster) == ""
        await look()
        assert await note(cluster) == "made"


async def test_what_cannot_be_made_says_why_on_the_config_map_and_in_an_event(embedded_server: Embedded) -> None:
    cluster = embedded_server.cluster
    await cluster.create(CONFIG_MAP.resource, request(mode="Enforced"))
    async with looking(cluster) as look:
        await look()
    reason = "data.mode: 'Enforced' is no mode. Say one of Disabled, Audit, Enforce."
    assert (await spec(cluster), await note(cluster)) == (None, f"refused: {reason}")
    messages = [
        event["message"] for event in (await cluster.list(EVENTS)).items if event["reason"] == "FirstClusterRefused"
    ]
    assert messages == [f"no ConfidentialCluster was made: {reason}"]
    # Mended by the same hands, it is made.
    await cluster.patch(CONFIG_MAP.resource, ASKED, {"data": ENFORCE}, PatchType.MERGE, NAMESPACE)
    async with looking(cluster) as look:
        await look()
    assert await note(cluster) == "made"


async def test_what_admission_refuses_is_told_and_tried_again_later(embedded_server: Embedded) -> None:
    cluster = embedded_server.cluster
    await cluster.create(CONFIG_MAP.resource, request(mode="Enforce"))
    async with looking(cluster) as look:
        assert (await look()).again_after == 30.0
    assert await spec(cluster) is None
    assert (await note(cluster)).startswith("refused: ")
    assert (await note(cluster)).endswith("this store belongs to a simulated cluster for good")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({}, "data.mode: '' is no mode"),
        ({"mode": "Audit", "simulated": "yes"}, "data.simulated: 'yes' is not a truth"),
        ({"mode": "Audit", "simulate": "true"}, "data.simulate is not known"),
    ],
)
def test_a_wrong_field_is_refused_by_its_name(data: dict[str, str], message: str) -> None:
    with pytest.raises(BadFirstCluster, match=message):
        FirstCluster.of(request(**data))
