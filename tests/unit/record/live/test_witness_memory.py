"""The memory of a witness: what cannot be read is damage, and never a log that is new."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fastness.crypto.secret import SecretBytes
from fastness.formats import json
from fastness.keys.errors import DamagedKeyFile
from fastness.keys.key_files import write_private
from fastness.record.live.witness_memory import KEY, WitnessMemory, witness_key
from fastness.record.witnessing import NEVER, Latest
from tests.virtual import SeededEntropy

LOG = "log.example/record"


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[WitnessMemory]:
    opened = WitnessMemory(tmp_path)
    yield opened
    opened.close()


def file_of_log(directory: Path) -> Path:
    (path,) = (directory / "logs").iterdir()
    return path


def test_a_tree_is_remembered_for_its_log_alone(memory: WitnessMemory) -> None:
    memory.remember(LOG, Latest(7, bytes(32)))
    assert memory.latest(LOG) == Latest(7, bytes(32))
    assert memory.latest("other.example/record") == NEVER


@pytest.mark.parametrize(
    "change",
    [{"origin": "other.example/record"}, {"size": "7"}, {"size": -1}, {"size": None}, {"root": "AAAA"}, {"root": "?"}],
    ids=str,
)
def test_a_memory_of_another_log_or_of_no_tree_is_damage(
    memory: WitnessMemory, tmp_path: Path, change: dict[str, Any]
) -> None:
    memory.remember(LOG, Latest(7, bytes(32)))
    path = file_of_log(tmp_path)
    write_private(path, SecretBytes(json.encode(json.decode(path.read_bytes()) | change)))
    with pytest.raises(DamagedKeyFile):
        memory.latest(LOG)


@pytest.mark.parametrize("content", [b"null", b"[]", b'"text"', b"7", b"", b"{"])
def test_a_file_that_holds_something_else_is_damage_and_no_fresh_start(
    memory: WitnessMemory, tmp_path: Path, content: bytes
) -> None:
    memory.remember(LOG, Latest(7, bytes(32)))
    write_private(file_of_log(tmp_path), SecretBytes(content))
    with pytest.raises(DamagedKeyFile):
        memory.latest(LOG)
    write_private(tmp_path / KEY, SecretBytes(content))
    with pytest.raises(DamagedKeyFile):
        witness_key(tmp_path, "witness.example/w1", SeededEntropy(1))
