"""Join tickets: who may knock, for which pool, how often and until when.

A ticket is random text that is shown once; the cluster keeps its SHA-256 in a JoinTicket. It proves nothing about a
machine: it only limits who may ask. Rules:

* Checking is constant in time over all tickets that are known, and says only yes or why not.
* An expired ticket, one for another pool, one that is used up: each is refused for its own reason, and the door decides how
  much of it to tell.

**As a door knows them** (`TicketCache`): from its cache, and of those that the cache does not hold, from the API. A machine ends
at the first refusal that is final, so a door must be sure before it calls a ticket unknown. A cache is a moment behind: somebody
may make a ticket and use it within that moment. So a ticket that nobody here knows is looked up once, by a label that every
ticket of ours has; only then it is unknown.

* Strangers make up tickets, and each would cost the API a request. Lookups are bounded in number at once and per second, and one
  that found nothing is remembered for a while. Beyond the bounds the answer is to come again, not to go away.
* While the cache is cut off from the API nobody asks: it cannot be told what is there.
* A ticket without the label, written by hand, counts as soon as the caches have heard of it.

**How often they were used** (`TicketUses`): counted once per Machine, after something was proved about its key, so a retry costs
nothing and a stranger cannot use a ticket up: for a TPM when it has opened its credential, for a guest at its first affirmed
verdict (`guest_tickets.py`). The config server sees no key and cannot count, so it takes only tickets without a limit
(decision 11).

* A limited ticket: `usedBy` names the Machines. A use is one patch on the version that was read; of two machines that show the
  last use of a ticket at the same instant, exactly one patch goes through, on any API server and with any number of doors.
* An unlimited ticket: nothing depends on the number, so uses are added up here and written now and then (`flush`). What a
  door that dies had not written is lost.
* The ticket is the one that was checked: same name, same uid. Deleting it ends it, also between the two messages.
"""

from __future__ import annotations

import asyncio
import base64
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final
from weakref import WeakValueDictionary

from fastness.crypto.digests import same, sha256
from fastness.crypto.secret import SecretText
from fastness.keys.errors import TicketUnclear
from fastness.kinds.fastness_dev.join_ticket import JOIN_TICKET
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import is_being_deleted, object_name, rfc3339
from fastness.kube.errors import ApiError, Conflict, NotFound
from fastness.kube.informers import Informer
from fastness.kube.port import Cluster, PatchType, Scope, WriteOptions
from fastness.observe import logs
from fastness.runtime.cache import BoundedCache
from fastness.runtime.clock import Clock, Entropy

PREFIX: Final = "fst_"
# So much that the cluster may keep a plain hash: nobody guesses 256 bits, so there is nothing to slow down.
RANDOM_BYTES: Final = 32
MAX_TICKET: Final = 256
HASH_LABEL: Final = "fastness.dev/ticket"
# A label holds 63 characters. 160 bits of the hash find the object; the whole hash is compared afterwards.
_LABEL_HEX: Final = 40
# What strangers may cost the API at most through one door, however many of them there are.
AT_ONCE: Final = 16
BURST: Final = 50.0
PER_SECOND: Final = 10.0
# Short: a ticket that is made right after somebody tried it must soon count.
UNKNOWN_SECONDS: Final = 10.0
MOST_UNKNOWN: Final = 4096
ATTEMPTS: Final = 12
PAUSE_SECONDS: Final = 0.01
FLUSH_SECONDS: Final = 10.0
CLOSE_SECONDS: Final = 5.0
_STATUS: Final = WriteOptions(manager="enrolment", subresource="status")
_log = logs.logger("tickets")


class TicketProblem(StrEnum):
    """Why a ticket is not good."""

    UNKNOWN = "unknown"
    EXPIRED = "expired"
    WRONG_POOL = "wrong-pool"
    USED_UP = "used-up"


@dataclass(frozen=True, slots=True)
class TicketCheck:
    """The JoinTicket that was shown, or what is wrong with it."""

    name: str = ""
    problem: TicketProblem | None = None
    ticket: Mapping[str, Any] | None = None

    @property
    def good(self) -> bool:
        """Whether it may be used now."""
        return self.problem is None

    @property
    def pool(self) -> str:
        """The pool that it is for; empty when it is unknown."""
        return str(self.ticket["spec"]["pool"]) if self.ticket else ""

    @property
    def uid(self) -> str:
        """The uid of the JoinTicket: a ticket that was made anew under the same name is another one."""
        return str(self.ticket["metadata"].get("uid", "")) if self.ticket else ""

    @property
    def limited(self) -> bool:
        """Whether its uses are counted."""
        return self.ticket is not None and limit_of(self.ticket) > 0

    def used_by(self, machine: str) -> bool:
        """Whether the Machine of this name has used it already; only known of limited tickets."""
        return self.ticket is not None and machine in users_of(self.ticket)


def mint(entropy: Entropy) -> SecretText:
    """A new ticket."""
    text = base64.urlsafe_b64encode(entropy.token(RANDOM_BYTES)).decode().rstrip("=")
    return SecretText(f"{PREFIX}{text}")


def ticket_hash(ticket: SecretText) -> str:
    """What the cluster keeps of a ticket."""
    return str(sha256(ticket.reveal().encode()))


def hash_label(ticket: SecretText) -> str:
    """What a JoinTicket is found by without knowing its name: the beginning of the hash, as long as a label may be."""
    return sha256(ticket.reveal().encode()).hex[:_LABEL_HEX]


def well_formed(text: str) -> bool:
    """Whether this could be a ticket at all."""
    return text.startswith(PREFIX) and len(PREFIX) < len(text) <= MAX_TICKET and text.isascii()


def join_ticket(name: str, ticket: SecretText, pool: str, expires: datetime, uses: int = 0) -> JsonObject:
    """The JoinTicket object of a ticket."""
    spec = {"pool": pool, "uses": uses, "expires": rfc3339(expires), "secretHash": ticket_hash(ticket)}
    return {
        "apiVersion": JOIN_TICKET.api_version, "kind": JOIN_TICKET.kind, "spec": spec,
        "metadata": {"name": name, "labels": {HASH_LABEL: hash_label(ticket)}},
    }  # fmt: skip


def limit_of(ticket: Mapping[str, Any]) -> int:
    """How many machines may use it; 0 means any number. A ticket that does not say is for one, as the schema has it."""
    uses = ticket["spec"].get("uses")
    # The cautious reading: a ticket without a number must not be one without a limit.
    return 1 if uses is None else int(uses)


def used_of(ticket: Mapping[str, Any]) -> int:
    """How many machines have used it."""
    return int((ticket.get("status") or {}).get("used") or 0)


def users_of(ticket: Mapping[str, Any]) -> list[str]:
    """The names of the Machines that have used it; kept for limited tickets."""
    return list((ticket.get("status") or {}).get("usedBy") or ())


def check(text: str, pool: str | None, tickets: Iterable[Mapping[str, Any]], now: datetime) -> TicketCheck:
    """Whether what was shown is a ticket for this pool (None: any) that may be used now; every known ticket is compared."""
    # Goes on with an empty text: what is no ticket takes as long as what is none of ours.
    if not well_formed(text):
        text = ""
    digest = ticket_hash(SecretText(text)).encode()
    match: Mapping[str, Any] | None = None
    # All of them, and no break at the match: how long it takes must not tell which one it was.
    for ticket in tickets:
        if same(str(ticket["spec"]["secretHash"]).encode(), digest):
            match = ticket
    if match is None or not text:
        return TicketCheck(problem=TicketProblem.UNKNOWN)
    name = object_name(match).name
    # Expiry before pool and uses: of a ticket that is over nothing else is told.
    if datetime.fromisoformat(match["spec"]["expires"]) <= now:
        return TicketCheck(name, TicketProblem.EXPIRED, match)
    if pool is not None and match["spec"]["pool"] != pool:
        return TicketCheck(name, TicketProblem.WRONG_POOL, match)
    limit = limit_of(match)
    # The larger of the two: neither number may be lowered by losing the other.
    if limit and max(used_of(match), len(users_of(match))) >= limit:
        return TicketCheck(name, TicketProblem.USED_UP, match)
    return TicketCheck(name, None, match)


def bearer(authorization: str) -> str:
    """The ticket in an Authorization header; empty when there is none."""
    scheme, _, value = authorization.strip().partition(" ")
    return value.strip() if scheme.lower() == "bearer" else ""


class TicketCache:
    """Finds tickets."""

    def __init__(self, cluster: Cluster, tickets: Informer, clock: Clock) -> None:
        self.tickets = tickets
        self._cluster = cluster
        self._clock = clock
        self._asking = 0
        self._level, self._at = BURST, clock.monotonic()
        self._unknown = BoundedCache[str, float](MOST_UNKNOWN)

    def cached(self, text: str, pool: str | None) -> TicketCheck:
        """What the cache says about a ticket."""
        return check(text, pool, self.tickets.list(), self._clock.now())

    async def look_up(self, text: str, pool: str | None) -> TicketCheck:
        """What cache and API say about a ticket; raises TicketUnclear when neither can tell now."""
        checked = self.cached(text, pool)
        if checked.problem is not TicketProblem.UNKNOWN or not well_formed(text):
            return checked
        # 503: "unknown" is final for a machine, and a door that hears nothing of the cluster cannot know it.
        if not self.tickets.in_touch:
            raise TicketUnclear("the cluster cannot be asked about this ticket now", "look at the API server")
        label = hash_label(SecretText(text))
        if (self._unknown.get(label) or 0.0) > self._clock.monotonic():
            return checked
        checked = await self._looked_up(text, pool, label)
        if checked.problem is TicketProblem.UNKNOWN:
            # By the hash and never by the text: what somebody showed may be a good ticket of another cluster.
            self._unknown.put(label, self._clock.monotonic() + UNKNOWN_SECONDS)
        return checked

    async def _looked_up(self, text: str, pool: str | None, label: str) -> TicketCheck:
        self._take()
        self._asking += 1
        try:
            page = await self._cluster.list(JOIN_TICKET.resource, Scope(labels=f"{HASH_LABEL}={label}"))
        except ApiError as error:
            raise TicketUnclear(
                "the cluster cannot be asked about this ticket now", "look at the API server"
            ) from error
        finally:
            self._asking -= 1
        return check(text, pool, page.items, self._clock.now())

    def _take(self) -> None:
        """Take one lookup out of the budget; raises TicketUnclear."""
        now = self._clock.monotonic()
        self._level, self._at = min(BURST, self._level + (now - self._at) * PER_SECOND), now
        if self._level < 1 or self._asking >= AT_ONCE:
            raise TicketUnclear(
                "too many tickets that nobody knows are asked about: try again in a moment", "look who floods this door"
            )
        self._level -= 1


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
                # Nothing depends on the number (decision 11), so a rack that boots does not wait for a thousand patches of one
                # object.
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
        # Deleted and made again under its name it is another ticket, whose maker meant other machines.
        if ticket["metadata"]["uid"] != uid or is_being_deleted(ticket):
            raise TicketSpent(TicketProblem.UNKNOWN)
        if not expired and datetime.fromisoformat(ticket["spec"]["expires"]) <= self._clock.now():
            raise TicketSpent(TicketProblem.EXPIRED)
        return ticket

    async def _count(self, name: str, ticket: Mapping[str, Any], machine: str) -> None:
        users = users_of(ticket)
        # A machine whose answer got lost asks again: the same name, the same use.
        if machine in users:
            return
        used = max(used_of(ticket), len(users))
        if used >= limit_of(ticket):
            raise TicketSpent(TicketProblem.USED_UP)
        await self._write(name, ticket, {"used": used + 1, "usedBy": [*users, machine]})

    async def _write(self, name: str, ticket: Mapping[str, Any], status: JsonObject) -> None:
        # With the version that was read: of two doors that count a use at the same time one must lose and look again, or a ticket
        # for one machine lets in two.
        patch = {
            "metadata": {"resourceVersion": ticket["metadata"]["resourceVersion"]},
            "status": {**status, "lastUsed": rfc3339(self._clock.now())},
        }
        await self._cluster.patch(JOIN_TICKET.resource, name, patch, PatchType.MERGE, "", _STATUS)
