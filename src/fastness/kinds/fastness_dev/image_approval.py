"""Which images machines may boot, as a ConfidentialCluster says: who approves and signs them, and which firmware starts them."""

from __future__ import annotations

from typing import Final

from fastness.kinds import schema as s
from fastness.kinds.objects import View

MANUAL, BUILT_HERE = APPROVALS = ("Manual", "BuiltHere")
_VARIABLES: Final = {
    "PK": "The platform key.",
    "KEK": "The key exchange keys.",
    "db": "Who may sign what starts.",
    "dbx": "What must not start.",
    "dbt": "Who may say when something was signed.",
    "dbr": "Who may recover an operating system.",
}
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
            "platforms": s.list_map(
                s.obj(
                    {
                        "name": s.string("A name for it.", pattern="^[A-Za-z0-9][A-Za-z0-9._-]{0,30}$", maxLength=31),
                        "secureBoot": s.boolean("Whether these machines boot with Secure Boot."),
                        "pools": s.list_set(
                            s.object_name("", minLength=1), "The pools with such machines; all if not set.", maxItems=256,
                        ),
                        "variables": s.obj(
                            {
                                name: s.string(what, pattern="^[A-Za-z0-9+/]*={0,2}$", maxLength=131072)
                                for name, what in _VARIABLES.items()
                            },
                            "What the firmware has enrolled, each in base64; `fastness image platform` writes it.",
                        ),
                    },
                    "One kind of machine.",
                    required=("name", "secureBoot"),
                ),
                ("name",),
                "The firmware of machines: what they measure about its keys (PCR 7) is computed from it, for each image. "
                "Firmware without keys and without Secure Boot if not set.",
                maxItems=8,
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


class ImagePlatform(View, kw_only=True):
    """One kind of machine: the variables of its firmware by name, in base64."""

    name: str
    secure_boot: bool = False
    pools: tuple[str, ...] = ()
    variables: dict[str, str] = {}  # noqa: RUF012 - msgspec copies it


class ImageApproval(View):
    """Which images machines may boot."""

    approval: str = "Manual"
    pools: tuple[str, ...] = ()
    signers: tuple[ImageSigner, ...] = ()
    platforms: tuple[ImagePlatform, ...] = ()

    @property
    def standing(self) -> frozenset[str]:
        """The pools whose built images are approved as they are built."""
        return frozenset(self.pools) if self.approval == BUILT_HERE else frozenset()
