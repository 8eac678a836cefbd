"""The simulation: virtual machines and what was done to them, as the page and the command line see it.

    simulation = Simulation(state, profile)                 # knows what an earlier run left
    async with simulation.opened(ground): …                 # machines run, faults can be done and undone

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
from fastness.kube.errors import Conflict, InternalError, Unavailable
from fastness.page.simulator import ActiveFault, FaultKind, VirtualRow
from fastness.protocol.machine_names import machine_of_node
from fastness.sim.daemons import daemons
from fastness.sim.discovery import discovering
from fastness.sim.errors import DoneAlready, NoSuch, NotPossible
from fastness.sim.faults import CONTAINERS, FAULTS, Fault, Ground
from fastness.sim.hardware import TEES, Tee
from fastness.sim.inventory import Done, Roster, Spec, read_roster, write_roster
from fastness.sim.machines import VirtualMachine
from fastness.sim.pool_demand import wanting

MOST: Final = 5000
AT_ONCE: Final = 1000
CONTAINERS_PROFILE: Final = "containers"


class Simulation:
    """All virtual machines of a state directory."""

    def __init__(self, state: Path, profile: str, *, swtpm: bool = False) -> None:
        """Read what an earlier run left; raises Invalid for what cannot be read, Conflict for another profile."""
        self.state = state
        stored = read_roster(state)
        if stored is not None and stored.profile != profile:
            raise Conflict(
                f"the machines in {state} are of the profile {stored.profile}: start with --profile {stored.profile}, "
                "or choose another state directory"
            )
        self.roster = stored or Roster(profile)
        self._swtpm = swtpm
        self._ground: Ground | None = None
        self._turn = asyncio.Lock()

    @property
    def ahead(self) -> timedelta:
        """How far the clock of the cluster is ahead, by leaps that were not undone."""
        seconds = (float(fault.memory.get("seconds", 0)) for fault in self.roster.faults if fault.kind == "clock-jump")
        return timedelta(seconds=sum(seconds))

    @property
    def kept(self) -> int:
        """How many machines there are."""
        return len(self.roster.machines)

    @property
    def wants_swtpm(self) -> bool:
        """Whether some machine has, or may get, a TPM that is a process."""
        return self._swtpm or any(spec.swtpm for spec in self.roster.machines)

    @asynccontextmanager
    async def opened(self, ground: Ground, count: int) -> AsyncIterator[None]:
        """Switch on what an earlier run left, or so many new machines, for the time of the block; the hall ends them."""
        if not self.roster.next:
            self._grow(count, "")
        self._ground = ground
        built = {spec.name: ground.hall.build(spec) for spec in self.roster.machines}
        for done in self.roster.faults:
            FAULTS[done.kind].resume(ground, built.get(done.machine), done.memory)
        if ground.desk is not None:
            await ground.desk.open()
        for machine in built.values():
            ground.hall.place(machine)
        try:
            hosts = self.roster.profile == CONTAINERS_PROFILE
            async with (
                discovering(ground.hall, wanted=hosts), daemons(ground.hall, wanted=hosts),
                wanting(ground.hall, wanted=not hosts),
            ):  # fmt: skip
                yield
        finally:
            self._ground = None

    # ------------------------------------------------------------ looking

    def machines(self) -> Sequence[VirtualRow]:
        """Every virtual machine, in the order in which they came."""
        if self._ground is None:
            return ()
        faults: dict[str, list[ActiveFault]] = {}
        for done in self.roster.faults:
            faults.setdefault(done.machine, []).append(_shown(done))
        return [_row(machine, tuple(faults.get(machine.name, ()))) for machine in self._ground.hall]

    def consoles(self) -> dict[str, str]:
        """What each machine said last."""
        return {machine.name: machine.console for machine in self._ground.hall} if self._ground else {}

    def kinds(self) -> Sequence[FaultKind]:
        """What can be done here."""
        return [fault.kind for fault in FAULTS.values() if self._offered(fault)]

    def fleet_faults(self) -> Sequence[ActiveFault]:
        """What was done to the whole cluster and not undone."""
        return [_shown(done) for done in self.roster.faults if not done.machine]

    # ------------------------------------------------------------ faults

    async def do(self, kind: str, machine: str = "", argument: str = "") -> str:
        """Let something go wrong; raises ApiError."""
        async with self._turn:
            ground, fault = self._open, self._fault(kind)
            target = self._target(fault, machine)
            name = target.name if target is not None else ""
            standing = [entry for entry in self.roster.faults if (entry.kind, entry.machine) == (kind, name)]
            if standing and not fault.repeatable:
                where = f" with {name}" if name else ""
                raise DoneAlready(f"{kind} was done{where} already: undo {standing[0].id} first")
            objection = fault.objection(target)
            if objection:
                raise NotPossible(f"{kind} cannot be done to {name}: {objection}")
            with internal_errors():
                outcome = await fault.do(ground, target, argument)
            done = Done(self._fault_id(kind, name), kind, name, ground.clock.now(), outcome.memory)
            self._keep(replace(self.roster, faults=(*self.roster.faults, done)))
            return f"{outcome.said} (simulated; undo with {done.id})"

    async def undo(self, fault: str) -> str:
        """Put a fault right again; raises ApiError."""
        async with self._turn:
            ground = self._open
            done = next((entry for entry in self.roster.faults if entry.id == fault), None)
            if done is None:
                raise NoSuch(f"there is no fault {fault}; {self._listed()}")
            with internal_errors():
                message = await FAULTS[done.kind].undo(ground, ground.hall.get(done.machine), done.memory)
            self._keep(replace(self.roster, faults=tuple(entry for entry in self.roster.faults if entry is not done)))
            return message

    # ------------------------------------------------------------ machines

    async def add(self, count: int, tee: str = "") -> str:
        """Start further machines; raises ApiError."""
        if not 1 <= count <= AT_ONCE:
            raise NotPossible(f"between 1 and {AT_ONCE} machines can be added at once, not {count}")
        if tee and tee not in TEES:
            raise NotPossible(f"there is no simulated TEE {tee!r}: choose one of {', '.join(TEES)}")
        async with self._turn:
            hall = self._open.hall
            if self.kept + count > MOST:
                raise NotPossible(f"at most {MOST} machines run in one process; there are {self.kept}")
            specs = self._grow(count, tee)
            for spec in specs:
                hall.place(hall.build(spec))
        names = specs[0].name if count == 1 else f"{specs[0].name} to {specs[-1].name}"
        return f"{names} {'boots' if count == 1 else 'boot'} (simulated)"

    async def remove(self, machine: str) -> str:
        """Stop a machine and throw it away; raises ApiError."""
        async with self._turn:
            target = self._machine(machine)
            # Written first: a machine that is half thrown away must not come back.
            self._keep(self.roster.without(target.name))
            await self._open.hall.take(target.name)
        return f"{target.name} is gone, with its node and its Machine"

    async def reboot(self, machine: str) -> str:
        """Boot a machine again; raises ApiError."""
        target = self._machine(machine)
        target.switch()
        return f"{target.name} boots again and has to prove itself anew"

    # ------------------------------------------------------------ inside

    @property
    def _open(self) -> Ground:
        if self._ground is None:
            raise Unavailable("the machines are not there yet, or not any more")
        return self._ground

    def _offered(self, fault: Fault) -> bool:
        return self.roster.profile != CONTAINERS_PROFILE or fault.kind.id in CONTAINERS

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
        hall = self._open.hall
        match = hall.get(name) or next((candidate for candidate in hall if name in _names(candidate)), None)
        if match is None:
            raise NoSuch(f"there is no virtual machine {name!r}")
        return match

    def _fault_id(self, kind: str, machine: str) -> str:
        base, used = f"{machine}.{kind}" if machine else kind, {entry.id for entry in self.roster.faults}
        return next(entry for entry in (base, *(f"{base}.{n}" for n in range(2, len(used) + 3))) if entry not in used)

    def _listed(self) -> str:
        return (
            f"there are: {', '.join(fault.id for fault in self.roster.faults)}"
            if self.roster.faults
            else "nothing was done"
        )

    def _grow(self, count: int, tee: str) -> list[Spec]:
        """Further machines on the roster; a number is never given twice."""
        first = self.roster.next
        specs = [self._spec(number, tee) for number in range(first, first + count)]
        self._keep(replace(self.roster, next=first + count, machines=(*self.roster.machines, *specs)))
        return specs

    def _spec(self, number: int, tee: str) -> Spec:
        # Hosts of containers are alike unless somebody says otherwise: one runtime class can have one handler.
        usual: Tee = "tdx" if self.roster.profile == CONTAINERS_PROFILE else TEES[number % len(TEES)]
        kind: Tee = next((kind_of_tee for kind_of_tee in TEES if kind_of_tee == tee), usual)
        return Spec(f"worker-{number}", number, kind, self._swtpm and kind == "tpm")

    def _keep(self, roster: Roster) -> None:
        with internal_errors():
            write_roster(self.state, roster)
        self.roster = roster


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
