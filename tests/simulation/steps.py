"""What can happen to a cluster: ordinary days and faults. Each step does one thing, plans its end, and says what it did."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Protocol

from fastness.attestation.live.simulated_vendor import NAME as VENDOR
from fastness.http.refusals import Refusal
from fastness.keys.authorities import SECRETS
from fastness.keys.certificates import secret_name
from fastness.keys.mac_keys import MAC_KEYS
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER
from fastness.kinds.fastness_dev.distrust import DISTRUST
from fastness.kinds.kubernetes.core import CONFIG_MAP, NODE
from fastness.kinds.machineconfiguration import names
from fastness.kinds.machineconfiguration.pool import MACHINE_CONFIG_POOL
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.errors import AlreadyExists, NotFound
from fastness.kube.port import PatchType
from fastness.machineconfig.rollout.nodes import NodeFacts, facts
from fastness.protocol.door import DoorRole
from fastness.release.live.tokens import TOKEN_KEYS
from fastness.sim.announce import announce_vendor
from fastness.sim.tee.images import BootImage
from tests.simulation.configs import CANNOT_BE
from tests.simulation.machines import TEES, SimMachine
from tests.simulation.nodes import tell_ready
from tests.simulation.whole_cluster import GOOD, NEXT, TAMPERED, World, vendor


class Step(Protocol):
    """One thing that happens; what it answers is what happened."""

    __name__: str

    def __call__(self) -> Awaitable[str]:
        """Do it."""


class Steps:
    """All of them, over one world."""

    def __init__(self, here: World, taken: Counter[str] | None = None) -> None:
        self.here, self.random = here, here.random
        self.journal: list[str] = []
        self.taken = Counter[str]() if taken is None else taken
        self.later: list[asyncio.Task[None]] = []
        self.pairs: list[tuple[SimMachine, SimMachine]] = []
        self.number = 0
        self.steps: list[Step] = [
            self.kill, self.kill, self.lose_the_api, self.lose_the_api, self.tear_connections, self.cut_bodies, self.skew,
            self.reboot, self.reboot, self.reboot_all, self.tamper, self.quarantine, self.distrust, self.new_image,
            self.rotate_keys, self.switch_delivery, self.clone, self.one_ticket_twice, self.lose_collateral, self.refuse_configs,
            self.new_config, self.new_config, self.new_config, self.bad_config, self.fill_disk, self.power_off, self.raise_budget,
            self.hang, self.hang, self.stop, self.stop, self.issue_with_a_wrong_clock, self.lose_tiles, self.withdraw_midway,
            self.withdraw_midway,
        ]  # fmt: skip
        self.taken.update({step.__name__: 0 for step in self.steps})

    def _after(self, seconds: float, work: Callable[[], Awaitable[None]]) -> None:
        async def wait() -> None:
            await asyncio.sleep(seconds)
            await work()

        self.later.append(asyncio.ensure_future(wait()))

    async def _keep_token(self, machine: SimMachine) -> None:
        """A machine that is about to be revoked keeps its token, and uses it for as long as it may live."""
        held = await asyncio.ensure_future(self.here.held_token(machine))
        if held is not None:
            for seconds in (2.0, 20.0, 200.0):
                self._after(seconds, held.use)

    def _some_machine(self) -> SimMachine:
        return self.random.choice(self.here.machines)

    async def kill(self) -> str:
        """SIGKILL, and a start somewhat later."""
        process = self.random.choice(list(self.here.processes.values()))
        seconds = self.random.choice((0.5, 5.0, 60.0, 300.0))
        if not process.running:
            return f"{process.name} is dead already"
        await process.kill()

        async def start() -> None:
            process.start()

        self._after(seconds, start)
        return f"{process.name} is killed for {seconds} s"

    async def lose_the_api(self) -> str:
        """One process, or all, cannot reach the API."""
        several = [process for process in self.here.processes.values() if process.running]
        everybody = self.random.random() < 0.3
        chosen = several if everybody else [self.random.choice(several)] if several else []
        seconds = self.random.choice((1.0, 10.0, 120.0))
        lines = [process.line for process in chosen]
        cut = [machine for machine in self.here.machines if everybody or self.random.random() < 0.3]
        machines = [line for machine in cut for line in machine.lines]
        for line in (*lines, *machines):
            line.break_off()

        async def mend() -> None:
            for process, line in zip(chosen, lines, strict=True):
                if process.running and process.line is line:
                    line.mend()
            for line in machines:
                line.mend()

        self._after(seconds, mend)
        return f"{', '.join(process.name for process in chosen)} and {len(cut)} machines lose the API for {seconds} s"

    async def hang(self) -> str:
        """Connections to the API are half open: nobody is told, nothing comes."""
        processes = [process for process in self.here.processes.values() if process.running]
        chosen = [process for process in processes if self.random.random() < 0.5]
        machines = [machine for machine in self.here.machines if self.random.random() < 0.3]
        lines = [*(process.line for process in chosen), *(line for machine in machines for line in machine.lines)]
        seconds = self.random.choice((5.0, 60.0, 200.0))
        for line in lines:
            line.hang()

        async def mend() -> None:
            for line in lines:
                if not line.down:
                    line.mend()

        self._after(seconds, mend)
        return f"connections of {', '.join(process.name for process in chosen)} and {len(machines)} machines hang for {seconds} s"

    async def stop(self) -> str:
        """SIGSTOP, and SIGCONT somewhat later: a process goes on with what it knew."""
        process = self.random.choice([*self.here.processes.values()])
        seconds = self.random.choice((3.0, 25.0, 150.0))
        process.freeze()

        async def go_on() -> None:
            process.thaw()

        self._after(seconds, go_on)
        return f"{process.name} is stopped for {seconds} s"

    async def issue_with_a_wrong_clock(self) -> str:
        """A door gets its certificate while the clock of the issuer is ahead: of a time that has not come; then it is right."""
        issuers = [process for name, process in self.here.processes.items() if "controllers" in name]
        role = self.random.choice((DoorRole.ENROLMENT, DoorRole.BROKER, DoorRole.GATE))
        for process in issuers:
            process.clock.skew = timedelta(minutes=45)
        with suppress(NotFound):
            await self.here.cluster.delete(SECRETS, secret_name(role), NAMESPACE)

        async def right() -> None:
            for process in issuers:
                process.clock.skew = timedelta()

        self._after(self.random.choice((20.0, 120.0)), right)
        return f"the certificate of {role} is issued with a clock that is 45 minutes ahead"

    async def lose_tiles(self) -> str:
        """Pieces of the record are gone, until somebody brings a copy."""
        count = self.here.tiles.lose(self.random)

        async def back() -> None:
            self.here.tiles.bring_back()

        self._after(self.random.choice((20.0, 200.0)), back)
        return f"{count} tiles of the record are lost, and {await self.reboot()}"

    async def tear_connections(self) -> str:
        """Some calls fail, some succeed and the answer is lost."""
        lines = [process.line for process in self.here.processes.values() if process.running]
        lines += [line for machine in self.here.machines for line in machine.lines]
        for line in lines:
            line.torn = 0.3

        async def mend() -> None:
            for line in lines:
                line.torn = 0.0

        self._after(30.0, mend)
        return "connections to the API are torn for 30 s"

    async def cut_bodies(self) -> str:
        """Answers end in the middle."""
        self.here.network.cuts += self.random.randint(1, 8)
        return f"{self.here.network.cuts} answers will be cut"

    async def skew(self) -> str:
        """A clock is ten minutes wrong."""
        process = self.random.choice(list(self.here.processes.values()))
        process.clock.skew = timedelta(minutes=self.random.choice((-10, 10)))

        async def right() -> None:
            process.clock.skew = timedelta()

        self._after(self.random.choice((60.0, 600.0)), right)
        return f"the clock of {process.name} is wrong by {process.clock.skew}"

    async def reboot(self) -> str:
        """A machine is switched off and on."""
        machine = self._some_machine()
        image = machine.image if self.here.truth(machine.image) != "tampered" else GOOD
        again = await self._again([machine], image)
        return f"machine {machine.number} {again}"

    async def _again(self, machines: list[SimMachine], image: BootImage | None = None) -> str:
        """Switch machines off and on; half of the time they have new disks then."""
        fresh = self.random.random() < 0.5
        for machine in machines:
            await machine.switch_off()
        for machine in machines:
            if fresh:
                await self.here.reinstall(machine, image)
            else:
                self.here.switch_on(machine, image)
        return "installed again" if fresh else "rebooted"

    async def reboot_all(self) -> str:
        """A storm."""
        return f"all machines are {await self._again(self.here.machines)}"

    async def tamper(self) -> str:
        """A machine boots something else."""
        machine = self._some_machine()
        return f"machine {machine.number} is {await self._again([machine], TAMPERED)}, with something tampered with"

    async def quarantine(self) -> str:
        """Trust in a machine ends; sometimes it comes back."""
        machine = self._some_machine()
        await self._keep_token(machine)
        if not await self._approval(machine, "Quarantined"):
            return "nobody to quarantine"
        identity = self.here.identity(str(machine.number))
        self.here.revoked.setdefault(identity, self.here.now)
        if self.random.random() < 0.5:

            async def back() -> None:
                if await self._approval(machine, "Approved") and identity not in self.here.distrusted:
                    self.here.revoked.pop(identity, None)

            self._after(120.0, back)
        return f"machine {machine.number} is quarantined"

    async def _approval(self, machine: SimMachine, approval: str) -> bool:
        obj = await self.here.machine_object(machine)
        if obj is None:
            return False
        patch = {"spec": {"approval": approval}}
        await self.here.cluster.patch(MACHINE.resource, obj["metadata"]["name"], patch, PatchType.MERGE, NAMESPACE)
        return True

    async def distrust(self) -> str:
        """A machine or its key is distrusted for good."""
        machine = self._some_machine()
        await self._keep_token(machine)
        obj = await self.here.machine_object(machine)
        if obj is None:
            return "nobody to distrust"
        key = {"key": obj["status"]["keyThumbprint"]}
        target = key if self.random.random() < 0.5 else {"machine": obj["metadata"]["uid"]}
        body = {
            "apiVersion": DISTRUST.api_version, "kind": DISTRUST.kind, "spec": {**target, "reason": "simulated"},
            "metadata": {"name": f"machine-{machine.number}"},
        }  # fmt: skip
        with suppress(AlreadyExists):
            await self.here.cluster.create(DISTRUST.resource, body)
        identity = self.here.identity(str(machine.number))
        self.here.distrusted.add(identity)
        self.here.revoked.setdefault(identity, self.here.now)
        return f"machine {machine.number} is distrusted"

    async def new_image(self) -> str:
        """Publish the next image, or, when it is there, move everybody to it and withdraw the old one."""
        if NEXT.version in self.here.withdrawn:
            await self.here.publish(NEXT)
            return "the next image is published"
        if GOOD.version in self.here.withdrawn:
            return "the old image is withdrawn already"
        again = await self._again(self.here.machines, NEXT)
        await self.here.withdraw(GOOD)
        return f"all machines are {again} with the next image, and the old one is withdrawn"

    async def rotate_keys(self) -> str:
        """New keys for tokens and cookies, at once; often in the middle of a storm."""
        storm = self.random.random() < 0.7
        if storm:
            await self.reboot_all()
            await asyncio.sleep(self.random.random() / 10)
        for kind in (*MAC_KEYS.values(), TOKEN_KEYS):
            await replace(kind, lifetime=timedelta()).renew(self.here.cluster, self.here.entropy, self.here.clock.now())
        return f"keys are rotated{' in a storm' if storm else ''}"

    async def switch_delivery(self) -> str:
        """Another way to the configurations."""
        via, sync = self.random.choice(("Gate", "Broker")), self.random.choice(("OnDemand", "Scheduled", "OnChange"))
        patch = {"spec": {"delivery": {"via": via, "sync": sync, "interval": "5m"}}}
        await self.here.cluster.patch(CONFIDENTIAL_CLUSTER.resource, "cluster", patch, PatchType.MERGE)
        return f"configurations come by {via}, {sync}"

    async def clone(self) -> str:
        """A second machine with the identity of another."""
        machine = self._some_machine()
        # Which of two machines of one name is the node is not for a budget to say: the copy proves itself and joins nothing.
        self.here.add(machine.tee, machine.ticket, machine.image, machine.chip, joins=False)
        return f"machine {machine.number} is cloned"

    async def one_ticket_twice(self) -> str:
        """Two machines with a ticket for one, at the same instant."""
        ticket = await self.here.ticket(uses=1)
        tee = self.random.choice(TEES)
        image = NEXT if GOOD.version in self.here.withdrawn else GOOD
        self.pairs.append((self.here.add(tee, ticket, image), self.here.add(tee, ticket, image)))
        return f"two machines ({tee}) share a ticket for one"

    async def lose_collateral(self) -> str:
        """The vendor's documents are gone for a while."""
        with suppress(NotFound):
            await self.here.cluster.delete(CONFIG_MAP.resource, VENDOR, NAMESPACE)

        async def back() -> None:
            await announce_vendor(self.here.cluster, vendor(), self.here.clock.now())

        self._after(self.random.choice((5.0, 100.0)), back)
        return "the vendor's documents are gone"

    async def new_config(self) -> str:
        """The pool gets another configuration, or the one before."""
        back = self.number > 0 and self.random.random() < 0.3
        self.number = self.number - 1 if back else self.number + 1
        await self.here.configure(self.number)
        return f"the pool is configured with {self.number}"

    async def withdraw_midway(self) -> str:
        """A configuration is taken back when one node has it and another is told to, which hears of both a moment later."""
        before, self.number = self.number, self.number + 1
        await self.here.configure(self.number)
        if not await self._until_some_node(lambda node, goal: node.done and node.current == goal, self.here.machines):
            return f"the pool is configured with {self.number}, and no node gets there"
        late = [machine for machine in self.here.machines if machine.node and not await self._has_its_goal(machine)]
        lines = [line for machine in late for line in machine.lines]
        for line in lines:
            line.break_off()
        midway = await self._until_some_node(lambda node, goal: node.desired == goal, late)
        self.number = before
        await self.here.configure(self.number)
        await asyncio.sleep(10)
        for line in lines:
            line.mend()
        return f"the pool is configured with {self.number} again{' midway' if midway else ''}"

    async def _goal(self) -> str:
        """The rendered config that the pool wants."""
        pool = await self.here.cluster.get(MACHINE_CONFIG_POOL.resource, names.WORKER)
        return str(pool["spec"]["configuration"]["name"])

    async def _has_its_goal(self, machine: SimMachine) -> bool:
        node = await self._facts(machine)
        return node is not None and node.current == await self._goal()

    async def _facts(self, machine: SimMachine) -> NodeFacts | None:
        try:
            return (
                facts(await self.here.cluster.get(NODE.resource, machine.node.name))
                if machine.node is not None
                else None
            )
        except NotFound:
            return None

    async def _until_some_node(
        self, holds: Callable[[NodeFacts, str], bool], machines: list[SimMachine], looks: int = 60
    ) -> bool:
        """Wait for a node of some machines to be so, for two minutes at most; whether one was."""
        for _ in range(looks):
            await asyncio.sleep(2)
            goal = await self._goal()
            nodes = [await self._facts(machine) for machine in machines]
            if any(node is not None and holds(node, goal) for node in nodes):
                return True
        return False

    async def bad_config(self) -> str:
        """A configuration that no machine can lay down, taken back after a while."""
        self.number += 1
        await self.here.configure(self.number, bad=CANNOT_BE)

        async def back() -> None:
            await self.here.configure(self.number)

        self._after(self.random.choice((20.0, 120.0)), back)
        return "the pool gets a configuration that no machine can have"

    async def fill_disk(self) -> str:
        """A machine's disk is full for a while."""
        machine = self._some_machine()
        node = machine.node
        if node is None:
            return "nobody whose disk could be full"
        node.full = True

        async def room() -> None:
            node.full = False

        self._after(self.random.choice((30.0, 200.0)), room)
        return f"the disk of machine {machine.number} is full"

    async def power_off(self) -> str:
        """A machine is without power for a while, in the middle of whatever it did."""
        machine = self._some_machine()
        if machine.task is None:
            return f"machine {machine.number} is off already"
        await machine.switch_off()
        if machine.node is not None:
            with suppress(NotFound):
                await tell_ready(self.here.cluster, machine.node.name, "Unknown", self.here.clock)

        async def on() -> None:
            if machine.task is None:
                self.here.switch_on(machine)

        self._after(self.random.choice((15.0, 150.0)), on)
        return f"machine {machine.number} has no power"

    async def raise_budget(self) -> str:
        """The pool allows more at a time."""
        most = self.here.watch.budget.most + 1
        await self.here.cluster.patch(
            MACHINE_CONFIG_POOL.resource, names.WORKER, {"spec": {"maxUnavailable": most}}, PatchType.MERGE
        )
        return f"{most} nodes may be out of service"

    async def refuse_configs(self) -> str:
        """The config server is busy."""
        self.here.plane.busy += [Refusal(503, "not-rendered", "later", retry=3)] * self.random.randint(1, 4)
        return "the config server is busy"
