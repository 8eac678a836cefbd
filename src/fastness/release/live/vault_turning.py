"""A new vault key for brokers that share a Secret, while all of them go on serving.

Whoever looks after the cluster asks by an annotation of the Secret (`fastness vault rotate`), and the brokers do it: the key
never leaves them. Each step is written with the version that was read, so any broker may take it, and goes on where one died:

    asked       fastness.dev/rotate says who and why
    begun       a new key stands first in the ring, the old one behind it: in the store before anything is sealed with it
    sealing     every resource and every key of a disk is sealed anew, each as it was read; whoever writes meanwhile wins
    recorded    an entry says who asked, why, and which key came after which; a broker that dies here may leave it twice
    retired     the ring has one key

Until the last step both keys open. It comes when a whole pass finds nothing that is sealed with the old key, and not before
`SETTLED` after the new one began, when every broker has read it twice. Whoever writes asks for the key of now afterwards
(`keys.shared_cipher`), so nothing that was answered with success is left behind. What no key of the ring opens was lost before:
it is named in the log, and does not hold the rotation up.
"""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta
from typing import Final

from fastness.crypto.errors import CryptoError
from fastness.disks.live.key_store import DiskKeys
from fastness.keys.authorities import ROTATE, SECRETS
from fastness.keys.errors import TrustError
from fastness.keys.vault import Vault
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import annotations_of, metadata, rfc3339
from fastness.kube.errors import ApiError, Conflict
from fastness.kube.port import Cluster, PatchType, WriteOptions
from fastness.observe import logs
from fastness.record.entry import Record, RecordEntry
from fastness.release.live.resources import SealedResources
from fastness.release.live.vault_secret import NAME, RING, SecretRing, SharedVault, ring_in
from fastness.runtime.clock import Clock, Entropy

ACT: Final = "act-rotate-vault-key"
ROTATING: Final = "fastness.dev/rotating"
RECORDED: Final = "fastness.dev/rotation-recorded"
ROTATED: Final = "fastness.dev/rotated"
LONGEST: Final = 512
LOOK_SECONDS: Final = 20.0
# Longer than a broker goes without reading the ring, and than a request that it has under way.
SETTLED: Final = timedelta(minutes=2)
_AS: Final = WriteOptions(manager="broker")
_log = logs.logger("vault")


class VaultTurning:
    """Turns the key when somebody asked; one for each broker."""

    def __init__(
        self, cluster: Cluster, vault: SharedVault, record: Record, clock: Clock, entropy: Entropy,
        settled: timedelta = SETTLED,
    ) -> None:  # fmt: skip
        self._cluster = cluster
        self._vault = vault
        self._record = record
        self._clock = clock
        self._entropy = entropy
        self._settled = settled
        self._resources = SealedResources(cluster, vault)
        self._disks = DiskKeys(cluster, vault, entropy)
        self._told: set[str] = set()

    async def run(self) -> None:
        """Look every twenty seconds, for ever; what fails is tried again."""
        while True:
            try:
                while await self.step():
                    pass
            except (ApiError, TrustError, CryptoError) as error:
                _log.warning("vault.waits", error=str(error))
            await self._clock.sleep(LOOK_SECONDS)

    async def step(self) -> bool:
        """Take the next step, if there is one; whether another may follow at once. Raises ApiError, TrustError, CryptoError."""
        secret = await self._vault.read()
        vault = self._vault.present
        if len(vault.key_ids) == 1:
            why = annotations_of(secret).get(ROTATE)
            return why is not None and await self._begin(secret, why)
        passed = await self._resources.reseal(vault.is_current, self._unreadable)
        passed += await self._disks.reseal(vault.is_current, self._unreadable)
        if passed:
            return True
        if self._clock.now() - _moment(vault.begun) < self._settled:
            return False
        return await self._finish(secret, vault)

    async def _begin(self, secret: JsonObject, why: str) -> bool:
        """The new key is in the Secret before anything is sealed with it."""
        ring = SecretRing(ring_in(secret))
        Vault.open_file(ring, self._clock.now(), self._entropy, create=False).rotate(self._clock.now())
        notes = {ROTATE: None, ROTATING: why[:LONGEST], RECORDED: None}
        begun = await self._write(secret, notes, {RING: base64.b64encode(ring.saved.reveal()).decode()})
        if begun:
            _log.info("vault.rotating", why=why[:LONGEST])
        return True

    async def _finish(self, secret: JsonObject, vault: Vault) -> bool:
        """Nothing needs the old keys: say so on the record, then drop them."""
        present, *old = vault.key_ids
        why = annotations_of(secret).get(ROTATING, "")
        if annotations_of(secret).get(RECORDED) != present:
            who, _, reason = why.partition(": ")
            detail = {"reason": reason, "key": present, "before": ", ".join(old)}
            await self._record.append(RecordEntry(ACT, who or "unknown", "vault", detail=detail))
            await self._write(secret, {RECORDED: present}, {})
            return True
        ring = SecretRing(ring_in(secret))
        left = Vault.open_file(ring, self._clock.now(), self._entropy, create=False)
        for key in old:
            left.retire(key)
        notes = {ROTATING: None, RECORDED: None, ROTATED: f"{rfc3339(self._clock.now())} {why}"[:LONGEST]}
        if await self._write(secret, notes, {RING: base64.b64encode(ring.saved.reveal()).decode()}):
            _log.info("vault.rotated", key=present, retired=", ".join(old), why=why)
        return True

    async def _write(self, secret: JsonObject, notes: dict[str, str | None], data: dict[str, str]) -> bool:
        """Change the Secret as it was read; no when another broker was faster. Raises ApiError."""
        meta = {"resourceVersion": metadata(secret)["resourceVersion"], "annotations": notes}
        patch = {"metadata": meta, **({"data": data} if data else {})}
        try:
            await self._cluster.patch(SECRETS, NAME, patch, PatchType.MERGE, NAMESPACE, _AS)
        except Conflict:
            return False
        return True

    def _unreadable(self, path: str) -> None:
        if path not in self._told:
            self._told.add(path)
            _log.error("vault.unreadable", path=path)


def _moment(text: str) -> datetime:
    """When a key was made; one that says nothing good is as old as can be, and holds nothing up."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return datetime.min.replace(tzinfo=UTC)
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
