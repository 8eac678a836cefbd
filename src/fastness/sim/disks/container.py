"""A volume of a virtual machine: one file, whose content only a released key opens.

    STATE/machines/<name>/volumes/var.sealed    {"simulated": true, "uuid", "slots": {"k1": <volume key>}, "files": <files>}
    STATE/machines/<name>/volumes/var.before    what it was at the boot before: the snapshot of a host that wants it back
    STATE/machines/<name>/volumes/var           its files, while the initial file system works on them

Slots are AES-256-GCM under released keys, the files under the volume key, which stays when a slot is exchanged, as with LUKS2.
Every write replaces the file as a whole, so a power cut leaves the one before. It is `agent.boot.volumes.Volumes`: the agent's
own code makes, opens, counts and re-keys it.
"""

from __future__ import annotations

import base64
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from fastness.agent.boot.volumes import DiskRefused, OpenVolume
from fastness.crypto.aead import KEY_BYTES, KeyRing, SealKey
from fastness.crypto.digests import sha256
from fastness.crypto.errors import CryptoError
from fastness.crypto.secret import SecretBytes
from fastness.formats import json
from fastness.formats.errors import JsonError
from fastness.keys.key_files import write_private
from fastness.kinds.kind import JsonObject
from fastness.protocol.disk_keys import DiskKey
from fastness.runtime.clock import Entropy

CIPHER: Final = "simulated-aes256-gcm"
MAX_BYTES: Final = 4 * 1024 * 1024
MOST_SLOTS: Final = 4
_LIMITS: Final = json.JsonLimits(max_bytes=MAX_BYTES, max_depth=4)
_MEMBERS: Final = frozenset({"simulated", "uuid", "integrity", "slots", "files"})


class SealedVolumes:
    """The volumes of one virtual machine."""

    def __init__(self, directory: Path, entropy: Entropy) -> None:
        self.directory = directory
        self._entropy = entropy
        self._volume_keys: dict[str, SecretBytes] = {}

    def path(self, volume: str) -> Path:
        """The file that its host has."""
        return self.directory / f"{volume}.sealed"

    def snapshot(self, volume: str) -> Path:
        """What the file was at the boot before."""
        return self.directory / f"{volume}.before"

    def own_copy(self, volume: str) -> Path:
        """Where a fault keeps the machine's own file while another one lies in its place."""
        return self.directory / f"{volume}.own"

    def slots(self, volume: str) -> tuple[str, ...]:
        """The ids of the keys that open a volume; raises DiskRefused."""
        return tuple(self._read(volume)["slots"])

    def make(self, volume: str, key: DiskKey, integrity: str) -> None:
        """A new container with one slot and no files; raises DiskRefused."""
        volume_key = SecretBytes(self._entropy.token(KEY_BYTES))
        content = {"simulated": True, "uuid": self._entropy.uid(), "integrity": integrity, "slots": {}, "files": ""}
        content["slots"] = {key.id: self._slot(content, key, volume_key)}
        content["files"] = self._sealed(content, volume_key, {})
        self._write(volume, content)

    def open(self, volume: str, keys: Sequence[DiskKey], expect: JsonObject | None) -> OpenVolume:
        """Lay the files out; raises DiskRefused for another container, another key, a changed byte."""
        content = self._read(volume)
        header = _header(content)
        if expect is not None and header != dict(expect):
            raise DiskRefused("disk-exchanged", f"volume {volume} is not the one that this machine made")
        key, volume_key = self._unlocked(volume, content, keys)
        directory = self.directory / volume
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(mode=0o700, parents=True)
        for name, text in self._files(volume, content, volume_key).items():
            target = directory / name
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            target.write_bytes(base64.b64decode(text))
        self._volume_keys[volume] = volume_key
        return OpenVolume(key, header, directory)

    def rekey(self, volume: str, keys: Sequence[DiskKey], expect: JsonObject | None) -> str:
        """One slot, under the first key; raises DiskRefused."""
        content = self._read(volume)
        _, volume_key = self._unlocked(volume, content, keys)
        newest = keys[0]
        self._write(volume, {**content, "slots": {newest.id: self._slot(content, newest, volume_key)}})
        return newest.id

    def settle(self, volume: str) -> None:
        """Seal the files as they are now, keep what was there as a host's snapshot, and leave nothing in clear."""
        content, directory = self._read(volume), self.directory / volume
        files = {
            str(path.relative_to(directory)): base64.b64encode(path.read_bytes()).decode()
            for path in sorted(directory.rglob("*"))
            if path.is_file()
        }
        shutil.copy(self.path(volume), self.snapshot(volume))
        self._write(volume, {**content, "files": self._sealed(content, self._volume_keys.pop(volume), files)})
        shutil.rmtree(directory)

    def _slot(self, content: JsonObject, key: DiskKey, volume_key: SecretBytes) -> str:
        ring = KeyRing([SealKey(key.key)], self._entropy)
        return _text(ring.seal(volume_key.reveal(), _context("slot", content)))

    def _sealed(self, content: JsonObject, volume_key: SecretBytes, files: Mapping[str, str]) -> str:
        ring = KeyRing([SealKey(volume_key)], self._entropy)
        return _text(ring.seal(json.canonical(files), _context("files", content)))

    def _unlocked(self, volume: str, content: JsonObject, keys: Sequence[DiskKey]) -> tuple[str, SecretBytes]:
        for key in keys:
            slot = content["slots"].get(key.id)
            if slot is None:
                continue
            try:
                opened = KeyRing([SealKey(key.key)], self._entropy).open(_bytes(slot), _context("slot", content))
            except CryptoError:
                continue
            return key.id, SecretBytes(opened)
        raise DiskRefused("key-does-not-open", f"volume {volume}: no slot takes a key of this machine")

    def _files(self, volume: str, content: JsonObject, volume_key: SecretBytes) -> dict[str, str]:
        try:
            opened = KeyRing([SealKey(volume_key)], self._entropy).open(
                _bytes(content["files"]), _context("files", content)
            )
            return dict(json.decode(opened, _LIMITS))
        except (CryptoError, JsonError) as error:
            raise DiskRefused("header-refused", f"volume {volume} was changed outside this machine") from error

    def _read(self, volume: str) -> JsonObject:
        try:
            value: Any = json.decode(self.path(volume).read_bytes()[: MAX_BYTES + 1], _LIMITS)
        except (OSError, JsonError) as error:
            raise DiskRefused("header-refused", f"volume {volume} cannot be read: {error}") from error
        slots = value.get("slots") if isinstance(value, dict) else None
        if not isinstance(slots, dict) or value.keys() != _MEMBERS or not 1 <= len(slots) <= MOST_SLOTS:
            raise DiskRefused("header-refused", f"volume {volume} is no volume of a virtual machine")
        return dict(value)

    def _write(self, volume: str, content: JsonObject) -> None:
        try:
            write_private(self.path(volume), SecretBytes(json.canonical(content) + b"\n"))
        except OSError as error:
            raise DiskRefused("disk-unwritable", f"volume {volume}: {os.strerror(error.errno or 0)}") from error


def _header(content: JsonObject) -> JsonObject:
    """What is recorded of a volume, and compared: nothing of it changes when a slot is exchanged."""
    return {
        "uuid": str(content["uuid"]), "cipher": CIPHER, "integrity": str(content["integrity"]), "sectorSize": 4096,
        "segmentsDigest": str(sha256(_context("segments", content))),
    }  # fmt: skip


def _context(what: str, content: JsonObject) -> bytes:
    """What a sealed part belongs to: one of another volume, or put in the place of another part, does not open."""
    return json.canonical([what, str(content["uuid"]), str(content["integrity"])])


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _bytes(text: object) -> bytes:
    try:
        return base64.b64decode(text, validate=True) if isinstance(text, str) else b""
    except ValueError:
        return b""
