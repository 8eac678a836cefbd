"""What a runner says about reconciles that fail: a defect at once, writes that met only when they go on meeting."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

import pytest

from fastness.kube.controllers import Runner
from fastness.kube.controllers.controller import Done, Source
from fastness.kube.errors import Conflict
from fastness.kube.informers import Informers
from fastness.runtime.clock import SystemClock, SystemEntropy
from tests.embedded.fixtures import Embedded

KEY = "one"


class Failing:
    """Fails so often, then comes to rest."""

    name = "failing"
    writes: Sequence[object] = ()
    sources: Sequence[Source] = ()
    always = (KEY,)

    def __init__(self, error: Exception, times: int) -> None:
        self.error, self.left, self.settled = error, times, asyncio.Event()

    async def reconcile(self, key: str) -> Done:
        if self.left:
            self.left -= 1
            raise self.error
        self.settled.set()
        return Done()


async def said(embedded: Embedded, error: Exception, caplog: pytest.LogCaptureFixture) -> list[str]:
    """The warnings of a runner whose only controller fails twice."""
    controller, clock, entropy = Failing(error, 2), SystemClock(), SystemEntropy()
    async with Informers(embedded.cluster, clock=clock, entropy=entropy) as informers:
        runner = Runner([controller], informers, clock, entropy)  # type: ignore[list-item]
        with caplog.at_level(logging.WARNING):
            task = asyncio.create_task(runner.run())
            await asyncio.wait_for(controller.settled.wait(), 30)
            task.cancel()
            await asyncio.wait([task])
    return [record.getMessage() for record in caplog.records if "controller.failed" in record.getMessage()]


async def test_writes_that_met_and_settled_are_not_told(
    embedded_server: Embedded, caplog: pytest.LogCaptureFixture
) -> None:
    assert await said(embedded_server, Conflict("the object has been modified"), caplog) == []


async def test_every_other_failure_is_told_each_time(
    embedded_server: Embedded, caplog: pytest.LogCaptureFixture
) -> None:
    assert len(await said(embedded_server, ValueError("a defect"), caplog)) == 2
