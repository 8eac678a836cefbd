"""The simulation: virtual machines and what was done to them, as the page and the command line see it.

    simulation = Simulation(state, profile)                 # knows what an earlier run left
    async with simulation.opened(context): …                 # machines run, faults can be done and undone

Every change is written down before the answer is given, so that a restart goes on with the same machines under the same faults.
Changes come one after the other; looking costs nothing. Errors are ApiError: what was asked for, why it cannot be done.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Final

from fastness.agent.errors import AgentError
from fastness.agent.host.errors import DriverError
from fastness.keys.errors import TrustError
from fastness.kinds.machineconfiguration import names
from fastness.kinds.machineconfiguration.pool import MACHINE_CONFIG_POOL
from fastness.kinds.objects import object_name
from fastness.kube.errors import Conflict, InternalError, Unavailable
from fastness.page.simulator import ActiveFault, FaultKind, VirtualRow
from fastness.protocol.machine_names import machine_of_node
from fastness.sim import first_set
from fastness.sim.daemons import daemons
from fastness.sim.discovery import discovering
from fastness.sim.errors import DoneAlready, NoSuch, NotPossible
from fastness.sim.faults import CONTAINERS, FAULTS, Fault, FaultContext
from fastness.sim.hardware import TEES, Tee
from fastness.sim.inventory import Done, Inventory, Spec, read_inventory, write_inventory
from fastness.sim.machines import VirtualMachine
from fastness.sim.pool_demand import wanting
from fastness.sim.registry import SimRegistry

MOST: Final = 5000
AT_ONCE: Final = 1000
CONTAINERS_PROFILE: Final = "containers"


class Simulation:
    """All virtual machines of a state directory."""

    def __init__(self, state: Path, profile: str, *, swtpm: bool = False) -> None:
        """Read what an earlier run left; raises Invalid for what cannot be read, Conflict for another profile."""
        self.state = state
        stored = read_inventory(state)
        if stored is not None and stored.profile != profile:
            raise Conflict(
                f"the machines in {state} are of the profile {stored.profile}: start with --profile {stored.profile}, "
                "or choose another state directory"
            )
        self.inventory = stored or Inventory(profile)
        self.registry = SimRegistry(state / "registry")
        self._swtpm = swtpm
        self._context: FaultContext | None = None
        self._turn = asyncio.Lock()

    @property
    def ahead(self) -> timedelta:
        """How far the clock of the cluster is ahead, by leaps that were not undone."""
        seconds = (
            float(fault.memory.get("seconds", 0)) for fault in self.inventory.faults if fault.kind == "clock-jump"
        )
        return timedelta(seconds=sum(seconds))

    @property
    def kept(self) -> int:
        """How many machines there are."""
        return len(self.inventory.machines)

    @property
    def wants_swtpm(self) -> bool:
        """Whether some machine has, or may get, a TPM that is a process."""
        return self._swtpm or any(spec.swtpm for spec in self.inventory.machines)

    @asynccontextmanager
    async def opened(self, context: FaultContext, count: int) -> AsyncIterator[None]:
        """Switch on what an earlier run left, or so many new machines, for the time of the block."""
        if not self.inventory.next:
            self._begin(count)
        self._context = context
        built = {spec.name: context.machines.build(spec) for spec in self.inventory.machines}
        for done in self.inventory.faults:
            FAULTS[done.kind].resume(context, built.get(done.machine), done.memory)
        if context.documents is not None:
            await context.documents.open()
        for machine in built.values():
            context.machines.place(machine)
        try:
            hosts = self.inventory.profile == CONTAINERS_PROFILE
            async with (
                discovering(context.machines, wanted=hosts), daemons(context.machines, wanted=hosts),
                wanting(context.machines, wanted=not hosts),
            ):  # fmt: skip
                yield
        finally:
            self._context = None

    # ------------------------------------------------------------ looking

    def machines(self) -> Sequence[VirtualRow]:
        """Every virtual machine, in the order in which they came."""
        if self._context is None:
            return ()
        faults: dict[str, list[ActiveFault]] = {}
        for done in self.inventory.faults:
            faults.setdefault(done.machine, []).append(_shown(done))
        return [_row(machine, tuple(faults.get(machine.name, ()))) for machine in self._context.machines]

    def consoles(self) -> dict[str, str]:
        """What each machine said last."""
        return {machine.name: machine.console for machine in self._context.machines} if self._context else {}

    def kinds(self) -> Sequence[FaultKind]:
        """What can be done here."""
        return [fault.kind for fault in FAULTS.values() if self._offered(fault)]

    def fleet_faults(self) -> Sequence[ActiveFault]:
        """What was done to the whole cluster and not undone."""
        return [_shown(done) for done in self.inventory.faults if not done.machine]

    # ------------------------------------------------------------ faults

    async def do(self, kind: str, machine: str = "", argument: str = "") -> str:
        """Let something go wrong; raises ApiError."""
        async with self._turn:
            context, fault = self._open, self._fault(kind)
            target = self._target(fault, machine)
            name = target.name if target is not None else ""
            standing = [entry for entry in self.inventory.faults if (entry.kind, entry.machine) == (kind, name)]
            if standing and not fault.repeatable:
                where = f" with {name}" if name else ""
                raise DoneAlready(f"{kind} was done{where} already: undo {standing[0].id} first")
            objection = fault.objection(target)
            if objection is not None:
                raise NotPossible(f"{kind} cannot be done to {name}: {objection}")
            with internal_errors():
                outcome = await fault.do(context, target, argument)
            done = Done(self._fault_id(kind, name), kind, name, context.clock.now(), outcome.memory)
            self._keep(replace(self.inventory, faults=(*self.inventory.faults, done)))
            return f"{outcome.said} (simulated; undo with {done.id})"

    async def undo(self, fault: str) -> str:
        """Put a fault right again; raises ApiError."""
        async with self._turn:
            context = self._open
            done = next((entry for entry in self.inventory.faults if entry.id == fault), None)
            if done is None:
                raise NoSuch(f"there is no fault {fault}; {self._listed()}")
            with internal_errors():
                message = await FAULTS[done.kind].undo(context, context.machines.get(done.machine), done.memory)
            self._keep(
                replace(self.inventory, faults=tuple(entry for entry in self.inventory.faults if entry is not done))
            )
            return message

    # ------------------------------------------------------------ machines

    async def add(self, count: int, tee: str = "", pool: str = "") -> str:
        """Start further machines of a pool; raises ApiError."""
        if not 1 <= count <= AT_ONCE:
            raise NotPossible(f"between 1 and {AT_ONCE} machines can be added at once, not {count}")
        if tee and tee not in TEES:
            raise NotPossible(f"there is no simulated TEE {tee!r}: choose one of {', '.join(TEES)}")
        async with self._turn:
            machines = self._open.machines
            if self.kept + count > MOST:
                raise NotPossible(f"at most {MOST} machines run in one process; there are {self.kept}")
            await self._check_pool(pool or names.WORKER)
            specs = self._grow(count, tee, pool or names.WORKER)
            for spec in specs:
                machines.place(machines.build(spec))
        added = specs[0].name if count == 1 else f"{specs[0].name} to {specs[-1].name}"
        return f"{added} {'boots' if count == 1 else 'boot'} (simulated)"

    async def provide(self, machine: str, tee: str, pool: str, secret: str) -> Spec:
        """A machine for a Machine object, boots with that Secret; the same one when asked again; raises ApiError."""
        async with self._turn:
            spec = self.of_machine(machine)
            if spec is not None:
                return spec
            if self.kept >= MOST:
                raise NotPossible(f"at most {MOST} machines run in one process")
            if tee and tee not in TEES:
                raise NotPossible(f"there is no simulated TEE {tee!r}: choose one of {', '.join(TEES)}")
            machines = self._open.machines
            (spec,) = self._grow(1, tee, pool, machine=machine, secret=secret)
            machines.place(machines.build(spec))
            return spec

    def of_machine(self, machine: str) -> Spec | None:
        """What was made for a Machine object, if it is still there."""
        return next((spec for spec in self.inventory.machines if spec.machine == machine), None)

    def node_of(self, name: str) -> str:
        """The node that a machine became; empty until it has joined."""
        target = self._open.machines.get(name)
        return target.node if target is not None and target.joined else ""

    async def remove(self, machine: str) -> str:
        """Stop a machine and throw it away; raises ApiError."""
        async with self._turn:
            target = self._machine(machine)
            # Written first: a machine that is half thrown away must not come back.
            self._keep(self.inventory.without(target.name))
            await self._open.machines.take(target.name)
        return f"{target.name} is gone, with its node and its Machine"

    async def reboot(self, machine: str) -> str:
        """Have a machine go down in order and boot again; raises ApiError."""
        target = self._machine(machine)
        target.restart()
        return f"{target.name} boots again and has to prove itself anew"

    # ------------------------------------------------------------ images

    async def push(self, image: str) -> str:
        """Make an image of an operating system that machines can boot; raises ApiError."""
        with refused():
            made = await asyncio.to_thread(self.registry.push, image)
        return f"{made.reference} is in the simulated registry, as {made.tagged}"

    async def manifest(self, image: str) -> str:
        """What machines measure that boot an image; raises ApiError."""
        with refused():
            return (await asyncio.to_thread(self.registry.manifest, image)).decode()

    async def withdraw(self, image: str) -> str:
        """Take an image out of the registry; raises ApiError."""
        with refused():
            gone = await asyncio.to_thread(self.registry.withdraw, image)
        return f"{gone.reference} cannot be pulled any more; machines that run it go on"

    # ------------------------------------------------------------ inside

    @property
    def _open(self) -> FaultContext:
        if self._context is None:
            raise Unavailable("the machines are not there yet, or not any more")
        return self._context

    def _offered(self, fault: Fault) -> bool:
        return self.inventory.profile != CONTAINERS_PROFILE or fault.kind.id in CONTAINERS

    def _fault(self, kind: str) -> Fault:
        fault = FAULTS.get(kind)
        if fault is None or not self._offered(fault):
            raise NotPossible(
                f"there is no fault {kind!r} here: choose one of {', '.join(known_kind.id for known_kind in self.kinds())}"
            )
        return fault

    def _target(self, fault: Fault, machine: str) -> VirtualMachine | None:
        if fault.kind.scope == "cluster":
            if machine:
                raise NotPossible(f"{fault.kind.id} is done to the whole cluster, not to {machine}")
            return None
        if not machine:
            raise NotPossible(f"{fault.kind.id} is done to a machine: name one")
        return self._machine(machine)

    def _machine(self, name: str) -> VirtualMachine:
        """The machine of a name, of a node or of a Machine; raises NotFound."""
        machines = self._open.machines
        match = machines.get(name) or next((candidate for candidate in machines if name in _names(candidate)), None)
        if match is None:
            raise NoSuch(f"there is no virtual machine {name!r}")
        return match

    def _fault_id(self, kind: str, machine: str) -> str:
        base, used = f"{machine}.{kind}" if machine else kind, {entry.id for entry in self.inventory.faults}
        return next(entry for entry in (base, *(f"{base}.{n}" for n in range(2, len(used) + 3))) if entry not in used)

    def _listed(self) -> str:
        return (
            f"there are: {', '.join(fault.id for fault in self.inventory.faults)}"
            if self.inventory.faults
            else "nothing was done"
        )

    def _begin(self, count: int) -> None:
        """The machines of a first start: those of the first machine set, where there is one."""
        specs = self._grow(count, "", names.WORKER)
        if first_set.is_made(count):
            machines = tuple(replace(spec, machine=first_set.machine_name(spec.number)) for spec in specs)
            self._keep(replace(self.inventory, machines=machines))

    async def _check_pool(self, pool: str) -> None:
        """Raises NoSuch for a pool whose user-data nobody will ever make: its machines would wait for ever."""
        pools = (await self._open.machines.fleet.cluster.list(MACHINE_CONFIG_POOL.resource)).items
        offered = sorted(object_name(each).name for each in pools)
        if pool not in offered:
            raise NoSuch(f"there is no pool {pool!r}: choose one of {', '.join(offered)}")

    def _grow(self, count: int, tee: str, pool: str, machine: str = "", secret: str = "") -> list[Spec]:
        """Further machines in the inventory; a number is never given twice."""
        first = self.inventory.next
        specs = [
            replace(self._spec(number, tee, pool), machine=machine, secret=secret)
            for number in range(first, first + count)
        ]
        self._keep(replace(self.inventory, next=first + count, machines=(*self.inventory.machines, *specs)))
        return specs

    def _spec(self, number: int, tee: str, pool: str) -> Spec:
        # Hosts of containers are alike unless somebody says otherwise: one runtime class can have one handler.
        usual: Tee = "tdx" if self.inventory.profile == CONTAINERS_PROFILE else TEES[number % len(TEES)]
        kind: Tee = next((kind_of_tee for kind_of_tee in TEES if kind_of_tee == tee), usual)
        return Spec(f"{pool}-{number}", number, kind, self._swtpm and kind == "tpm", pool)

    def _keep(self, inventory: Inventory) -> None:
        with internal_errors():
            write_inventory(self.state, inventory)
        self.inventory = inventory


@contextmanager
def refused() -> Iterator[None]:
    """What the registry refuses, as an error that whoever asked can read."""
    try:
        yield
    except DriverError as error:
        raise NotPossible(f"{error.message} ({error.hint})") from error


@contextmanager
def internal_errors() -> Iterator[None]:
    """What a disk or a driver refuses, as an error that whoever asked can read."""
    try:
        yield
    except (DriverError, AgentError, TrustError) as error:
        raise InternalError(str(error)) from error
    except OSError as error:
        raise InternalError(f"{error.filename or 'the system'}: {error.strerror or error}") from error


def _names(machine: VirtualMachine) -> tuple[str, ...]:
    node = machine.node
    return node, machine_of_node(node)


def _row(machine: VirtualMachine, faults: tuple[ActiveFault, ...]) -> VirtualRow:
    node = machine.node if machine.joined else ""
    return VirtualRow(machine.name, node, machine.spec.tee, machine.running, machine.cable.plugged, faults)


def _shown(done: Done) -> ActiveFault:
    return ActiveFault(done.id, done.kind, done.machine, done.since)
