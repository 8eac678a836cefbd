"""What a real machine is made of."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from fastness.sim.vms import parts, qemu
from fastness.sim.vms.guest import DOORS, ROOT_DISK
from fastness.sim.vms.initrd import INIT, archive
from fastness.sim.vms.qemu import Boot


def test_what_is_missing_is_named_by_package_once() -> None:
    there = {parts.QEMU, parts.BUSYBOX, parts.TPM2, parts.STUB, parts.IGNITION}
    assert parts.missing(lambda path: path in there) == ["mtools", "ovmf", "swtpm", "swtpm-tools"]


def test_a_machine_with_a_root_of_its_own_needs_more() -> None:
    def there(path: Path) -> bool:
        return path not in parts.ROOT_PACKAGES

    assert parts.missing(there) == []
    assert parts.missing(there, with_root=True) == ["e2fsprogs", "kmod"]


def test_nothing_is_missing_where_everything_is_there() -> None:
    assert parts.missing(lambda _: True) == []


def test_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "missing", lambda **_: ["ovmf", "swtpm"])
    with pytest.raises(parts.NoRealMachine, match="ovmf, swtpm") as raised:
        parts.require()
    assert raised.value.hint == "apt-get install --no-install-recommends ovmf swtpm"


def test_an_archive_is_the_same_for_the_same_content_in_any_order() -> None:
    first = archive({"a/b": b"1", "c": b"22"}, {"d": "c"})
    other = archive({"c": b"22", "a/b": b"1"}, {"d": "c"})
    assert first == other
    assert first.count(b"070701") == len(["a", "dev", "proc", "sys", "tmp", "a/b", "c", "d", "TRAILER!!!"])
    assert gzip.compress(first, mtime=0) == gzip.compress(other, mtime=0)


def test_every_part_of_an_archive_begins_at_a_multiple_of_four() -> None:
    data = archive({"odd": b"123", "odder": b"12345"}, {})
    places = [place for place in range(len(data)) if data[place : place + 6] == b"070701"]
    assert all(place % 4 == 0 for place in places)


def test_a_machine_reaches_the_doors_and_nothing_else() -> None:
    words = qemu.command(Path("/place"), Boot(Path("/disk"), (8000, 8080), {}), Path("/own"))
    network = words[words.index("-netdev") + 1]
    assert "restrict=on" in network
    assert [part for part in network.split(",") if part.startswith("guestfwd")] == [
        f"guestfwd=tcp:{DOORS}:{port}-cmd:{parts.BUSYBOX} nc 127.0.0.1 {port}" for port in (8000, 8080)
    ]


def test_a_machine_is_emulated_and_its_image_cannot_be_written() -> None:
    words = qemu.command(Path("/place"), Boot(Path("/disk"), (), {}), Path("/own"))
    assert words[words.index("-accel") + 1] == "tcg"
    assert "if=none,id=d0,format=raw,readonly=on,file=/disk" in words


def test_a_root_is_a_disk_that_cannot_be_written_and_needs_more_memory() -> None:
    words = qemu.command(Path("/place"), Boot(Path("/disk"), (), {}, Path("/root-disk")), Path("/own"))
    assert "if=none,id=d3,format=raw,readonly=on,file=/root-disk" in words
    assert f"virtio-blk-pci,drive=d3,serial={ROOT_DISK}" in words
    assert words[words.index("-m") + 1] == str(qemu.ROOT_MEMORY)
    without = qemu.command(Path("/place"), Boot(Path("/disk"), (), {}), Path("/own"))
    assert not any("d2" in word for word in without)
    assert without[without.index("-m") + 1] == str(qemu.MEMORY)


def test_the_image_holds_nothing_of_one_machine() -> None:
    for mark in ("@@USERDATA", "@@PORTS", "@@BROKER"):
        assert f"ask {mark}" in INIT
