"""A root that `fastness machine image` makes a node of: a small Debian, and the programs of a node from this host.

The Debian is made once and kept (`tests/bed/base.py`). The programs are those that beds run: the kubelet that `tools/realkube.py`
built, Debian's containerd, runc and network plug-ins. Two container images come along, because the machine reaches no registry:
what holds a pod together, by the name that this containerd asks for, and what runs in it.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

from fastness.sim.vms import parts
from tests.bed import settings
from tests.bed.base import debian
from tests.bed.images import archived, busybox_image, pause_image
from tests.components import require_program

PACKAGES = (
    "systemd", "systemd-sysv", "dbus", "kmod", "mount", "iproute2", "iptables", "tpm2-tools", "libtss2-tcti-device0",
    "libseccomp2", "ca-certificates",
)  # fmt: skip
PROGRAMS = ("/usr/bin/containerd", "/usr/bin/containerd-shim-runc-v2", "/usr/bin/ctr", "/usr/sbin/runc")
PLUGINS = ("loopback", "bridge", "host-local")
PAUSE = "registry.k8s.io/pause:3.6"
BUSYBOX = "images.example/busybox:1"


def require_node() -> None:
    """Skip by name, or fail in CI, unless what makes a node's root is there."""
    for path, package in parts.ROOT_PACKAGES.items():
        require_program(path, package)
    for program in PROGRAMS:
        require_program(Path(program), "containerd runc")
    require_program(Path("/usr/lib/cni/bridge"), "containernetworking-plugins")
    require_program(Path("/usr/bin/mmdebstrap"), "mmdebstrap")


def unpack(cache: Path, root: Path) -> Path:
    """The Debian, as a directory of its own."""
    root.mkdir()
    subprocess.run(["tar", "-xf", debian(cache, PACKAGES), "-C", root], check=True)
    return root


def node_directory(kubelet: Path, node: Path) -> Path:
    """What `--with-node` takes."""
    for name in ("cni", "net.d", "images"):
        (node / name).mkdir(parents=True)
    for program in (str(kubelet), *PROGRAMS):
        shutil.copy(program, node)
    for plugin in PLUGINS:
        shutil.copy(f"/usr/lib/cni/{plugin}", node / "cni")
    network = json.loads(settings.pod_network("10.244.0.0/24"))
    network["plugins"] = [plugin for plugin in network["plugins"] if plugin["type"] == "bridge"]
    (node / "net.d" / "10-pods.conflist").write_text(json.dumps(network))
    (node / "images" / "pause.tar").write_bytes(archived(pause_image(parts.BUSYBOX), PAUSE))
    (node / "images" / "busybox.tar").write_bytes(archived(busybox_image(parts.BUSYBOX), BUSYBOX))
    return node
