"""What a real machine is made of: programs and firmware of this host, and a kernel of the distribution.

* Debian's cloud kernel has TPM, serial port and EFI stub built in; only the network needs modules.
* The kernel's package is what the archive offers now, because the pool drops old ones. Its SHA-256 is the archive's own, from the
  signed index. What was fetched stays in the user's cache by that hash.
* Emulation only: a /dev/kvm that exists need not work.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from fastness.agent.host.errors import CommandFailed
from fastness.agent.host.process import run
from fastness.runtime.errors import FastnessError

QEMU: Final = Path("/usr/bin/qemu-system-x86_64")
SWTPM: Final = Path("/usr/bin/swtpm")
STUB: Final = Path("/usr/lib/systemd/boot/efi/linuxx64.efi.stub")
FIRMWARE: Final = Path("/usr/share/OVMF/OVMF_CODE.fd")
VARIABLES: Final = Path("/usr/share/OVMF/OVMF_VARS.fd")
BUSYBOX: Final = Path("/bin/busybox")
TPM2: Final = Path("/usr/bin/tpm2")
IGNITION: Final = Path("/usr/lib/dracut/modules.d/30ignition/ignition")
PACKAGES: Final = {
    QEMU: "qemu-system-x86", FIRMWARE: "ovmf", VARIABLES: "ovmf", SWTPM: "swtpm", Path("/usr/bin/swtpm_setup"): "swtpm-tools",
    TPM2: "tpm2-tools", BUSYBOX: "busybox-static", STUB: "systemd-boot-efi", Path("/usr/bin/mformat"): "mtools",
    IGNITION: "ignition",
}  # fmt: skip
# For machines with a root of their own.
ROOT_PACKAGES: Final = {Path("/usr/sbin/mkfs.ext4"): "e2fsprogs", Path("/usr/sbin/depmod"): "kmod"}
META: Final = "linux-image-cloud-amd64"
SECONDS: Final = 120.0
# In the order in which they are loaded.
MODULES: Final = (
    "virtio_ring", "virtio_pci_modern_dev", "virtio_pci_legacy_dev", "virtio", "virtio_pci", "failover", "net_failover",
    "virtio_net", "virtio-rng", "virtio_blk",
)  # fmt: skip
# For a machine with a root of its own, beside those, in this order.
ROOT_MODULES: Final = ("dm-mod", "dm-bufio", "reed_solomon", "dm-verity", "overlay")
FW_CFG: Final = "qemu_fw_cfg"
"""Shows what the host passes by fw_cfg; machines of the simulator are passed nothing there."""
DISK_MODULES: Final = ("dm-mod", "ecb", "xts", "dm-crypt")
"""Encrypted volumes, in the order in which they are loaded. `xts` asks for `ecb` only softly, so it is loaded by name."""
TAG_MODULES: Final = ("dm-bufio", "async_tx", "xor", "async_xor", "dm-integrity", "authenc")
"""Volumes whose sectors carry tags; loaded behind the others."""
_KEPT: Final = tuple(dict.fromkeys((*MODULES, *ROOT_MODULES, FW_CFG, *DISK_MODULES, *TAG_MODULES)))
_ALL: Final = "all-modules"


class NoRealMachine(FastnessError):
    """Something that a real machine needs is not here."""

    code = "no-real-machine"
    hint = "Real machines need Debian with a reachable package archive; --machines needs nothing."


def missing(there: Callable[[Path], bool] = Path.exists, *, with_root: bool = False) -> list[str]:
    """The packages that are not installed and are needed for real machines, or for those with a root of their own."""
    needed = PACKAGES | ROOT_PACKAGES if with_root else PACKAGES
    return sorted({package for path, package in needed.items() if not there(path)})


def require(*, with_root: bool = False) -> None:
    """Raises NoRealMachine unless everything is installed."""
    absent = missing(with_root=with_root)
    if absent:
        raise NoRealMachine(
            f"real machines need packages that are not installed: {', '.join(absent)}",
            f"apt-get install --no-install-recommends {' '.join(absent)}",
        )


def cache() -> Path:
    """Where kernels are kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fastness" / "kernels"


def kernel() -> bytes:
    """The kernel image; fetched when it is not in the cache; raises NoRealMachine."""
    return (_unpacked() / "vmlinuz").read_bytes()


def modules(names: tuple[str, ...] = MODULES) -> dict[str, bytes]:
    """Modules of the same kernel, by name; raises NoRealMachine."""
    place = _unpacked() / "modules"
    return {name: (place / f"{name}.ko").read_bytes() for name in names}


def module_tree() -> Path:
    """The directory of all modules of the same kernel, by the name of its release; raises NoRealMachine."""
    (tree,) = (_unpacked() / _ALL).iterdir()
    return tree


def offered() -> tuple[str, str] | None:
    """The package that the archive offers now, and its SHA-256; None where nobody can say."""
    if shutil.which("apt-cache") is None:
        return None
    depends = re.search(r"Depends: (linux-image-\S+)", _said("apt-cache", "depends", META))
    if depends is None:
        return None
    digest = re.search(r"^SHA256: ([0-9a-f]{64})$", _said("apt-cache", "show", "--no-all-versions", depends[1]), re.M)
    return (depends[1], digest[1]) if digest else None


def _unpacked() -> Path:
    """The directory of the newest kernel, with image and modules."""
    archive = offered()
    if archive is None:
        unpacked = sorted(
            (path for path in cache().glob("*") if _complete(path)), key=lambda path: path.stat().st_mtime
        )
        if not unpacked:
            raise NoRealMachine(f"there is no kernel to boot: apt knows no {META}", "Run apt-get update.")
        return unpacked[-1]
    package, digest = archive
    # The name says what is there: who keeps less of a package must not take it for the whole.
    place = cache() / f"{digest}-{_ALL}"
    if not _complete(place):
        _fetch(package, digest, place)
    return place


def _complete(place: Path) -> bool:
    whole = (place / "vmlinuz").exists() and (place / _ALL).exists()
    return whole and all((place / "modules" / f"{name}.ko").exists() for name in _KEPT)


def _said(*command: str) -> str:
    try:
        return run(command, seconds=SECONDS)
    except CommandFailed:
        return ""


def _fetch(package: str, digest: str, place: Path) -> None:
    """Fetch a package into the cache; two that do so at once do not disturb each other."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent, prefix=".fetch-") as name:
        scratch, unpacked = Path(name), Path(name) / "kept"
        try:
            run(["sh", "-c", 'cd "$1" && apt-get download -q "$2"', "sh", name, package], seconds=SECONDS)
            (deb,) = scratch.glob("*.deb")
            if hashlib.sha256(deb.read_bytes()).hexdigest() != digest:
                raise NoRealMachine(
                    f"{deb.name} is not what the archive's index says", "Run apt-get update and try again."
                )
            run(["dpkg-deb", "-x", str(deb), f"{name}/tree"], seconds=SECONDS)
        except (CommandFailed, ValueError) as error:
            raise NoRealMachine(f"there is no kernel to boot: {error}", "Run apt-get update and try again.") from error
        (unpacked / "modules").mkdir(parents=True)
        (image,) = (scratch / "tree" / "boot").glob("vmlinuz-*")
        image.rename(unpacked / "vmlinuz")
        for path in (scratch / "tree" / "lib" / "modules").rglob("*.ko"):
            if path.stem in _KEPT:
                shutil.copy(path, unpacked / "modules")
        (scratch / "tree" / "lib" / "modules").rename(unpacked / _ALL)
        shutil.rmtree(place, ignore_errors=True)
        unpacked.rename(place)
