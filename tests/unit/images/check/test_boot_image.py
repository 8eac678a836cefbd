"""What a unified kernel image shows: its line, its initial file system, and that something was not looked at."""

from __future__ import annotations

import gzip
from collections.abc import Callable

from fastness.images.check.boot_image import NO_LINE, NO_ROOT, NO_SYSTEM, Looked, look_at
from fastness.images.check.check import open_ways
from fastness.images.check.tree import MappedTree
from fastness.images.check.ways import WORDS
from fastness.images.uki import write_uki
from fastness.protocol.pointer import SYSTEM_CONFIG, image_pointer
from fastness.sim.vms.initrd import archive
from tests.measuredboot import minted

LINE = " ".join(WORDS).encode()
RELEASE = {"etc/initrd-release": b"ID=test\n"}
SYSTEM = MappedTree({"/usr/lib/os-release": b"ID=test\n"})


def image(line: bytes = LINE, **files: bytes) -> bytes:
    return packed_image(gzip.compress, line, **files)


def packed_image(pack: Callable[[bytes], bytes], line: bytes = LINE, **files: bytes) -> bytes:
    packed = pack(archive({name.replace("__", "/"): data for name, data in files.items()} or RELEASE, {}))
    return write_uki(minted.stub(), {**minted.sections(), ".cmdline": line, ".initrd": packed})


def ways(looked: Looked) -> dict[str, tuple[str, ...]]:
    return {opening.way.id: opening.places for opening in open_ways(looked.image)}


def test_a_good_image_has_nothing_open_and_says_that_its_root_was_not_seen() -> None:
    looked = look_at(image(), None)
    assert (ways(looked), looked.unseen) == ({}, (NO_ROOT,))
    assert look_at(image(), SYSTEM).unseen == ()


def test_a_directory_without_a_system_says_nothing_about_the_image() -> None:
    for uki in (image(), None):
        assert look_at(uki, MappedTree({"/etc/hosts": b""})).unseen == (NO_SYSTEM,)
        assert look_at(uki, MappedTree({}, {"/etc/os-release": "../usr/lib/os-release"})).unseen == ()


def test_the_line_inside_is_what_counts() -> None:
    looked = look_at(image(b"quiet rd.break"), None)
    assert {"credentials", "console", "command-line"} <= ways(looked).keys()
    looked = look_at(image(b""), None)
    assert NO_LINE in looked.unseen
    assert "credentials" in ways(looked)


def test_the_initial_file_system_is_looked_at() -> None:
    files = {
        "etc/initrd-release": b"",
        "usr/bin/ignition": b"\x7fELF",
        "usr/lib/systemd/system/emergency.service": b"[Unit]\n",
    }
    openings = ways(look_at(image(**files), SYSTEM))
    assert openings["user-data"] == (f"initrd:/usr/bin/ignition without /{SYSTEM_CONFIG}",)
    assert openings["console"] == ("initrd:/usr/lib/systemd/system/emergency.service",)
    files |= {SYSTEM_CONFIG: image_pointer(), "etc/systemd/system/emergency.service": b""}
    assert ways(look_at(image(**files), SYSTEM)) == {}


def test_an_initial_file_system_that_never_hands_over_is_the_root() -> None:
    looked = look_at(image(usr__bin__ignition=b"\x7fELF"), None)
    assert looked.unseen == ()
    assert ways(looked)["user-data"] == (f"/usr/bin/ignition without /{SYSTEM_CONFIG}",)


def test_an_initial_file_system_that_cannot_be_read_is_said_and_not_taken_for_good() -> None:
    packed = {**minted.sections(), ".cmdline": LINE, ".initrd": b"\x28\xb5\x2f\xfd packed"}
    looked = look_at(write_uki(minted.stub(), packed), None)
    assert looked.unseen == (
        "the initial file system was not looked at: the initial file system is packed with zstd, which is not read here",
        NO_ROOT,
    )


def test_an_initial_file_system_in_zstd_is_looked_at_by_whoever_unpacks_it() -> None:
    # A frame of one raw block: what unpacks it takes off the header, as the real program does.
    def pack(data: bytes) -> bytes:
        size = len(data)
        assert size < 1 << 21
        return b"\x28\xb5\x2f\xfd\x00\x58" + (size << 3 | 1).to_bytes(3, "little") + data

    uki = packed_image(pack, **{"etc/initrd-release": b"", "usr/bin/ignition": b"\x7fELF"})
    looked = look_at(uki, SYSTEM, lambda frame, _: frame[9:])
    assert looked.unseen == ()
    assert ways(looked)["user-data"] == (f"initrd:/usr/bin/ignition without /{SYSTEM_CONFIG}",)
