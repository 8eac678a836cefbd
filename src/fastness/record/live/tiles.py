"""Where the tiles of the record lie: files of the state directory, or ConfigMaps of the cluster.

A tile never changes once the record covers it, so a store only has to read, write and forget whole pieces. Writing is
durable when it returns. Both stores pass one contract test.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import os
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

from fastness.formats.tlog import MAX_ENTRY, WIDTH, TlogError
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.kind import JsonObject
from fastness.kinds.kubernetes.core import CONFIG_MAP
from fastness.kube.errors import AlreadyExists, NotFound
from fastness.kube.port import Cluster, PatchType, WriteOptions

LABEL: Final = "fastness.dev/record"
MAX_TILE: Final = WIDTH * (MAX_ENTRY + 2)
_AS: Final = WriteOptions(manager="record")


class TileStore(Protocol):
    """Pieces of the record by path."""

    async def read(self, path: str) -> bytes | None:
        """A piece; None when there is none; raises TlogError for one that is damaged."""

    async def write(self, path: str, data: bytes) -> None:
        """Keep a piece, durably, in place of one with the same path."""

    async def remove(self, path: str) -> None:
        """Forget a piece; one that is not there is fine."""


class FileTiles:
    """Tiles as files below a directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    async def read(self, path: str) -> bytes | None:
        """A file's content."""
        return await asyncio.to_thread(self._read, path)

    async def write(self, path: str, data: bytes) -> None:
        """Replace a file in one step, and only return when the disk has it."""
        await asyncio.to_thread(self._write, path, data)

    async def remove(self, path: str) -> None:
        """Delete a file."""
        await asyncio.to_thread((self._directory / path).unlink, missing_ok=True)

    def _read(self, path: str) -> bytes | None:
        try:
            with (self._directory / path).open("rb") as file:
                data = file.read(MAX_TILE + 1)
        except (FileNotFoundError, NotADirectoryError):
            return None
        if len(data) > MAX_TILE:
            raise TlogError(f"{path} is too long for a tile")
        return data

    def _write(self, path: str, data: bytes) -> None:
        target = self._directory / path
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        # Beside it and renamed: whoever reads sees the old tile or the new one, never half of one.
        fresh = target.with_name(target.name + ".new")
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        fresh.rename(target)
        # Without it a power cut may leave the old name, though the new content is on the disk.
        _sync_directory(target.parent)


class ConfigMapTiles:
    """Tiles as ConfigMaps, one each, compressed."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def read(self, path: str) -> bytes | None:
        """The piece in a ConfigMap."""
        try:
            stored = await self._cluster.get(CONFIG_MAP.resource, tile_name(path), NAMESPACE)
        except NotFound:
            return None
        return tile_in(stored, path)

    async def write(self, path: str, data: bytes) -> None:
        """Create the ConfigMap or change what it holds."""
        content = {"tile": base64.b64encode(zlib.compress(data, 6)).decode()}
        body: JsonObject = {
            "apiVersion": "v1", "kind": "ConfigMap", "binaryData": content,
            "metadata": {"name": tile_name(path), "namespace": NAMESPACE, "labels": {LABEL: "tile"}},
        }  # fmt: skip
        try:
            await self._cluster.create(CONFIG_MAP.resource, body, _AS)
        except AlreadyExists:
            change = {"binaryData": content}
            await self._cluster.patch(CONFIG_MAP.resource, tile_name(path), change, PatchType.MERGE, NAMESPACE, _AS)

    async def remove(self, path: str) -> None:
        """Delete the ConfigMap."""
        with suppress(NotFound):
            await self._cluster.delete(CONFIG_MAP.resource, tile_name(path), NAMESPACE)


def tile_name(path: str) -> str:
    """The ConfigMap that holds a piece."""
    return "record." + path.replace("/", ".")


def tile_in(stored: JsonObject, path: str) -> bytes:
    """The piece that a ConfigMap holds; raises TlogError."""
    try:
        packed = base64.b64decode(stored["binaryData"]["tile"], validate=True)
        unpacker = zlib.decompressobj()
        # With a bound: a ConfigMap that somebody wrote could unpack to gigabytes.
        data = unpacker.decompress(packed, MAX_TILE)
    except (KeyError, TypeError, binascii.Error, zlib.error) as error:
        raise TlogError(f"the ConfigMap of {path} holds no tile") from error
    if unpacker.unconsumed_tail or not unpacker.eof:
        raise TlogError(f"the ConfigMap of {path} holds no whole tile")
    return data


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
