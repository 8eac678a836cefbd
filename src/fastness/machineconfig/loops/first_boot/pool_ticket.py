"""The join tickets in the user-data of pools: minted, rotated with overlap, limited by what a pool wants, forgotten.

    held = await tickets.held(pool, trust, shown)       # the ticket that the Secret shall carry, and when to look again

A ticket that was used up, and whose limit does not grow, is replaced at once: the limit holds back whoever found a copy, and new
machines are created with the new one. The one before is good for one more rotation. Expired tickets stay for a while: machines
that enrolled with one in time are counted on it at their first verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from fastness.crypto.secret import SecretText
from fastness.enrolment.live.tickets import (
    TicketProblem,
    check,
    join_ticket,
    limit_of,
    mint,
    ticket_hash,
    used_of,
    users_of,
)
from fastness.kinds.fastness_dev.join_ticket import JOIN_TICKET
from fastness.kinds.fastness_dev.trust_model import TrustModel
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import labels_of, object_name, rfc3339
from fastness.kinds.openshift.machines import CONTROL_PLANE_MACHINE_SET, MACHINE_SET
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.controllers.controller import Object
from fastness.kube.errors import NotFound
from fastness.kube.events import Recorder
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster, PatchType, Scope, WriteOptions
from fastness.machineconfig.pool_ticket import (
    KEPT_AFTER_EXPIRY,
    LIFETIME,
    ROTATION,
    changed_uses,
    is_due,
    rotates_at,
    uses_for,
    wanted_machines,
)
from fastness.machineconfig.render.errors import BadPointer
from fastness.runtime.clock import Clock, Entropy

TICKETS = JOIN_TICKET.resource
MACHINE_SETS = MACHINE_SET.resource
CONTROL_PLANE_SETS = CONTROL_PLANE_MACHINE_SET.resource
POOL_LABEL: Final = "fastness.dev/user-data"
ATTESTED: Final = "attested-in-pool"
SOON_SECONDS: Final = 1.0
_AS = WriteOptions(manager="user-data")


@dataclass(frozen=True, slots=True)
class Held:
    """The ticket that a pool's user-data carries, and in how many seconds it is replaced."""

    ticket: SecretText
    seconds: float


def attested_in_pool(machine: Object) -> Iterable[str]:
    """For an index of Machines: the pool of one that attested."""
    status = machine.get("status") or {}
    return (status["pool"],) if status.get("pool") and status.get("lastAttested") else ()


class PoolTickets:
    """Keeps the tickets of user-data."""

    def __init__(
        self, cluster: Cluster, informers: Informers, clock: Clock, entropy: Entropy, recorder: Recorder
    ) -> None:
        here = Scope(names.USER_DATA_NAMESPACE)
        self._cluster = cluster
        self._clock = clock
        self._entropy = entropy
        self._recorder = recorder
        self._tickets = informers.of(TICKETS)
        self._machines = informers.of(MACHINE.resource, indexers={ATTESTED: attested_in_pool})
        self._makers = (informers.of(MACHINE_SETS, here), informers.of(CONTROL_PLANE_SETS, here))

    async def held(self, pool: JsonObject, trust: TrustModel, token: str) -> Held:
        """The ticket in the Secret while its day lasts and it has uses left, else a new one; raises ApiError."""
        name, now = object_name(pool).name, self._clock.now()
        uses = uses_for(trust, await self._expected_machines(pool))
        current = await self._current_ticket(name, token, uses, now) if token else None
        if current is not None:
            await self._limit(name, current, uses)
            return Held(SecretText(token), max(SOON_SECONDS, (rotates_at(current) - now).total_seconds()))
        ticket = mint(self._entropy)
        made = join_ticket(_ticket_name(name, ticket), ticket, name, now + LIFETIME, uses)
        made["metadata"]["labels"][POOL_LABEL] = name
        made = await self._cluster.create(TICKETS, made, _AS)
        await self._limit(name, made, uses)
        await self._shorten(name, made, now)
        await self.drop(
            lambda candidate: POOL_LABEL in labels_of(candidate) and _expires(candidate) + KEPT_AFTER_EXPIRY <= now
        )
        return Held(ticket, ROTATION.total_seconds())

    async def drop(self, chosen: Callable[[JsonObject], bool]) -> None:
        """Delete tickets; raises ApiError."""
        for ticket in [candidate for candidate in self._tickets.list() if chosen(candidate)]:
            try:
                await self._cluster.delete(TICKETS, object_name(ticket).name)
            except NotFound:
                continue

    async def _expected_machines(self, pool: JsonObject) -> int:
        name = object_name(pool).name
        for informer in (self._machines, *self._makers):
            await informer.synced()
        makers = [maker for informer in self._makers for maker in informer.list()]
        attested = len(self._machines.by_index(ATTESTED, name))
        try:
            return wanted_machines(pool, makers, attested)
        except BadPointer as error:
            await self._recorder.warning(pool, names.Event.BAD_POINTER, f"{error.message}: {error.hint}")
            return attested

    async def _current_ticket(self, pool: str, token: str, uses: int, now: datetime) -> JsonObject | None:
        """The ticket that the Secret carries, if it goes on being good; one made a moment ago is not in the cache yet."""
        match = check(token, pool, self._tickets.list(), now)
        ticket = match.ticket
        if ticket is None:
            try:
                ticket = await self._cluster.get(TICKETS, _ticket_name(pool, SecretText(token)))
            except NotFound:
                return None
            match = check(token, pool, [ticket], now)
        limit = changed_uses(limit_of(ticket), uses, current=True)
        used_up = limit and max(used_of(ticket), len(users_of(ticket))) >= limit
        good = match.problem in (None, TicketProblem.USED_UP) and not used_up
        return dict(ticket) if good and not is_due(ticket, now) else None

    async def _limit(self, pool: str, current: JsonObject, uses: int) -> None:
        """Bring the limits of a pool's tickets in step with what it wants and whether its machines enrol."""
        name = object_name(current).name
        others = [other for other in self._tickets.list() if _of(other, pool) and object_name(other).name != name]
        for ticket in (current, *others):
            limit = limit_of(ticket)
            new_limit = changed_uses(limit, uses, current=ticket is current)
            if new_limit != limit:
                await self._patch(ticket, {"uses": new_limit})

    async def _shorten(self, pool: str, current: JsonObject, now: datetime) -> None:
        """The tickets before this one are good for one rotation more, and no longer."""
        end = now + ROTATION
        for ticket in self._tickets.list():
            if _of(ticket, pool) and object_name(ticket) != object_name(current) and _expires(ticket) > end:
                await self._patch(ticket, {"expires": rfc3339(end)})

    async def _patch(self, ticket: Object, spec: JsonObject) -> None:
        try:
            await self._cluster.patch(TICKETS, object_name(ticket).name, {"spec": spec}, PatchType.MERGE, "", _AS)
        except NotFound:
            return


def _of(ticket: Object, pool: str) -> bool:
    return labels_of(ticket).get(POOL_LABEL) == pool


def _expires(ticket: Object) -> datetime:
    return datetime.fromisoformat(ticket["spec"]["expires"])


def _ticket_name(pool: str, ticket: SecretText) -> str:
    return f"user-data-{pool}-{ticket_hash(ticket)[-12:]}"
