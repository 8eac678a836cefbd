"""A volume of a virtual machine opens with a released key and with nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fastness.agent.boot.generation import count_opening
from fastness.agent.boot.volumes import DiskRefused
from fastness.crypto.secret import SecretBytes
from fastness.protocol.disk_keys import DiskKey
from fastness.protocol.disk_report import is_header
from fastness.sim.disks.container import SealedVolumes
from tests.virtual import SeededEntropy

FIRST, SECOND = (DiskKey(f"k{number}", SecretBytes(bytes([number]) * 32)) for number in (1, 2))
SECRET = b"what the cluster released"


def made(directory: Path, seed: int = 1) -> SealedVolumes:
    volumes = SealedVolumes(directory, SeededEntropy(seed))
    volumes.make("var", FIRST, "none")
    opened = volumes.open("var", [FIRST], None)
    (opened.directory / "lib").mkdir()
    (opened.directory / "lib" / "secret").write_bytes(SECRET)
    volumes.settle("var")
    return volumes


def test_what_lies_in_the_state_is_marked_and_has_nothing_in_clear(tmp_path: Path) -> None:
    made(tmp_path)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {path.name for path in files} == {"var.sealed", "var.before"}
    assert not any(SECRET in path.read_bytes() or FIRST.key.reveal() in path.read_bytes() for path in files)
    assert json.loads((tmp_path / "var.sealed").read_bytes())["simulated"] is True


def test_a_later_boot_opens_it_with_the_key_and_finds_its_files(tmp_path: Path) -> None:
    header = made(tmp_path).open("var", [FIRST], None).header
    assert is_header(header)
    opened = SealedVolumes(tmp_path, SeededEntropy(2)).open("var", [SECOND, FIRST], header)
    assert (opened.key, (opened.directory / "lib" / "secret").read_bytes()) == ("k1", SECRET)


@pytest.mark.parametrize("key", [SECOND, DiskKey("k1", SECOND.key)])
def test_another_key_opens_nothing(tmp_path: Path, key: DiskKey) -> None:
    volumes = made(tmp_path)
    with pytest.raises(DiskRefused) as refused:
        volumes.open("var", [key], None)
    assert refused.value.reason == "key-does-not-open"


def test_another_volume_under_the_same_key_is_not_the_one_that_was_recorded(tmp_path: Path) -> None:
    header = made(tmp_path / "mine").open("var", [FIRST], None).header
    other = made(tmp_path / "other", seed=5)
    with pytest.raises(DiskRefused) as refused:
        other.open("var", [FIRST], header)
    assert refused.value.reason == "disk-exchanged"


def test_parts_of_another_volume_do_not_open_in_this_one(tmp_path: Path) -> None:
    mine, other = made(tmp_path / "mine"), made(tmp_path / "other", seed=5)
    mixed = {**json.loads(mine.path("var").read_bytes()), "files": json.loads(other.path("var").read_bytes())["files"]}
    mine.path("var").write_text(json.dumps(mixed))
    with pytest.raises(DiskRefused) as refused:
        mine.open("var", [FIRST], None)
    assert refused.value.reason == "header-refused"


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"slots":{}}', b"\xff"])
def test_a_file_that_is_no_volume_is_refused(tmp_path: Path, content: bytes) -> None:
    volumes = made(tmp_path)
    volumes.path("var").write_bytes(content)
    with pytest.raises(DiskRefused) as refused:
        volumes.open("var", [FIRST], None)
    assert refused.value.reason == "header-refused"


def test_after_a_rekey_the_old_key_opens_nothing_and_the_files_are_the_same(tmp_path: Path) -> None:
    volumes = made(tmp_path)
    header = volumes.open("var", [FIRST], None).header
    for _ in range(2):  # repeatable: a power cut may come before anybody hears of it
        assert volumes.rekey("var", [SECOND, FIRST], header) == "k2"
    with pytest.raises(DiskRefused):
        volumes.open("var", [FIRST], header)
    assert (volumes.open("var", [SECOND], header).directory / "lib" / "secret").read_bytes() == SECRET


def test_the_hosts_snapshot_opens_and_has_an_older_number(tmp_path: Path) -> None:
    volumes = made(tmp_path)
    for opening in (1, 2, 3):
        count_opening(volumes.open("var", [FIRST], None).directory, opening, opening - 1)
        volumes.settle("var")
    volumes.snapshot("var").replace(volumes.path("var"))
    assert count_opening(volumes.open("var", [FIRST], None).directory, 4, 3).after == 1
