"""A new vault key for a state directory: everything is sealed and tagged anew, then the old key goes.

    1  key          the new key is in vault.json, first, and seals from now on; the old one is there too
    2  resources    what the broker sealed inside of objects, keys of disks too, is sealed anew
    3  rows         every row and the head of the store are sealed and tagged with the new key
    4  record       an entry says who did it, why, and which key came after which
    5  check        the closed store is read whole with the new key alone
    6  retired      vault.json has one key

A process that dies leaves a directory that opens, at any step: until the last one both keys are in vault.json. More than one key
there is a rotation that did not end, so the next attempt goes on with that key instead of making another. Only the entry may then
be on the record twice.

No control plane may run on the directory meanwhile: it would go on sealing with the key that it read when it started.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fastness.apiserver import ServerOptions, check_with_key, open_apiserver
from fastness.app.product import PRODUCT
from fastness.disks.live.key_store import DiskKeys
from fastness.record.entry import RecordEntry
from fastness.record.live.record import ClusterRecord
from fastness.release.live.resources import SealedResources
from fastness.release.live.vault_turning import ACT
from fastness.runtime.clock import Clock, Entropy

STEPS: Final = ("key", "resources", "rows", "recorded", "checked", "retired")
Point = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Rotated:
    """What a rotation did: the key of now, those that went, how much was sealed anew, and whether an earlier attempt began it."""

    key: str
    retired: tuple[str, ...]
    resources: int
    rows: int
    resumed: bool


async def rotate_vault(
    state: Path,
    who: str,
    reason: str,
    clock: Clock,
    entropy: Entropy,
    point: Point = lambda _: None,
    kms: tuple[str, ...] = (),
) -> Rotated:
    """Give a state directory that nobody uses a new vault key; raises StoreError, TrustError, RecordError, OSError.

    `point` is called after each of `STEPS`; `kms` is the command that wraps the vault key, if one does.
    """
    async with open_apiserver(ServerOptions(state, kms=kms), PRODUCT, clock, entropy) as server:
        vault = server.vault
        resumed = len(vault.key_ids) > 1
        if not resumed:
            vault.rotate(clock.now())
        point("key")
        resources = await SealedResources(server.cluster, vault).reseal(vault.is_current)
        resources += await DiskKeys(server.cluster, vault, entropy).reseal(vault.is_current)
        point("resources")
        rows = await server.reseal()
        point("rows")
        present, *old = vault.key_ids
        detail = {"reason": reason, "key": present, "before": ", ".join(old)}
        record = ClusterRecord(server.cluster, clock, entropy, "api")
        await record.append(RecordEntry(ACT, who, "vault", detail=detail))
        point("recorded")
    check_with_key(state, vault.with_present_key_alone(entropy))  # afterwards nothing needs the old ones
    point("checked")
    for key in old:
        vault.retire(key)
    point("retired")
    return Rotated(present, tuple(old), resources, rows, resumed)
