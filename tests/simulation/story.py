"""What happens to a cluster, as a seed tells it: ordinary days and faults, mixed; then calm, in which everything must heal.

    await tell(seed)          # raises Broken, with the steps that led there

Every step is one line of `told`, so that a failure can be read before it is replayed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

from fastness.cluster.errors import AlreadyExists, NotFound
from fastness.cluster.port import PatchType
from fastness.domain.attestation.membership import NAMESPACE
from fastness.model.fastness_dev.cluster import CONFIDENTIAL_CLUSTER
from fastness.model.fastness_dev.distrust import DISTRUST
from fastness.model.objects import condition
from fastness.model.trusted_execution.machine import MACHINE
from fastness.services.refusals import Refusal
from fastness.sim.announce import announce_vendor
from fastness.trust.mackeys import MAC_KEYS
from fastness.trust.simulated import NAME as VENDOR
from fastness.trust.tiles import CONFIG_MAPS
from fastness.trust.tokens import TOKEN_KEYS
from tests.simulation.invariants import Broken
from tests.simulation.machines import TEES, SimMachine
from tests.simulation.world import GOOD, NEXT, TAMPERED, World, vendor, world

STEPS = 8
CALM_SECONDS = 1000.0
REAL_EVERY = 10
"""One cluster in so many takes only real machines, and must give these nothing."""


class Story:
    """One run."""

    def __init__(self, here: World) -> None:
        self.here, self.random = here, here.random
        self.told: list[str] = []
        self.later: list[asyncio.Task[None]] = []
        self.pairs: list[tuple[SimMachine, SimMachine]] = []
        self.steps: list[Callable[[], Awaitable[str]]] = [
            self.kill, self.kill, self.lose_the_api, self.lose_the_api, self.tear_connections, self.cut_bodies, self.skew,
            self.reboot, self.reboot, self.reboot_all, self.tamper, self.quarantine, self.distrust, self.new_image,
            self.rotate_keys, self.switch_delivery, self.clone, self.one_ticket_twice, self.lose_collateral, self.refuse_configs,
        ]  # fmt: skip

    async def begin(self) -> None:
        """The first machines."""
        ticket = await self.here.ticket()
        for tee in (*TEES, self.random.choice(TEES)):
            self.here.add(tee, ticket)

    async def go(self) -> None:
        """Steps, the invariants after each, then calm."""
        for _ in range(STEPS):
            step = self.random.choice(self.steps)
            self.told.append(f"{self.here.now:7.0f} s  {await step()}")
            await self.here.pass_time(self.random.choice((0.0, 0.3, 2.0, 20.0, 90.0)))
            await self.here.watch.step()
        await self.calm()

    async def calm(self) -> None:
        """Every fault ends; what should work must work again, by itself."""
        for task in self.later:
            await task
        for process in self.here.processes.values():
            process.clock.skew = timedelta()
        self.told.append(f"{self.here.now:7.0f} s  calm")
        await self.here.pass_time(CALM_SECONDS)
        await self.here.watch.complete()
        for machine in self.here.machines:
            if self.here.simulated and self.here.good(machine) and not self._lost_its_ticket(machine):
                await self._is_well(machine)
        for pair in self.pairs:
            if all([await self.here.machine_object(one) is not None for one in pair]):
                raise Broken("one ticket for one machine enrolled two")

    async def _is_well(self, machine: SimMachine) -> None:
        found = await self.here.machine_object(machine)
        if not machine.configured or found is None or (condition(found, "Attested") or {}).get("status") != "True":
            raise Broken(f"machine {machine.number} is stuck: {machine.refusals}")

    def _lost_its_ticket(self, machine: SimMachine) -> bool:
        single = any(machine.ticket is pair[0].ticket for pair in self.pairs)
        return single and "ticket-used-up" in machine.refusals

    def _after(self, seconds: float, work: Callable[[], Awaitable[None]]) -> None:
        async def wait() -> None:
            await asyncio.sleep(seconds)
            await work()

        self.later.append(asyncio.ensure_future(wait()))

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
        several = [one for one in self.here.processes.values() if one.running]
        chosen = several if self.random.random() < 0.3 else [self.random.choice(several)] if several else []
        seconds = self.random.choice((1.0, 10.0, 120.0))
        lines = [one.line for one in chosen]
        for line in lines:
            line.break_off()

        async def mend() -> None:
            for process, line in zip(chosen, lines, strict=True):
                if process.running and process.line is line:
                    line.mend()

        self._after(seconds, mend)
        return f"{', '.join(one.name for one in chosen)} lose the API for {seconds} s"

    async def tear_connections(self) -> str:
        """Some calls fail, some succeed and the answer is lost."""
        chosen = [one for one in self.here.processes.values() if one.running]
        for one in chosen:
            one.line.torn = 0.3

        async def mend() -> None:
            for one in chosen:
                one.line.torn = 0.0

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
        await machine.switch_off()
        self.here.switch_on(machine, machine.image if self.here.truth(machine.image) != "tampered" else GOOD)
        return f"machine {machine.number} reboots"

    async def reboot_all(self) -> str:
        """A storm."""
        for machine in self.here.machines:
            await machine.switch_off()
        for machine in self.here.machines:
            self.here.switch_on(machine)
        return "all machines reboot"

    async def tamper(self) -> str:
        """A machine boots something else."""
        machine = self._some_machine()
        await machine.switch_off()
        self.here.switch_on(machine, TAMPERED)
        return f"machine {machine.number} boots something tampered with"

    async def quarantine(self) -> str:
        """Trust in a machine ends; sometimes it comes back."""
        machine = self._some_machine()
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

    async def _approval(self, machine: SimMachine, wanted: str) -> bool:
        found = await self.here.machine_object(machine)
        if found is None:
            return False
        patch = {"spec": {"approval": wanted}}
        await self.here.cluster.patch(MACHINE.resource, found["metadata"]["name"], patch, PatchType.MERGE, NAMESPACE)
        return True

    async def distrust(self) -> str:
        """A machine or its key is distrusted for good."""
        machine = self._some_machine()
        found = await self.here.machine_object(machine)
        if found is None:
            return "nobody to distrust"
        key = {"key": found["status"]["keyThumbprint"]}
        target = key if self.random.random() < 0.5 else {"machine": found["metadata"]["uid"]}
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
        for machine in self.here.machines:
            await machine.switch_off()
            self.here.switch_on(machine, NEXT)
        await self.here.withdraw(GOOD)
        return "all machines reboot into the next image, and the old one is withdrawn"

    async def rotate_keys(self) -> str:
        """New keys for tokens and cookies, at once; often in the middle of a storm."""
        storm = self.random.random() < 0.7
        if storm:
            await self.reboot_all()
            await asyncio.sleep(self.random.random() / 10)
        for kind in (MAC_KEYS, TOKEN_KEYS):
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
        self.here.add(machine.tee, machine.ticket, machine.image, machine.chip)
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
            await self.here.cluster.delete(CONFIG_MAPS, VENDOR, NAMESPACE)

        async def back() -> None:
            await announce_vendor(self.here.cluster, vendor(), self.here.clock.now())

        self._after(self.random.choice((5.0, 100.0)), back)
        return "the vendor's documents are gone"

    async def refuse_configs(self) -> str:
        """The config server is busy."""
        self.here.shelf.refusals += [Refusal(503, "not-rendered", "later", retry=3)] * self.random.randint(1, 4)
        return "the config server is busy"


async def tell(seed: int) -> list[str]:
    """One run; the steps that were taken; raises Broken with them."""
    async with world(seed, simulated=seed % REAL_EVERY != REAL_EVERY - 1) as here:
        story = Story(here)
        try:
            await story.begin()
            await story.go()
        except Broken as error:
            steps = "\n".join(story.told)
            raise Broken(f"{error}\nafter\n{steps}\nreplay with FASTNESS_SEED={seed}") from error
        done = f"{here.watch.released.total()} releases, record of {here.watch.size}, revision {here.store.revision}"
        return [*story.told, done]
