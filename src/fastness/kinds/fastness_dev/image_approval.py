"""Which images machines may boot: who approves them, and who must have signed them. A part of the ConfidentialCluster."""

from __future__ import annotations

from typing import Final

from fastness.kinds import schema as s
from fastness.kinds.objects import View

MANUAL, BUILT_HERE = APPROVALS = ("Manual", "BuiltHere")
IMAGES: Final = s.with_rules(
    s.obj(
        {
            "approval": s.enum(
                *APPROVALS,
                default=MANUAL,
                description="Manual: a person approves each image before machines may boot it. BuiltHere: images that this "
                "control plane built for the listed pools are approved as they are built.",
            ),
            "pools": s.list_set(
                s.object_name("", minLength=1), "The pools that BuiltHere is for; whoever writes their "
                "MachineOSConfig decides what their machines boot.", maxItems=256,
            ),
            "signers": s.list_map(
                s.obj(
                    {
                        "name": s.string("Who it is.", pattern="^[A-Za-z0-9][A-Za-z0-9@._ -]{0,62}$", maxLength=63),
                        "key": s.string(
                            "Public key in PEM: ECDSA on P-256, as cosign makes them.",
                            pattern="^-----BEGIN PUBLIC KEY-----", maxLength=1024,
                        ),
                        "images": s.list_set(
                            s.string("", minLength=1, maxLength=512),
                            "Registries or repositories whose images must have this signature; all if not set.", maxItems=64,
                        ),
                    },
                    "One signer.",
                    required=("name", "key"),
                ),
                ("name",),
                "Who must have signed an image before its values count, each of them. Nobody if not set.",
                maxItems=16,
            ),
        },
        "Which images machines may boot.",
        default={},
    ),
    s.rule(
        "!has(self.approval) || self.approval != 'BuiltHere' || (has(self.pools) && size(self.pools) > 0)",
        "pools are required for approval BuiltHere",
    ),
)  # fmt: skip


class ImageSigner(View, kw_only=True):
    """Somebody who must have signed an image."""

    name: str
    key: str
    images: tuple[str, ...] = ()


class ImageApproval(View):
    """Which images machines may boot."""

    approval: str = "Manual"
    pools: tuple[str, ...] = ()
    signers: tuple[ImageSigner, ...] = ()

    @property
    def standing(self) -> frozenset[str]:
        """The pools whose built images are approved as they are built."""
        return frozenset(self.pools) if self.approval == BUILT_HERE else frozenset()
