"""Virtual machines: directories that boot, join the cluster and run the real agent.

    STATE/machines/<name>/root    the machine's files
    STATE/machines/<name>/orig    what stood there before a config replaced it
    STATE/machines/<name>/agent   the agent's journal, the record of the operating system

A machine boots for the first time as a real one does (`first_boot.py`): the platform gives it the user-data of its pool, it
follows the pointer to the config server, over TLS and with the ticket that stands there, and lays down what it gets. Every later
boot proves itself anew, because nothing is released to a machine that did not. It joins with the annotations that came along, and
from then on the agent is alone with the cluster port, in the name of its node. A reboot ends the agent, the node is not ready for
a moment, and a new agent starts on the same directory.

* `switch` pulls the plug and puts it in again, at any moment; the journal of the agent has to live with that.
* `restart` is what a program on the machine asks for: it goes down in order, so that what was staged boots.
* A machine that is refused for good is switched on again after a while, longer each time up to a minute: whoever put it right
  need not touch it, and the record does not fill.
* The parts of kubelet and node controller are played by `kubelet.py`, that of whoever installs machines by `platform.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Final

from fastness.agent.apply import disk
from fastness.agent.apply.boots import leave_unproved
from fastness.agent.apply.hosts import DirectoryMachine
from fastness.agent.apply.node import Agent
from fastness.agent.apply.ports import Watcher
from fastness.agent.boot.attester import Attester
from fastness.agent.boot.boot import BootRefused, boot_once, hint_for
from fastness.agent.boot.configs import AttestedConfigs
from fastness.agent.boot.enrol import Doors, RetryBudget
from fastness.agent.boot.prove import BrokerClient, DoorRefused
from fastness.agent.boot.reattest import Staying
from fastness.agent.boot.user_data import Given, ask_of_host
from fastness.agent.boot.volumes import DiskRefused
from fastness.agent.errors import AgentError
from fastness.agent.host.errors import DriverError
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kube.errors import ApiError
from fastness.observe.logs import logger
from fastness.protocol.machine_names import machine_of_node
from fastness.runtime.retries import Backoff
from fastness.runtime.tasks import uninterrupted
from fastness.sim import kubelet
from fastness.sim.bootstrap import bootstrap
from fastness.sim.disks.opening import VirtualVolumes, volumes_of
from fastness.sim.first_boot import ACCEPT, BootFailure, carries_pointer, fetch, lay_down
from fastness.sim.hardware import AS_IT_SHOULD, Conditions
from fastness.sim.inventory import Spec
from fastness.sim.kubelet import Kubelet
from fastness.sim.network import Cable, Cabled
from fastness.sim.platform import Fleet, install, machine_of, user_data_of
from fastness.sim.registry import SimRegistry

FORGOTTEN: Final = "not-enrolled"
REFUSED_AGAIN: Final = Backoff(first=5.0, most=60.0)
LOOK_AGAIN: Final = Backoff(first=0.1, most=1.0)
ASK_AGAIN: Final = Backoff(first=0.5, most=10.0)
_log = logger("machines")


class VirtualMachine:
    """One machine and its life."""

    def __init__(self, fleet: Fleet, spec: Spec, watcher: Callable[[Path], Watcher]) -> None:
        self.spec = spec
        self.name = spec.name
        self.fleet = fleet
        self.cable = Cable()
        self.conditions: Conditions = AS_IT_SHOULD
        self.console = "switched off"
        self.running = False
        self.boots = 0
        self._hardware = fleet.proofs.hardware(spec) if fleet.proofs is not None else None
        self._kubelet = Kubelet(fleet.cluster, fleet.clock, spec)
        self._directory = fleet.directory / spec.name
        registry = fleet.registry or SimRegistry(fleet.directory / "registry")
        self._registry = registry
        self.machine = DirectoryMachine(
            self._directory, watcher(self._directory / "root"), fleet.entropy.uid,
            installed=registry.installed, pull=registry.pull,
        )  # fmt: skip
        self.volumes = VirtualVolumes(self._directory, fleet.entropy)
        self._node = self._node_file.read_text() if self._node_file.exists() else ""
        self._switched = asyncio.Event()
        self._in_order = False
        self._poked = asyncio.Event()
        self._reattest: timedelta | None = None
        self._refusals = 0
        self._attester: Attester | None = None
        self._machine = ""

    # ------------------------------------------------------------ what can be done to it from outside

    def switch(self) -> None:
        """Pull the plug and put it in again."""
        self._refusals, self._in_order = 0, False
        self._switched.set()

    def restart(self) -> None:
        """Go down in order and boot again; a machine that goes down already goes on as it does."""
        if not self._switched.is_set():
            self._refusals, self._in_order = 0, True
            self._switched.set()

    def prove_now(self) -> None:
        """Let the machine prove itself now and not at its interval."""
        self._poked.set()

    async def cut(self) -> None:
        """Pull the network cable; after a while the cluster notices."""
        self.cable.pull()
        await self._tell(kubelet.SILENT)

    async def connect(self) -> None:
        """Put the network cable in again."""
        self.cable.plug()
        if self.running:
            await self._tell(kubelet.READY)
        self.prove_now()

    async def forget(self) -> None:
        """Take the machine out of the cluster; it was switched off before."""
        await self._kubelet.forget(self.node, self._machine or machine_of_node(self.node))

    # ------------------------------------------------------------ life

    async def run(self) -> None:
        """Boot, work, boot again; until cancelled."""
        await uninterrupted(lambda: install(self.machine.host.root, self.name))
        failures = 0
        try:
            while True:
                failures = failures + 1 if await self._until_switched() else 0
                pause = LOOK_AGAIN.delay(failures, self.fleet.entropy.fraction()) if failures else 0
                await self._unless_switched(pause)
        finally:
            self.running, self.console = False, "switched off"
            if self._hardware is not None:
                await self._hardware.power_off()

    async def _until_switched(self) -> bool:
        """One boot and what follows from it, unless it is switched off or restarted; whether it failed."""
        self._switched.clear()
        self._in_order = False
        life = asyncio.ensure_future(self._supervised())
        plug = asyncio.ensure_future(self._switched.wait())
        try:
            await asyncio.wait((life, plug), return_when=asyncio.FIRST_COMPLETED)
            if life.done():
                return life.result()
        finally:
            for task in (life, plug):
                task.cancel()
            await asyncio.wait((life, plug))
            self.running = False
        self.console = "rebooting"
        await self._tell(kubelet.REBOOTING)
        await self.fleet.clock.sleep(self.fleet.reboot_seconds)
        await uninterrupted(self.machine.reboot if self._in_order else self.machine.power_cut)
        return False

    async def _unless_switched(self, seconds: float) -> None:
        await _either(self._switched, self.fleet.clock.sleep(seconds))

    async def _supervised(self) -> bool:
        """One boot; whether it failed."""
        try:
            await self._boot()
            return False
        except (BootRefused, DiskRefused) as error:
            # A real machine stops here and says why on its console; this one is switched on again after a while. That a
            # machine is refused is no trouble of the simulator: `attest explain` and the page tell it.
            _log.info("machine.refused", machine=self.name, reason=error.reason, error=error, hint=error.hint)
            self.console = f"refused ({error.reason}): {error.message}"
            await self._tell(kubelet.NOT_ADMITTED)
            await self.fleet.clock.sleep(REFUSED_AGAIN.delay(self._refusals, self.fleet.entropy.fraction()))
            self._refusals += 1
            return False
        except (ApiError, AgentError, DriverError, BootFailure) as error:
            _log.warning("machine.failed", machine=self.name, error=error)
            self.console = f"failed: {error}"
        except Exception as error:  # noqa: BLE001 - what the service manager of a real machine does: say it, start it again
            _log.exception("machine.crashed", machine=self.name)
            self.console = f"crashed: {type(error).__name__}"
        return True

    async def _boot(self) -> None:
        """From power on to the next reboot."""
        fleet, new = self.fleet, self._is_new()
        self.console = "booting"
        if self._hardware is not None:
            self._attester = await self._hardware.power_on(await uninterrupted(self._booting))
            self._machine = await machine_of(self._attester)
        if not self.cable.plugged:
            self.console = "waiting for the network"
            await self.cable.carries()
        if new:
            await self._first_boot()
        elif self._attester is not None and await self._opened(self._attester):
            try:
                await self._prove_again(self._attester)
            except BootRefused as error:
                refusal = error.message
                if not await uninterrupted(lambda: leave_unproved(self.machine.host, refusal)):
                    raise
                await self._reboot()
                return
        await self._join()
        self.boots += 1
        configs = self._configs()
        agent = Agent(
            Cabled(fleet.as_node(self.node), self.cable), self.machine.host, self.node, fleet.clock, fleet.entropy,
            fleet.settings, configs=configs, prove=configs.prove if configs is not None else None,
        )  # fmt: skip
        self.running, self.console, self._refusals = True, "running", 0
        async with self._staying_attested():
            await agent.run()
        await self._reboot()

    async def _reboot(self) -> None:
        self.running, self.console = False, "rebooting"
        await self._tell(kubelet.REBOOTING)
        await self.fleet.clock.sleep(self.fleet.reboot_seconds)
        await uninterrupted(self.machine.reboot)

    def _booting(self) -> Conditions:
        """What somebody did to the machine, and the image that it boots: both show in what it measures."""
        return replace(self.conditions, version=self._registry.version(self.machine.system.booted().image))

    def _configs(self) -> AttestedConfigs | None:
        """The doors, where rendered configs come from on a machine that proves itself; else its agent reads the API."""
        proofs, attester, way = self.fleet.proofs, self._attester, self.cable.way
        if proofs is None or attester is None:
            return None
        return AttestedConfigs(
            attester, lambda: Doors(way(proofs.broker()), way(proofs.gate())), proofs.trust, self.fleet.clock,
            self.fleet.entropy,
        )  # fmt: skip

    @asynccontextmanager
    async def _staying_attested(self) -> AsyncIterator[None]:
        """Prove at every interval what was booted, for the time of the block; the boot itself did at first."""
        proofs, fleet, attester = self.fleet.proofs, self.fleet, self._attester
        if proofs is None or attester is None:
            yield
            return
        staying = Staying(
            attester, lambda: self.cable.way(proofs.broker()), lambda: proofs.trust().tls, fleet.clock, fleet.entropy,
            name=self.node,
        )  # fmt: skip
        async with asyncio.TaskGroup() as group:
            task = group.create_task(self._rounds(staying))
            try:
                yield
            finally:
                task.cancel()

    async def _rounds(self, staying: Staying) -> None:
        wait = staying.rounds.proved(self._reattest)
        while True:
            self._poked.clear()
            await _either(self._poked, self.fleet.clock.sleep(wait))
            wait = await staying.round()

    def _is_new(self) -> bool:
        root = self.machine.host.root
        return disk.read_current(root) is None and disk.read_first_boot(root) is None

    async def _first_boot(self) -> None:
        """Follow the user-data to the config of the pool and lay it down."""
        document = await self._fetched()
        # Before the disk says that the first boot is over: a token is good for one node, and a second boot needs another.
        await bootstrap(self.machine, self.node, document, self.fleet, self._pause)
        await uninterrupted(lambda: lay_down(self.machine, document))

    async def _fetched(self) -> JsonObject:
        """The config that the user-data of today leads to, by the way that the image of this machine goes."""
        user_data, fleet = await self.user_data(), self.fleet
        attests = self._attester is not None and await carries_pointer(fleet.cluster, self.spec.pool)
        return await fetch(user_data, self._pause, self._prove if attests else None)

    async def _prove(self, user_data: bytes) -> bytes:
        """What `agent boot` of a real machine does: read user-data strictly, enrol, attest, fetch, check."""
        proofs, attester = self.fleet.proofs, self._attester
        assert proofs is not None  # noqa: S101  # asked only when it is there
        assert attester is not None  # noqa: S101  # likewise
        patience = RetryBudget(self.fleet.clock, self.fleet.entropy, proofs.patience, pause=0.2, tell=self._say)
        ask = await ask_of_host((Given(user_data),), attester, ACCEPT, patience)
        names_of_volumes = await volumes_of(self.fleet.cluster, self.spec.pool)
        initrd = self.volumes.boot(attester, proofs.trust().tls, patience, self._say) if names_of_volumes else None
        make = initrd.make(names_of_volumes, self._broker) if initrd is not None else None
        booted = await boot_once(attester, ask, proofs.trust(), patience, make)
        if initrd is not None:
            await initrd.leave()
        self._node_file.write_text(booted.node_name)
        self._node = booted.node_name
        self._reattest = booted.reattest
        return booted.body

    async def _opened(self, attester: Attester) -> bool:
        """Open the volumes of an earlier boot; whether the machine goes on as who it was. Raises BootRefused, DiskRefused."""
        if not self.volumes.names:
            return True
        proofs = self.fleet.proofs
        assert proofs is not None  # noqa: S101  # without it nobody attests
        patience = RetryBudget(self.fleet.clock, self.fleet.entropy, proofs.patience, pause=0.2)
        initrd = self.volumes.boot(attester, proofs.trust().tls, patience, self._say)
        try:
            await initrd.open(self._broker)
        except BootRefused as error:
            if error.reason != FORGOTTEN:
                raise
            # The keys went with the Machine: what was on the volumes is lost for good, and they are made anew.
            await self._enrol_again()
            return False
        await initrd.leave()
        return True

    def _broker(self) -> str:
        assert self.fleet.proofs is not None  # noqa: S101  # asked only where machines attest
        return self.cable.way(self.fleet.proofs.broker())

    def _say(self, words: str) -> None:
        self.console = words

    async def _prove_again(self, attester: Attester) -> None:
        """A later boot: nothing happens before the broker has seen what was booted; raises BootRefused, DriverError."""
        proofs, fleet, attempt = self.fleet.proofs, self.fleet, 0
        assert proofs is not None  # noqa: S101  # without it nobody attests
        while True:
            try:
                async with BrokerClient(
                    self.cable.way(proofs.broker()), proofs.trust().tls, attester, fleet.entropy
                ) as broker:
                    await broker.attest()
                    self._reattest = broker.reattest
                    return
            except DoorRefused as error:
                if error.reason == FORGOTTEN:
                    await self._enrol_again()
                    return
                if not error.passing and error.status != 401:
                    raise BootRefused(
                        error.reason, error.message, hint_for(error.reason, self.spec.pool, self.node)
                    ) from error
                self.console = f"waiting ({error.reason}): {error.message}"
                pause = max(error.retry_after, ASK_AGAIN.delay(attempt, fleet.entropy.fraction()))
                attempt += 1
            self._poked.clear()
            await _either(self._poked, fleet.clock.sleep(pause))

    async def _enrol_again(self) -> None:
        """Somebody deleted the Machine: knock with the ticket of today, as at the first boot; what is on the disk stays."""
        self.console = "enrolling anew: the cluster has forgotten this machine"
        await self._fetched()

    @property
    def _node_file(self) -> Path:
        return self._directory / "node"

    @property
    def joined(self) -> bool:
        """Whether the machine has a node of its own."""
        return bool(self._node) or self.boots > 0

    @property
    def node(self) -> str:
        """The name that the machine joins with: the one that enrolment gave it, or its own."""
        return self._node or self.name

    async def user_data(self) -> bytes:
        """What the platform starts the machine with; waits until the pool has it, and it leads to a door of today."""
        return await user_data_of(self.fleet, self.spec.user_data, self._pause)

    async def _pause(self, attempt: int) -> None:
        await self.fleet.clock.sleep(LOOK_AGAIN.delay(attempt, self.fleet.entropy.fraction()))

    async def _join(self) -> None:
        """The Node is there, with its role and the annotations of its first boot, and ready."""
        served = disk.read_first_boot(self.machine.host.root) or self._remembered()
        if not await self._kubelet.register(self.node, served):
            _log.debug("machine.known", machine=self.name)
        await self._kubelet.tell(self.node, kubelet.READY, self.machine.power.boot_id())

    async def _tell(self, state: tuple[str, str, str]) -> None:
        """Say how the machine is, where the cluster knows it; what cannot be said now is not worth a failure."""
        with suppress(ApiError):
            await self._kubelet.tell(self.node, state, self.machine.power.boot_id())

    def _remembered(self) -> JsonObject:
        """The annotations of a machine whose Node was lost: what its disk says."""
        current = disk.read_current(self.machine.host.root) or {}
        name = str(current.get("metadata", {}).get("name", ""))
        notes = {names.CURRENT_CONFIG: name, names.DESIRED_CONFIG: name, names.STATE: names.NodeState.DONE}
        return notes if name else {}


async def _either(event: asyncio.Event, other: object) -> None:
    """Wait for an event or for something else, whichever comes first."""
    waiting = [asyncio.ensure_future(event.wait()), asyncio.ensure_future(other)]  # type: ignore[call-overload]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in waiting:
            task.cancel()
