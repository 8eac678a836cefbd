"""ApprovedImage and AttestationKey: what somebody vouched for.

An ApprovedImage says that machines may boot an operating system image; its measurements become reference values. An
AttestationKey is a key that a machine registered; it counts only once it belongs to a known Machine.
"""

from __future__ import annotations

from fastness.kinds import schema as s
from fastness.kinds.kind import Kind, Scope
from fastness.kinds.trusted_execution import GROUP, VERSION


def _status(types: str) -> s.Fragment:
    return s.obj({"conditions": s.conditions(types)}, "What was observed.")


APPROVED_IMAGE = Kind(
    group=GROUP,
    version=VERSION,
    kind="ApprovedImage",
    plural="approvedimages",
    scope=Scope.NAMESPACED,
    description="An operating system image that machines may boot.",
    schema=s.obj(
        {
            "spec": s.obj(
                {
                    "image": s.immutable(
                        s.string("The image, by digest.", pattern=r"^.+@sha256:[0-9a-f]{64}$", maxLength=512),
                        "image is immutable, approve another one instead",
                    )
                },
                "What is approved.",
                required=("image",),
            ),
            "status": _status("Committed: whether the image's measurements are reference values."),
        },
        required=("spec",),
    ),
    subresources=("status",),
)

ATTESTATION_KEY = Kind(
    group=GROUP,
    version=VERSION,
    kind="AttestationKey",
    plural="attestationkeys",
    scope=Scope.NAMESPACED,
    description="An attestation key that a machine registered.",
    schema=s.obj(
        {
            "spec": s.immutable_once_set(
                s.obj(
                    {
                        "publicKey": s.immutable(
                            s.string("The public key, PEM.", minLength=1, maxLength=8192), "publicKey is immutable"
                        ),
                        "uuid": s.string(
                            "The id of the Machine that the key belongs to.", pattern=s.UUID, maxLength=36
                        ),
                    },
                    "The key and its owner.",
                    required=("publicKey",),
                ),
                "uuid",
            ),
            "status": _status("Approved: whether the key belongs to a known machine."),
        },
        required=("spec",),
    ),
    subresources=("status",),
)

KINDS = (APPROVED_IMAGE, ATTESTATION_KEY)
