"""Files that other operators write on nodes: declared once, by path and owner, in a file of a MachineConfig.

    /etc/fastness/files-of-others.d/sriov.json
    {"owner": "sriov-network-operator", "paths": ["/etc/sriov-operator", "/etc/udev/rules.d/10-nm-disable.rules"]}

A path stands for itself and for everything below it. The declaration goes to machines as every file of a config does, so it has a
pool, a history and a way back, and needs no reboot. What follows from it:

- Agents neither judge nor replace nor delete what is there. A config may bring the first content of such a file, and no more.
- What is below /etc is there again after a boot whose /etc is another one, sealed systems included (`agent/apply/others`).
- `fastness image what-goes-where` lists it with its owner.

Nobody declares what the control plane, the agent or the kubelet keep for themselves, nor /usr, which is the image's.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from fastness.formats import json
from fastness.formats.errors import JsonError

DIRECTORY: Final = "/etc/fastness/files-of-others.d"
MOST_PATHS: Final = 64
MOST_BYTES: Final = 16 * 1024
_OWNER: Final = re.compile(r"[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?", re.ASCII)
_PATH: Final = re.compile(r"/[!-~]{1,254}", re.ASCII)
_TOPS: Final = ("/etc", "/var", "/opt", "/srv", "/usr/local")
_OURS: Final = (
    "/etc/fastness", "/etc/machine-config-daemon", "/etc/kubernetes", "/etc/docker/certs.d", "/etc/mco", "/var/lib/fastness",
    "/var/lib/fastness-agent", "/var/lib/kubelet", "/etc/passwd", "/etc/shadow", "/etc/group", "/etc/gshadow",
)  # fmt: skip
# Directories in which everybody has files: whoever owned one of them whole would own ours.
_SHARED: Final = (
    "/etc/systemd",
    "/etc/systemd/system",
    "/etc/sysctl.d",
    "/etc/udev",
    "/etc/udev/rules.d",
    "/var/lib",
    "/var/home",
)


class Declaration(NamedTuple):
    """Paths that somebody else keeps on nodes."""

    owner: str
    paths: tuple[str, ...]


def read_declaration(content: bytes) -> Declaration:
    """What a file in the directory declares; raises ValueError with what is wrong and what to write."""
    if len(content) > MOST_BYTES:
        raise ValueError(f"it has more than {MOST_BYTES} bytes: declare directories")
    try:
        value = json.decode(content)
    except JsonError as error:
        raise ValueError(f"it is no JSON ({error}): {_SHAPE}") from error
    if not isinstance(value, dict) or set(value) != {"owner", "paths"}:
        raise ValueError(_SHAPE)
    owner, paths = value["owner"], value["paths"]
    if not isinstance(owner, str) or not _OWNER.fullmatch(owner):
        raise ValueError(
            f"owner is {str(owner)[:80]!r}: write the name of who writes the files, as sriov-network-operator"
        )
    if not isinstance(paths, list) or not 0 < len(paths) <= MOST_PATHS:
        raise ValueError(f"paths is no list of 1 to {MOST_PATHS} paths")
    for path in paths:
        _require(path)
    return Declaration(owner, tuple(paths))


_SHAPE: Final = 'write {"owner": "NAME", "paths": ["/etc/…"]}'


def _require(path: Any) -> None:
    quoted = repr(str(path)[:120])
    if not isinstance(path, str) or not _PATH.fullmatch(path) or posixpath.normpath(path) != path:
        raise ValueError(f"path {quoted} is no plain absolute path")
    if not any(path.startswith(f"{top}/") for top in _TOPS):
        raise ValueError(
            f"path {quoted} is not below {', '.join(_TOPS)}: /usr is the image's, the rest does not outlive a boot"
        )
    if taken := next(
        (mine for mine in _OURS if f"{path}/".startswith(f"{mine}/") or f"{mine}/".startswith(f"{path}/")), ""
    ):
        raise ValueError(
            f"path {quoted} holds what the control plane and the kubelet keep in {taken}: name what is yours"
        )
    if path in _SHARED:
        raise ValueError(f"path {quoted} is a directory of everybody: name the files in it")


def is_declaration(path: str) -> bool:
    """Whether a file of a config declares files of others."""
    return posixpath.dirname(path) == DIRECTORY


class FilesOfOthers:
    """Who keeps which paths; whatever cannot be read declares nothing: rendering refused it before."""

    def __init__(self, declarations: Iterable[Declaration] = ()) -> None:
        self.owners: Mapping[str, str] = {path: each.owner for each in declarations for path in each.paths}

    @classmethod
    def of(cls, files: Iterable[tuple[str, bytes]]) -> FilesOfOthers:
        """Of the files of a config."""
        return cls(_readable(files))

    def owner_of(self, path: str) -> str:
        """Who keeps a path; empty for nobody."""
        while path not in ("", "/"):
            if path in self.owners:
                return self.owners[path]
            path = posixpath.dirname(path)
        return ""


def _readable(files: Iterable[tuple[str, bytes]]) -> Iterator[Declaration]:
    for path, content in files:
        if is_declaration(path):
            try:
                yield read_declaration(content)
            except ValueError:
                continue
