"""What happens to a cluster, as a seed tells it: ordinary days and faults, mixed; then calm, in which everything must heal.

    await tell(seed)          # raises Broken, with the steps that led there

Every step is one line of `told`, so that a failure can be read before it is replayed.
"""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

from fastness.kinds.kubernetes.core import NODE
from fastness.kinds.machineconfiguration import names
from fastness.kinds.machineconfiguration.pool import MACHINE_CONFIG_POOL
from fastness.kinds.objects import condition
from fastness.machineconfig.rollout.nodes import Goal, facts
from tests.simulation.configs import STORY_FILE
from tests.simulation.invariants import CANARY, Broken
from tests.simulation.machines import TEES, SimMachine
from tests.simulation.steps import Steps
from tests.simulation.whole_cluster import world

STEPS = 8
CALM_SECONDS = 300.0
PATIENCE = 8
REAL_EVERY = 10
"""One cluster in so many takes only real machines, and must give these nothing."""


class Story(Steps):
    """One run."""

    async def begin(self) -> None:
        """The first machines."""
        ticket = await self.here.ticket()
        for tee in (*TEES, self.random.choice(TEES)):
            self.here.add(tee, ticket)
        await self.here.pass_time(self.random.choice((1.0, 20.0, 40.0)))
        self.journal.append(f"{self.here.now:7.0f} s  {await self.new_config()}")

    async def go(self) -> None:
        """Steps, the invariants after each, then calm."""
        for _ in range(STEPS):
            step = self.random.choice(self.steps)
            self.taken[step.__name__] += 1
            self.journal.append(f"{self.here.now:7.0f} s  {await step()}")
            await self.here.pass_time(self.random.choice((0.0, 0.3, 2.0, 20.0, 90.0)))
            await self.here.watch.step()
        await self.calm()

    async def calm(self) -> None:
        """Every fault ends; what should work must work again, by itself."""
        for task in self.later:
            await task
        for process in self.here.processes.values():
            process.clock.skew = timedelta()
        await self.here.end_copies()
        self.journal.append(f"{self.here.now:7.0f} s  calm")
        await self.here.pass_time(CALM_SECONDS)
        for left in reversed(range(PATIENCE)):
            try:
                await self._is_healed()
                break
            except Broken:
                if not left:
                    raise
                await self.here.pass_time(CALM_SECONDS / 2)
        await self.here.watch.complete()
        for pair in self.pairs:
            # A guest key costs nothing, so only what is proved with it uses a ticket up: two may enrol, one gets in.
            if all(machine.bodies for machine in pair):
                raise Broken("one ticket for one machine let two in")

    async def _is_healed(self) -> None:
        if doors := self.here.network.unbelievable():
            raise Broken(f"certificates of {', '.join(doors)} are not valid, and nobody replaces them")
        for machine in self.here.machines:
            if self.here.simulated and self.here.good(machine) and not self._lost_its_ticket(machine):
                await self._is_well(machine)
        await self._is_rolled_out()

    async def _is_well(self, machine: SimMachine) -> None:
        obj = await self.here.machine_object(machine)
        if not machine.configured or obj is None or (condition(obj, "Attested") or {}).get("status") != "True":
            raise Broken(f"machine {machine.number} is stuck: {machine.refusals}")

    async def _is_rolled_out(self) -> None:
        """Every node that may, has what its pool wants: those that may not use up no budget."""
        pool = await self.here.cluster.get(MACHINE_CONFIG_POOL.resource, names.WORKER)
        goal = Goal(pool["spec"]["configuration"]["name"])
        nodes = {node["metadata"]["name"]: facts(node) for node in (await self.here.cluster.list(NODE.resource)).items}
        trusted = {
            machine.node.name: machine
            for machine in self.here.machines
            if machine.node is not None and self.here.good(machine)
        }
        for name, machine in trusted.items():
            node, content = nodes.get(name), machine.node.says(STORY_FILE) if machine.node is not None else b""
            if (
                node is None
                or not node.updated(goal)
                or not node.ready
                or content != f"{CANARY}-{self.number}".encode()
            ):
                raise Broken(f"machine {machine.number} does not get to {goal.config}: {node}, {content!r}")

    def _lost_its_ticket(self, machine: SimMachine) -> bool:
        single = any(machine.ticket is pair[0].ticket for pair in self.pairs)
        return single and "ticket-used-up" in machine.refusals


async def tell(seed: int, taken: Counter[str] | None = None) -> list[str]:
    """One run; what happened in it; raises what went wrong, with that. `taken` counts its steps, those not taken as 0."""
    async with world(seed, simulated=seed % REAL_EVERY != REAL_EVERY - 1) as here:
        story = Story(here, taken)
        try:
            await story.begin()
            await story.go()
        except Exception as error:
            error.add_note("\n".join(("after", *story.journal, f"replay with FASTNESS_SEED={seed}")))
            raise
        released, budget = here.watch.released.total(), here.watch.budget
        done = f"{released} releases, record of {here.watch.size}, revision {here.store.revision}"
        return [*story.journal, f"{done}, at most {budget.worst} of {budget.most} nodes out of service"]
