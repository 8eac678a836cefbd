"""Join tickets: who may knock, for which pool, how often and until when.

A ticket is random text that is shown once; the cluster keeps its SHA-256 in a JoinTicket. It proves nothing about a
machine: it only limits who may ask. Rules:

* Checking is constant in time over all tickets that are known, and says only yes or why not.
* Uses are counted once per key of a machine, when it has proved something (`ticket_uses.py`). The config server sees no key and
  cannot count, so it takes only tickets without a limit (decision 11).
* An expired ticket, one for another pool, one that is used up: each is refused for its own reason, and the door decides how
  much of it to tell.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from fastness.crypto.digests import same, sha256
from fastness.crypto.secret import SecretText
from fastness.kinds.fastness_dev.join_ticket import JOIN_TICKET
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import object_name, rfc3339
from fastness.runtime.clock import Entropy

PREFIX: Final = "fst_"
RANDOM_BYTES: Final = 32
MAX_TICKET: Final = 256
HASH_LABEL: Final = "fastness.dev/ticket"
_LABEL_HEX: Final = 40


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


def well_formed(shown: str) -> bool:
    """Whether this could be a ticket at all."""
    return shown.startswith(PREFIX) and len(PREFIX) < len(shown) <= MAX_TICKET and shown.isascii()


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
    return 1 if uses is None else int(uses)


def used_of(ticket: Mapping[str, Any]) -> int:
    """How many machines have used it."""
    return int((ticket.get("status") or {}).get("used") or 0)


def users_of(ticket: Mapping[str, Any]) -> list[str]:
    """The names of the Machines that have used it; kept for limited tickets."""
    return list((ticket.get("status") or {}).get("usedBy") or ())


def check(shown: str, pool: str | None, tickets: Iterable[Mapping[str, Any]], now: datetime) -> TicketCheck:
    """Whether what was shown is a ticket for this pool (None: any) that may be used now; every known ticket is compared."""
    if not well_formed(shown):
        shown = ""
    digest = ticket_hash(SecretText(shown)).encode()
    found: Mapping[str, Any] | None = None
    for ticket in tickets:
        if same(str(ticket["spec"]["secretHash"]).encode(), digest):
            found = ticket
    if found is None or not shown:
        return TicketCheck(problem=TicketProblem.UNKNOWN)
    name = object_name(found).name
    if datetime.fromisoformat(found["spec"]["expires"]) <= now:
        return TicketCheck(name, TicketProblem.EXPIRED, found)
    if pool is not None and found["spec"]["pool"] != pool:
        return TicketCheck(name, TicketProblem.WRONG_POOL, found)
    limit = limit_of(found)
    if limit and max(used_of(found), len(users_of(found))) >= limit:
        return TicketCheck(name, TicketProblem.USED_UP, found)
    return TicketCheck(name, None, found)


def bearer(authorization: str) -> str:
    """The ticket in an Authorization header; empty when there is none."""
    scheme, _, value = authorization.strip().partition(" ")
    return value.strip() if scheme.lower() == "bearer" else ""
