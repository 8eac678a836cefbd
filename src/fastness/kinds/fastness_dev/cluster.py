"""ConfidentialCluster: how strict the cluster is. A singleton called `cluster`.

It says which pools are trusted in which way, how configuration is delivered, which evidence counts. Whatever weakens it needs a
confirmation for that very change that admission checks (`admission`); `simulated` can never change.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from fastness.kinds import schema as s
from fastness.kinds.fastness_dev.declare import declare, evidence_type, tcb
from fastness.kinds.fastness_dev.image_approval import IMAGES, ImageApproval
from fastness.kinds.kind import AGE, Column
from fastness.kinds.objects import Condition, Metadata, View

NAME = "cluster"
CONFIRM_LOWER = "fastness.dev/confirm-lower"
CONFIRM_EVICT = "fastness.dev/confirm-evict"
REASON = "fastness.dev/reason"
CONDITIONS = (
    "Ready",
    "Enforcing",
    "ValuesReady",
    "CollateralFresh",
    "Verifying",
    "Overridden",
    "Guarded",
    "ApproversPending",
    "Degraded",
)


MODES = ("Disabled", "Audit", "Enforce")
TRUST_MODELS = ("ConfidentialCluster", "ContainersHost", "None")


AGENT_PIN, CLEVIS_PIN = PINS = ("Agent", "Clevis")
VOLUMES = ("none", "var", "root")
INTEGRITIES = ("none", "hmac-sha256")
RECOVERIES = ("Nobody", "Approvers")
_DISK = s.obj(
    {
        "pin": s.enum(
            *PINS,
            description="Who opens the volume. Agent: our agent, in the initrd, by an unlock session. Clevis: the pin trustee of "
            "images of trusted-execution clusters, which is weaker; it opens the root, without integrity, and registers keys "
            "on first use. Agent if not set.",
        ),
        "volume": s.enum(
            *VOLUMES,
            description="The encrypted volume that new machines of the pool make at their first boot: none, /var, or the root. "
            "None if not set; machines that run keep what they have.",
        ),
        "integrity": s.enum(
            *INTEGRITIES,
            description="Whether what the host changes on the volume is an error when it is read: none, or authenticated with "
            "HMAC-SHA-256. None if not set.",
        ),
        "recovery": s.enum(
            *RECOVERIES,
            description="Who may have the key of a volume beside its machine. Nobody; or two approvers of break-glass together, "
            "each time on the record. Nobody if not set.",
        ),
    },
    "The disk of machines of this pool, whose key only a machine gets that proved what it booted.",
)

_POOLS = s.list_map(
    s.obj(
        {
            "name": s.object_name("Name of the MachineConfigPool.", minLength=1),
            "trustModel": s.enum(
                *TRUST_MODELS,
                description="ConfidentialCluster: each node is a measured confidential VM. ContainersHost: nodes are "
                "untrusted hosts of pod VMs. None: ordinary nodes.",
            ),
            "evidence": s.list_set(
                evidence_type(""),
                "The kinds of evidence that count for machines of this pool, any of them; those of the cluster if not set.",
                minItems=1,
                maxItems=6,
            ),
            "evict": s.boolean(
                "Whether pods leave a node without proof too: its taint gets the effect NoExecute beside NoSchedule."
            ),
            "disk": _DISK,
        },
        "One pool.",
        required=("name", "trustModel"),
    ),
    ("name",),
    "How each pool is trusted. A pool that is not listed counts as ConfidentialCluster in the modes Audit and Enforce, "
    "and as None otherwise.",
    maxItems=256,
)

_DELIVERY = s.with_rules(
    s.obj(
        {
            "via": s.enum(
                "Gate",
                "Broker",
                default="Gate",
                description="Gate: the config server's answer passes a gate that checks the grant. Broker: the "
                "configuration is a resource of the key broker.",
            ),
            "sync": s.enum(
                "OnDemand",
                "Scheduled",
                "OnChange",
                default="OnDemand",
                description="When configuration is copied to the broker: when asked for, at intervals, or when it changes.",
            ),
            "interval": s.duration("Time between copies, for sync Scheduled.", maxLength=32),
        },
        "How configuration reaches machines.",
        default={},
    ),
    s.rule(
        "!has(self.sync) || self.sync != 'Scheduled' || has(self.interval)", "interval is required for sync Scheduled"
    ),
)

_EXTRA_ROOT = s.obj(
    {
        "sha256": s.string("SHA-256 of the certificate, 64 hex digits.", pattern="^[0-9a-f]{64}$", maxLength=64),
        "for": evidence_type("The kind of evidence that it may vouch for."),
        "reason": s.string("Why it is trusted; goes on the record.", minLength=1, maxLength=1024),
    },
    "One certificate.",
    required=("sha256", "for", "reason"),
)


def _lifetime(description: str, default: str) -> s.Fragment:
    return s.duration(description, default=default, maxLength=32)


_ATTESTATION = s.obj(
    {
        "evidence": s.list_set(
            evidence_type(""), "The kinds of evidence that count; tpm, tdx and snp if not set.", minItems=1, maxItems=6
        ),
        "extraRoots": s.list_map(
            _EXTRA_ROOT, ("sha256", "for"), "Certificates that are trusted beside the vendors' own.", maxItems=64
        ),
        "reattestInterval": _lifetime("How often machines attest again.", "15m"),
        "tokenLifetime": _lifetime("How long an attestation token is valid.", "10m"),
        "challengeLifetime": _lifetime("How long a challenge can be answered.", "60s"),
        "collateralStaleness": _lifetime(
            "The age from which newer documents of vendors are looked for; those at hand count until their own nextUpdate.",
            "24h",
        ),
        "minimumTcb": tcb("The least security versions that are accepted."),
        "tdx": s.obj(
            {
                "allowSeptVe": s.boolean(
                    "Whether trust domains count whose pages the host can make fault (SEPT_VE_DISABLE is clear), as on Azure.",
                    default=False,
                )
            },
            "What is asked of trust domains of Intel TDX.",
            default={},
        ),
        "missed": s.obj(
            {
                "cordonAfter": _lifetime("How long after the taint a node is cordoned.", "15m"),
                "drainAfter": s.duration("How long after the taint a node is drained; never if not set.", maxLength=32),
            },
            "What happens to the node of a machine that proves nothing any more: it is tainted at once.",
            default={},
        ),
    },
    "What counts as proof, and for how long.",
    default={},
)

_BREAK_GLASS = s.obj(
    {
        "approvers": s.list_map(
            s.obj(
                {
                    "name": s.string("Who it is.", pattern="^[A-Za-z0-9][A-Za-z0-9@._ -]{0,62}$", maxLength=63),
                    "key": s.string(
                        "Ed25519 public key, base64 of its 32 bytes.", pattern="^[A-Za-z0-9+/]{43}=$", maxLength=44
                    ),
                },
                "One person.",
                required=("name", "key"),
            ),
            ("name",),
            "Who may agree to an override; two of them must. Nobody can if the list is empty.",
            maxItems=16,
        ),
        "delay": s.duration(
            "How long after the first approvers are named they begin to count, so that everybody sees them first.",
            default="1h",
            maxLength=32,
        ),
    },
    "The way out when attestation itself is what is broken. Off unless approvers are named.",
)

_JOIN = s.obj(
    {
        "approval": s.enum(
            "Automatic", "Manual", default="Automatic", description="Whether a person approves each new machine."
        ),
        "trustOnFirstUse": s.boolean(
            "Whether a key without an endorsement certificate is accepted when it is first seen.", default=False
        ),
        "legacyStubs": s.list_map(
            s.obj(
                {
                    "serverName": s.string(
                        "The name that stubs of an older installer ask for, as they have it: their certificate is checked by it.",
                        pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+$",
                        maxLength=253,
                    ),
                    "pools": s.list_set(
                        s.object_name("", minLength=1),
                        "Pools of trust model None whose configuration anybody gets who reaches the gate under that name.",
                        minItems=1,
                        maxItems=16,
                    ),
                },
                "One name, and what is served under it.",
                required=("serverName", "pools"),
            ),
            ("serverName",),
            "Boot images that can carry no ticket: what the gate serves without one. Nothing unless listed.",
            maxItems=4,
        ),
    },
    "How machines join.",
    default={},
)

_WITNESSES = s.list_map(
    s.obj(
        {
            "name": s.string("What the witness calls itself.", pattern=r"^[!-*,-~]{1,128}$", maxLength=128),
            "key": s.string(
                "Its verifier key, as it prints it: name+id+key (C2SP signed-note).",
                pattern=r"^[!-*,-~]+\+[0-9a-f]{8}\+[A-Za-z0-9+/]+={0,2}$",
                maxLength=256,
            ),
            "url": s.string(
                "Where it is asked for cosignatures (C2SP tlog-witness).", pattern="^https?://", maxLength=1024
            ),
        },
        "One witness.",
        required=("name", "key"),
    ),
    ("name",),
    "Who remembers the record's checkpoints elsewhere and cosigns them, so that nobody can roll it back unseen.",
    maxItems=16,
)

_SPEC = s.obj(
    {
        "mode": s.enum(
            *MODES,
            default="Disabled",
            description="Disabled: attestation is not asked for. Audit: it is asked for and recorded, but a valid ticket is "
            "enough. Enforce: nothing is released without it.",
        ),
        "simulated": s.immutable(
            s.boolean("Whether simulated TEEs are accepted. Set once, when the cluster is made.", default=False),
            "simulated is immutable",
        ),
        "pools": _POOLS,
        "delivery": _DELIVERY,
        "attestation": _ATTESTATION,
        "join": _JOIN,
        "images": IMAGES,
        "breakGlass": _BREAK_GLASS,
        "witnesses": _WITNESSES,
    },
    "How strict the cluster is.",
)


def _count(description: str) -> s.Fragment:
    return s.integer(description, format="int32", minimum=0)


_STATUS = s.obj(
    {
        "observedGeneration": s.integer("Generation that the status speaks of.", format="int64", minimum=0),
        "conditions": s.conditions(
            "Ready, Enforcing, ValuesReady, CollateralFresh, Verifying, Overridden, Guarded, ApproversPending and Degraded."
        ),
        "enrolled": _count("Machines that enrolled."),
        "attested": _count("Machines that proved what they booted, and whose proof still counts."),
        "pending": _count("Machines that have not attested yet."),
        "refused": _count("Machines whose last appraisal failed, or whose proof no longer counts."),
        "revoked": _count("Machines that are no longer trusted."),
        "stale": _count("Of those that are refused: machines whose proof no longer counts."),
        "overridden": _count("Machines that an override let in without proof; they are not attested."),
        "nodesNeverAttested": _count("Nodes of confidential pools that never proved anything."),
        "neverAttested": s.list_set(
            s.object_name("Name of a node."), "Those nodes by name, the first hundred.", maxItems=100
        ),
    },
    "What was observed.",
)

CONFIDENTIAL_CLUSTER = declare(
    "ConfidentialCluster",
    "confidentialclusters",
    "How strict the cluster is: what machines must prove before they get configuration, keys and a place in it.",
    s.singleton(s.obj({"spec": _SPEC, "status": _STATUS}, required=("spec",)), NAME),
    columns=(
        Column("Mode", ".spec.mode"),
        Column("Delivery", ".spec.delivery.via"),
        Column("Attested", ".status.attested", "integer"),
        Column("Pending", ".status.pending", "integer"),
        Column("Refused", ".status.refused", "integer"),
        Column("Simulated", ".spec.simulated", "boolean"),
        AGE,
    ),
    subresources=("status",),
)


class Disk(View):
    """The encrypted volume of a pool's machines."""

    pin: str = "Agent"
    volume: str = "none"
    integrity: str = "none"
    recovery: str = "Nobody"


class PoolTrust(View):
    """The trust model of one pool."""

    name: str
    trust_model: Literal["ConfidentialCluster", "ContainersHost", "None"]
    evidence: tuple[str, ...] = ()
    evict: bool = False
    disk: Disk = Disk()


class Delivery(View):
    """How configuration reaches machines."""

    via: str = "Gate"
    sync: str = "OnDemand"
    interval: str | None = None


class ExtraRoot(View, kw_only=True):
    """A certificate that is trusted beside the vendors' own."""

    sha256: str
    used_for: str = msgspec.field(name="for")
    reason: str


class Missed(View):
    """What happens to the node of a machine that proves nothing any more; durations as they are written."""

    cordon_after: str = "15m"
    drain_after: str | None = None


class TdxDemands(View):
    """What is asked of trust domains of Intel TDX."""

    allow_sept_ve: bool = False


class Attestation(View):
    """What counts as proof, and for how long; durations as they are written."""

    evidence: tuple[str, ...] = ()
    extra_roots: tuple[ExtraRoot, ...] = ()
    reattest_interval: str = "15m"
    token_lifetime: str = "10m"
    challenge_lifetime: str = "60s"
    collateral_staleness: str = "24h"
    minimum_tcb: dict[str, Any] | None = None
    missed: Missed = Missed()
    tdx: TdxDemands = TdxDemands()


class LegacyStub(View, kw_only=True):
    """A name under which the gate serves pools to stubs of an older installer."""

    server_name: str
    pools: tuple[str, ...] = ()


class Join(View):
    """How machines join."""

    approval: str = "Automatic"
    trust_on_first_use: bool = False
    legacy_stubs: tuple[LegacyStub, ...] = ()


class Approver(View, kw_only=True):
    """Somebody who may agree to an override."""

    name: str
    key: str


class BreakGlass(View):
    """The way out when attestation itself is broken."""

    approvers: tuple[Approver, ...] = ()
    delay: str = "1h"


class Witness(View, kw_only=True):
    """Somebody who remembers the record's checkpoints and cosigns them."""

    name: str
    key: str
    url: str = ""


class ConfidentialClusterSpec(View):
    """How strict the cluster is."""

    mode: Literal["Disabled", "Audit", "Enforce"] = "Disabled"
    simulated: bool = False
    pools: tuple[PoolTrust, ...] = ()
    delivery: Delivery = Delivery()
    attestation: Attestation = Attestation()
    join: Join = Join()
    images: ImageApproval = ImageApproval()
    break_glass: BreakGlass = BreakGlass()
    witnesses: tuple[Witness, ...] = ()


class ConfidentialClusterStatus(View):
    """What was observed."""

    conditions: tuple[Condition, ...] = ()
    enrolled: int = 0
    attested: int = 0
    pending: int = 0
    refused: int = 0
    revoked: int = 0
    stale: int = 0
    overridden: int = 0
    nodes_never_attested: int = 0
    never_attested: tuple[str, ...] = ()


class ConfidentialCluster(View):
    """The singleton as decisions see it; `kinds.fastness_dev.trust_model` says what it means for a pool."""

    metadata: Metadata = Metadata()
    spec: ConfidentialClusterSpec = ConfidentialClusterSpec()
    status: ConfidentialClusterStatus = ConfidentialClusterStatus()


KINDS = (CONFIDENTIAL_CLUSTER,)
