"""Every key of a cluster, and a new one for each at once: for the day on which somebody may have them.

    ROTATIONS           which keys there are, how each is changed, what that breaks and for how long
    rotate_keys(…)      changes those that are asked for, one after the other; what was done stays done

How a key is changed follows from who would be locked out:

    replaced    at once, nothing that the old one made counts; whoever holds something of it asks again by itself
    begun       a new one signs in two minutes, the one before is still believed; a second rotation takes it away
    succeeded   an authority gets a successor, which is handed out first and issues after the overlap

Roles follow their Secrets, so nothing has to be restarted. The vault keys are not here: what they seal must be
sealed anew (`fastness vault rotate`; docs/how-to/rotate-keys-in-an-emergency.md). Who asked, and why, stands at each Secret.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from fastness.keys.authorities import ROTATE, SECRETS, AuthoritySecret
from fastness.keys.doors import DOORS
from fastness.keys.image_keys import IMAGE_KEYS
from fastness.keys.internal import INTERNAL
from fastness.keys.keyrings import KeySecret
from fastness.keys.mac_keys import MAC_KEYS
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.objects import rfc3339
from fastness.kube.errors import NotFound
from fastness.kube.port import Cluster, PatchType, WriteOptions
from fastness.record.live.door_keys import DOOR_KEYS
from fastness.release.live.admins import ADMIN_KEYS
from fastness.release.live.signed_configs import CONFIG_KEYS
from fastness.release.live.tokens import TOKEN_KEYS
from fastness.runtime.clock import Entropy

ROTATED: Final = "fastness.dev/rotated"
_AS: Final = WriteOptions(manager="rotation")


class Manner(StrEnum):
    """How a key is changed."""

    REPLACED = "replaced"
    BEGUN = "begun"
    SUCCEEDED = "succeeded"


@dataclass(frozen=True, slots=True)
class Rotation:
    """One Secret with keys: how it changes, what breaks, and for how long."""

    kind: KeySecret | AuthoritySecret
    manner: Manner
    breaks: str
    lasts: str

    @property
    def name(self) -> str:
        """The Secret."""
        return self.kind.name


_SIGNED_BEFORE: Final = "nothing; what the old key signed counts until the next rotation"
ROTATIONS: Final[tuple[Rotation, ...]] = (
    *(
        Rotation(kind, Manner.REPLACED, f"sessions and challenges under way at {role}", "seconds: machines begin anew")
        for role, kind in MAC_KEYS.items()
    ),
    Rotation(TOKEN_KEYS, Manner.REPLACED, "tokens of all attested machines", "until each attests again, by itself"),
    Rotation(ADMIN_KEYS, Manner.REPLACED, "credentials of the broker's administrators", "until you mint new ones"),
    Rotation(CONFIG_KEYS, Manner.BEGUN, _SIGNED_BEFORE, "-"),
    Rotation(IMAGE_KEYS, Manner.BEGUN, "nothing; whoever asks for signatures must be told the new key", "-"),
    *(Rotation(kind, Manner.BEGUN, _SIGNED_BEFORE, "-") for kind in DOOR_KEYS.values()),
    Rotation(INTERNAL, Manner.SUCCEEDED, "nothing; whoever has the old authority can pose as a role", "2 days"),
    Rotation(DOORS, Manner.SUCCEEDED, "nothing; whoever has the old authority can pose as a door", "30 days"),
)
BY_NAME: Final = {rotation.name: rotation for rotation in ROTATIONS}


async def present_rotations(cluster: Cluster, chosen: Sequence[str]) -> list[Rotation]:
    """Those keys that this cluster has, of the chosen ones or of all; raises ApiError."""
    selected = [BY_NAME[name] for name in chosen] if chosen else list(ROTATIONS)
    present = []
    for rotation in selected:
        try:
            secret = await cluster.get(SECRETS, rotation.name, NAMESPACE)
        except NotFound:
            continue
        if secret.get("data"):
            present.append(rotation)
    return present


async def rotate_keys(
    cluster: Cluster, rotations: Sequence[Rotation], why: str, entropy: Entropy, now: datetime
) -> AsyncIterator[Rotation]:
    """Change these keys, and tell of each that is done; raises DamagedKeys, ApiError."""
    note = {ROTATED: f"{rfc3339(now)} {why}"[:512]}
    for rotation in rotations:
        kind = rotation.kind
        if isinstance(kind, AuthoritySecret):
            note_and_ask = {"metadata": {"annotations": {**note, ROTATE: "emergency"}}}
            await cluster.patch(SECRETS, kind.name, note_and_ask, PatchType.MERGE, NAMESPACE, _AS)
        else:
            await kind.begin(cluster, entropy, now, keep=rotation.manner is Manner.BEGUN)
            noted = {"metadata": {"annotations": note}}
            await cluster.patch(SECRETS, kind.name, noted, PatchType.MERGE, NAMESPACE, _AS)
        yield rotation
