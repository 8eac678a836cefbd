"""SpentChallenge, SeenLaunch and EvidenceBlob: what a door keeps of an attestation.

A SpentChallenge is named after the hash of a nonce: creating it a second time is a conflict, which is how a replay is seen by any
number of doors. A SeenLaunch is named after the launch of an SNP guest in the same way: whoever comes first says what the
launch is good for. An EvidenceBlob holds evidence once, by digest.
"""

from __future__ import annotations

from fastness.kinds import schema as s
from fastness.kinds.fastness_dev.declare import declare, evidence_type
from fastness.kinds.kind import AGE, Column

MOST_BYTES = 512 * 1024
# Four characters of base64 for each three bytes.
_MOST_CHARACTERS = -(-MOST_BYTES // 3) * 4

SPENT_CHALLENGE = declare(
    "SpentChallenge",
    "spentchallenges",
    "A challenge that was answered and cannot be answered again.",
    s.obj(
        {
            "spec": s.immutable(
                s.obj(
                    {"expires": s.timestamp("When the challenge would have expired anyway.")},
                    "The challenge.",
                    required=("expires",),
                ),
                "a spent challenge cannot be changed",
            )
        },
        required=("spec",),
    ),
    columns=(Column("Expires", ".spec.expires"), AGE),
)

LAUNCH_USES = ("Session", "Unlock")
SEEN_LAUNCH = declare(
    "SeenLaunch",
    "seenlaunches",
    "A launch of an SNP guest of which a session was seen. Disk keys are released in the first session of a launch alone.",
    s.obj(
        {
            "spec": s.immutable(
                s.obj(
                    {
                        "use": s.enum(
                            *LAUNCH_USES,
                            description="What the first session was: an ordinary one, or one that opened disks.",
                        ),
                        "machine": s.string("UID of the Machine that it was of.", pattern=s.UUID, maxLength=36),
                        "key": s.string(
                            "SHA-256 of the unlock key, hexadecimal digits: a retry with it is answered again.",
                            pattern="^[0-9a-f]{64}$",
                            maxLength=64,
                        ),
                        "expires": s.timestamp("When it may be forgotten, unless a Machine still shows the launch."),
                    },
                    "The launch.",
                    required=("use", "machine", "expires"),
                ),
                "a launch that was seen cannot be changed",
            )
        },
        required=("spec",),
    ),
    columns=(Column("Use", ".spec.use"), Column("Machine", ".spec.machine"), AGE),
)

EVIDENCE_BLOB = declare(
    "EvidenceBlob",
    "evidenceblobs",
    "Evidence that a machine brought, kept by digest.",
    s.obj(
        {
            "spec": s.immutable(
                s.obj(
                    {
                        "digest": s.sha256("Digest of the bytes before compression."),
                        "type": evidence_type("What kind of evidence it is."),
                        "encoding": s.enum("gzip", "zstd", description="How the bytes are compressed."),
                        "data": s.string(
                            "The compressed bytes, base64; at most 512 KiB.", format="byte", maxLength=_MOST_CHARACTERS
                        ),
                    },
                    "The evidence.",
                    required=("digest", "type", "encoding", "data"),
                ),
                "evidence cannot be changed",
            )
        },
        required=("spec",),
    ),
    columns=(Column("Type", ".spec.type"), AGE),
)

KINDS = (SPENT_CHALLENGE, SEEN_LAUNCH, EVIDENCE_BLOB)
