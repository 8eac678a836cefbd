"""What this package needs of a machine: a disk, and the kernel's mapper."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

from fastness.agent.disks.tables import Target
from fastness.crypto.secret import SecretBytes


class BlockDevice(Protocol):
    """A disk. Every method raises DiskError; nothing is read or written in part without one."""

    @property
    def path(self) -> str:
        """Its name in messages."""

    @property
    def number(self) -> str:
        """`major:minor`, as tables of the mapper name it."""

    @property
    def size(self) -> int:
        """Its length in bytes."""

    def read(self, offset: int, length: int) -> bytes:
        """Exactly that many bytes."""

    def write(self, offset: int, data: bytes) -> None:
        """All of the bytes."""

    def flush(self) -> None:
        """Return when everything written so far would survive a power cut."""

    def close(self) -> None:
        """Give the disk back."""


class DeviceMapper(Protocol):
    """The kernel's mapper. Every method raises DiskError."""

    def hold_key(self, description: str, key: SecretBytes) -> AbstractContextManager[None]:
        """A key in the kernel's keyring for the time of the block, where tables name it and nobody can read it."""

    def create(self, name: str, uuid: str, target: Target) -> BlockDevice:
        """Make and start a mapping with one target; whatever fails leaves none behind."""

    def table(self, name: str) -> tuple[Target, ...]:
        """What a mapping does, as the kernel says."""

    def remove(self, name: str) -> None:
        """End a mapping."""
