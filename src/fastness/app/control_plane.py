"""The one composition root: the parts of a control plane over a cluster, for the time of a block.

    async with control_plane(parts, cluster, keys, settings, clock, entropy, health) as running:
        await running.doors.all()

`fastness up` runs all parts over the embedded API (`embedded.py`), `fastness serve` those of its roles over any Kubernetes
(`replica.py`). Parts start side by side, because a door waits for its certificate and the controllers issue those; one that fails
ends all. Readiness says what a part waits for.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import cache, partial
from typing import Final

from fastness.app.doors import DoorOpener, OpenDoors, load_rooms
from fastness.app.other_operators import held_back, left_out
from fastness.app.parts import Part
from fastness.app.settings import ClusterKeys, Election, PlaneSettings
from fastness.app.state_format import claim_format, require_known_format
from fastness.attestation.live.statuses import SignedStatuses, signed_statuses
from fastness.attestation.loops import door_certificates
from fastness.attestation.verdict.retention import needed_part
from fastness.enrolment.trusted_cluster import Doors
from fastness.http.health import Health
from fastness.keys.authorities import LiveAuthority
from fastness.keys.doors import DOORS
from fastness.keys.home import Home
from fastness.kinds.fastness_dev.verdict import VERDICT
from fastness.kube.controllers import Leadership, LostLease, Runner
from fastness.kube.controllers.fenced import nobody_asks
from fastness.kube.informers import Informers
from fastness.kube.port import EVERYWHERE, Cluster
from fastness.record.live.door_keys import RecordRole
from fastness.record.live.health import RecordHealth
from fastness.record.live.tiles import ConfigMapTiles
from fastness.runtime.clock import Clock, Entropy
from fastness.runtime.tasks import background, work_until

# The doors that write statuses of Machines, and whose keys they sign them with.
_SIGNERS: Final[dict[Part, RecordRole]] = {
    Part.CONTROLLERS: "controllers", Part.ENROLMENT: "enrolment", Part.BROKER: "broker",
}  # fmt: skip


class Running:
    """A running control plane: its doors, and its controllers."""

    def __init__(self, doors: OpenDoors) -> None:
        self.doors = doors
        self._controllers: asyncio.Future[Runner] = asyncio.get_running_loop().create_future()

    async def controllers(self) -> Runner:
        """The controllers, when they work for the first time."""
        return await asyncio.shield(self._controllers)

    def working(self, runner: Runner) -> None:
        """The controllers work."""
        if not self._controllers.done():
            self._controllers.set_result(runner)


@asynccontextmanager
async def control_plane(
    parts: Collection[Part],
    cluster: Cluster,
    keys: ClusterKeys,
    settings: PlaneSettings,
    clock: Clock,
    entropy: Entropy,
    health: Health,
) -> AsyncIterator[Running]:
    """These parts for the time of the block; raises LackingError, ApiError, OSError, TrustError, alone or in a group."""
    load_rooms(parts)  # before there is a lease that a second of loading could lose
    await (claim_format if Part.CONTROLLERS in parts else require_known_format)(cluster)
    home, tasks = Home(cluster, clock), {}
    health.add("home", home.problem)
    if Part.CONTROLLERS in parts:
        record = RecordHealth(cluster, settings.tiles or ConfigMapTiles(cluster), clock)
        health.add("record", record.problem)
        await record.look()
        tasks["record"] = record.watch
    running = Running(OpenDoors(parts, settings))
    async with _views(cluster, settings, clock, entropy, health) as view_of:
        process = _Process(cluster, view_of, keys, settings, running, clock, entropy, health)
        tasks |= {part: partial(process.run, part) for part in Part if part in parts}
        async with background("control-plane", home=home.watch, **tasks):
            yield running


@dataclass(frozen=True, slots=True)
class _View:
    """The cluster as a part sees it: it signs statuses as its role, and reads from its caches."""

    cluster: SignedStatuses
    informers: Informers


_ViewOf = Callable[[Part], AbstractAsyncContextManager[_View]]


@asynccontextmanager
async def _views(
    cluster: Cluster, settings: PlaneSettings, clock: Clock, entropy: Entropy, health: Health
) -> AsyncIterator[_ViewOf]:
    """One view for all parts of a process that is alone, and a new one for each of a replica."""

    @cache
    def signing_as(role: RecordRole | None) -> SignedStatuses:
        """Kept from one term of a leader to the next: it remembers the newest status of each Machine."""
        return signed_statuses(role, cluster, clock, entropy)

    @asynccontextmanager
    async def view_as(role: RecordRole | None) -> AsyncIterator[_View]:
        signed = signing_as(role)
        trims = {(VERDICT.resource, EVERYWHERE): needed_part} if role == "controllers" and not settings.alone else {}
        async with Informers(signed, clock=clock, entropy=entropy, places=settings.places, trims=trims) as informers:
            yield _View(signed, informers)

    if not settings.alone:
        yield lambda part: view_as(_SIGNERS.get(part))
        return
    # One process is every role, and signs as the one that may write anything.
    async with view_as("controllers") as view:
        health.add("caches", view.informers.out_of_touch)
        health.warn("set-aside", view.informers.unused)
        # Its controllers lead machines to its doors, so they work when those are open; doors open with a certificate.
        async with door_certificates.issuing(cluster, view.informers, clock, entropy):
            yield lambda _: nullcontext(view)


class _Process:
    """Runs parts."""

    def __init__(
        self,
        cluster: Cluster,
        view_of: _ViewOf,
        keys: ClusterKeys,
        settings: PlaneSettings,
        running: Running,
        clock: Clock,
        entropy: Entropy,
        health: Health,
    ) -> None:
        self._cluster = cluster
        self._view_of = view_of
        self._settings = settings
        self._running = running
        self._clock = clock
        self._entropy = entropy
        self._health = health
        self._opener = DoorOpener(keys, settings, running.doors, clock, entropy)

    async def run(self, part: Part) -> None:
        """One part, until cancelled."""
        if part is not Part.CONTROLLERS:
            await self._serve(part)
        elif self._settings.election is None:
            await self._control()
        else:
            await self._lead_for_ever(self._settings.election)

    async def _serve(self, part: Part) -> None:
        own_caches = not self._settings.alone
        if own_caches:
            self._health.add(part, lambda: "the caches and certificates")
        async with self._view_of(part) as view, self._opener.open(part, view.cluster, view.informers) as door:
            if own_caches:
                self._health.add(part, view.informers.out_of_touch)
                self._health.warn(f"{part}-set-aside", view.informers.unused)
            self._running.doors.add(part, door)
            await asyncio.Event().wait()

    async def _control(self) -> None:
        """The controllers of a process that is alone."""
        self._health.add("controllers", lambda: "the doors")
        async with self._view_of(Part.CONTROLLERS) as view:
            await self._running.doors.all()
            runner = await self._runner(view, without=(door_certificates.FAMILY,))
            await runner.run()

    async def _lead_for_ever(self, election: Election) -> None:
        """Wait for the lease, work while it is held, begin again when it is lost.

        A replica that waits for its turn is ready: it does all that is asked of it, whether it has led before or not.
        """
        leadership = Leadership(self._cluster, election.identity, self._clock, self._entropy, election.lease)
        while True:
            self._health.add("controllers", lambda: None)
            async with leadership.held() as lost, self._view_of(Part.CONTROLLERS) as view:
                held = await held_back(self._cluster, election.adopted, self._clock.now())
                for family, sign in held.items():
                    self._settings.tell(
                        f"the {family} controllers are not started: {sign}; take over with --adopt {family}"
                    )
                lacking = self._lacking(election)
                watched = await _watched(view.informers)
                runner = await self._runner(
                    view, may_write=leadership.require, watched=watched, without={*held, *lacking}
                )
                self._health.warn("set-aside", view.informers.unused)
                came = election.kinds.came if election.kinds else asyncio.Event()
                with suppress(LostLease):
                    await work_until(lost, work_until(came, runner.run()))

    def _lacking(self, election: Election) -> Collection[str]:
        """The families whose definitions nobody installed; they start when those come."""
        if election.kinds is None:
            return ()
        election.kinds.came.clear()
        lacking = left_out(election.kinds.absent_groups)
        for family, sets in lacking.items():
            self._settings.tell(
                f"the {family} controllers wait for definitions: fastness crds --with {sets} | kubectl apply --server-side -f -"
            )
        return lacking

    async def _runner(
        self,
        view: _View,
        *,
        without: Collection[str],
        may_write: Callable[[], None] = nobody_asks,
        watched: Callable[[], bool] = lambda: True,
    ) -> Runner:
        from fastness.app.controllers import product_loops  # with the loops of all rooms, which no door needs
        from fastness.builds.live.builder import nobody_builds

        settings = self._settings
        product = product_loops(
            view.cluster, view.informers, self._clock, self._entropy, timing=settings.timing, doors=await self._pointers(view),
            may_write=may_write, tiles=settings.tiles, watched=watched, statuses=view.cluster.statuses, without=without,
            providers=settings.providers, resolve_image=settings.resolve_image, builder=settings.builder or nobody_builds,
            simulated_images=settings.simulated_images,
        )  # fmt: skip
        loops, feeds = [*settings.loops.controllers, *product], dict(settings.loops.feeds)
        runner = Runner(loops, view.informers, self._clock, self._entropy, feeds=feeds)
        self._health.add("controllers", runner.waiting_for)
        self._running.working(runner)
        return runner

    async def _pointers(self, view: _View) -> Callable[[], Doors | None]:
        """Where user-data leads machines to, with the authority as it is at that moment; nowhere without an address."""
        addresses = self._running.doors.addresses()
        if not addresses.config_server:
            from fastness.machineconfig.loops.controllers import nowhere

            return nowhere
        live = await LiveAuthority.open(DOORS, view.cluster, view.informers, self._clock, self._entropy)
        return lambda: Doors(addresses.enrolment, addresses.config_server, live.current.bundle)


async def _watched(informers: Informers) -> Callable[[], bool]:
    """Whether the webhook stands in front of the API at a moment."""
    from fastness.admission.door.configuration import NAME, RESOURCE, protects  # with every check of the webhook

    registered = informers.of(RESOURCE)
    await registered.synced()
    return lambda: protects(registered.get("", NAME))
