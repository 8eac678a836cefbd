"""Packing the machine and booting it.

The initial file system is not compressed: under emulation unpacking would take longer than reading. What of Python belongs in it
is what a run of `inside` on this host imports.
"""

from __future__ import annotations

import importlib.util
import json
import os
import py_compile
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from fastness.sim.vms import parts
from fastness.sim.vms.initrd import archive
from tests.components import require_program
from tests.diskvm.inside import DONE, MARK
from tests.measuredboot.machine import running

ROOT = Path(__file__).parents[2]
CRYPTSETUP, MKE2FS = Path("/usr/sbin/cryptsetup"), Path("/usr/sbin/mke2fs")
NEEDED = {
    parts.QEMU: "qemu-system-x86", parts.BUSYBOX: "busybox-static", CRYPTSETUP: "cryptsetup-bin", MKE2FS: "e2fsprogs",
}  # fmt: skip
DRIVERS = (
    "virtio_ring", "virtio_pci_modern_dev", "virtio_pci_legacy_dev", "virtio", "virtio_pci", "virtio_blk", "virtio-rng",
)  # fmt: skip
MODULES = (*DRIVERS, *parts.DISK_MODULES, *parts.TAG_MODULES)
PYTHON = f"python{sys.version_info.major}.{sys.version_info.minor}"
# Without KVM a busy host keeps the timer back while the kernel looks for it; it would then go on without one, for ever.
COMMAND_LINE = "console=ttyS0 quiet no_timer_check panic=1"
DEADLINE = 300.0
INIT = f"""#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t devtmpfs dev /dev
mount -t proc proc /proc
mount -t sysfs sys /sys
mkdir -p /run /mnt
mount -t tmpfs run /run
exec </dev/ttyS0 >/dev/ttyS0 2>&1
stty -echo
for name in {" ".join(MODULES)}; do insmod /modules/$name.ko || echo "no $name"; done
echo 1 > /proc/sys/kernel/printk
export PATH=/bin:/sbin PYTHONHOME=/python LD_LIBRARY_PATH=/python/native
exec /python/bin/{PYTHON} -S -B /inside.py run
"""
IMPORTS = """
import os, runpy, sys, tempfile
space = runpy.run_path(sys.argv[1])
with tempfile.NamedTemporaryFile() as file:
    os.truncate(file.name, 2 << 20)
    key = ["k1", "A" * 43 + "="]
    space["make"](file.name, key, "none")
    try:
        space["opened"](file.name, [key], None, "x")
    except space["DiskError"]:
        pass
import encodings.ascii, encodings.latin_1
for module in list(sys.modules.values()):
    path = getattr(module, "__file__", None) or getattr(getattr(module, "__spec__", None), "origin", None)
    if path and os.path.exists(path):
        print(module.__name__ if module.__name__ != "__main__" else "", path, bool(getattr(module, "__path__", None)), sep="\\t")
"""


def require_disk_machine() -> None:
    """Skip by name, or fail in CI, unless everything that such a boot needs is there."""
    for path, package in NEEDED.items():
        require_program(path, package)


@cache
def base() -> bytes:
    """The initial file system without steps."""
    files = {"init": INIT.encode(), "inside.py": (ROOT / "tests/diskvm/inside.py").read_bytes(), **_python()}
    programs = {"bin/busybox": parts.BUSYBOX, "sbin/cryptsetup": CRYPTSETUP, "sbin/mke2fs": MKE2FS}
    files |= {name: path.read_bytes() for name, path in programs.items()}
    files |= {f"modules/{name}.ko": data for name, data in parts.modules(MODULES).items()}
    natives = [Path(_interpreter()), *(path for path in _modules().values() if path.suffix == ".so")]
    for library in _libraries([*natives, CRYPTSETUP, MKE2FS]):
        files[str(library).lstrip("/")] = _stripped(library)
    return archive(files, {"bin/sh": "busybox"})


_kernel = cache(parts.kernel)


def _interpreter() -> str:
    return os.path.realpath(getattr(sys, "_base_executable", sys.executable))


def _python() -> dict[str, bytes]:
    """The interpreter, and every module that `inside` imports, compiled."""
    files = {f"python/bin/{PYTHON}": _stripped(Path(_interpreter()))}
    for target, path in _modules().items():
        files[f"python/lib/{PYTHON}/{target}"] = _stripped(path) if path.suffix == ".so" else _compiled(path)
    return files


def _stripped(path: Path) -> bytes:
    """A program without what only debuggers read, where the tool for it is installed: every byte is copied under emulation."""
    if shutil.which("strip") is None:
        return path.read_bytes()
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run(["strip", "--strip-unneeded", "-o", f"{scratch}/x", path], check=True, stderr=subprocess.DEVNULL)
        return (Path(scratch) / "x").read_bytes()


def _compiled(path: Path) -> bytes:
    ready = Path(importlib.util.cache_from_source(str(path)))
    if not ready.exists() or ready.stat().st_mtime < path.stat().st_mtime:
        with tempfile.TemporaryDirectory() as scratch:
            return Path(py_compile.compile(str(path), f"{scratch}/x.pyc", doraise=True) or "").read_bytes()
    return ready.read_bytes()


@cache
def _modules() -> dict[str, Path]:
    """By their place below the library, the files of all modules that a run imports."""
    command = [sys.executable, "-B", "-c", IMPORTS, str(ROOT / "tests/diskvm/inside.py")]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)
    modules = {}
    for line in done.stdout.splitlines():
        name, place, package = line.split("\t")
        path = Path(place)
        if not name or path.suffix not in (".py", ".so"):
            continue
        where = name.replace(".", "/") + ("/__init__" if package == "True" else "")
        modules[where + (".pyc" if path.suffix == ".py" else f".{path.name.partition('.')[2]}")] = path
    return modules


def _libraries(programs: Sequence[Path]) -> set[Path]:
    listing = subprocess.run(["ldd", *map(str, programs)], capture_output=True, text=True, check=False).stdout
    words = (word for line in listing.splitlines() for word in line.split() if word.startswith("/"))
    return {Path(word.rstrip(":")) for word in words if ".so" in word} - set(programs)


@contextmanager
def machine(
    steps: Sequence[tuple[str, dict[str, Any]]], disks: Sequence[Path | str]
) -> Iterator[subprocess.Popen[bytes]]:
    """A machine that runs steps on disks, /dev/vda first; it may be killed at any moment. A text is taken as QEMU's own words."""
    with tempfile.TemporaryDirectory(prefix="fastness-disk-") as scratch:
        initrd = Path(scratch) / "initrd"
        initrd.write_bytes(base() + archive({"steps.json": json.dumps(steps).encode()}, {}))
        (Path(scratch) / "vmlinuz").write_bytes(_kernel())
        command = [
            str(parts.QEMU), "-accel", "tcg", "-machine", "q35", "-cpu", "qemu64", "-m", "512", "-smp", "1", "-nodefaults",
            "-no-user-config", "-display", "none", "-monitor", "none", "-no-reboot", "-serial", "stdio",
            "-kernel", f"{scratch}/vmlinuz", "-initrd", str(initrd), "-append", COMMAND_LINE, "-device", "virtio-rng-pci",
        ]  # fmt: skip
        for number, disk in enumerate(disks):
            words = disk if isinstance(disk, str) else f"file={disk}"
            command += [
                "-drive",
                f"if=none,id=d{number},format=raw,{words}",
                "-device",
                f"virtio-blk-pci,drive=d{number}",
            ]
        with running(command, Path(scratch) / "qemu.log") as process:
            yield process


def boot(steps: Sequence[tuple[str, dict[str, Any]]], disks: Sequence[Path | str]) -> list[dict[str, Any]]:
    """What each step answered."""
    with machine(steps, disks) as process:
        return listen(process, lambda answers: False)


def listen(process: subprocess.Popen[bytes], enough: Callable[[list[dict[str, Any]]], bool]) -> list[dict[str, Any]]:
    """The answers of a machine until it is done, or until there are enough of them."""
    assert process.stdout is not None
    answers: list[dict[str, Any]] = []
    lines: list[str] = []
    deadline = time.monotonic() + DEADLINE
    for line in process.stdout:
        text = line.decode(errors="replace").rstrip()
        lines.append(text)
        assert time.monotonic() < deadline, "\n".join(lines[-40:])
        if MARK in text:
            answers.append(json.loads(text.partition(MARK)[2]))
        if DONE in text or enough(answers):
            return answers
    raise AssertionError("the machine stopped:\n" + "\n".join(lines[-60:]))
