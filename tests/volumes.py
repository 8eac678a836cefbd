"""Volumes in memory, and headers as somebody with the disk would make them: changed, with checksums that fit."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from fastness.agent.disks.errors import DiskError
from fastness.agent.disks.formatting import format_volume
from fastness.agent.disks.tables import Target
from fastness.agent.disks.volume import DiskKey, VolumeSettings
from fastness.crypto.secret import SecretBytes
from tests.unit.crypto.seeded import Seeded

COPY = 16384
DISK_BYTES = 2 * 1024**2
KEY, NEW_KEY, OTHER_KEY = (
    DiskKey(name, SecretBytes(bytes([number]) * 32)) for number, name in enumerate(("k1", "k2", "k9"), start=1)
)
Json = dict[str, Any]


class MemoryDevice:
    """A disk in memory that remembers what was read."""

    path, number = "memory", "7:0"

    def __init__(self, data: bytes) -> None:
        self.data = bytearray(data)
        self.reads: list[tuple[int, int]] = []
        self.closed = False

    @property
    def size(self) -> int:
        return len(self.data)

    def read(self, offset: int, length: int) -> bytes:
        self.reads.append((offset, offset + length))
        assert offset + length <= len(self.data)
        return bytes(self.data[offset : offset + length])

    def write(self, offset: int, data: bytes) -> None:
        assert offset + len(data) <= len(self.data)
        self.data[offset : offset + len(data)] = data

    def flush(self) -> None:
        pass

    def close(self) -> None:
        self.closed = True


class MemoryMapper:
    """A mapper without a kernel: keeps tables, and answers with them; `answer` stands for a kernel that does something else."""

    def __init__(self, answer: Callable[[Target], tuple[Target, ...]] = lambda target: (target,)) -> None:
        self.tables: dict[str, Target] = {}
        self.keys: dict[str, bytes] = {}
        self.held: list[str] = []
        self._answer = answer

    @contextmanager
    def hold_key(self, description: str, key: SecretBytes) -> Iterator[None]:
        self.keys[description] = key.reveal()
        self.held.append(description)
        yield
        self.held.remove(description)

    def create(self, name: str, uuid: str, target: Target) -> MemoryDevice:
        if target.kind == "crypt":
            description = target.parameters.split()[1].split(":", 3)[3]
            assert description in self.held, "the key of a table must be in the keyring while it is loaded"
        if name in self.tables:
            raise DiskError("mapper", f"{name} is there already")
        self.tables[name] = target
        device = MemoryDevice(bytes(512))
        device.path = f"/dev/mapper/{name}"
        return device

    def table(self, name: str) -> tuple[Target, ...]:
        return self._answer(self.tables[name])

    def remove(self, name: str) -> None:
        del self.tables[name]


@cache
def volume() -> bytes:
    """A disk with a volume that `KEY` opens."""
    device = MemoryDevice(bytes(DISK_BYTES))
    format_volume(device, KEY.key, KEY.id, VolumeSettings(), Seeded())
    return bytes(device.data)


def text_of(data: bytes, position: int = 0) -> Json:
    """The JSON of a copy."""
    area = data[position * COPY + 4096 : (position + 1) * COPY]
    document: Json = json.loads(area.partition(b"\0")[0])
    return document


def with_text(data: bytes, text: bytes, position: int) -> bytes:
    """The same disk with another JSON in one copy, and a checksum that fits."""
    start = position * COPY
    copy = bytearray(data[start : start + 4096] + text.ljust(COPY - 4096, b"\0"))
    return data[:start] + summed(copy) + data[start + COPY :]


def summed(copy: bytearray) -> bytes:
    """A copy with the checksum that fits."""
    copy[448:512] = bytes(64)
    copy[448:480] = hashlib.sha256(copy).digest()
    return bytes(copy)


def with_binary(data: bytes, position: int, offset: int, value: bytes) -> bytes:
    """The same disk with other bytes in the binary part of one copy, and a checksum that fits."""
    start = position * COPY
    copy = bytearray(data[start : start + COPY])
    copy[offset : offset + len(value)] = value
    return data[:start] + summed(copy) + data[start + COPY :]


def sequenced(data: bytes, position: int, ahead: int) -> bytes:
    """The same disk with the sequence number of one copy moved."""
    start = position * COPY + 16
    number = int.from_bytes(data[start : start + 8], "big") + ahead
    return with_binary(data, position, 16, number.to_bytes(8, "big"))


def changed(data: bytes, change: Callable[[Json], object], copies: tuple[int, ...] = (0, 1)) -> bytes:
    """The same disk after a change of the JSON in copies of its header."""
    for position in copies:
        document = text_of(data, position)
        change(document)
        data = with_text(data, json.dumps(document, separators=(",", ":")).encode(), position)
    return data
