"""Encrypted volumes on a Machine: what is recorded of each, what a person accepted, and how approvers last had a key."""

from __future__ import annotations

from typing import Any

import msgspec

from fastness.kinds import schema as s
from fastness.kinds.objects import View

VOLUME = r"^[a-z0-9-]{1,32}$"
KEY_ID = r"^k[1-9][0-9]{0,8}$"
UNMEASURED = "PhaseNotMeasured"
DISK_STATES = ("Pending", "Made", "Open", "RolledBack", "RecordOlder", "Exchanged", UNMEASURED)

_HEADER = s.obj(
    {
        "uuid": s.string("UUID of the LUKS2 header.", maxLength=36),
        "cipher": s.string("Cipher of its segment.", maxLength=64),
        "integrity": s.string("Integrity of its segment.", maxLength=64),
        "sectorSize": s.integer("Size of a sector.", minimum=512, maximum=4096),
        "segmentsDigest": s.string("Digest of its segments.", maxLength=135),
    },
    "What the header of the disk said when the disk was made.",
)

_KEY_ID_TEXT = s.string("Id of a key.", pattern=KEY_ID, maxLength=10)
RECOVER = "fastness.dev/recover-disk"
"""Annotation on a Machine: a statement that two approvers signed, by which somebody has the key of a volume."""
RECOVERY = s.obj(
    {
        "at": s.timestamp("When approvers last had its key."),
        "by": s.string("Who agreed.", maxLength=256),
        "reason": s.string("Why.", maxLength=1024),
        "keys": s.string("The keys that they had.", maxLength=64),
        "issued": s.timestamp("When that statement was made; none that is as old or older counts again."),
        "statement": s.string("Digest of the statement that was answered last.", maxLength=135),
        "refused": s.string("Why that one was refused, as a code; empty if it was not.", maxLength=64),
        "message": s.string("The same in words.", maxLength=1024),
        "answer": s.string("The keys, sealed to whoever asked, until they were taken.", maxLength=8192),
    },
    "How its key was last asked for by approvers.",
)

DISK = s.obj(
    {
        "volume": s.string("The volume.", pattern=VOLUME, maxLength=32),
        "state": s.enum(
            *DISK_STATES,
            description="Pending: it has a key and nobody opened it yet. Made: its key was released. Open: the machine opened it "
            "and says so. RolledBack, Exchanged: an old copy, or another disk, was opened; a person decides. RecordOlder: it was "
            "opened since by releases that are not recorded here, because the record came from a backup; a person decides. "
            "PhaseNotMeasured: it was opened, and its machine did not measure that it left its initrd.",
        ),
        "keyId": {**_KEY_ID_TEXT, "description": "The key that opens it."},
        "keyMade": s.timestamp("When that key was made."),
        "nextKeyId": {**_KEY_ID_TEXT, "description": "The key that replaces it at the next boot."},
        "nextKeyMade": s.timestamp("When that one was made."),
        "header": _HEADER,
        "generation": s.integer(
            "The number of the release that its machine last gave proof of: the volume has it, and older copies do not.",
            format="int64",
            minimum=0,
        ),
        "released": s.integer("The number of the last release of its key.", format="int64", minimum=0),
        "unproved": s.array(
            s.integer("The number of a release.", format="int64", minimum=0),
            "The numbers of releases after the generation, which no machine gave proof of yet.",
            maxItems=512,
        ),
        "unlockedAt": s.timestamp("When its key was last released."),
        "unlockedBy": s.object_name("The Verdict that this rested on."),
        "doubtful": s.obj(
            {
                "generation": s.integer(
                    "The last recorded generation that it had, or the newest that is not recorded here.",
                    format="int64",
                    minimum=0,
                ),
                "header": _HEADER,
                "since": s.timestamp("When it first did."),
            },
            "What the machine opened instead of the disk that is recorded.",
            required=("since",),
        ),
        "recovery": RECOVERY,
        "message": s.string("What a person should know of it.", maxLength=1024),
    },
    "One encrypted volume.",
    required=("volume", "state"),
)


class AcceptedDisk(View):
    """A volume that an administrator takes as it is, up to a time."""

    volume: str = ""
    accepted: str = ""
    reason: str = ""


class DoubtfulDisk(View):
    """What a machine opened instead of the disk that is recorded."""

    generation: int = 0
    header: dict[str, Any] = msgspec.field(default_factory=dict)
    since: str = ""


class RecoveryStatus(View):
    """How the key of a volume was last asked for by approvers."""

    at: str | None = None
    by: str = ""
    reason: str = ""
    keys: str = ""
    issued: str | None = None
    statement: str = ""
    refused: str = ""
    message: str = ""
    answer: str = ""


class VolumeStatus(View):
    """One encrypted volume of a machine."""

    volume: str = ""
    state: str = "Pending"
    key_id: str = ""
    key_made: str | None = None
    next_key_id: str = ""
    next_key_made: str | None = None
    header: dict[str, Any] = msgspec.field(default_factory=dict)
    generation: int = 0
    released: int = 0
    unproved: tuple[int, ...] = ()
    unlocked_at: str | None = None
    unlocked_by: str = ""
    doubtful: DoubtfulDisk | None = None
    recovery: RecoveryStatus | None = None
    message: str = ""
