"""What a KataConfig said over time, and the words that the tests of its loop share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from fastness.kinds.kata import names
from fastness.kinds.kata.config import KATA_CONFIG
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import condition
from fastness.kinds.registry import find
from fastness.kube.errors import NotFound
from fastness.kube.port import Cluster, EventType
from tests.patience import PATIENCE

KATA = KATA_CONFIG.resource
CLASS = find("node.k8s.io", "v1", "runtimeclasses").resource
NAMESPACE = find("", "v1", "namespaces").resource
CONFIG_MAP = find("", "v1", "configmaps").resource
EVENT = find("", "v1", "events").resource


def kata_config(name: str = "example-kataconfig", **spec: Any) -> JsonObject:
    return {"apiVersion": KATA_CONFIG.api_version, "kind": "KataConfig", "metadata": {"name": name}, "spec": spec}


async def feature_gates(cluster: Cluster, **data: str) -> None:
    """The operator's namespace with the feature gates."""
    meta = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": names.NAMESPACE}}
    await cluster.create(NAMESPACE, meta)
    place = {"name": names.FEATURE_GATES, "namespace": names.NAMESPACE}
    await cluster.create(CONFIG_MAP, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": place, "data": data})


class Story:
    """Every status that a watcher saw, each once."""

    def __init__(self) -> None:
        self.statuses: list[JsonObject] = []
        self.gone = asyncio.Event()

    def take(self, config: JsonObject) -> None:
        status = config.get("status")
        if status and (not self.statuses or self.statuses[-1] != status):
            self.statuses.append(status)

    @property
    def reasons(self) -> list[tuple[str, str]]:
        """Status and reason of `InProgress`, each change once."""
        reasons: list[tuple[str, str]] = []
        for status in self.statuses:
            progress = condition({"status": status}, "InProgress") or {}
            entry = (progress["status"], progress["reason"])
            if not reasons or reasons[-1] != entry:
                reasons.append(entry)
        return reasons

    @property
    def nodes(self) -> list[JsonObject]:
        """`kataNodes`, each change once."""
        lists: list[JsonObject] = []
        for status in self.statuses:
            if not lists or lists[-1] != status.get("kataNodes"):
                lists.append(status.get("kataNodes") or {})
        return lists

    @property
    def most_moving(self) -> int:
        """How many nodes were being changed at the same time, at most."""
        return max(len(lists.get("installing", ())) + len(lists.get("uninstalling", ())) for lists in self.nodes)


@asynccontextmanager
async def follow_story(cluster: Cluster) -> AsyncIterator[Story]:
    """The story of the KataConfig for the time of the block."""
    story = Story()

    async def follow() -> None:
        async with cluster.watch(KATA, initial=True) as events:
            async for event in events:
                if event.type is EventType.DELETED:
                    story.gone.set()
                elif event.type is not EventType.BOOKMARK:
                    story.take(event.object)

    task = asyncio.create_task(follow())
    try:
        yield story
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def until(cluster: Cluster, holds: Callable[[JsonObject], Any], name: str = "example-kataconfig") -> JsonObject:
    """Wait for the KataConfig to say something, with a bound."""
    config: JsonObject = {}
    try:
        async with asyncio.timeout(PATIENCE):
            while True:
                config = await cluster.get(KATA, name)
                if holds(config):
                    return config
                await asyncio.sleep(0.02)
    except TimeoutError as error:
        raise AssertionError(f"it does not get there: {config.get('status')}") from error


def in_progress(config: JsonObject) -> tuple[str, str]:
    """Status and reason of `InProgress`."""
    progress = condition(config, "InProgress") or {}
    return str(progress.get("status")), str(progress.get("reason"))


def is_done(config: JsonObject) -> bool:
    return in_progress(config) == ("False", "")


async def is_gone(cluster: Cluster, name: str = "example-kataconfig") -> None:
    """Wait until the KataConfig is gone, with a bound."""
    try:
        async with asyncio.timeout(PATIENCE):
            while True:
                try:
                    config = await cluster.get(KATA, name)
                except NotFound:
                    return
                await asyncio.sleep(0.02)
    except TimeoutError as error:
        raise AssertionError(f"it stays: {config['metadata']} {config.get('status')}") from error


async def until_equal(ask: Callable[[], Awaitable[Any]], expected: Any) -> None:
    """Wait until something is as it should be, with a bound."""
    current: Any = None
    try:
        async with asyncio.timeout(PATIENCE):
            while True:
                current = await ask()
                if current == expected:
                    return
                await asyncio.sleep(0.05)
    except TimeoutError as error:
        more, less = (current - expected, expected - current) if isinstance(current, set) else (current, expected)
        raise AssertionError(f"there is {more}, there is not {less}") from error


async def until_told(cluster: Cluster, reason: str) -> None:
    """Wait for an event; it comes after the condition that it tells of."""

    async def is_there() -> bool:
        return reason in {event["reason"] for event in (await cluster.list(EVENT)).items}

    await until_equal(is_there, True)
