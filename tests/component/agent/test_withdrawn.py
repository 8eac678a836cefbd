"""A config that is withdrawn while the agent's watch is behind is not begun: only the API says what is desired now.

The rollout gave this node's place in the budget to another one when it withdrew the config. A watch that reconnects replays what
was desired in between, and whoever believed it would drain and reboot a node that nobody counts.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from fastness.agent.host.states import ABSENT, File
from fastness.apiserver import LocalCluster
from fastness.formats import json
from fastness.kinds.kind import Resource
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import annotations_of
from fastness.kube.port import EVERYWHERE, Event, Scope
from tests.component.agent.cluster import Play
from tests.component.agent.directory_machine import make_machine
from tests.component.agent.test_agent import ALL, motd
from tests.embedded.fixtures import Embedded
from tests.patience import PATIENCE


class LateWatch:
    """An API whose events reach the agent only as far as the test lets them; `written` is what the agent wrote."""

    def __init__(self, cluster: LocalCluster) -> None:
        self._cluster = cluster
        self._let: Callable[[Event], bool] = lambda _: True
        self._moved = asyncio.Event()
        self.written: list[str] = []

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._cluster, name)
        if name not in ("create", "patch"):
            return method

        async def write(*arguments: Any, **options: Any) -> Any:
            answer = await method(*arguments, **options)
            self.written.append(
                json.encode([argument for argument in arguments if isinstance(argument, dict)]).decode()
            )
            return answer

        return write

    def hold(self, let: Callable[[Event], bool]) -> None:
        """From now on only these events pass; the first other one holds up all that follow."""
        self._let = let
        self._moved.set()

    @asynccontextmanager
    async def watch(
        self, resource: Resource, scope: Scope = EVERYWHERE, *, since: str = "", initial: bool = False
    ) -> AsyncIterator[AsyncIterator[Event]]:
        """A watch that is behind."""
        async with self._cluster.watch(resource, scope, since=since, initial=initial) as events:
            yield self._late(events)

    async def _late(self, events: AsyncIterator[Event]) -> AsyncIterator[Event]:
        async for event in events:
            while not self._let(event):
                self._moved.clear()
                await self._moved.wait()
            yield event


@pytest.fixture
async def play(embedded_server: Embedded, tmp_path: Path) -> Play:
    machine = make_machine(tmp_path / "w0")
    machine.host.root.put("/etc/base.conf", File(b"base\n"))
    machine.host.root.put(
        names.NODE_ANNOTATIONS_FILE, File(b'{"%s": "rendered-worker-old"}' % names.CURRENT_CONFIG.encode())
    )
    play = Play(embedded_server, machine)
    await play.prepare(*ALL, current="rendered-worker-old")
    return play


def _up_to(config: str) -> Callable[[Event], bool]:
    """Events until, and with, the one that tells of a config."""
    passed: list[bool] = []

    def let(event: Event) -> bool:
        passes = not passed
        if annotations_of(event.object).get(names.DESIRED_CONFIG) == config:
            passed.append(True)
        return passes

    return let


@pytest.mark.parametrize("config", ["rendered-worker-new", "rendered-worker-quiet"])
async def test_a_config_that_was_withdrawn_before_the_watch_told_of_it_is_not_begun(play: Play, config: str) -> None:
    late = LateWatch(play.as_node)
    play.as_node = late  # type: ignore[assignment]
    async with play.alive():
        await play.settled()
        late.hold(lambda _: False)
        await play.want(config)
        await play.want("rendered-worker-old")
        late.written.clear()
        late.hold(_up_to(config))
        await play.until(lambda notes: notes[names.STATE] == "Working")
        late.hold(lambda _: True)
        await play.done("rendered-worker-old")
    assert not [line for line in late.written if config in line]
    assert motd(play) == b"of the distribution\n"
    assert play.machine.host.root.look("/etc/containers/policy.json") == ABSENT
    assert not play.machine.power.reasons
    assert not play.requests


async def test_a_drain_that_was_taken_back_since_does_not_count_although_the_watch_still_shows_it(play: Play) -> None:
    """The cache says `lastAppliedDrain=drain-new` from before; the API says that the node was put back to work."""
    play.drain_allowed = False
    late = LateWatch(play.as_node)
    play.as_node = late  # type: ignore[assignment]
    async with play.alive():
        await play.settled()
        await play.want("rendered-worker-new")
        await play.until(lambda notes: notes.get(names.DESIRED_DRAIN) == "drain-rendered-worker-new")
        late.hold(lambda event: names.LAST_APPLIED_DRAIN not in annotations_of(event.object))
        await play.annotate(**{names.LAST_APPLIED_DRAIN: "drain-rendered-worker-new"})
        await play.annotate(**{names.LAST_APPLIED_DRAIN: "uncordon-rendered-worker-old"})
        node_read = asyncio.Event()
        live = late._cluster.get

        async def reading(resource: Resource, *rest: Any, **named: Any) -> Any:
            answer = await live(resource, *rest, **named)
            if resource.plural == "nodes":
                node_read.set()
            return answer

        late._cluster.get = reading  # type: ignore[method-assign]
        late.hold(lambda event: annotations_of(event.object).get(names.LAST_APPLIED_DRAIN, "")[:2] != "un")
        async with asyncio.timeout(PATIENCE):
            await node_read.wait()
        late.hold(lambda _: True)
        assert motd(play) == b"of the distribution\n"
        await play.annotate(**{names.LAST_APPLIED_DRAIN: "drain-rendered-worker-new"})
        play.drain_allowed = True
        await play.done("rendered-worker-new")
    assert motd(play) == b"new\n"
