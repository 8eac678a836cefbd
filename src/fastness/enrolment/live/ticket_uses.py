"""How often a join ticket was used.

A use is counted once per Machine, after something was proved about its key, so a retry costs nothing and a stranger cannot use a
ticket up: for a TPM when it has opened its credential, for a guest at its first affirmed verdict (`guest_tickets.py`).

* A limited ticket: `usedBy` names the Machines. A use is one patch on the version that was read; of two machines that show the
  last use of a ticket at the same instant, exactly one patch goes through, on any API server and with any number of doors.
* An unlimited ticket: nothing depends on the number, so uses are added up here and written now and then (`flush`). What a
  door that dies had not written is lost.
* The ticket is the one that was checked: same name, same uid. Deleting it ends it, also between the two messages.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any, Final
from weakref import WeakValueDictionary

from fastness.enrolment.live.tickets import TicketProblem, limit_of, used_of, users_of
from fastness.kinds.fastness_dev.join_ticket import JOIN_TICKET
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import is_being_deleted, rfc3339
from fastness.kube.errors import ApiError, Conflict, NotFound
from fastness.kube.port import Cluster, PatchType, WriteOptions
from fastness.observe import logs
from fastness.runtime.clock import Clock

ATTEMPTS: Final = 12
PAUSE_SECONDS: Final = 0.01
FLUSH_SECONDS: Final = 10.0
CLOSE_SECONDS: Final = 5.0
_STATUS: Final = WriteOptions(manager="enrolment", subresource="status")
_log = logs.logger("tickets")


class TicketSpent(Exception):
    """The ticket cannot be used (any more); `problem` says why."""

    def __init__(self, problem: TicketProblem) -> None:
        super().__init__(problem.value)
        self.problem = problem


class TicketUses:
    """Counts uses in the cluster."""

    def __init__(self, cluster: Cluster, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock
        # Machines of one rack come together; in line they do not fail each other's patches.
        self._lines: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._uncounted: Counter[tuple[str, str]] = Counter()

    async def check(self, name: str, uid: str, machine: str) -> None:
        """Look whether a Machine (its name) could use the ticket now, and count nothing; raises TicketSpent, ApiError."""
        ticket = await self._read(name, uid)
        limit, users = limit_of(ticket), users_of(ticket)
        if limit and machine not in users and max(used_of(ticket), len(users)) >= limit:
            raise TicketSpent(TicketProblem.USED_UP)

    async def spend(self, name: str, uid: str, machine: str, *, expired: bool = False) -> None:
        """Count a use by a Machine (its name), unless it was counted before; raises TicketSpent, ApiError.

        `expired` counts on a ticket that was good when it was shown and has expired since.
        """
        line = self._lines.setdefault(name, asyncio.Lock())
        async with line:
            for attempt in range(ATTEMPTS):
                ticket = await self._read(name, uid, expired=expired)
                if limit_of(ticket) == 0:
                    self._uncounted[name, uid] += 1
                    return
                try:
                    await self._count(name, ticket, machine)
                except Conflict:
                    # Another door was faster; its write may not be readable yet.
                    await self._clock.sleep(PAUSE_SECONDS * (attempt + 1))
                    continue
                return
        raise Conflict(f"the uses of ticket {name} change too fast to be counted")

    async def flush(self) -> None:
        """Write what was added up of unlimited tickets; what cannot be written now is kept."""
        for (name, uid), uses in list(self._uncounted.items()):
            try:
                ticket = await self._read(name, uid, expired=True)
                await self._write(name, ticket, {"used": used_of(ticket) + uses})
            except (TicketSpent, NotFound):
                del self._uncounted[name, uid]
                continue
            except ApiError as error:
                _log.warning("ticket.uncounted", ticket=name, error=error)
                continue
            self._uncounted[name, uid] -= uses
            if self._uncounted[name, uid] <= 0:
                del self._uncounted[name, uid]

    async def close(self) -> None:
        """Write the rest, for a moment: a cluster that does not answer holds up nobody who wants to end."""
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await self.flush()

    async def run(self) -> None:
        """Write now and then, for as long as the door is open."""
        while True:
            await self._clock.sleep(FLUSH_SECONDS)
            await self.flush()

    async def _read(self, name: str, uid: str, *, expired: bool = False) -> JsonObject:
        if not name:
            raise TicketSpent(TicketProblem.UNKNOWN)
        try:
            ticket = await self._cluster.get(JOIN_TICKET.resource, name)
        except NotFound as error:
            raise TicketSpent(TicketProblem.UNKNOWN) from error
        if ticket["metadata"]["uid"] != uid or is_being_deleted(ticket):
            raise TicketSpent(TicketProblem.UNKNOWN)
        if not expired and datetime.fromisoformat(ticket["spec"]["expires"]) <= self._clock.now():
            raise TicketSpent(TicketProblem.EXPIRED)
        return ticket

    async def _count(self, name: str, ticket: Mapping[str, Any], machine: str) -> None:
        users = users_of(ticket)
        if machine in users:
            return
        used = max(used_of(ticket), len(users))
        if used >= limit_of(ticket):
            raise TicketSpent(TicketProblem.USED_UP)
        await self._write(name, ticket, {"used": used + 1, "usedBy": [*users, machine]})

    async def _write(self, name: str, ticket: Mapping[str, Any], status: JsonObject) -> None:
        patch = {
            "metadata": {"resourceVersion": ticket["metadata"]["resourceVersion"]},
            "status": {**status, "lastUsed": rfc3339(self._clock.now())},
        }
        await self._cluster.patch(JOIN_TICKET.resource, name, patch, PatchType.MERGE, "", _STATUS)
