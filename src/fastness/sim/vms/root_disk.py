"""The disk of a real machine with a root of its own: a directory that `fastness machine image` prepared, sealed by its hash.

The directory is not changed. What belongs to machines of this kind goes in beside its files: all modules of the kernel that they
boot, and the service that leads to the doors. The file system is ext4, which that kernel has built in; dm-verity seals it
(`images.verity`), and the words that name its hash go on the command line of the image.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fastness.agent.host.errors import CommandFailed
from fastness.agent.host.files import RootedFiles
from fastness.agent.host.image.root import RootTree
from fastness.agent.host.process import run
from fastness.images.check.check import Image, open_ways
from fastness.images.check.kernel_line import KERNEL_INSTALL, words_of
from fastness.images.check.layout import lacks
from fastness.images.check.programs import NodeRefused, helpers_there, programs_there
from fastness.images.check.tree import UNITS, Shape, text
from fastness.images.verity import BLOCK, hash_tree
from fastness.sim.vms import guest, parts

SPARE: Final = 64 * 1024 * 1024
MAX_BYTES: Final = 4 * 1024**3
SECONDS: Final = 600.0
PREPARE: Final = "Prepare it: fastness machine image DIRECTORY --shape debian --platform qemu --agent … --with-node …"


@dataclass(frozen=True, slots=True)
class RootDisk:
    """A sealed disk, and the words of the kernel command line that go with it."""

    path: Path
    command_line: bytes


def check_root(root: Path) -> None:
    """Raise NoRealMachine for a directory that is no prepared root of a node."""
    if root.stat().st_uid != 0:
        raise parts.NoRealMachine(
            f"files of {root} do not belong to root", "Unpack it as root: owners go onto the disk."
        )
    tree = RootTree(RootedFiles(root))
    absent = [f"{lack.path} ({lack.consequence})" for lack in lacks(Shape.DEBIAN, tree)]
    if absent:
        raise parts.NoRealMachine(f"{root} is no prepared root: {absent[0]} is missing", PREPARE)
    try:
        programs_there(tree)
        helpers_there(tree)
    except NodeRefused as error:
        raise parts.NoRealMachine(f"{root}: {error.message}", error.hint) from error
    words = words_of(text(tree, KERNEL_INSTALL))
    if openings := open_ways(Image(root=tree, line=words)):
        raise parts.NoRealMachine(f"the host can take {root} over: {openings[0].way.id}", openings[0].way.remedy)


def write_root_disk(root: Path, target: Path) -> RootDisk:
    """Seal a root on a disk; raises NoRealMachine, CommandFailed."""
    words = text(RootTree(RootedFiles(root)), KERNEL_INSTALL).split()
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="root-") as scratch:
        tree, disk = Path(scratch) / "tree", Path(scratch) / "disk"
        _copy(root, tree)
        _furnish(tree)
        _file_system(tree, disk)
        with disk.open("r+b") as file:
            sealed = hash_tree(_blocks(disk))
            file.seek(0, os.SEEK_END)
            file.write(sealed.content)
        disk.rename(target)
    sealing = (f"{guest.ROOT_HASH}={sealed.root.hex()}", f"{guest.ROOT_BLOCKS}={sealed.blocks}")
    return RootDisk(target, " ".join((*words, *sealing)).encode())


def _copy(root: Path, tree: Path) -> None:
    """A second tree of the same files: nothing in it is written to, so links do where both lie on one file system."""
    try:
        run(["cp", "-al", str(root), str(tree)], seconds=SECONDS)
    except CommandFailed:
        shutil.rmtree(tree, ignore_errors=True)
        run(["cp", "-a", str(root), str(tree)], seconds=SECONDS)


def _furnish(tree: Path) -> None:
    """Add the modules of the kernel, and the way to the doors."""
    modules = parts.module_tree()
    place = tree / "usr/lib/modules" / modules.name
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(modules, place)
    run(["depmod", "-b", str(tree / "usr"), modules.name], seconds=SECONDS)
    units = tree / UNITS.lstrip("/")
    for path, content in (
        (tree / guest.FORWARDER, guest.FORWARD), (units / guest.DOORS_UNIT, guest.DOORS_SERVICE),
    ):  # fmt: skip
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.write_text(content)
    wants = units / "network-online.target.wants"
    wants.mkdir(exist_ok=True)
    (wants / guest.DOORS_UNIT).unlink(missing_ok=True)
    (wants / guest.DOORS_UNIT).symlink_to(f"../{guest.DOORS_UNIT}")


def _file_system(tree: Path, disk: Path) -> None:
    size = int(run(["du", "-s", "--block-size=1", "--count-links", str(tree)], seconds=SECONDS).split()[0])
    if size > MAX_BYTES:
        raise parts.NoRealMachine(f"the root has {size} bytes, more than {MAX_BYTES}", "Leave packages out.")
    blocks = (size + size // 8 + SPARE) // BLOCK
    options = ["-q", "-F", "-b", str(BLOCK), "-O", "^has_journal", "-m", "0", "-d", str(tree)]
    run(["mkfs.ext4", *options, str(disk), str(blocks)], seconds=SECONDS)


def _blocks(disk: Path) -> Iterator[bytes]:
    with disk.open("rb") as file:
        while block := file.read(BLOCK):
            yield block
