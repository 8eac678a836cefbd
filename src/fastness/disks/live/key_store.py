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
from typing import Any, Final

from fastness.crypto.errors import BrokenSeal, UnknownSealKey
from fastness.crypto.secret import SecretBytes
from fastness.disks.keyring import KEY_BYTES, PIN_BYTES, context, entry_name, key_ids, pin_text, secret_name
from fastness.keys.authorities import SECRETS, create_in_namespace
from fastness.keys.shared_cipher import Cipher, lasts, opened, ready
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import metadata
from fastness.kube.errors import AlreadyExists, Conflict, NotFound, Unavailable
from fastness.kube.places import DISKS
from fastness.kube.port import Cluster, DeleteOptions, PatchType, Scope, WriteOptions
from fastness.runtime.clock import Entropy

TYPE: Final = "fastness.dev/disk-keys"
LABEL: Final = "fastness.dev/machine"
TRIES: Final = 5
_AS: Final = WriteOptions(manager="disk-keys")


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
        """A new key, unless there is one of that id; `pin`: as the Clevis pin takes it. Raises Conflict, ApiError, TrustError."""
        key = pin_text(self._entropy.token(PIN_BYTES)) if pin else self._entropy.token(KEY_BYTES)
        tied = context(machine, volume, key_id)
        await ready(self._cipher)
        sealed = self._cipher.seal(key, tied)
        if await self._add(machine, entry_name(volume, key_id), sealed):
            await self._keep(machine, entry_name(volume, key_id), sealed, lambda: self._cipher.seal(key, tied))

    async def _keep(self, machine: str, entry: str, sealed: bytes, anew: Callable[[], bytes]) -> None:
        """See that an entry is sealed with the vault key of now, which may be turned meanwhile; raises ApiError, TrustError."""
        for _ in range(TRIES):
            if await lasts(self._cipher, sealed):
                return
            secret = await self.entries(machine) or {}
            stored = entries_of(secret).get(entry)
            if stored is None:
                return  # destroyed since, and stays so
            again = anew()
            patch = _tied_patch(secret, {entry: again})
            with suppress(Conflict, NotFound):
                await self._cluster.patch(SECRETS, secret_name(machine), patch, PatchType.MERGE, DISKS, _AS)
                stored = again
            sealed = stored
        raise Unavailable("the vault key changes faster than keys of disks are made")

    async def _add(self, machine: str, entry: str, sealed: bytes) -> bool:
        """Store an entry unless there is one; whether it was stored. Raises Conflict, ApiError."""
        secret = await self.entries(machine)
        if secret is None:
            meta = {"name": secret_name(machine), "namespace": DISKS, "labels": {LABEL: machine}}
            data = {entry: base64.b64encode(sealed).decode()}
            made = {"apiVersion": "v1", "kind": "Secret", "type": TYPE, "metadata": meta, "data": data}
            try:
                await create_in_namespace(self._cluster, made, _AS)
            except AlreadyExists:  # another broker was faster: its key is the one, and the next look finds it
                return False
            return True
        if entry in entries_of(secret):
            return False
        patch = _tied_patch(secret, {entry: sealed})
        await self._cluster.patch(SECRETS, secret_name(machine), patch, PatchType.MERGE, DISKS, _AS)
        return True

    async def read(self, machine: str, volume: str) -> list[tuple[str, SecretBytes]]:
        """The keys of a volume, newest first; raises ApiError, BrokenSeal, UnknownSealKey, TrustError."""
        entries = entries_of(await self.entries(machine) or {})
        found = []
        for key_id in key_ids(entries, volume):
            sealed = entries[entry_name(volume, key_id)]
            found.append((key_id, SecretBytes(await opened(self._cipher, sealed, context(machine, volume, key_id)))))
        return found

    async def reseal(self, is_current: Callable[[bytes], bool], unreadable: Callable[[str], None] | None = None) -> int:
        """Seal every key with the present vault key that is not yet; how many were not. Others may read and write meanwhile.

        What no key opens is told to `unreadable`, or raised where nobody listens. Raises ApiError, BrokenSeal, UnknownSealKey.
        """
        secrets = (await self._cluster.list(SECRETS, Scope(DISKS))).items
        return sum([await self._reseal(secret, is_current, unreadable) for secret in secrets])

    async def _reseal(
        self, secret: JsonObject, is_current: Callable[[bytes], bool], unreadable: Callable[[str], None] | None
    ) -> int:
        data: dict[str, bytes] = {}
        machine = str((metadata(secret).get("labels") or {}).get(LABEL) or "")
        for name, sealed in entries_of(secret).items():
            try:
                if not is_current(sealed):
                    data[name] = self._sealed_anew(machine, name, sealed)
            except (BrokenSeal, UnknownSealKey):
                if unreadable is None:
                    raise
                unreadable(f"machine/{machine}/disk-{name}")
        if data:
            patch = _tied_patch(secret, data)
            # Whoever wrote or destroyed it since wins; it counts all the same, so that nobody takes this for the last pass.
            with suppress(Conflict, NotFound):
                await self._cluster.patch(SECRETS, str(metadata(secret)["name"]), patch, PatchType.MERGE, DISKS, _AS)
        return len(data)

    def _sealed_anew(self, machine: str, name: str, sealed: bytes) -> bytes:
        volume, _, key_id = name.rpartition(".")
        tied = context(machine, volume, key_id)
        return self._cipher.seal(self._cipher.open(sealed, tied), tied)


def _tied_patch(secret: JsonObject, entries: Mapping[str, bytes]) -> JsonObject:
    """A change that counts for the Secret as it was read, and for no other."""
    data = {name: base64.b64encode(sealed).decode() for name, sealed in entries.items()}
    return {"metadata": {"resourceVersion": metadata(secret)["resourceVersion"]}, "data": data}


def entries_of(secret: Mapping[str, Any]) -> dict[str, bytes]:
    """What a Secret holds, still sealed; an entry that cannot be read is none."""
    try:
        return {name: base64.b64decode(value, validate=True) for name, value in (secret.get("data") or {}).items()}
    except (binascii.Error, TypeError, ValueError):
        return {}
