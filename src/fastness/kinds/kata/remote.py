"""The two files that make a node able to run a pod as a virtual machine beside it.

* The drop-in tells the container runtime about the handler `kata-remote` and where its configuration is.
* The configuration has no hypervisor: the shim hands every virtual machine to the adaptor, over a socket of the node. Nothing
  is shared through file systems, and the pod's network is the adaptor's to make.

Both ways of installing write the same bytes: a machine config, or the pod of a DaemonSet.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fastness.kinds.kata import names

MODE: Final = 0o644
SOCKET_DIRECTORY: Final = "/run/peerpod"
SOCKET: Final = f"{SOCKET_DIRECTORY}/hypervisor.sock"
# Long enough for a cloud to boot a machine.
_TIMEOUT_SECONDS: Final = 900
_RUNTIME: Final = f"""\
[crio.runtime.runtimes.{names.REMOTE_CLASS}]
runtime_path = "/usr/bin/containerd-shim-kata-v2"
runtime_type = "vm"
runtime_root = "/run/vc"
runtime_config_path = "{names.REMOTE_FILE}"
privileged_without_host_devices = true
"""
_CONFIGURATION: Final = f"""\
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
FILES: Final[Mapping[str, bytes]] = {
    names.REMOTE_FILE: _CONFIGURATION.encode(),
    names.REMOTE_RUNTIME_FILE: _RUNTIME.encode(),
}
