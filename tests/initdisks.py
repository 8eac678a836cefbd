"""Init-data as a host hands it to a machine: the document of user-data, and the disk that it lies on."""

from __future__ import annotations

import gzip
from pathlib import Path

from fastness.agent.host.user_data.init_data import MAGIC, InitDataDisk
from fastness.formats import json
from fastness.formats.initdata import InitData, parse_init_data, write_init_data
from fastness.protocol.user_data import ENTRY, VERSION


def user_data(pool: str = "worker", ticket: str = "fjt_secret", server: str = "https://a.example") -> str:
    return json.encode({"version": VERSION, "pool": pool, "ticket": ticket, "server": server}).decode()


def document(text: str, algorithm: str = "sha256", **others: str) -> InitData:
    """Init-data with this user-data, and whatever else a host puts beside it."""
    return parse_init_data(write_init_data(algorithm, {ENTRY: text, **others}))


def packed(text: bytes) -> bytes:
    """What is on the disk."""
    data = gzip.compress(text)
    whole = MAGIC + len(data).to_bytes(8, "little") + data
    return whole.ljust(-(-len(whole) // 512) * 512, b"\0")


def disk(directory: Path, content: bytes, name: str = "vdb") -> InitDataDisk:
    """A machine with a disk for its system and one more."""
    for disk_name, data in (("vda", bytes(1024)), (name, content)):
        (directory / "block" / disk_name).mkdir(parents=True, exist_ok=True)
        (directory / disk_name).write_bytes(data)
    return InitDataDisk(blocks=directory / "block", devices=directory)
