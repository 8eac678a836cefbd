"""What makes a node able to run pods in virtual machines: handlers that the container runtime knows, and the shim they start.

The packages bring both. Where a DaemonSet installs, its pod writes the drop-in, with the same bytes.

Two files more make it able to run a pod as a virtual machine beside it (`REMOTE_FILES`):

* The drop-in tells the container runtime about the handler `kata-remote` and where its configuration is.
* The configuration has no hypervisor: the shim hands every virtual machine to the adaptor, over a socket of the node. Nothing
  is shared through file systems, and the pod's network is the adaptor's to make.

Both ways of installing write the same bytes: a machine config, or the pod of a DaemonSet.
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

REMOTE_MODE: Final = 0o644
SOCKET_DIRECTORY: Final = "/run/peerpod"
SOCKET: Final = f"{SOCKET_DIRECTORY}/hypervisor.sock"
# Long enough for a cloud to boot a machine.
_TIMEOUT_SECONDS: Final = 900
_REMOTE_RUNTIME: Final = f"""\
[crio.runtime.runtimes.{names.REMOTE_CLASS}]
runtime_path = "{SHIM}"
runtime_type = "vm"
runtime_root = "/run/vc"
runtime_config_path = "{names.REMOTE_FILE}"
privileged_without_host_devices = true
"""
_REMOTE_CONFIGURATION: Final = f"""\
[hypervisor.remote]
remote_hypervisor_socket = "{SOCKET}"
remote_hypervisor_timeout = {_TIMEOUT_SECONDS}
disable_guest_selinux = true
shared_fs = "none"

[agent.kata]

[runtime]
internetworking_model = "none"
disable_new_netns = true
disable_guest_seccomp = true
static_sandbox_resource_mgmt = true
"""
REMOTE_FILES: Final[Mapping[str, bytes]] = {
    names.REMOTE_FILE: _REMOTE_CONFIGURATION.encode(),
    names.REMOTE_RUNTIME_FILE: _REMOTE_RUNTIME.encode(),
}
