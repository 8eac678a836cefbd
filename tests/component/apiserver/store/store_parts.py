"""A small world around a store: a clock that is moved by hand, a toy cipher, faults on demand, short ways to write."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from fastness.apiserver.store import Key, Record, Store, StoreSettings, WriteStep
from fastness.crypto.aead import SealKey
from fastness.crypto.secret import SecretBytes
from fastness.crypto.store_mac import Macs, StoreMac


def macs_of(*keys: bytes, required: bool = True) -> Macs:
    """The keys that authenticate a store, from vault keys of one repeated letter, the present one first."""
    return Macs(tuple(StoreMac.derive(SealKey(SecretBytes(key * 32))) for key in keys), required=required)


MACS = macs_of(b"m")


class ManualClock:
    """Wall time that moves only when told."""

    def __init__(self) -> None:
        self.time = datetime(2026, 1, 1, tzinfo=UTC)

    def now(self) -> datetime:
        return self.time

    def monotonic(self) -> float:
        return self.time.timestamp()

    async def sleep(self, seconds: float) -> None:
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)


class ToyCipher:
    """Reversible and authenticated enough to notice a wrong key, another context or changed bytes. Never for real use."""

    def __init__(self, key: bytes = b"toy") -> None:
        self._key = key

    def seal(self, plaintext: bytes, context: bytes) -> bytes:
        return self._tag(plaintext, context) + self._mix(plaintext)

    def open(self, sealed: bytes, context: bytes) -> bytes:
        plaintext = self._mix(sealed[16:])
        if self._tag(plaintext, context) != sealed[:16]:
            raise ValueError("the tag does not match")
        return plaintext

    def _mix(self, data: bytes) -> bytes:
        stream = hashlib.shake_256(self._key).digest(len(data))
        return bytes(a ^ b for a, b in zip(data, stream, strict=True))

    def _tag(self, plaintext: bytes, context: bytes) -> bytes:
        return hashlib.sha256(self._key + len(context).to_bytes(4, "big") + context + plaintext).digest()[:16]


class Faults:
    """Failpoints that raise: `arm` the next calls of a name with an error."""

    def __init__(self) -> None:
        self.reached: list[str] = []
        self._armed: dict[str, list[Exception]] = {}
        self.on: Callable[[str], None] | None = None

    def arm(self, name: str, error: Exception, times: int = 1) -> None:
        self._armed.setdefault(name, []).extend([error] * times)

    def __call__(self, name: str) -> None:
        self.reached.append(name)
        if self.on is not None:
            self.on(name)
        if waiting := self._armed.get(name):
            raise waiting.pop()


def key(name: str, namespace: str = "default", plural: str = "things", group: str = "example.dev") -> Key:
    return Key(group, plural, namespace, name)


async def put(store: Store, name: str | Key, body: bytes = b"{}", expect: int | None = None) -> Record:
    where = name if isinstance(name, Key) else key(name)
    [record] = await store.write(lambda _: WriteStep(where, body, expect))
    return record


async def remove(store: Store, name: str | Key, last: bytes = b"last", expect: int | None = None) -> Record:
    where = name if isinstance(name, Key) else key(name)
    [record] = await store.write(lambda _: WriteStep(where, None, expect, last))
    return record


async def reopened(store: Store, directory: Path, **options: Any) -> Store:
    await store.close()
    return await Store.open(directory, **options)


def small_log(**bounds: Any) -> StoreSettings:
    """Settings with which bounds are reached in a few writes."""
    return StoreSettings(**({"log_entries": 8, "compact_every": 4, "checkpoint_bytes": 64 * 1024} | bounds))
