"""The base that sealed images are built on: a small Debian with agent and engines, a kernel, and an initial file system.

It is an image like any other that a MachineOSConfig may name as its base: kernel, initramfs.img and boot stub lie where bootc has
them, kernel arguments in kargs.d. The initial file system runs the real composefs-setup-root, with /etc in memory; what has to
stay is /var, which lies on the data disk for all images together.
"""

from __future__ import annotations

import gzip
import io
import json
import lzma
import os
import re
import tarfile
import tempfile
from functools import cache
from pathlib import Path

import pytest

from fastness.protocol.pointer import SYSTEM_CONFIG, image_pointer
from fastness.sim.vms.guest import AGENT, FORWARD, FORWARDER
from fastness.sim.vms.initrd import archive
from fastness.sim.vms.parts import BUSYBOX
from tests.bed.base import debian
from tests.bed.images import Image
from tests.components import require_program
from tests.measuredboot.stockroot import libraries_of
from tools import agent_image, engines
from tools.realkube import cache_root

PACKAGES = (
    "systemd", "systemd-sysv", "dbus", "kmod", "mount", "systemd-boot", "iproute2", "tpm2-tools", "libtss2-tcti-device0",
    "ca-certificates", "skopeo",
)  # fmt: skip
SKOPEO = Path("/usr/bin/skopeo")
# What the machine has besides what its kernel has built in; what each needs comes first.
MODULES = ("virtio_blk", "virtio_net", "virtio-rng", "erofs", "overlay", "vfat", "nls_ascii", "nls_cp437", "efivarfs")
INSIDE = "usr/lib/fastness/inside.py"
# Without KVM a busy host keeps the timer back while the kernel looks for it; it would then go on without one, for ever.
ARGUMENTS = ["console=ttyS0", "quiet", "no_timer_check", "panic=1", "ignition.platform.id=qemu"]
SETUP = '[etc]\nmount = "transient"\n[var]\nmount = "none"\n'
NOTHING_MOUNTED = "@@NOTHING-MOUNTED"
START = """#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t devtmpfs dev /dev
mount -t proc proc /proc
mount -t sysfs sys /sys
mkdir -p /run /sysroot
mount -t tmpfs -o mode=755 run /run
for name in {modules}; do insmod /modules/$name.ko; done
ip link set lo up
ip link set eth0 up
ip address add 10.0.2.15/24 dev eth0
ip route add default via 10.0.2.2
mount -t ext4 /dev/vdb /sysroot
"""
INIT = START + f"""
if ! composefs-setup-root > /dev/ttyS0 2>&1; then
    echo "{NOTHING_MOUNTED}" > /dev/ttyS0
    reboot -f
fi
mount -t vfat /dev/vda1 /sysroot/boot
mkdir -p /sysroot/sysroot/state/var
mount --bind /sysroot/sysroot/state/var /sysroot/var
for place in dev proc sys run; do mount --move /$place /sysroot/$place; done
exec switch_root /sysroot /usr/lib/systemd/systemd
"""  # fmt: skip
SERVICE = f"""[Unit]
After=dbus.service
Wants=dbus.service
[Service]
ExecStart=/bin/sh -c 'exec env LD_LIBRARY_PATH=/{AGENT}/lib/native /{AGENT}/bin/python3.11 -I -B /{INSIDE} run'
StandardOutput=journal+console
[Install]
WantedBy=multi-user.target
"""
MASKED = ("getty@tty1.service", "serial-getty@ttyS0.service", "systemd-logind.service", "apt-daily.timer", "getty.target",
          "apt-daily-upgrade.timer", "dpkg-db-backup.timer", "e2scrub_all.timer", "fstrim.timer", "e2scrub_reap.service",
          "systemd-boot-system-token.service", "systemd-boot-check-no-failures.service")  # fmt: skip
POLICY = {"default": [{"type": "insecureAcceptAnything"}]}


def require_sealed_machine() -> Path:
    """The directory of the engines; skips by name, or fails in CI, unless everything that such a machine needs is there."""
    for path, package in ((SKOPEO, "skopeo"), (Path("/usr/bin/mmdebstrap"), "mmdebstrap"), (BUSYBOX, "busybox-static")):
        require_program(path, package)
    return require_engines()


def require_engines() -> Path:
    """The directory of the engines; skips by name, or fails in CI."""
    directory = engines.locate(os.environ)
    if directory is None:
        text = "cfsctl and composefs-setup-root are missing: python tools/engines.py ensure"
        if os.environ.get("CI", "").lower() == "true":
            pytest.fail(text, pytrace=False)
        pytest.skip(text)
    return directory


@cache
def kernel() -> Path:
    """The kernel of such machines: `vmlinuz` and `modules`."""
    try:
        return engines.kernel(os.environ)
    except engines.NoEngines as error:
        if os.environ.get("CI", "").lower() == "true":
            pytest.fail(str(error), pytrace=False)
        pytest.skip(str(error))


@cache
def modules() -> dict[str, bytes]:
    """The modules that are loaded, those that others need first."""
    places = {path.name.partition(".ko")[0].replace("-", "_"): path for path in kernel().rglob("*.ko.xz")}
    ordered: dict[str, bytes] = {}

    def load(name: str) -> None:
        path = places.get(name.replace("-", "_"))
        if path is None or name in ordered:
            return
        content = lzma.decompress(path.read_bytes())
        needed = re.search(rb"\0depends=([^\0]*)\0", content)
        for other in needed[1].decode().split(",") if needed else ():
            load(other)
        ordered[name] = content

    for name in MODULES:
        load(name)
    return ordered


def initrd(init: str, programs: dict[str, Path], files: dict[str, bytes]) -> bytes:
    """An initial file system that runs a script, with programs and what they need."""
    content = {
        "init": (init.format(modules=" ".join(modules()))).encode(),
        "bin/busybox": BUSYBOX.read_bytes(),
        **files,
    }
    content |= {name: path.read_bytes() for name, path in programs.items()}
    content |= {str(path).lstrip("/"): path.read_bytes() for path in libraries_of(list(programs.values()))}
    content |= {f"modules/{name}.ko": data for name, data in modules().items()}
    return gzip.compress(archive(content, {"bin/sh": "busybox"}), 6, mtime=0)


@cache
def base_layer(more: tuple[tuple[str, bytes], ...] = ()) -> bytes:
    """The files of the base, as a tar archive; with further files by path."""
    built = require_sealed_machine()
    version = kernel().name
    setup = {"usr/lib/composefs/setup-root-conf.toml": SETUP.encode()}
    started = initrd(INIT, {"bin/composefs-setup-root": built / "composefs-setup-root"}, setup)
    files = {
        "usr/bin/cfsctl": (built / "cfsctl").read_bytes(),
        f"usr/lib/modules/{version}/vmlinuz": (kernel() / "vmlinuz").read_bytes(),
        f"usr/lib/modules/{version}/initramfs.img": started,
        "usr/lib/bootc/kargs.d/10-machine.toml": f"kargs = {json.dumps(ARGUMENTS)}\n".encode(),
        INSIDE: Path(__file__).with_name("inside.py").read_bytes(),
        FORWARDER: FORWARD.encode(),
        SYSTEM_CONFIG: image_pointer(),
        "etc/systemd/system/inside.service": SERVICE.encode(),
        "etc/containers/policy.json": json.dumps(POLICY).encode(),
        **_agent(), **dict(more),
    }  # fmt: skip
    links = {"etc/systemd/system/multi-user.target.wants/inside.service": "../inside.service",
             "etc/systemd/system/default.target": "/usr/lib/systemd/system/multi-user.target",
             **{f"etc/systemd/system/{unit}": "/dev/null" for unit in MASKED}}  # fmt: skip
    sink = io.BytesIO()
    with (
        tarfile.open(debian(cache_root(os.environ), PACKAGES)) as source,
        tarfile.open(fileobj=sink, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        there = {"."}
        for member in source:
            name = member.name.removeprefix("./")
            # A layer has every path once.
            if name not in files and name not in links:
                there.add(name)
                tar.addfile(member, source.extractfile(member) if member.isreg() else None)
        # Directories are entries of their own: composefs makes none that no layer has.
        parents = {str(parent) for name in (*files, *links) for parent in Path(name).parents} | {"sysroot", "boot"}
        for name in sorted(parents - there):
            tar.addfile(_entry(name, tarfile.DIRTYPE))
        for name, data in sorted(files.items()):
            entry = _entry(name, tarfile.REGTYPE)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
        for name, target in sorted(links.items()):
            entry = _entry(name, tarfile.SYMTYPE)
            entry.linkname = target
            tar.addfile(entry)
    return sink.getvalue()


def _entry(name: str, kind: bytes) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(f"./{name}")
    # Links as a file system has them: cfsctl takes their mode from the layer on a machine, and from the disk in a build.
    entry.type, entry.mode = kind, 0o777 if kind == tarfile.SYMTYPE else 0o755
    return entry


def base_image() -> Image:
    """The base as an image for a registry."""
    return Image("os/base", "1", base_layer())


def _agent() -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch) / "agent"
        agent_image.build(place)
        return {f"{AGENT}/{path.relative_to(place)}": path.read_bytes() for path in place.rglob("*") if path.is_file()}
