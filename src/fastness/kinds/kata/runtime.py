"""What makes a node able to run pods in virtual machines: handlers that the container runtime knows, and the shim they start.

The packages bring both. Where a DaemonSet installs, its pod writes the drop-in, with the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fastness.kinds.kata import names

HANDLERS: Final = ("kata", "kata-tdx", "kata-snp")
SHIM: Final = "/usr/bin/containerd-shim-kata-v2"
PACKAGES: Final = (names.EXTENSION, names.COMMUNITY_EXTENSION)
_HANDLER: Final = f"""\
[crio.runtime.runtimes.{{name}}]
runtime_path = "{SHIM}"
runtime_type = "vm"
runtime_root = "/run/vc"
privileged_without_host_devices = true
"""
PATHS: Final = (names.RUNTIME_FILE, SHIM)
DROP_IN: Final = "".join(_HANDLER.format(name=name) for name in HANDLERS).encode()
# A virtual machine runs no containers: its shim says so to whoever starts it.
_VIRTUAL_SHIM: Final = b'#!/bin/sh\necho "a virtual machine of Fastness runs no containers" >&2\nexit 1\n'
VIRTUAL_FILES: Final[Mapping[str, tuple[bytes, int]]] = {
    names.RUNTIME_FILE: (DROP_IN, 0o644), SHIM: (_VIRTUAL_SHIM, 0o755),
}  # fmt: skip
