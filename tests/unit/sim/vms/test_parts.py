"""What a real machine is made of."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from fastness.sim.vms import parts, qemu
from fastness.sim.vms.initrd import DOORS, INIT, archive
from fastness.sim.vms.qemu import Boot


def test_what_is_missing_is_named_by_package_once() -> None:
    there = {parts.QEMU, parts.BUSYBOX, parts.TPM2, parts.STUB, parts.IGNITION}
    assert parts.missing(lambda path: path in there) == ["mtools", "ovmf", "swtpm", "swtpm-tools"]


def test_nothing_is_missing_where_everything_is_there() -> None:
    assert parts.missing(lambda _: True) == []


def test_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "missing", lambda: ["ovmf", "swtpm"])
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


def test_the_image_holds_nothing_of_one_machine() -> None:
    for mark in ("@@USERDATA", "@@PORTS", "@@BROKER"):
        assert f"ask {mark}" in INIT
