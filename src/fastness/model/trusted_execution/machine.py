"""Machine: one machine that enrolled, and what it has proved since.

The spec is the identity that enrolment gave it. The status belongs to the doors and controllers: which pool its ticket was for,
which key it enrolled with, which node it may become, how the last appraisal went. Pool, key and node name are written once: a
machine that lost its key enrols anew as another Machine, which names the old one in `supersedes`.
"""

from __future__ import annotations

from fastness.model import schema as s
from fastness.model.kind import AGE, Column, Kind, Scope
from fastness.model.objects import Condition, Metadata, View
from fastness.model.trusted_execution import GROUP, VERSION

CONDITIONS = ("Enrolled", "Attested", "Configured", "Joined", "Revoked")

_STATUS = s.immutable_once_set(
    s.obj(
        {
            "conditions": s.conditions("Enrolled, Attested, Configured, Joined and Revoked."),
            "pool": s.object_name("Pool that the machine's join ticket was for."),
            "nodeName": s.object_name("Name of the node that this machine, and no other, may become."),
            "keyThumbprint": s.string("Thumbprint of the key that is the machine's identity.", maxLength=128),
            "supersedes": s.string("UID of the Machine that this one replaces.", maxLength=36),
            "lastVerdict": s.object_name("Name of the newest Verdict about the machine."),
            "lastAttested": s.timestamp("When the machine last passed an appraisal."),
            "simulated": s.boolean("Whether the machine's evidence came from a simulated TEE."),
        },
        "What was observed.",
    ),
    "pool",
    "nodeName",
    "keyThumbprint",
)

MACHINE = Kind(
    group=GROUP,
    version=VERSION,
    kind="Machine",
    plural="machines",
    scope=Scope.NAMESPACED,
    description="One machine that enrolled, and what it has proved since.",
    schema=s.status_stays(
        s.obj(
            {
                "spec": s.obj(
                    {
                        "id": s.immutable(
                            s.string("Identity of the machine, a UUID.", pattern=s.UUID, maxLength=36),
                            "id is immutable",
                        )
                    },
                    "Who the machine is.",
                    required=("id",),
                ),
                "status": _STATUS,
            },
            required=("spec",),
        )
    ),
    columns=(
        Column("ID", ".spec.id"),
        Column("Pool", ".status.pool"),
        Column("Attested", '.status.conditions[?(@.type=="Attested")].status'),
        Column("Reason", '.status.conditions[?(@.type=="Attested")].reason'),
        Column("LastVerdict", ".status.lastVerdict"),
        AGE,
    ),
    subresources=("status",),
)


class MachineSpec(View):
    """Who the machine is."""

    id: str


class MachineStatus(View):
    """What the doors found out."""

    conditions: tuple[Condition, ...] = ()
    pool: str = ""
    node_name: str = ""
    key_thumbprint: str = ""
    supersedes: str = ""
    last_verdict: str = ""
    last_attested: str | None = None
    simulated: bool = False


class Machine(View, kw_only=True):
    """A machine as the doors and controllers see it."""

    metadata: Metadata = Metadata()
    spec: MachineSpec
    status: MachineStatus = MachineStatus()


KINDS = (MACHINE,)
