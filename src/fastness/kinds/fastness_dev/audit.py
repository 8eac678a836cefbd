"""AuditBatch and AuditCheckpoint: the record.

A door writes a batch before the bytes leave, and signs it. Batches of one door form a chain (sequence number and hash of the one
before), so a missing one is seen; the sequencer folds them into Merkle tiles and signs a checkpoint. Neither ever changes.
"""

from __future__ import annotations

from fastness.kinds import schema as s
from fastness.kinds.fastness_dev.declare import declare
from fastness.kinds.kind import AGE, Column

MOST_ENTRIES = 100
MOST_WITNESSES = 16

_ENTRY = s.obj(
    {
        "time": s.timestamp("When it happened."),
        "what": s.string("What happened, such as release, refusal or approval.", minLength=1, maxLength=64),
        "who": s.string(
            "Thumbprint of the key of the one who asked; for an act of a person the user's name.",
            pattern=r"^[^\x00-\x1f\x7f]+$",
            minLength=1,
            maxLength=253,
        ),
        "resource": s.string("What was asked for.", maxLength=1024),
        "verdict": s.object_name("Name of the Verdict that it rests on."),
        "grant": s.string("Id of the Grant that it rests on.", maxLength=128),
        "evidence": s.sha256("Digest of the evidence."),
        "detail": s.mapping(s.string(maxLength=4096), "Further facts, never a secret.", maxProperties=32),
    },
    "One entry.",
    required=("time", "what", "who"),
)

AUDIT_BATCH = declare(
    "AuditBatch",
    "auditbatches",
    "Entries of the record that a door has written and the sequencer has not folded in yet.",
    s.obj(
        {
            "spec": s.immutable(
                s.obj(
                    {
                        "door": s.object_name("Id of the door.", minLength=1),
                        "sequence": s.integer("Number of the batch, from 1, without gaps.", format="int64", minimum=1),
                        "previous": s.sha256("Hash of the door's previous batch; left out in the first."),
                        "entries": s.array(_ENTRY, "What happened.", minItems=1, maxItems=MOST_ENTRIES, **s.ATOMIC),
                        "key": s.string("Id of the door's key.", pattern="^[0-9a-f]{16}$"),
                        "signature": s.string(
                            "Signature of the door over all other fields (Ed25519).", format="byte", maxLength=88
                        ),
                    },
                    "One batch.",
                    required=("door", "sequence", "entries", "key", "signature"),
                ),
                "a batch cannot be changed",
            )
        },
        required=("spec",),
    ),
    columns=(Column("Door", ".spec.door"), Column("Sequence", ".spec.sequence", "integer"), AGE),
)

AUDIT_CHECKPOINT = declare(
    "AuditCheckpoint",
    "auditcheckpoints",
    "A signed statement of how long the record is and what its root hash is.",
    s.obj(
        {
            "spec": s.immutable(
                s.obj(
                    {
                        "origin": s.string("Name of the log.", minLength=1, maxLength=253),
                        "size": s.integer("How many entries the log has.", format="int64", minimum=0),
                        "rootHash": s.string("Root of the Merkle tree, base64.", format="byte", maxLength=64),
                        "time": s.timestamp("When it was signed."),
                        "note": s.string("The signed note, as verifiers read it.", minLength=1, maxLength=16384),
                    },
                    "The statement.",
                    required=("origin", "size", "rootHash", "time", "note"),
                ),
                "a checkpoint cannot be changed",
            ),
            "status": s.obj(
                {
                    "cosignatures": s.list_map(
                        s.obj(
                            {
                                "witness": s.string("Name of the witness.", minLength=1, maxLength=253),
                                "time": s.timestamp("When it cosigned."),
                                "line": s.string("Its line under the note.", minLength=1, maxLength=1024),
                            },
                            "What a witness said.",
                            required=("witness", "time", "line"),
                        ),
                        ("witness",),
                        "Witnesses that saw this checkpoint continue the ones before.",
                        maxItems=MOST_WITNESSES,
                    ),
                    "witnesses": s.string("How many of how many witnesses cosigned.", maxLength=16),
                },
                "What others said about it.",
            ),
        },
        required=("spec",),
    ),
    subresources=("status",),
    columns=(
        Column("Origin", ".spec.origin"),
        Column("Size", ".spec.size", "integer"),
        Column("Witnesses", ".status.witnesses"),
        AGE,
    ),
)

KINDS = (AUDIT_BATCH, AUDIT_CHECKPOINT)
