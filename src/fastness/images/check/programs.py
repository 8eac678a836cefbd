"""The programs that make a machine a node, where the image brings them: which, whether they can start, and where they go.

They come as one directory, and a name in it that nobody knows is refused:

    kubelet, containerd, containerd-shim-runc-v2, runc      must be there
    ctr, crictl                                             may be there
    cni/loopback, cni/…                                     network plug-ins; the first one must be there
    net.d/….conflist                                        the network of pods, where no plug-in brings it later
    images/….tar                                            container images that machines need not pull; imported by `ctr`

Pure: contents and modes go in, pieces come out. A program for another processor, or one whose libraries the image does not have,
would be seen by nobody before a machine has proved itself and has no kubelet: it is refused here. Nothing is started to find out.
Configuration and unit of the kubelet come with the rendered configuration, after the proof, and so does containerd's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from fastness.formats import json
from fastness.formats.elf import X86_64, ElfError, parse_elf
from fastness.formats.errors import JsonError
from fastness.images.check.tree import UNITS, FilePiece, LinkPiece, Piece, Tree, present, settings_path, unmasked
from fastness.runtime.errors import CodedError

PROGRAMS: Final = {
    "kubelet": "/usr/bin/kubelet", "containerd": "/usr/bin/containerd",
    "containerd-shim-runc-v2": "/usr/bin/containerd-shim-runc-v2", "runc": "/usr/sbin/runc",
}  # fmt: skip
TOOLS: Final = {"ctr": "/usr/bin/ctr", "crictl": "/usr/bin/crictl"}
PLUGINS: Final = "/opt/cni/bin"
LOOPBACK: Final = "loopback"
NETWORKS: Final = "/etc/cni/net.d"
IMAGES: Final = "/usr/lib/fastness/images"
CONTAINERD: Final = "containerd.service"
IMPORT: Final = "fastness-images.service"
PRESET: Final = "/usr/lib/systemd/system-preset/30-fastness-node.preset"
MAX_PROGRAM: Final = 256 * 1024 * 1024
MAX_ALL: Final = 1024 * 1024 * 1024
MAX_NAME: Final = 128
LIBRARIES: Final = (
    "/usr/lib/x86_64-linux-gnu", "/lib/x86_64-linux-gnu", "/usr/lib64", "/lib64", "/usr/lib", "/lib",
)  # fmt: skip
# What programs and units of a node call by name, and the package of Debian that has it.
HELPERS: Final = {
    "/usr/lib/systemd/systemd": "systemd", "/usr/bin/mount": "mount", "/usr/bin/ip": "iproute2", "/usr/bin/kmod": "kmod",
    "/usr/bin/dbus-daemon": "dbus", "/usr/bin/tpm2": "tpm2-tools", "/usr/sbin/iptables": "iptables",
}  # fmt: skip
# Without it a first boot starts whatever the packages of the image have, and waits for networks that nobody configured.
PRESETS: Final = (
    "# A first boot starts what the image links and what its configuration enables, and nothing else.\ndisable *\n"
)
CONTAINERD_UNIT: Final = """\
[Unit]
Description=Container runtime
After=network.target local-fs.target kubelet-dependencies.target

[Service]
Type=notify
ExecStart=/usr/bin/containerd
# Containers go on while it restarts, in groups that are its own.
Delegate=yes
KillMode=process
Restart=always
RestartSec=5
LimitNPROC=infinity
LimitCORE=0
TasksMax=infinity
OOMScoreAdjust=-999

[Install]
WantedBy=multi-user.target
"""
IMPORT_UNIT: Final = f"""\
[Unit]
Description=Give the image's own container images to the runtime
ConditionDirectoryNotEmpty={IMAGES}
Requires={CONTAINERD}
After={CONTAINERD}
Before=kubelet.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh -c 'for archive in {IMAGES}/*.tar; do /usr/bin/ctr -n k8s.io images import "$$archive"; done'

[Install]
WantedBy=multi-user.target
"""


class NodeRefused(CodedError):
    """What was given for a node cannot make one: a stable code, a sentence, and what to do."""


def node_programs(files: Mapping[str, FilePiece], tree: Tree) -> list[Piece]:
    """The pieces that make machines of an image nodes; `files` by their name in the directory; raises NodeRefused."""
    _complete(files)
    helpers_there(tree)
    pieces: list[Piece] = [_piece(name, file, tree) for name, file in sorted(files.items())]
    pieces.append(FilePiece(PRESET, PRESETS.encode()))
    # A package's own unit stays: it knows where its program is.
    if unmasked(tree, CONTAINERD) in (None, f"{UNITS}/{CONTAINERD}"):
        pieces.append(FilePiece(f"{UNITS}/{CONTAINERD}", CONTAINERD_UNIT.encode()))
    if any(name.startswith("images/") for name in files):
        wants = f"{UNITS}/multi-user.target.wants/{IMPORT}"
        pieces += [FilePiece(f"{UNITS}/{IMPORT}", IMPORT_UNIT.encode()), LinkPiece(wants, f"../{IMPORT}")]
    return pieces


def helpers_there(tree: Tree) -> None:
    """Raise NodeRefused for a root that lacks what a node's programs and units call."""
    packages = sorted({package for path, package in HELPERS.items() if not present(tree, path)})
    if packages:
        raise NodeRefused(
            "no-helpers", f"the image lacks what a node needs: {', '.join(packages)}",
            f"Install these packages into the root of the image: {' '.join(packages)}.",
        )  # fmt: skip


def programs_there(tree: Tree) -> None:
    """Raise NodeRefused for a root without the programs of a node."""
    for name, path in PROGRAMS.items():
        if not present(tree, path):
            raise NodeRefused("no-program", f"the image has no {name} ({path})", "Give the programs with --with-node.")


def _complete(files: Mapping[str, FilePiece]) -> None:
    for name in (*PROGRAMS, f"cni/{LOOPBACK}"):
        if name not in files:
            raise NodeRefused(
                "no-program",
                f"there is no {name}",
                f"Put it there; needed are {', '.join(PROGRAMS)} and cni/{LOOPBACK}.",
            )
    if any(name.startswith("images/") for name in files) and "ctr" not in files:
        raise NodeRefused("no-program", "there is no ctr, and images/ has something to import", "Put ctr there, too.")
    total = sum(len(file.content) for file in files.values())
    if total > MAX_ALL:
        raise NodeRefused("too-large", f"the files have {total} bytes, more than {MAX_ALL}", "Leave images out.")


def _piece(name: str, file: FilePiece, tree: Tree) -> FilePiece:
    directory, _, last = name.rpartition("/")
    if len(file.content) > MAX_PROGRAM:
        raise NodeRefused(
            "too-large",
            f"{name} has {len(file.content)} bytes, more than {MAX_PROGRAM}",
            "Strip it, or take another build.",
        )
    if len(last) > MAX_NAME or last.startswith("."):
        raise NodeRefused("unknown-name", f"{name} is no name that goes into an image", "Rename it or take it away.")
    match directory, last.rpartition(".")[2]:
        case "", _ if name in PROGRAMS or name in TOOLS:
            return _program(name, file, (PROGRAMS | TOOLS)[name], tree)
        case "cni", _:
            return _program(name, file, f"{PLUGINS}/{last}", tree)
        case "net.d", "conflist" | "conf" | "json":
            return _network(name, file, settings_path(tree, f"{NETWORKS}/{last}"))
        case "images", "tar":
            return FilePiece(f"{IMAGES}/{last}", file.content)
    raise NodeRefused(
        "unknown-name", f"nobody knows what {name} is for",
        f"Take it away; what may be there is {', '.join([*PROGRAMS, *TOOLS])}, cni/, net.d/*.conflist, images/*.tar.",
    )  # fmt: skip


def _program(name: str, file: FilePiece, path: str, tree: Tree) -> FilePiece:
    if not file.mode & 0o100:
        raise NodeRefused("not-executable", f"{name} is not executable", f"chmod +x {name}")
    try:
        elf = parse_elf(file.content)
    except ElfError as error:
        raise NodeRefused(error.code, f"{name}: {error.message}", error.hint) from error
    if elf.machine != X86_64:
        raise NodeRefused(
            "other-machine", f"{name} is for {elf.machine}, and machines are {X86_64}", "Take the build for amd64."
        )
    absent = [library for library in _beside(elf.loader, elf.needed) if not _library(tree, library)]
    if absent:
        raise NodeRefused(
            "no-library", f"{name} needs {', '.join(absent)}, which the image does not have",
            "Install the package that has it into the root of the image, or take a static build.",
        )  # fmt: skip
    return FilePiece(path, file.content, 0o755)


def _beside(loader: str, needed: tuple[str, ...]) -> Iterator[str]:
    if loader:
        yield loader.rpartition("/")[2]
    yield from needed


def _library(tree: Tree, name: str) -> bool:
    return any(present(tree, f"{directory}/{name}") for directory in LIBRARIES)


def _network(name: str, file: FilePiece, path: str) -> FilePiece:
    try:
        network = json.decode(file.content)
    except JsonError as error:
        raise NodeRefused("bad-network", f"{name}: {error}", "Give a list of network plug-ins as JSON.") from error
    if not isinstance(network, dict) or not isinstance(network.get("cniVersion"), str):
        raise NodeRefused("bad-network", f"{name} has no cniVersion", "Give a list of network plug-ins as JSON.")
    return FilePiece(path, file.content)
