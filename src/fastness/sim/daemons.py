"""The pods of the runtime's DaemonSets on virtual hosts of confidential containers.

Nobody runs containers on a virtual machine, so what the pods of two DaemonSets would do there is done here, by the same steps
(`agent.kata.step`) on the machine's own files, services and operating system: the label of the node moves, packages and drop-ins
appear, a removal reboots. A DaemonSet that does not select the node does nothing on it, and one that is deleted stops.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from fastness.agent.host.memory_os import MemoryPackages
from fastness.agent.kata.step import RuntimeSteps, StepReport
from fastness.formats.errors import SelectorError
from fastness.formats.selectors import label_selector_from_object
from fastness.kinds.kata import names
from fastness.kinds.kata.config import DEFAULT_LOG_LEVEL
from fastness.kinds.kata.names import InstallState
from fastness.kinds.kind import JsonObject
from fastness.kinds.kubernetes.native import DAEMON_SET
from fastness.kinds.kubernetes.resources import NODES
from fastness.kinds.objects import is_being_deleted, labels_of, object_name
from fastness.kube.errors import ApiError, NotFound
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster, PatchType, Scope, WriteOptions
from fastness.observe.logs import logger
from fastness.runtime.clock import Clock, Entropy
from fastness.runtime.tasks import uninterrupted
from fastness.sim.fleet import RunningMachines
from fastness.sim.machines import VirtualMachine

DAEMON_SETS: Final = DAEMON_SET.resource
HERE: Final = Scope(namespace=names.NAMESPACE)
RETRY_SECONDS: Final = 0.3
FAILED_SECONDS: Final = 3.0
_AS: Final = WriteOptions(manager="kata-install")
_log = logger("machines")


class Daemons:
    """Does on every machine what the DaemonSets' pods would do there."""

    def __init__(self, cluster: Cluster, machines: RunningMachines, clock: Clock, entropy: Entropy) -> None:
        self._cluster = cluster
        self._machines = machines
        self._clock = clock
        self._entropy = entropy
        self._waiting: set[str] = set()
        self._changed = asyncio.Event()
        self._later: set[asyncio.Task[None]] = set()
        self._failed: set[str] = set()

    async def run(self) -> None:
        """Follow DaemonSets and nodes for ever."""
        async with Informers(self._cluster, clock=self._clock, entropy=self._entropy) as informers:
            sets, nodes = informers.of(DAEMON_SETS, HERE), informers.of(NODES)
            sets.subscribe(lambda _old, _new: self._wake({object_name(one).name for one in nodes.list()}))
            nodes.subscribe(lambda _old, new: self._wake({object_name(new).name} if new is not None else set()))
            await informers.synced()
            while True:
                await self._changed.wait()
                self._changed.clear()
                waiting, self._waiting = self._waiting, set()
                concerned = [machine for machine in self._machines if machine.node in waiting]
                self._wake_later({machine.node for machine in concerned if not machine.running}, RETRY_SECONDS)
                for machine in concerned:
                    node = nodes.get("", machine.node) if machine.running else None
                    if node is not None and not self._rests(node):
                        await self._look(machine, node, {object_name(one).name: one for one in sets.list()})

    def _wake(self, nodes: set[str]) -> None:
        self._waiting |= nodes
        self._changed.set()

    def _wake_later(self, nodes: set[str], seconds: float) -> None:
        async def later() -> None:
            await self._clock.sleep(seconds)
            self._wake(nodes)

        if nodes:
            task = asyncio.create_task(later())
            self._later.add(task)
            task.add_done_callback(self._later.discard)

    def _rests(self, node: JsonObject) -> bool:
        """Whether a node that failed waits before it tries again."""
        name, state = object_name(node).name, labels_of(node).get(names.STATE_LABEL)
        if state not in (InstallState.FAILED, InstallState.FAILED_TO_UNINSTALL) or name in self._failed:
            self._failed.discard(name)
            return False
        self._failed.add(name)
        self._wake_later({name}, FAILED_SECONDS)
        return True

    async def _look(self, machine: VirtualMachine, node: JsonObject, sets: Mapping[str, JsonObject]) -> None:
        """One step on one machine."""
        host, loop = machine.machine, asyncio.get_running_loop()

        def reboot(_reason: str) -> None:
            loop.call_soon_threadsafe(machine.restart)  # the steps run in a thread

        steps = RuntimeSteps(
            host.host.root, host.units, MemoryPackages(host.system, names.EXTENSION), reboot,
            _told(sets.get(names.INSTALLER), "LOG_LEVEL") or DEFAULT_LOG_LEVEL,
            peer_pods=_told(sets.get(names.INSTALLER), names.PEER_PODS_VARIABLE) == "true",
        )  # fmt: skip
        report: StepReport | None = None
        if selects(sets.get(names.UNINSTALLER), node):
            report = await uninterrupted(lambda: steps.uninstall(node))
        elif selects(sets.get(names.INSTALLER), node):
            report = await uninterrupted(lambda: steps.install(node))
        if report is None:
            return
        try:
            await self._cluster.patch(NODES, machine.node, report.patch(node), PatchType.MERGE, options=_AS)
        except NotFound:
            return
        except ApiError as error:
            _log.debug("machine.waiting", machine=machine.name, error=error)
            self._wake_later({machine.node}, RETRY_SECONDS)


def selects(daemon_set: Mapping[str, Any] | None, node: Mapping[str, Any]) -> bool:
    """Whether a DaemonSet would have a pod on a node: its selector and its required affinity."""
    if daemon_set is None or is_being_deleted(daemon_set):
        return False
    pod = ((daemon_set.get("spec") or {}).get("template") or {}).get("spec") or {}
    labels = labels_of(node)
    if not (pod.get("nodeSelector") or {}).items() <= labels.items():
        return False
    affinity = ((pod.get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    )
    terms = (affinity or {}).get("nodeSelectorTerms")
    if terms is None:
        return True
    try:
        return any(
            label_selector_from_object({"matchExpressions": term.get("matchExpressions") or []}).matches(labels)
            for term in terms
        )
    except SelectorError:
        return False


def _told(daemon_set: Mapping[str, Any] | None, variable: str) -> str:
    """What the installer was told; empty when nothing."""
    pod = (((daemon_set or {}).get("spec") or {}).get("template") or {}).get("spec") or {}
    variables = [entry for container in pod.get("containers") or () for entry in container.get("env") or ()]
    return next((str(entry.get("value")) for entry in variables if entry.get("name") == variable), "")


@asynccontextmanager
async def daemons(machines: RunningMachines, *, wanted: bool) -> AsyncIterator[None]:
    """The pods of the DaemonSets for the time of the block, on hosts of confidential containers."""
    if not wanted:
        yield
        return
    fleet = machines.fleet
    async with asyncio.TaskGroup() as group:
        task = group.create_task(
            Daemons(fleet.cluster, machines, fleet.clock, fleet.entropy).run(), name="simulator:daemons"
        )
        try:
            yield
        finally:
            task.cancel()
