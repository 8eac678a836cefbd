"""Volumes beside the real cryptsetup, on files: what we make it reads, what it makes we open, slots of both kinds."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from fastness.agent.disks.block_device import FileDevice
from fastness.agent.disks.entropy import KernelEntropy
from fastness.agent.disks.errors import DiskError
from fastness.agent.disks.formatting import format_volume
from fastness.agent.disks.opening import open_volume, read_volume
from fastness.agent.disks.rekeying import rekey_volume
from fastness.agent.disks.volume import DiskKey, VolumeSettings
from tests.components import require_program
from tests.volumes import DISK_BYTES, KEY, NEW_KEY, OTHER_KEY, MemoryMapper

pytestmark = pytest.mark.processes
PROGRAM = Path("/usr/sbin/cryptsetup")
OPENS, NO_SLOT = 0, 2


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    require_program(PROGRAM, "cryptsetup-bin")
    path = tmp_path / "disk"
    path.write_bytes(b"")
    with path.open("r+b") as file:
        file.truncate(32 * 1024**2)
    for key in (KEY, NEW_KEY, OTHER_KEY):
        (tmp_path / key.id).write_bytes(key.key.reveal())
    return path


def cryptsetup(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([PROGRAM, *words], capture_output=True, text=True, check=False)


def opened_by(disk: Path, key: DiskKey) -> int:
    """How cryptsetup ends when it tries a key."""
    return cryptsetup("open", "--test-passphrase", "--key-file", disk.parent / key.id, disk).returncode


def formatted(disk: Path, *options: str) -> None:
    """A volume of cryptsetup's own making that fits our rules."""
    done = cryptsetup(
        "luksFormat", "-q", "--type", "luks2", "--pbkdf", "pbkdf2", "--pbkdf-force-iterations", "1000", "--cipher",
        "aes-xts-plain64", "--key-size", "512", *options, "--key-file", disk.parent / KEY.id, disk,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def ours(disk: Path) -> None:
    with FileDevice(disk) as device:
        format_volume(device, KEY.key, KEY.id, VolumeSettings(), KernelEntropy())


def test_a_volume_of_ours_opens_in_cryptsetup_with_its_key_and_no_other(disk: Path) -> None:
    ours(disk)
    assert opened_by(disk, KEY) == OPENS
    assert opened_by(disk, OTHER_KEY) == NO_SLOT


def test_cryptsetup_reads_in_our_header_what_we_wrote(disk: Path) -> None:
    ours(disk)
    with FileDevice(disk) as device:
        facts = read_volume(device, None).checked.facts
    dump = cryptsetup("luksDump", disk).stdout
    for words in (
        facts.uuid,
        "aes-xts-plain64",
        "sector: 4096",
        "PBKDF:      pbkdf2",
        "Iterations: 1000",
        "0: fastness",
    ):
        assert words in dump, dump
    metadata = json.loads(cryptsetup("luksDump", "--dump-json-metadata", disk).stdout)
    assert metadata["tokens"] == {"0": {"type": "fastness", "keyslots": ["0"], "key": "k1"}}


def test_cryptsetup_finds_nothing_to_repair_in_our_header(disk: Path) -> None:
    ours(disk)
    before = disk.read_bytes()
    assert cryptsetup("repair", "-q", disk).returncode == 0
    assert disk.read_bytes() == before


@pytest.mark.parametrize(
    "options", [(), ("--sector-size", "4096"), ("--luks2-keyslots-size", "512k", "--offset", "2048")]
)
def test_a_volume_of_cryptsetup_opens_here(disk: Path, options: tuple[str, ...]) -> None:
    formatted(disk, *options)
    mapper = MemoryMapper()
    with FileDevice(disk) as device:
        assert open_volume(device, [OTHER_KEY, KEY], None, mapper, "v").key_id == "k1"
    (volume_key,) = mapper.keys.values()
    dumped = disk.parent / "volume-key"
    words = ("--dump-volume-key", "-q", "--volume-key-file", dumped, "--key-file", disk.parent / KEY.id)
    assert cryptsetup("luksDump", *words, disk).returncode == 0
    assert dumped.read_bytes() == volume_key


def test_volumes_of_cryptsetup_that_the_rules_refuse_are_not_opened(disk: Path) -> None:
    formatted(disk)
    for words in (
        ("config", "--label", "x", disk),
        ("luksAddKey", "-q", "--pbkdf", "argon2id", "--pbkdf-force-iterations", "4", "--pbkdf-memory", "64",
         "--key-file", disk.parent / KEY.id, disk, disk.parent / OTHER_KEY.id),
    ):  # fmt: skip
        assert cryptsetup(*words).returncode == 0
    with FileDevice(disk) as device, pytest.raises(DiskError, match="argon2id") as caught:
        open_volume(device, [KEY], None, MemoryMapper(), "v")
    assert caught.value.code == "header-refused"


@pytest.mark.parametrize("make", [ours, formatted], ids=["ours", "cryptsetup's"])
def test_after_a_new_key_cryptsetup_opens_with_it_alone(disk: Path, make: object) -> None:
    assert callable(make)
    make(disk)
    with FileDevice(disk) as device:
        assert rekey_volume(device, [NEW_KEY, KEY], None) == "k2"
        assert rekey_volume(device, [NEW_KEY, KEY], None) == "k2"
    assert (opened_by(disk, NEW_KEY), opened_by(disk, KEY)) == (OPENS, NO_SLOT)


def test_slots_that_cryptsetup_added_are_cleared_with_a_new_key(disk: Path) -> None:
    ours(disk)
    words = (
        "luksAddKey",
        "-q",
        "--pbkdf",
        "pbkdf2",
        "--pbkdf-force-iterations",
        "1000",
        "--key-file",
        disk.parent / KEY.id,
    )
    assert cryptsetup(*words, disk, disk.parent / OTHER_KEY.id).returncode == 0
    assert opened_by(disk, OTHER_KEY) == OPENS
    with FileDevice(disk) as device:
        rekey_volume(device, [NEW_KEY, KEY], None)
    assert [opened_by(disk, key) for key in (NEW_KEY, KEY, OTHER_KEY)] == [OPENS, NO_SLOT, NO_SLOT]


def test_making_a_volume_leaves_nothing_of_an_earlier_one(disk: Path) -> None:
    formatted(disk)
    assert opened_by(disk, KEY) == OPENS
    with FileDevice(disk) as device:
        format_volume(device, NEW_KEY.key, NEW_KEY.id, VolumeSettings(), KernelEntropy())
    assert (opened_by(disk, NEW_KEY), opened_by(disk, KEY)) == (OPENS, NO_SLOT)


def test_a_small_file_is_a_disk_too(tmp_path: Path) -> None:
    path = tmp_path / "small"
    path.write_bytes(bytes(DISK_BYTES))
    with FileDevice(path) as device:
        format_volume(device, KEY.key, KEY.id, VolumeSettings(), KernelEntropy())
        assert open_volume(device, [KEY], None, MemoryMapper(), "v").path == "/dev/mapper/v"
