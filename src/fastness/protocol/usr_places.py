"""Where a default of ours lives below /usr in an image, for paths that have such a place.

    below_usr("/etc/sysctl.d/arp.conf")     /usr/lib/sysctl.d/arp.conf
    below_usr("/etc/kubernetes/x")          empty: the program that reads it looks nowhere else

Only directories whose readers merge /usr and /etc by the names of files, and take the one in /etc where both have it
(systemd.unit(5), sysctl.d(5), modules-load.d(5) and their kin). Single files, such as storage.conf of container libraries, have
no place here: distributions ship them in /etc themselves, and theirs would win over ours.

Builds put defaults there, and agents know that such a path is as its config says when /etc has nothing and the image has this.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_DIRECTORIES: Final[Mapping[str, str]] = {
    f"/etc/{name}": f"/usr/lib/{name}"
    for name in (
        "systemd/system", "systemd/system.conf.d", "systemd/journald.conf.d", "sysctl.d", "modules-load.d", "modprobe.d",
        "tmpfiles.d", "sysusers.d", "udev/rules.d",
    )
}  # fmt: skip


def below_usr(path: str) -> str:
    """The place of a default in an image, for a path of a config; empty where there is none."""
    for directory, place in _DIRECTORIES.items():
        if path.startswith(f"{directory}/"):
            return f"{place}{path.removeprefix(directory)}"
    return ""
