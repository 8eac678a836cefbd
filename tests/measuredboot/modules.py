"""Modules of the kernel that the test machines boot: what it takes to reach the network of QEMU."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from tests.measuredboot import kernel

# In the order in which they are loaded.
NETWORK = (
    "virtio_ring", "virtio_pci_modern_dev", "virtio_pci_legacy_dev", "virtio", "virtio_pci", "failover", "net_failover",
    "virtio_net", "virtio-rng",
)  # fmt: skip


def modules(names: tuple[str, ...] = NETWORK) -> dict[str, bytes]:
    """Modules by name, of the package that `kernel.kernel()` is from; they stay in the same cache."""
    kernel.kernel()
    place = max(kernel.cache().glob("*/vmlinuz"), key=lambda path: path.stat().st_mtime).parent / "modules"
    if not all((place / f"{name}.ko").exists() for name in names):
        _unpacked(place)
    return {name: (place / f"{name}.ko").read_bytes() for name in names}


def _unpacked(place: Path) -> None:
    package, _ = kernel.offered() or kernel.unavailable(f"apt knows no {kernel.META}: run apt-get update")
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run(["apt-get", "download", "-q", package], cwd=scratch, capture_output=True, check=False)
        deb = next(Path(scratch).glob("*.deb"), None) or kernel.unavailable(f"apt-get download {package} failed")
        subprocess.run(["dpkg-deb", "-x", str(deb), "tree"], cwd=scratch, check=True)
        place.mkdir(exist_ok=True)
        for path in Path(scratch, "tree/lib/modules").rglob("*.ko"):
            if path.stem in NETWORK:
                (place / path.name).write_bytes(path.read_bytes())
