"""Machine: one machine that enrolled, and what it has proved since.

The spec is the identity that enrolment gave it, and what an administrator decided about it: `approval`. The status belongs to
the doors and controllers: which pool its ticket was for, which key it enrolled with and who vouched for that key, which node it
may become, how the last appraisal went and what it proved. Pool, evidence type, key, endorsement and node name are written once:
a machine that lost its key enrols anew as another Machine, which names the old one in `supersedes`.

`standing` is what `attestation.verdict.machine_standing` makes of all that: the columns, the page and the command line show it.

An approval counts when both halves say so: `spec.approval` is the decision, the condition `Approved` says that it is on the
record. A quarantine counts at once. `membership` reads them.

`status.signed` says which part of the control plane wrote the status (`attestation.machine.signed_status`): nobody believes one
that is not signed. A person can vouch for one as it stands, `spec.vouched`.

`status.chip` is written at the first affirmed verdict. After that it changes only to the chip that `spec.chip` names, and only
people write the spec; the API server holds everybody to that.
"""

from __future__ import annotations

import msgspec

from fastness.kinds import schema as s
from fastness.kinds.fastness_dev import ENDORSEMENTS
from fastness.kinds.fastness_dev.cluster import PINS
from fastness.kinds.kind import AGE, Column, Kind, Scope
from fastness.kinds.objects import Condition, Metadata, View
from fastness.kinds.trusted_execution import GROUP, VERSION
from fastness.kinds.trusted_execution.disks import DISK, VOLUME, AcceptedDisk, VolumeStatus

CHIP = r"^(hidden|(snp|tdx):[0-9a-f]{16,128})$"
LAUNCH = r"^[0-9a-f]{64}$"
OVERLAY = r"^([0-9a-f]{32})?$"
CONDITIONS = (
    "Enrolled", "Approved", "Attested", "Configured", "Joined", "Revoked", "Disputed", "Believed", "KeyReused",
    "DisksEncrypted",
    "DisksRecoverable",
)  # fmt: skip
DISPUTES = ("Chip", "Boot")
IDENTITIES = ("TPM", "OpenDisk", "EncryptedDisk")
MOST_VOLUMES = 8
REKEY = "fastness.dev/rekey-disk"
"""Annotation on a Machine: the volume that gets a new key at its next boot."""
HOLDS_KEYS = "fastness.dev/disk-keys"
"""Finalizer of a Machine that has keys of disks: they are destroyed, on the record, before it goes."""
MOST_REPLACED_KEYS = 16
MOST_FORMER_BOOTS = 16
APPROVALS = ("Pending", "Approved", "Quarantined")
MOVED = "Moved"
CHIP_BARRED = "ChipBarred"
NOTE = "fastness.dev/attestation"
"""On the Node of a machine: why it stands as it does."""
SIGNERS = ("enrolment", "broker", "controllers")
SENT = frozenset(
    f"status.{name}" for name in ("desiredConfig", "currentConfig", "desiredOverlay", "currentOverlay", "signed")
)
"""What a rollout writes on the Machine of every node that it sends on: where to, where from, and the signature over it."""
STANDINGS = ("Proved", "Waiting", "Refused", "Overridden", "Revoked", "Stale")

_SPEC = s.obj(
    {
        "id": s.immutable(
            s.string("Identity of the machine, a UUID.", pattern=s.UUID, maxLength=36),
            "id is immutable",
        ),
        "approval": s.enum(
            *APPROVALS,
            description="What an administrator decided: nothing yet, that it may attest, or that it gets nothing any more. "
            "Left out means Pending.",
        ),
        "approvalReason": s.string("Why, in the administrator's words.", maxLength=1024),
        "chip": s.string(
            "The chip that an administrator lets the machine run on although it is another one than before, or something "
            "stands against it.",
            pattern=CHIP,
            maxLength=132,
        ),
        "chipReason": s.string("Why that chip, in the administrator's words.", maxLength=1024),
        "settled": s.timestamp("Up to when an administrator has looked at the disputes of the machine."),
        "settledReason": s.string("What came of it, in the administrator's words.", maxLength=1024),
        "pool": s.object_name(
            "The pool that an administrator moves the machine to; left out, it is in the pool of its join ticket. It has to "
            "prove itself anew."
        ),
        "poolReason": s.string("Why it is moved, in the administrator's words.", maxLength=1024),
        "vouched": s.sha256(
            "Digest of a status that nobody of the control plane signed, for which an administrator vouches as it stands; the "
            "controllers sign it and take this away."
        ),
        "vouchedReason": s.string("Why, in the administrator's words.", maxLength=1024),
        "disks": s.list_map(
            s.obj(
                {
                    "volume": s.string("The volume.", pattern=VOLUME, maxLength=32),
                    "accepted": s.timestamp(
                        "Up to when an administrator has looked at the volume and takes it as it is."
                    ),
                    "reason": s.string("Why, in the administrator's words.", maxLength=1024),
                },
                "One volume.",
                required=("volume", "accepted"),
            ),
            ("volume",),
            "Volumes that an administrator accepts although an old copy of them, or another disk, was opened.",
            maxItems=MOST_VOLUMES,
        ),
    },
    "Who the machine is, and whether it may take part.",
    required=("id",),
)

_ENDORSEMENT = s.obj(
    {
        "key": s.sha256("SHA-256 of the endorsement key, SubjectPublicKeyInfo."),
        "root": s.sha256("SHA-256 of the certificate that its chain ends in; left out without a chain."),
    },
    "Who vouched for the TPM; left out for machines without one.",
    required=("key",),
)

_DISPUTE = s.obj(
    {
        "over": s.enum(*DISPUTES, description="What the evidence shows that is not the machine's."),
        "shows": s.string("What it shows.", maxLength=256),
        "against": s.string("What the machine has instead.", maxLength=256),
        "since": s.timestamp("When such evidence first came."),
        "verdict": s.object_name("The Verdict about it."),
    },
    "Authentic evidence in the machine's name that is not its own.",
    required=("over", "shows", "since"),
)

_LAUNCH_TEXT = "REPORT_ID of an SNP guest, or SHA-256 of the key that a TDX guest made at its boot; hexadecimal digits."
_BOOT = s.obj(
    {
        "launch": s.string(_LAUNCH_TEXT, pattern=LAUNCH, maxLength=64),
        "resets": s.integer("How often its TPM was reset.", format="int64", minimum=0),
        "restarts": s.integer("How often its TPM was restarted or resumed since.", format="int64", minimum=0),
        "clock": s.integer("Clock of its TPM at the newest evidence, in milliseconds.", format="int64", minimum=0),
    },
    "The newest boot that authentic evidence of the machine was of: the id of a launch, or the counts of a TPM.",
)

_SIGNED = s.obj(
    {
        "by": s.enum(*SIGNERS, description="The part of the control plane that wrote the status last."),
        "key": s.string("Id of its key.", maxLength=64),
        "serial": s.integer("Rises with every write of the status.", format="int64", minimum=1),
        "signature": s.string("Ed25519 over the UID, the serial and all else of the status, base64.", maxLength=128),
    },
    "Who wrote the status: without a good signature the machine counts as never attested.",
    required=("by", "key", "serial", "signature"),
)

_NODE_KEY = s.obj(
    {
        "key": s.sha256("SHA-256 of the public key, SubjectPublicKeyInfo."),
        "named": s.timestamp("When an attested session named it."),
    },
    required=("key", "named"),
)

_NODE_KEYS = s.obj(
    {
        "client": {**_NODE_KEY, "description": "Key of the certificate that the node shows to the API."},
        "serving": {**_NODE_KEY, "description": "Key of the certificate that the node's kubelet serves with."},
        "replaced": s.array(
            s.sha256("SHA-256 of a public key."),
            "Keys that were named before; one that is used again raises an alarm.",
            maxItems=MOST_REPLACED_KEYS,
        ),
    },
    "Keys that attested sessions of the machine named for certificates of its node; no other key gets one.",
)

_STATUS = s.immutable_once_set(
    s.obj(
        {
            "conditions": s.conditions(
                "Enrolled, Approved, Attested, Configured, Joined, Revoked, Disputed, Believed, KeyReused, "
                "DisksEncrypted and DisksRecoverable."
            ),
            "signed": _SIGNED,
            "pool": s.object_name("Pool of the machine: that of its join ticket, or the one that it was moved to."),
            "movedFrom": s.object_name("Pool of its join ticket, where the machine was moved."),
            "nodeName": s.object_name("Name of the node that this machine, and no other, may become."),
            "keyThumbprint": s.string("Thumbprint of the key that is the machine's identity.", maxLength=128),
            "tee": s.string("Kind of evidence that the machine brings, as tpm, snp or tdx.", maxLength=32),
            "endorsedBy": s.enum(
                *ENDORSEMENTS,
                description="How it was shown that the key lives where it says: by a TPM that its maker certified, by a TPM that "
                "was believed when first seen, or by nothing but the evidence of each attestation.",
            ),
            "identity": s.enum(
                *IDENTITIES,
                description="Where the key lies that is the machine's identity. On an open disk the owner of its host reads it.",
            ),
            "ticket": s.object_name("JoinTicket that the machine enrolled with."),
            "ticketUid": s.string("UID of that JoinTicket: one made anew under its name is another.", maxLength=36),
            "endorsement": _ENDORSEMENT,
            "pin": s.enum(
                *PINS,
                description="Who opens the machine's volume, as it enrolled: our agent, or the Clevis pin of images of "
                "trusted-execution clusters, which is weaker. Left out means Agent.",
            ),
            "chip": s.string(
                "Chip that the machine runs on: snp:<CHIP_ID> or tdx:<platform instance>, or hidden where its provider "
                "does not tell. Written at the first affirmed verdict.",
                pattern=CHIP,
                maxLength=132,
            ),
            "awaitedChip": s.string(
                "Chip that a new machine's evidence showed, and that waits for approval because something stands against it.",
                pattern=CHIP,
                maxLength=132,
            ),
            "disputes": s.array(
                _DISPUTE,
                "Authentic evidence in the machine's name that is not its own. It changed nothing else on the machine.",
                maxItems=8,
            ),
            "boot": _BOOT,
            "formerBoots": s.array(
                s.string(_LAUNCH_TEXT, pattern=LAUNCH, maxLength=64),
                "Launches before that one. Evidence of one of them is disputed.",
                maxItems=MOST_FORMER_BOOTS,
            ),
            "supersedes": s.string("UID of the Machine that this one replaces.", maxLength=36),
            "lastVerdict": s.object_name("Name of the newest Verdict about the machine."),
            "lastAttested": s.timestamp("When the machine last passed an appraisal."),
            "attestedUntil": s.timestamp("Until when that counts, by the interval that the machine was told."),
            "overriddenUntil": s.timestamp(
                "Until when an override lets the machine in that proved nothing; left out where none does."
            ),
            "standing": s.enum(
                *(word for state in STANDINGS for word in (state, f"{state} (simulated)")),
                *(
                    f"{STANDINGS[0]} ({simulated}host not proved{first_use})"
                    for first_use in ("", ", trusted on first use")
                    for simulated in ("", "simulated, ")
                ),
                description="How the machine stands, as every surface says it. Only Proved means that it proved what it "
                "booted; with a bare TPM it proved nothing about the host around it.",
            ),
            "standingReason": s.string("Why it stands like that, in one word.", maxLength=128),
            "simulated": s.boolean("Whether the machine's evidence came from a simulated TEE."),
            "properties": s.mapping(
                s.string(maxLength=512), "What the last authentic evidence proved, in plain words.", maxProperties=32
            ),
            "desiredConfig": s.object_name("Rendered config that the machine was told to go to; controllers write it."),
            "currentConfig": s.object_name("Rendered config that it goes back to, the one before."),
            "desiredOverlay": s.string(
                "Digest of the NodeOverlays that go with desiredConfig.", pattern=OVERLAY, maxLength=32
            ),
            "currentOverlay": s.string(
                "Digest of the NodeOverlays that go with currentConfig.", pattern=OVERLAY, maxLength=32
            ),
            "nodeKeys": _NODE_KEYS,
            "disks": s.list_map(
                DISK, ("volume",), "The encrypted volumes of the machine, and how each stands.", maxItems=MOST_VOLUMES
            ),
            "credentialEnds": s.timestamp(
                "When the last client certificate of its node ends: until then it opens the API of a Kubernetes that does "
                "not ask Fastness, whatever became of the machine."
            ),
            "epoch": s.integer(
                "Rises when trust in the machine ends; tokens of a lower epoch count no more.",
                format="int64",
                minimum=0,
            ),
        },
        "What was observed.",
    ),
    "nodeName",
    "keyThumbprint",
    "tee",
    "endorsedBy",
    "endorsement",
    "pin",
)

MACHINE = Kind(
    group=GROUP,
    version=VERSION,
    kind="Machine",
    plural="machines",
    scope=Scope.NAMESPACED,
    description="One machine that enrolled, and what it has proved since.",
    schema=s.with_rules(
        s.status_stays(s.obj({"spec": _SPEC, "status": _STATUS}, required=("spec",))),
        s.rule(
            "!has(oldSelf.status) || !has(oldSelf.status.chip) || (has(self.status) && has(self.status.chip) && "
            "(self.status.chip == oldSelf.status.chip || (has(self.spec.chip) && self.spec.chip == self.status.chip)))",
            "status.chip changes only to the chip that spec.chip names",
        ),
        s.rule(
            "!has(oldSelf.status) || !has(oldSelf.status.pool) || (has(self.status) && has(self.status.pool) && "
            "(self.status.pool == oldSelf.status.pool || (has(self.spec.pool) && self.spec.pool == self.status.pool)))",
            "status.pool changes only to the pool that spec.pool names",
        ),
    ),
    columns=(
        Column("ID", ".spec.id"),
        Column("Pool", ".status.pool"),
        Column("Attested", ".status.standing"),
        Column("Reason", ".status.standingReason"),
        Column("LastVerdict", ".status.lastVerdict"),
        AGE,
        Column("Identity", ".status.identity", priority=1, description="Where the machine's key lies."),
        Column("Chip", ".status.chip", priority=1, description="Chip that the machine runs on."),
        Column("Disks", ".status.disks[*].state", priority=1, description="How its encrypted volumes stand."),
    ),
    subresources=("status",),
)


class MachineSpec(View):
    """Who the machine is, and what was decided about it."""

    id: str
    approval: str = "Pending"
    approval_reason: str = ""
    chip: str = ""
    chip_reason: str = ""
    settled: str | None = None
    settled_reason: str = ""
    pool: str = ""
    pool_reason: str = ""
    vouched: str = ""
    vouched_reason: str = ""
    disks: tuple[AcceptedDisk, ...] = ()


class Endorsement(View):
    """Who vouched for the machine's TPM."""

    key: str = ""
    root: str = ""


class Disputed(View):
    """Authentic evidence in the machine's name that is not its own."""

    over: str = ""
    shows: str = ""
    against: str = ""
    since: str = ""
    verdict: str = ""


class BootMark(View):
    """The newest boot of a machine: the id of a launch, or the counts and the clock of a TPM."""

    launch: str = ""
    resets: int = 0
    restarts: int = 0
    clock: int = 0


class NodeKey(View):
    """A key that a session named."""

    key: str = ""
    named: str = ""


class NodeKeys(View):
    """The keys of a node's certificates, and those before them."""

    client: NodeKey | None = None
    serving: NodeKey | None = None
    replaced: tuple[str, ...] = ()


class MachineStatus(View):
    """What the doors found out."""

    conditions: tuple[Condition, ...] = ()
    pool: str = ""
    moved_from: str = ""
    node_name: str = ""
    key_thumbprint: str = ""
    tee: str = ""
    endorsed_by: str = ""
    identity: str = ""
    ticket: str = ""
    ticket_uid: str = ""
    endorsement: Endorsement | None = None
    pin: str = ""
    chip: str = ""
    awaited_chip: str = ""
    disputes: tuple[Disputed, ...] = ()
    boot: BootMark | None = None
    former_boots: tuple[str, ...] = ()
    supersedes: str = ""
    last_verdict: str = ""
    last_attested: str | None = None
    attested_until: str | None = None
    overridden_until: str | None = None
    standing: str = ""
    standing_reason: str = ""
    simulated: bool = False
    properties: dict[str, str] = msgspec.field(default_factory=dict)
    desired_config: str = ""
    current_config: str = ""
    desired_overlay: str = ""
    current_overlay: str = ""
    node_keys: NodeKeys = NodeKeys()
    disks: tuple[VolumeStatus, ...] = ()
    credential_ends: str | None = None
    epoch: int = 0


class Machine(View, kw_only=True):
    """A machine as the doors and controllers see it."""

    metadata: Metadata = Metadata()
    spec: MachineSpec
    status: MachineStatus = MachineStatus()


KINDS = (MACHINE,)
