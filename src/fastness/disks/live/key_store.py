"""The keys of Machines' volumes: made, read, replaced and destroyed.

One Secret for each Machine, in a namespace where nothing else is. The broker seals and opens what is in them; the controllers,
which have no vault, can only take keys away. Every change is tied to the version that was read: of two brokers that make a key at
once one wins, and the other finds it.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final, Protocol

from fastness.crypto.secret import SecretBytes
from fastness.disks.keyring import KEY_BYTES, PIN_BYTES, context, entry_name, key_ids, pin_text, secret_name
from fastness.keys.authorities import SECRETS, create_in_namespace
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import metadata
from fastness.kube.errors import AlreadyExists, NotFound
from fastness.kube.places import DISKS
from fastness.kube.port import Cluster, DeleteOptions, PatchType, Scope, WriteOptions
from fastness.runtime.clock import Entropy

TYPE: Final = "fastness.dev/disk-keys"
LABEL: Final = "fastness.dev/machine"
_AS: Final = WriteOptions(manager="disk-keys")


class Cipher(Protocol):
    """Seals and opens; `keys.vault.Vault` is one."""

    def seal(self, plaintext: bytes, context: bytes) -> bytes:
        """An envelope that opens only with the same context."""

    def open(self, sealed: bytes, context: bytes) -> bytes:
        """What was sealed; raises BrokenSeal, UnknownSealKey."""


class HeldKeys:
    """The Secrets without what is in them: which keys there are, and their end."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def entries(self, machine: str) -> JsonObject | None:
        """The Secret of a Machine; None without one. Raises ApiError."""
        try:
            return await self._cluster.get(SECRETS, secret_name(machine), DISKS)
        except NotFound:
            return None

    async def drop(self, machine: str, volume: str, ids: list[str]) -> None:
        """Destroy keys of a volume; raises ApiError."""
        patch = {"data": {entry_name(volume, key_id): None for key_id in ids}}
        with suppress(NotFound):
            await self._cluster.patch(SECRETS, secret_name(machine), patch, PatchType.MERGE, DISKS, _AS)

    async def destroy(self, secret: JsonObject) -> None:
        """Destroy all keys of a Machine, as its Secret was read; raises Conflict, ApiError."""
        meta = metadata(secret)
        options = DeleteOptions(uid=str(meta["uid"]), resource_version=str(meta["resourceVersion"]))
        with suppress(NotFound):
            await self._cluster.delete(SECRETS, str(meta["name"]), DISKS, options)


class DiskKeys(HeldKeys):
    """The same for whoever has the vault: keys are made, and opened."""

    def __init__(self, cluster: Cluster, cipher: Cipher, entropy: Entropy) -> None:
        super().__init__(cluster)
        self._cipher = cipher
        self._entropy = entropy

    async def make(self, machine: str, volume: str, key_id: str, *, pin: bool = False) -> None:
        """A new key, unless there is one of that id; `pin`: as the Clevis pin takes it. Raises Conflict, ApiError."""
        key = pin_text(self._entropy.token(PIN_BYTES)) if pin else self._entropy.token(KEY_BYTES)
        sealed = self._cipher.seal(key, context(machine, volume, key_id))
        data = {entry_name(volume, key_id): base64.b64encode(sealed).decode()}
        secret = await self.entries(machine)
        if secret is None:
            meta = {"name": secret_name(machine), "namespace": DISKS, "labels": {LABEL: machine}}
            made = {"apiVersion": "v1", "kind": "Secret", "type": TYPE, "metadata": meta, "data": data}
            # Another broker was faster: its key is the one, and the next look finds it.
            with suppress(AlreadyExists):
                await create_in_namespace(self._cluster, made, _AS)
            return
        if entry_name(volume, key_id) in entries_of(secret):
            return
        patch = {"metadata": {"resourceVersion": metadata(secret)["resourceVersion"]}, "data": data}
        await self._cluster.patch(SECRETS, secret_name(machine), patch, PatchType.MERGE, DISKS, _AS)

    async def read(self, machine: str, volume: str) -> list[tuple[str, SecretBytes]]:
        """The keys of a volume, newest first; raises ApiError, BrokenSeal, UnknownSealKey."""
        secret = await self.entries(machine)
        entries = entries_of(secret or {})
        return [
            (key_id, SecretBytes(self._opened(machine, volume, key_id, entries))) for key_id in key_ids(entries, volume)
        ]

    def _opened(self, machine: str, volume: str, key_id: str, entries: Mapping[str, bytes]) -> bytes:
        return self._cipher.open(entries[entry_name(volume, key_id)], context(machine, volume, key_id))

    async def reseal(self, is_current: Callable[[bytes], bool]) -> int:
        """Seal every key with the present vault key that is not yet; how many. Raises ApiError, BrokenSeal, UnknownSealKey."""
        count = 0
        for secret in (await self._cluster.list(SECRETS, Scope(DISKS))).items:
            machine = str((metadata(secret).get("labels") or {}).get(LABEL) or "")
            old = {name: sealed for name, sealed in entries_of(secret).items() if not is_current(sealed)}
            if not old:
                continue
            data = {name: self._sealed_anew(machine, name, sealed) for name, sealed in old.items()}
            patch = {"metadata": {"resourceVersion": metadata(secret)["resourceVersion"]}, "data": data}
            await self._cluster.patch(SECRETS, str(metadata(secret)["name"]), patch, PatchType.MERGE, DISKS, _AS)
            count += len(old)
        return count

    def _sealed_anew(self, machine: str, name: str, sealed: bytes) -> str:
        volume, _, key_id = name.rpartition(".")
        tied = context(machine, volume, key_id)
        return base64.b64encode(self._cipher.seal(self._cipher.open(sealed, tied), tied)).decode()


def entries_of(secret: Mapping[str, Any]) -> dict[str, bytes]:
    """What a Secret holds, still sealed; an entry that cannot be read is none."""
    try:
        return {name: base64.b64decode(value, validate=True) for name, value in (secret.get("data") or {}).items()}
    except (binascii.Error, TypeError, ValueError):
        return {}
