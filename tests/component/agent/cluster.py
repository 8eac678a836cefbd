"""A cluster for one agent: its node, configs, and a drain controller that the test plays."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from fastness.agent.apply.cluster import RenderedConfigs
from fastness.agent.apply.hosts import DirectoryMachine
from fastness.agent.apply.node import Agent, Settings
from fastness.agent.apply.pins.plan import Pace
from fastness.apiserver import LocalCluster
from fastness.kinds.kind import JsonObject
from fastness.kinds.kubernetes.core import NODE
from fastness.kinds.machineconfiguration import names
from fastness.kinds.machineconfiguration.config import MACHINE_CONFIG
from fastness.kinds.machineconfiguration.node import MACHINE_CONFIG_NODE
from fastness.kinds.objects import annotations_of, condition
from fastness.kinds.operator_openshift.machine_configuration import MACHINE_CONFIGURATION
from fastness.kube.access import User
from fastness.kube.port import PatchType
from fastness.runtime.clock import SystemClock
from fastness.runtime.retries import Backoff
from tests.embedded.fixtures import Embedded
from tests.patience import PATIENCE
from tests.virtual import SeededEntropy

NODE_NAME = "w0"
QUICK_PINS = Pace(timeout=20.0, pause=0.0, between=Backoff(0.01, 0.02), again=Backoff(0.05, 0.1), resync=30.0)
QUICK = Settings(
    drain_timeout=20.0, uncordon_timeout=20.0, retry=Backoff(0.02, 0.1), resync=30.0, drift_settle=0.01, pins=QUICK_PINS,
    kubelet_window=0.0,
)  # fmt: skip


class Play:
    """The control plane around one node."""

    def __init__(self, embedded: Embedded, machine: DirectoryMachine) -> None:
        self.admin = embedded.cluster
        self.machine = machine
        self.user = User(f"system:node:{NODE_NAME}", ("system:nodes", "system:authenticated"))
        self.as_node = LocalCluster(embedded.server.api, self.user)
        self.drain_allowed = True
        self.paused = False
        self.requests: list[str] = []
        self.states: list[str] = []
        self.ended = asyncio.Event()
        self.configs: RenderedConfigs | None = None
        self.prove: Callable[[], Awaitable[None]] | None = None
        self.driver = ""

    async def prepare(self, *configs: JsonObject, current: str) -> None:
        """The objects that are there before the agent starts."""
        for config in configs:
            await self.admin.create(MACHINE_CONFIG.resource, config)
        notes = {names.CURRENT_CONFIG: current, names.DESIRED_CONFIG: current, names.STATE: "Done"}
        meta: JsonObject = {"name": NODE_NAME, "annotations": notes, "labels": {"node-role.kubernetes.io/worker": ""}}
        await self.admin.create(NODE.resource, {"apiVersion": "v1", "kind": "Node", "metadata": meta})
        spec = {"node": {"name": NODE_NAME}, "pool": {"name": "worker"}, "configVersion": {"desired": current}}
        await self.admin.create(
            MACHINE_CONFIG_NODE.resource,
            {
                "apiVersion": names.API_VERSION,
                "kind": "MachineConfigNode",
                "metadata": {"name": NODE_NAME},
                "spec": spec,
            },
        )

    async def policies(self, **policy: Any) -> None:
        """The settings with a disruption policy."""
        await self.admin.create(
            MACHINE_CONFIGURATION.resource,
            {
                "apiVersion": MACHINE_CONFIGURATION.api_version, "kind": "MachineConfiguration",
                "metadata": {"name": "cluster"}, "spec": {"managementState": "Managed", "nodeDisruptionPolicy": policy},
            },
        )  # fmt: skip

    async def want(self, config: str) -> None:
        """Another config is desired."""
        await self.annotate(**{names.DESIRED_CONFIG: config})

    async def annotate(self, **notes: str | None) -> None:
        """As the control plane."""
        await self.admin.patch(NODE.resource, NODE_NAME, {"metadata": {"annotations": notes}}, PatchType.MERGE)

    async def notes(self) -> dict[str, str]:
        """The node's annotations."""
        return dict(annotations_of(await self.admin.get(NODE.resource, NODE_NAME)))

    async def until(self, holds: Callable[[dict[str, str]], bool]) -> dict[str, str]:
        """Wait until the annotations are so."""
        async with asyncio.timeout(PATIENCE):
            while True:
                notes = await self.notes()
                if holds(notes):
                    return notes
                await asyncio.sleep(0.01)

    async def done(self, config: str) -> dict[str, str]:
        """Wait until the node says that it has a config."""
        return await self.until(
            lambda notes: notes[names.CURRENT_CONFIG] == config and notes[names.STATE] == "Done"
            and not notes.get(names.DESIRED_DRAIN, "").startswith("drain-")
        )  # fmt: skip

    async def state(self, state: str) -> dict[str, str]:
        """Wait until the node is in a state."""
        return await self.until(lambda notes: notes[names.STATE] == state)

    async def settled(self) -> None:
        """Wait until the agent has looked at the disk and said that all is well."""
        await self.mark("Updated", "True")

    async def mark(self, kind: str, status: str, words: str = "") -> JsonObject:
        """One condition of the MachineConfigNode, when it has a status and its message these words."""
        current: JsonObject = {}

        async def so() -> bool:
            nonlocal current
            current = dict(condition(await self.admin.get(MACHINE_CONFIG_NODE.resource, NODE_NAME), kind) or {})
            return current.get("status") == status and words in current.get("message", "")

        await self.when(so)
        return current

    async def wait_for_event(self, reason: str) -> None:
        """Wait for an event."""

        async def so() -> bool:
            return reason in await self.events()

        await self.when(so)

    async def when(self, holds: Callable[[], Awaitable[bool]]) -> None:
        """Wait until something holds."""
        async with asyncio.timeout(PATIENCE):
            while not await holds():  # noqa: ASYNC110 - what is waited for is in the API
                await asyncio.sleep(0.01)

    async def events(self) -> list[str]:
        """The reasons of all events."""
        from fastness.kinds.kubernetes.resources import EVENTS

        return [str(event["reason"]) for event in (await self.admin.list(EVENTS)).items]

    async def _drain(self) -> None:
        last_state = ""
        while True:
            if self.paused:
                await asyncio.sleep(0.005)
                continue
            notes = await self.notes()
            if (state := notes.get(names.STATE, "")) != last_state:
                last_state = state
                self.states.append(state)
            drain = notes.get(names.DESIRED_DRAIN, "")
            if drain and drain != notes.get(names.LAST_APPLIED_DRAIN) and (
                self.drain_allowed or drain.startswith("uncordon")
            ):  # fmt: skip
                self.requests.append(drain)
                await self.annotate(**{names.LAST_APPLIED_DRAIN: drain})
            await asyncio.sleep(0.005)

    async def _agents(self) -> None:
        """The machine: an agent, and after each reboot another one."""
        while True:
            agent = Agent(
                self.as_node, self.machine.host, NODE_NAME, SystemClock(), SeededEntropy(1), QUICK, configs=self.configs,
                prove=self.prove, driver=lambda _rule: self.driver,
            )  # fmt: skip
            await agent.run()
            self.ended.set()
            self.machine.reboot()

    @asynccontextmanager
    async def alive(self) -> AsyncIterator[None]:
        """The agent and the drain controller work."""
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._drain()), group.create_task(self._agents())]
            try:
                yield
            finally:
                for task in tasks:
                    task.cancel()
