"""Beside another feature discovery or another operator of the runtime: ours do not start, say so, and take over when told to."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime

import pytest

from fastness.app.controllers import product_loops
from fastness.app.other_operators import held_back
from fastness.kinds.registry import find
from fastness.kube.errors import AlreadyExists
from fastness.kube.informers import Informers
from fastness.kube.port import PatchType
from fastness.runtime.clock import SystemClock
from fastness.workloads.loops.features import NodeFeatures
from fastness.workloads.loops.kata.loop import KataConfigs
from fastness.workloads.loops.other_operators import DEPLOYMENTS_OF_OTHERS, FEATURES, KATA
from tests.embedded.fixtures import Embedded
from tests.virtual import SeededEntropy

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
SPACE = find("", "v1", "namespaces").resource
DEPLOYMENT = find("apps", "v1", "deployments").resource


async def deploy(embedded: Embedded, namespace: str, name: str, replicas: int) -> None:
    with suppress(AlreadyExists):
        await embedded.cluster.create(SPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    body = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
    meta = {"name": name, "namespace": namespace}
    await embedded.cluster.create(
        DEPLOYMENT, {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": body}
    )


async def test_signs_of_others_hold_our_loops_back_until_they_retire_or_are_adopted(embedded_server: Embedded) -> None:
    cluster = embedded_server.cluster
    assert await held_back(cluster, (), NOW) == {}
    for family, places in DEPLOYMENTS_OF_OTHERS.items():
        for namespace, name in places:
            await deploy(embedded_server, namespace, name, 1)
            held = await held_back(cluster, (), NOW)
            assert held == {family: f"Deployment {namespace}/{name} wants 1 replica"}
            assert await held_back(cluster, (family,), NOW) == {}
            await cluster.patch(DEPLOYMENT, name, {"spec": {"replicas": 0}}, PatchType.MERGE, namespace)
            assert await held_back(cluster, (), NOW) == {}


@pytest.mark.parametrize(("family", "loop"), [(FEATURES, NodeFeatures.name), (KATA, KataConfigs.name)])
async def test_a_family_that_is_held_back_does_not_start(embedded_server: Embedded, family: str, loop: str) -> None:
    clock, entropy = SystemClock(), SeededEntropy(1)
    async with Informers(embedded_server.cluster, clock=clock, entropy=entropy) as informers:
        every = {controller.name for controller in product_loops(embedded_server.cluster, informers, clock, entropy)}
        less = {
            controller.name
            for controller in product_loops(embedded_server.cluster, informers, clock, entropy, without=(family,))
        }
    assert every - less == {loop}
