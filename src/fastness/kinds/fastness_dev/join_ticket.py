"""JoinTicket: who may knock, for which pool, how often and until when.

The object holds only a hash; the ticket itself is shown once. A ticket proves nothing about a machine. A use is counted once per
key, so a retry costs nothing: `usedBy` remembers the Machines of limited tickets.
"""

from __future__ import annotations

from fastness.kinds import schema as s
from fastness.kinds.fastness_dev.declare import declare
from fastness.kinds.kind import Column
from fastness.kinds.objects import Metadata, View

# `usedBy` of a limited ticket must fit into one object.
MOST_USES = 4096

_SPEC = s.immutable_once_set(
    s.obj(
        {
            "pool": s.object_name("The pool that machines with this ticket join.", minLength=1),
            "uses": s.integer(
                "How many machines may use it; 0 means any number.",
                format="int32",
                minimum=0,
                maximum=MOST_USES,
                default=1,
            ),
            "expires": s.timestamp("When it stops working."),
            "secretHash": s.sha256("SHA-256 of the ticket, as sha256:<hex>."),
        },
        "What the ticket is good for.",
        required=("pool", "expires", "secretHash"),
    ),
    "pool",
    "secretHash",
)

JOIN_TICKET = declare(
    "JoinTicket",
    "jointickets",
    "Allows machines to ask for enrolment in a pool, a number of times until a date.",
    s.obj(
        {
            "spec": _SPEC,
            "status": s.obj(
                {
                    "used": s.integer("How many machines used it.", format="int32", minimum=0),
                    "lastUsed": s.timestamp("When it was last used."),
                    "usedBy": s.list_set(
                        s.object_name(""), "Machines that used it; kept for tickets with a limit.", maxItems=MOST_USES
                    ),
                },
                "What was observed.",
            ),
        },
        required=("spec",),
    ),
    columns=(
        Column("Pool", ".spec.pool"),
        Column("Uses", ".spec.uses", "integer"),
        Column("Used", ".status.used", "integer"),
        Column("Expires", ".spec.expires"),
    ),
    subresources=("status",),
)


class JoinTicketSpec(View, kw_only=True):
    """What the ticket is good for."""

    pool: str
    uses: int = 1
    expires: str
    secret_hash: str


class JoinTicketStatus(View):
    """Who used it."""

    used: int = 0
    last_used: str | None = None
    used_by: tuple[str, ...] = ()


class JoinTicket(View, kw_only=True):
    """A ticket as enrolment sees it."""

    metadata: Metadata = Metadata()
    spec: JoinTicketSpec
    status: JoinTicketStatus = JoinTicketStatus()

    @property
    def unlimited(self) -> bool:
        """Whether any number of machines may use it."""
        return self.spec.uses == 0


KINDS = (JOIN_TICKET,)
