"""Volumes on a real kernel: made, used, opened after a reboot, tampered with, and given a new key while the plug is pulled.

Three boots of QEMU without firmware; whichever test comes first waits for them. The disks are files of the host, and between the
boots the host does to them what hosts can do.
"""

from __future__ import annotations

import base64
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fastness.agent.disks.block_device import FileDevice
from fastness.agent.disks.opening import read_volume, unlock
from fastness.agent.disks.volume import DiskKey
from tests.diskvm.machine import CRYPTSETUP, boot, listen, machine, require_disk_machine
from tests.volumes import KEY, NEW_KEY, changed

pytestmark = pytest.mark.long("whichever test comes first boots a machine three times under emulation")
MEGABYTE = 1024**2
KILLS = 8 if os.environ.get("FASTNESS_SOAK") else 1
Answer = dict[str, Any]


def passed(key: DiskKey) -> list[str]:
    """A key as the machine is given it."""
    return [key.id, base64.b64encode(key.key.reveal()).decode()]


OLD, NEW = passed(KEY), passed(NEW_KEY)
OTHER = ["k9", base64.b64encode(bytes(32)).decode()]


def opening(device: str, keys: list[list[str]], expect: Answer | None, name: str) -> tuple[str, Answer]:
    return "open", {"device": device, "keys": keys, "expect": expect, "name": name}


def shell(command: str) -> tuple[str, Answer]:
    return "sh", {"command": command}


def writing(name: str) -> tuple[str, Answer]:
    """A file system on a volume, and a file."""
    device = f"/dev/mapper/{name}"
    return shell(
        f"/sbin/mke2fs -q -t ext4 {device} && mount {device} /mnt && echo kept-{name} > /mnt/file && umount /mnt"
    )


def reading(name: str) -> tuple[str, Answer]:
    return shell(f"mount -o ro /dev/mapper/{name} /mnt && cat /mnt/file; umount /mnt")


@dataclass(frozen=True)
class Story:
    """What the machine answered, by the name of the step."""

    disks: Mapping[str, Path]
    answers: Mapping[str, Answer]
    key_after_cut: str


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    require_disk_machine()
    place = tmp_path_factory.mktemp("disks")
    disks = {name: place / name for name in ("plain", "tagged", "theirs", "null", "locked")}
    for disk in disks.values():
        disk.touch()
        # A volume with tags is written whole, which is most of the time: the smallest that is made.
        os.truncate(disk, (16 if disk.name == "tagged" else 32) * MEGABYTE)
    _made_by_cryptsetup(disks["theirs"], place / "key")
    _made_by_cryptsetup(disks["null"], place / "key")
    header = disks["null"].read_bytes()[:MEGABYTE]
    null = changed(header, lambda document: document["segments"]["0"].update(encryption="cipher_null-ecb"))
    with disks["null"].open("r+b") as file:
        file.write(null)
    answers = _first_boot(disks)
    for number in range(KILLS):
        _cut_while_rekeying(disks["plain"], 2 + number % 3)
        # Whichever moment it was: a key opens, also in the other implementation.
        key_after_cut = _opened_on_the_host(disks["plain"], place)
    with disks["tagged"].open("r+b") as file:
        file.seek(10 * MEGABYTE)
        byte = file.read(1)
        file.seek(10 * MEGABYTE)
        file.write(bytes([byte[0] ^ 1]))
    return Story(disks, answers | _last_boot(disks, answers), key_after_cut)


def _made_by_cryptsetup(disk: Path, key: Path) -> None:
    key.write_bytes(KEY.key.reveal())
    words = "luksFormat -q --type luks2 --pbkdf pbkdf2 --pbkdf-force-iterations 1000 --cipher aes-xts-plain64 --key-size 512"
    subprocess.run([CRYPTSETUP, *words.split(), "--sector-size", "4096", "--key-file", key, disk], check=True)


def _run(steps: Mapping[str, tuple[str, Answer]], disks: Mapping[str, Path]) -> dict[str, Answer]:
    drives: list[Path | str] = [
        path if name != "locked" else f"readonly=on,file={path}" for name, path in disks.items()
    ]
    return dict(zip(steps, boot(list(steps.values()), drives), strict=True))


def _first_boot(disks: Mapping[str, Path]) -> dict[str, Answer]:
    theirs = "cryptsetup open --key-file /run/key"
    return _run(
        {
            "make plain": ("make", {"device": "/dev/vda", "key": OLD, "integrity": "none"}),
            "open plain": opening("/dev/vda", [OLD], None, "p"),
            "open plain again": opening("/dev/vda", [OLD], None, "q"),
            "write plain": writing("p"),
            "make tagged": ("make", {"device": "/dev/vdb", "key": OLD, "integrity": "hmac-sha256"}),
            "open tagged": opening("/dev/vdb", [OLD], None, "t"),
            "write tagged": writing("t"),
            "open theirs": opening("/dev/vdc", [OTHER, OLD], None, "c"),
            "write theirs": writing("c"),
            "close theirs": ("remove", {"name": "c"}),
            "read theirs by cryptsetup": shell(
                f"echo {OLD[1]} | base64 -d > /run/key; {theirs} /dev/vdc c && mount /dev/mapper/c /mnt && cat /mnt/file"
            ),
            "close ours": ("remove", {"name": "p"}),
            "read ours by cryptsetup": shell(
                f"umount /mnt; {theirs} /dev/vda p && mount /dev/mapper/p /mnt && cat /mnt/file"
            ),
            "open null": opening("/dev/vdd", [OLD], None, "n"),
            "open locked": opening("/dev/vde", [OLD], None, "l"),
            "make locked": ("make", {"device": "/dev/vde", "key": OLD, "integrity": "none"}),
            "mappings": shell("ls /dev/mapper"),
        },
        disks,
    )


def _cut_while_rekeying(disk: Path, runs: int) -> None:
    """Pull the plug soon after the machine began to change keys for the nth time."""
    with machine([("rekey-forever", {"device": "/dev/vda", "keys": [NEW, OLD]})], [disk]) as process:
        assert len(listen(process, lambda answers: len(answers) >= runs)) == runs
        process.kill()
        process.wait()


def _opened_on_the_host(disk: Path, place: Path) -> str:
    with FileDevice(disk) as device:
        key = unlock(read_volume(device, None), [NEW_KEY, KEY]).key
    (place / "key").write_bytes(key.key.reveal())
    subprocess.run([CRYPTSETUP, "open", "--test-passphrase", "--key-file", place / "key", disk], check=True)
    return key.id


def _last_boot(disks: Mapping[str, Path], first: Mapping[str, Answer]) -> dict[str, Answer]:
    plain, tagged = first["make plain"]["facts"], first["make tagged"]["facts"]
    return _run(
        {
            "open exchanged": opening("/dev/vda", [NEW, OLD], tagged, "p"),
            "open with another key": opening("/dev/vda", [OTHER], plain, "p"),
            "rekey after the cut": ("rekey", {"device": "/dev/vda", "keys": [NEW, OLD], "expect": plain}),
            "open with the old key": opening("/dev/vda", [OLD], plain, "p"),
            "reopen plain": opening("/dev/vda", [NEW], plain, "p"),
            "reread plain": reading("p"),
            "rekey while open": ("rekey", {"device": "/dev/vda", "keys": [OLD, NEW], "expect": plain}),
            "reopen tagged": opening("/dev/vdb", [OLD], tagged, "t"),
            "reread tagged": reading("t"),
            "read all of tagged": shell("dd if=/dev/mapper/t of=/dev/null bs=64k"),
            "table with its key": shell("cat /proc/keys | grep -c fastness"),
        },
        disks,
    )


def test_a_volume_is_made_and_holds_a_file_system(story: Story) -> None:
    for name in ("plain", "tagged", "theirs"):
        assert story.answers[f"write {name}"]["exit"] == 0, story.answers[f"write {name}"]


def test_after_a_reboot_it_opens_and_holds_what_was_written(story: Story) -> None:
    assert story.answers["reopen plain"]["facts"] == story.answers["make plain"]["facts"]
    assert story.answers["reread plain"]["output"] == "kept-p\n"
    assert story.answers["reread tagged"]["output"] == "kept-t\n"


def test_the_host_reads_nothing_of_it(story: Story) -> None:
    for name in ("plain", "tagged", "theirs"):
        assert b"kept-" not in story.disks[name].read_bytes()


def test_the_kernel_encrypts_and_its_table_shows_no_key(story: Story) -> None:
    (line,) = story.answers["open plain"]["table"]
    uuid = story.answers["make plain"]["facts"]["uuid"]
    assert line == f"crypt aes-xts-plain64 :64:logon:fastness:{uuid} 0 254:0 2048 1 sector_size:4096"
    (line,) = story.answers["open tagged"]["table"]
    assert line.startswith("crypt capi:authenc(hmac(sha256),xts(aes))-plain64 :96:logon:fastness:")
    assert story.answers["table with its key"]["output"] == "0\n", "the keyring forgot the keys"


def test_what_cryptsetup_made_opens_here_and_what_was_written_it_reads(story: Story) -> None:
    assert story.answers["open theirs"]["key"] == "k1"
    assert story.answers["read theirs by cryptsetup"]["output"] == "kept-c\n"


def test_what_was_made_here_cryptsetup_opens_and_reads(story: Story) -> None:
    assert story.answers["read ours by cryptsetup"]["output"].endswith("kept-p\n")


def test_a_null_cipher_is_refused_and_nothing_is_mapped(story: Story) -> None:
    assert story.answers["open null"]["code"] == "header-refused"
    assert "cipher_null-ecb" in story.answers["open null"]["message"]
    assert story.answers["mappings"]["output"].split() == ["c", "control", "p", "t", "t_dif"]


def test_a_read_only_disk_is_said_to_be_so(story: Story) -> None:
    assert story.answers["open locked"]["code"] == "disk-read-only"
    assert story.answers["make locked"]["code"] == "disk-read-only"


def test_a_volume_that_is_open_is_neither_opened_nor_changed_again(story: Story) -> None:
    assert story.answers["open plain again"]["code"] == "disk-busy"
    assert story.answers["rekey while open"]["code"] == "disk-busy"


def test_one_changed_byte_of_a_volume_with_integrity_is_an_error_of_the_disk(story: Story) -> None:
    assert "facts" in story.answers["reopen tagged"]
    assert story.answers["read all of tagged"]["exit"] != 0
    assert "Input/output error" in story.answers["read all of tagged"]["output"]


def test_another_volume_and_another_key_are_told_apart(story: Story) -> None:
    assert story.answers["open exchanged"]["code"] == "disk-exchanged"
    assert story.answers["open with another key"]["code"] == "key-does-not-open"


def test_a_key_opens_after_the_plug_was_pulled_and_the_next_boot_ends_the_change(story: Story) -> None:
    assert story.key_after_cut in ("k1", "k2")
    assert story.answers["rekey after the cut"]["key"] == "k2"
    assert story.answers["open with the old key"]["code"] == "key-does-not-open"
    assert story.answers["reopen plain"]["key"] == "k2"
