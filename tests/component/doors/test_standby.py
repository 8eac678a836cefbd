"""Replicas of the controllers: whoever waits for its turn is ready, before it has led and after it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from fastness.app.control_plane import control_plane
from fastness.app.parts import Part
from fastness.app.replica import ReplicaOptions, settings_of
from fastness.app.settings import ClusterKeys
from fastness.http.health import Health
from fastness.kinds.kubernetes.core import LEASE
from fastness.kube.controllers import LeaderSettings
from fastness.kube.port import PatchType
from fastness.observe import metrics
from fastness.runtime.clock import SystemClock, SystemEntropy
from tests.embedded.fixtures import Embedded
from tests.patience import PATIENCE

TERM = LeaderSettings.lasting(3)
CONTROLLERS = frozenset({Part.CONTROLLERS})


async def until(true: Callable[[], bool], what: str) -> None:
    end = asyncio.get_running_loop().time() + PATIENCE
    while not true():
        assert asyncio.get_running_loop().time() < end, f"{what} did not happen"
        await asyncio.sleep(0.02)


def leads() -> bool:
    return f'fastness_leader{{lease="{TERM.name}"}} 1' in metrics.exposition().decode()


def problem(health: Health) -> str | None:
    """What keeps the controllers of this replica from being ready."""
    return health.problems(ready=True).get("controllers")


async def test_a_replica_that_lost_its_lease_is_ready_while_another_leads_and_works_when_it_leads_again(
    embedded_server: Embedded,
) -> None:
    cluster, health = embedded_server.cluster, Health()
    settings = settings_of(ReplicaOptions(CONTROLLERS, "first"), TERM, lambda _: None)

    async def give_to(holder: str) -> None:
        lease = {"spec": {"holderIdentity": holder, "leaseDurationSeconds": 600}}
        await cluster.patch(LEASE.resource, TERM.name, lease, PatchType.MERGE, TERM.namespace)

    async with control_plane(
        CONTROLLERS, cluster, ClusterKeys(), settings, SystemClock(), SystemEntropy(), health
    ) as running:
        runner = await running.controllers()
        await until(lambda: leads() and runner.waiting_for() is None, "leading")
        assert problem(health) is None
        await give_to("other")
        await until(lambda: not leads(), "losing the lease")
        assert runner.waiting_for() is not None, "its loops ended with its term"
        await until(lambda: problem(health) is None, "being ready without the lease")
        lease = await cluster.get(LEASE.resource, TERM.name, TERM.namespace)
        assert lease["spec"]["holderIdentity"] == "other"
        await give_to("")
        await until(leads, "leading again")
        await until(lambda: problem(health) is None, "working again")
